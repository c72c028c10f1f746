//! Rendering: the sections in order, each with its number, one blank line between them.

use serde::Serialize;
use serde_json::Value;

use crate::disclosure;
use crate::fault::Fault;
use crate::manifest::{Container, Visibility};
use crate::prompt::Prompt;
use crate::view::{ToolShown, View};

/// The text for a model, and everything that is needed to parse its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rendered {
    pub text: String,
    pub tools: Vec<ToolShown>,
    pub output_type: Option<String>,
    pub container: Option<Container>,
    /// JSON Schema of the whole answer.
    pub output_schema: Option<Value>,
    /// Milliseconds of the Unix clock.
    pub deadline: Option<u64>,
    /// Paths of the sections that are shown in short.
    pub summarized: Vec<String>,
}

impl Prompt {
    pub fn render(&self) -> Result<Rendered, Fault> {
        let view = View::new(self);
        let mut out = Walked::default();
        out.walk(&view, 0..self.template.nodes.len())?;
        let output = self.template.output.as_ref();
        let mut tools = out.tools;
        tools.extend(disclosure::tools(&self.template, &out.summarized));
        Ok(Rendered {
            text: out.text,
            tools,
            output_type: output.map(|output| output.name.clone()),
            container: output.map(|output| output.container),
            output_schema: output.map(crate::output::Output::whole),
            deadline: self.deadline_ms,
            summarized: out.summarized.iter().map(|&index| view.node(index).path.clone()).collect(),
        })
    }
}

/// The result of a walk over sections.
#[derive(Default)]
pub(crate) struct Walked {
    pub text: String,
    pub tools: Vec<ToolShown>,
    pub summarized: Vec<usize>,
}

impl Walked {
    pub(crate) fn walk(&mut self, view: &View<'_>, range: std::ops::Range<usize>) -> Result<(), Fault> {
        let mut index = range.start;
        while index < range.end {
            let node = view.node(index);
            if !view.enabled(index) {
                index = node.end;
            } else if view.visibility(index) == Visibility::Summary {
                let summary = view.summary(index)?;
                self.push(&summary);
                self.text.push_str(&disclosure::suffix(view, index));
                self.summarized.push(index);
                index = node.end;
            } else {
                self.push(&view.full(index)?);
                self.tools.extend(node.section.tools.iter().map(|tool| view.tool(node, tool)));
                index += 1;
            }
        }
        Ok(())
    }

    pub(crate) fn push(&mut self, section: &str) {
        if !section.is_empty() {
            if !self.text.is_empty() {
                self.text.push_str("\n\n");
            }
            self.text.push_str(section);
        }
    }
}
