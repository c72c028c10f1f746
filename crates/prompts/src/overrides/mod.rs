//! Overrides: other words for a prompt without a change of its files. An override applies only to the text that it was
//! written for.
//!
//! `file` is the format of a file, `change` puts one override into it, `resolve` says which of its entries still apply, `seed`
//! makes a file from a prompt. Storage is the caller's.

mod change;
pub mod file;
mod resolve;
mod seed;

use std::collections::BTreeMap;

use crate::manifest::{TaskExample, ToolExample, Visibility};
use crate::template::Template;

pub use change::OverrideChange;
pub use file::OverrideFile;
pub use resolve::{Resolved, Stale, resolve};
pub use seed::seed;

/// The overrides that apply, by target. [`resolve`] makes it and has checked it against the template.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub sections: BTreeMap<String, SectionWords>,
    pub tools: BTreeMap<String, ToolWords>,
    /// By the path of the section and the number of the example.
    pub tasks: BTreeMap<(String, usize), TaskExample>,
}

#[derive(Clone, Debug, Default)]
pub struct SectionWords {
    pub body: Option<Template>,
    pub summary: Option<Template>,
    pub visibility: Option<Visibility>,
}

#[derive(Clone, Debug, Default)]
pub struct ToolWords {
    pub description: Option<String>,
    pub params: BTreeMap<String, String>,
    pub examples: BTreeMap<usize, ToolExample>,
}

impl Overrides {
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty() && self.tools.is_empty() && self.tasks.is_empty()
    }
}
