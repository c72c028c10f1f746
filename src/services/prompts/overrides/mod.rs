//! Overrides: other words for a prompt without a change of its files, and only for the text they were written for.
//!
//! `file` is what lies on disk, `change` puts one override into it, `resolve` says which of its entries still apply,
//! `store` keeps the files.

mod change;
pub mod file;
mod resolve;
pub mod store;

use std::collections::BTreeMap;

use super::manifest::{TaskExample, ToolExample, Visibility};
use super::template::Template;

pub use change::Change;
pub use file::OverrideFile;
pub use resolve::{Resolved, Stale, resolve};
pub use store::Store;

/// What applies, by target. Whoever made this has checked it against the template.
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

#[cfg(test)]
mod tests;
