//! Progressive disclosure: sections in short, and the two tools by which a model asks for more.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::manifest::Visibility;
use crate::names;
use crate::prompt::Prompt;
use crate::render::Walked;
use crate::tree::PromptTemplate;
use crate::view::{ToolShown, View};
use acheron_base::Code;

pub const OPEN: &str = "open_sections";
pub const READ: &str = "read_section";

/// The sections that must be shown before the model can go on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expansion {
    pub requested: BTreeMap<String, Visibility>,
    pub reason: String,
    pub section_keys: Vec<String>,
}

impl std::fmt::Display for Expansion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "visibility expansion required for sections: {}. reason: {}",
            self.section_keys.join(", "),
            self.reason
        )
    }
}

/// The lines under a summary that say how to see the rest.
pub(crate) fn suffix(view: &View<'_>, index: usize) -> String {
    let template = view.template;
    let key = names::dotted(&template.nodes[index].path);
    let children: Vec<&str> =
        template.children(index).map(|child| template.nodes[child].section.key.as_str()).collect();
    let below = match children.is_empty() {
        true => String::new(),
        false => format!(" (subsections: {})", children.join(", ")),
    };
    let what = match template.has_tools(index) {
        true => format!("call `{OPEN}` with key \"{key}\" to open it together with its tools"),
        false => format!("call `{READ}` with key \"{key}\" to read it"),
    };
    format!("\n\n---\n[This section is shown in short{below}: {what}.]")
}

/// The tools that a prompt with summarised sections offers.
pub(crate) fn tools(template: &PromptTemplate, summarized: &[usize]) -> Vec<ToolShown> {
    let tool = |name: &str, description: &str, params: Value| ToolShown {
        name: name.to_owned(),
        description: description.to_owned(),
        params,
        section: String::new(),
        examples: Vec::new(),
    };
    let mut tools = Vec::new();
    if summarized.iter().any(|&index| template.has_tools(index)) {
        let params = json!({
            "type": "object", "required": ["section_keys", "reason"], "additionalProperties": false,
            "properties": {
                "section_keys": {"type": "array", "items": {"type": "string"}, "minItems": 1,
                    "description": "Keys of the sections to open."},
                "reason": {"type": "string", "description": "Why they are needed."},
            },
        });
        tools.push(tool(OPEN, "Opens sections that are shown in short, with their tools, for good.", params));
    }
    if summarized.iter().any(|&index| !template.has_tools(index)) {
        let params = json!({
            "type": "object", "required": ["section_key"], "additionalProperties": false,
            "properties": {"section_key": {"type": "string", "description": "Key of the section to read."}},
        });
        tools.push(tool(READ, "Reads a section that is shown in short; nothing changes.", params));
    }
    tools
}

impl Prompt {
    /// The expansion that opens these sections. Nothing changes yet; one wrong key refuses all.
    /// A section within one that is shown in short is opened together with it.
    pub fn expansion(&self, keys: &[String], reason: &str) -> Result<Expansion, Fault> {
        if keys.is_empty() {
            return Err(Fault::expansion("at least one section key must be provided"));
        }
        let view = View::new(self);
        let mut requested = BTreeMap::new();
        for key in keys {
            let index = self.reachable(&view, key)?;
            if view.shown_in_full(index) {
                return Err(Fault::expansion(format!("section `{key}` is already expanded")).coded(Code::Conflict));
            }
            let line = self.template.line(index).into_iter();
            for above in line.filter(|&above| view.visibility(above) == Visibility::Summary) {
                requested.insert(view.node(above).path.clone(), Visibility::Full);
            }
        }
        Ok(Expansion { requested, reason: reason.to_owned(), section_keys: keys.to_vec() })
    }

    pub fn apply(&mut self, expansion: &Expansion) {
        self.session.visibility.extend(expansion.requested.clone());
    }

    /// The answer of the tool: a section that the model does not see in full, rendered in full.
    pub fn read_section(&self, key: &str) -> Result<String, Fault> {
        let view = View::new(self);
        let index = self.reachable(&view, key)?;
        if view.shown_in_full(index) {
            return Err(Fault::expansion(format!("section `{key}` is not summarized")).coded(Code::Conflict));
        }
        self.full(key)
    }

    /// The section in full under its own number, and below it what is there, each as it is shown itself.
    pub fn full(&self, key: &str) -> Result<String, Fault> {
        let view = View::new(self);
        let index = self.reachable(&view, key)?;
        let mut out = Walked::default();
        out.push(&view.full(index)?);
        out.walk(&view, index + 1..view.node(index).end)?;
        Ok(out.text)
    }

    /// The section in short.
    pub fn short(&self, key: &str) -> Result<String, Fault> {
        let view = View::new(self);
        let index = self.reachable(&view, key)?;
        view.summary(index)
    }

    /// Chooses how much of a section is shown.
    pub fn set_visibility(&mut self, key: &str, visibility: Visibility) -> Result<(), Fault> {
        let index = self.template.find(key)?;
        let node = &self.template.nodes[index];
        let path = node.path.clone();
        let summary = node.section.summary.is_some()
            || self.overrides.sections.get(&path).is_some_and(|over| over.summary.is_some());
        if visibility == Visibility::Summary && !summary {
            let key = &node.section.key;
            let why = format!("summary visibility requested for section `{key}` but no summary is defined");
            return Err(Fault::validation(why).section(path));
        }
        if visibility == Visibility::Full {
            // Opened for good means that it can be seen: what it stands in opens too.
            let view = View::new(self);
            let line = self.template.line(index).into_iter();
            let closed: Vec<String> = line
                .filter(|&above| view.visibility(above) == Visibility::Summary)
                .map(|above| view.node(above).path.clone())
                .collect();
            self.session.visibility.extend(closed.into_iter().map(|path| (path, Visibility::Full)));
        }
        self.session.visibility.insert(path, visibility);
        Ok(())
    }

    fn reachable(&self, view: &View<'_>, key: &str) -> Result<usize, Fault> {
        let index = self.template.find(key)?;
        match view.present(index) {
            true => Ok(index),
            false => Err(Fault::expansion(format!("section `{key}` is not there under these params"))
                .section(&view.node(index).path)
                .coded(Code::NotFound)),
        }
    }
}
