//! A prompt that has been checked: its sections in the order in which they are shown, numbered once and for all.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::condition::Condition;
use crate::descriptor::Descriptor;
use crate::fault::Fault;
use crate::front::Front;
use crate::manifest::{Headings, Need, PartKind, Selector, TaskExample};
use crate::names;
use crate::output::Output;
use crate::record::Record;
use crate::template::Template;
use crate::tool::Tool;
use acheron_base::Code;

/// Immutable; shared by everything that was opened from it.
#[derive(Debug)]
pub struct PromptTemplate {
    pub ns: String,
    pub key: String,
    pub name: Option<String>,
    pub headings: Headings,
    /// Depth first.
    pub nodes: Vec<Node>,
    pub records: BTreeMap<String, Arc<Record>>,
    pub output: Option<Output>,
    pub resources: BTreeMap<String, Need>,
    /// How long one evaluation may take.
    pub time_limit_ms: Option<u64>,
    /// The front matter of a prompt of one file.
    pub front: Front,
    /// The prompt is one file, so that its params are those of that file.
    pub single: bool,
    /// The files that it was read from, by their path below the folder of prompts.
    pub sources: BTreeMap<String, String>,
    pub(crate) descriptor: OnceLock<Arc<Descriptor>>,
}

#[derive(Debug)]
pub struct Node {
    /// Keys joined by `/`.
    pub path: String,
    pub number: String,
    pub depth: usize,
    /// One past the last node below this one.
    pub end: usize,
    pub parent: Option<usize>,
    pub section: Section,
}

#[derive(Debug)]
pub struct Section {
    pub key: String,
    pub title: String,
    pub kind: PartKind,
    pub record: Option<Arc<Record>>,
    pub default: Option<Value>,
    pub body: Option<Template>,
    pub summary: Option<Template>,
    pub enabled: Condition,
    pub visibility: Selector,
    pub accepts_overrides: bool,
    pub tools: Vec<Tool>,
    pub examples: Vec<TaskExample>,
    pub project: Option<String>,
    pub resources: BTreeMap<String, Need>,
}

impl PromptTemplate {
    /// The same, knowing what it was read from; what is no text was refused before.
    pub(crate) fn read_from<'a>(mut self, files: impl IntoIterator<Item = (String, &'a [u8])>) -> PromptTemplate {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        self.sources = files.into_iter().map(|(path, bytes)| (path, text(bytes))).collect();
        self
    }

    pub fn id(&self) -> String {
        format!("{}/{}", self.ns, self.key)
    }

    pub fn tools(&self) -> impl Iterator<Item = (&Node, &Tool)> {
        self.nodes.iter().flat_map(|node| node.section.tools.iter().map(move |tool| (node, tool)))
    }

    pub fn tool(&self, name: &str) -> Option<(&Node, &Tool)> {
        self.tools().find(|(_, tool)| tool.name == name)
    }

    pub fn at(&self, path: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.path == path)
    }

    /// The section that a person or a model means: `a/b` exactly, or `a.b` where that is clear.
    pub fn find(&self, given: &str) -> Result<usize, Fault> {
        if let Some(index) = self.at(given) {
            return Ok(index);
        }
        let same: Vec<usize> = (0..self.nodes.len()).filter(|&i| names::dotted(&self.nodes[i].path) == given).collect();
        match same[..] {
            [index] => Ok(index),
            [] => Err(Fault::expansion(format!("section `{}` does not exist in this prompt", names::clipped(given)))
                .coded(Code::NotFound)),
            _ => {
                let paths: Vec<&str> = same.iter().map(|&index| self.nodes[index].path.as_str()).collect();
                Err(Fault::expansion(format!("section `{given}` may be any of {}", paths.join(", "))))
            }
        }
    }

    pub fn children(&self, index: usize) -> impl Iterator<Item = usize> {
        (index + 1..self.nodes[index].end).filter(move |&child| self.nodes[child].parent == Some(index))
    }

    /// The node and what it stands in, from the root down.
    pub fn line(&self, index: usize) -> Vec<usize> {
        let mut line: Vec<usize> = std::iter::successors(Some(index), |&at| self.nodes[at].parent).collect();
        line.reverse();
        line
    }

    /// The node or anything below it has tools.
    pub fn has_tools(&self, index: usize) -> bool {
        self.nodes[index..self.nodes[index].end].iter().any(|node| !node.section.tools.is_empty())
    }
}
