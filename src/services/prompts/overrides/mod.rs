//! Overrides: other words for a prompt without a change of its files, and only for the text they were written for.

use std::collections::BTreeMap;

use super::manifest::{TaskExample, ToolExample, Visibility};
use super::template::Template;

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
