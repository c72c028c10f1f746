//! A section under the params, session and overrides of one prompt. Everything that shows a section
//! asks here, so that `text`, `read_section` and the files of an opened prompt cannot disagree.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::fault::Fault;
use crate::manifest::{Headings, PartKind, Selector, TaskExample, ToolExample, Visibility};
use crate::names;
use crate::overrides::Overrides;
use crate::prompt::Prompt;
use crate::record::Record;
use crate::tasks;
use crate::template::Template;
use crate::tool::{Tool, examples_block};
use crate::tree::{Node, PromptTemplate};

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolShown {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub params: Value,
    /// The path of its section; empty for the tools that open and read sections.
    pub section: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ToolExample>,
}

pub struct View<'a> {
    prompt: &'a Prompt,
    pub template: &'a PromptTemplate,
    overrides: &'a Overrides,
    /// The first default of each type anywhere in the prompt.
    defaults: BTreeMap<&'a str, &'a Value>,
}

impl<'a> View<'a> {
    pub fn new(prompt: &'a Prompt) -> View<'a> {
        let template = &*prompt.template;
        let mut defaults = BTreeMap::new();
        for section in template.nodes.iter().map(|node| &node.section) {
            if let (Some(record), Some(default)) = (&section.record, &section.default) {
                defaults.entry(record.name.as_str()).or_insert(default);
            }
        }
        View { prompt, template, overrides: &prompt.overrides, defaults }
    }

    pub fn node(&self, index: usize) -> &'a Node {
        &self.template.nodes[index]
    }

    /// Bound, or the section's own default, or the first default of that type, or a record with nothing given.
    fn params(&self, node: &'a Node) -> Option<Cow<'a, Value>> {
        let record = node.section.record.as_ref()?;
        let known = self.prompt.bound(&record.name).or(node.section.default.as_ref());
        known
            .or_else(|| self.defaults.get(record.name.as_str()).copied())
            .map(Cow::Borrowed)
            .or_else(|| record.empty().map(Cow::Owned))
    }

    /// Whether the section itself is there; what it stands in is not asked. Needs no params, since a section that is
    /// not there must not ask for any: what is not given counts as absent.
    pub fn enabled(&self, index: usize) -> bool {
        let node = self.node(index);
        node.section.enabled.holds(self.params(node).as_deref(), &self.prompt.session.values)
    }

    /// The section and all that it stands in are there.
    pub fn present(&self, index: usize) -> bool {
        self.template.line(index).into_iter().all(|above| self.enabled(above))
    }

    pub fn visibility(&self, index: usize) -> Visibility {
        let node = self.node(index);
        if let Some(chosen) = self.prompt.session.visibility.get(&node.path) {
            return *chosen;
        }
        if let Some(chosen) = self.overrides.sections.get(&node.path).and_then(|section| section.visibility) {
            return chosen;
        }
        match &node.section.visibility {
            Selector::Constant(visibility) => *visibility,
            Selector::When { summary_when } => {
                match summary_when.holds(self.params(node).as_deref(), &self.prompt.session.values) {
                    true => Visibility::Summary,
                    false => Visibility::Full,
                }
            }
        }
    }

    /// The section and all that it stands in are shown in full.
    pub fn shown_in_full(&self, index: usize) -> bool {
        self.template.line(index).into_iter().all(|above| self.visibility(above) == Visibility::Full)
    }

    /// Heading, body and the examples of its tools; what is empty falls out.
    pub fn full(&self, index: usize) -> Result<String, Fault> {
        let node = self.node(index);
        let body = match node.section.kind {
            PartKind::TaskExamples => tasks::shown(&self.examples(node)),
            _ => match self.overrides.sections.get(&node.path).and_then(|over| over.body.as_ref()) {
                Some(body) => self.fill(node, body)?,
                None => match &node.section.body {
                    Some(body) => self.fill(node, body)?,
                    None => standing_text(node),
                },
            },
        };
        let shown: Vec<ToolShown> = node.section.tools.iter().map(|tool| self.tool(node, tool)).collect();
        let tools = examples_block(
            shown.iter().map(|tool| (tool.name.as_str(), tool.description.as_str(), &tool.examples[..])),
        );
        Ok(joined([self.heading(node), body, tools]))
    }

    /// Heading and summary, without the line that says how to see more.
    pub fn summary(&self, index: usize) -> Result<String, Fault> {
        let node = self.node(index);
        let own = self.overrides.sections.get(&node.path).and_then(|over| over.summary.as_ref());
        let summary = own.or(node.section.summary.as_ref()).ok_or_else(|| {
            let key = &node.section.key;
            let why = format!("summary visibility requested for section `{key}` but no summary is defined");
            Fault::validation(why).section(&node.path)
        })?;
        Ok(joined([self.heading(node), self.fill(node, summary)?, String::new()]))
    }

    fn fill(&self, node: &'a Node, template: &Template) -> Result<String, Fault> {
        let Some(record) = node.section.record.as_deref() else {
            let nothing = Value::Null;
            let bare = bare();
            return template
                .fill(&bare.values(&nothing))
                .map_err(|lack| Fault::render("section takes no params").section(&node.path).placeholder(lack.field));
        };
        let params = self.params(node).ok_or_else(|| self.missing(node, record))?;
        template.fill(&record.values(&params)).map_err(|lack| {
            let fault = Fault::render(format!("placeholder `{}` {}", lack.field, lack.why));
            fault.section(&node.path).record(&record.name).placeholder(lack.field)
        })
    }

    fn missing(&self, node: &Node, record: &Record) -> Fault {
        let named = node.section.body.iter().flat_map(|body| body.fields()).map(|field| &field.name).next();
        let fault = Fault::render("missing parameters for section").section(&node.path).record(&record.name);
        match named {
            Some(field) => fault.placeholder(field),
            None => fault,
        }
    }

    fn heading(&self, node: &Node) -> String {
        let (hashes, number, title) = ("#".repeat(node.depth + 2), &node.number, &node.section.title);
        match self.prompt.headings.unwrap_or(self.template.headings) {
            Headings::None => String::new(),
            Headings::Plain => format!("{hashes} {number}. {title}"),
            Headings::Path => format!("{hashes} {number}. {title} ({})", names::dotted(&node.path)),
        }
    }

    /// The tool with the words that overrides give it.
    pub fn tool(&self, node: &Node, tool: &Tool) -> ToolShown {
        let mut shown = ToolShown {
            name: tool.name.clone(),
            description: tool.description.clone(),
            params: tool.params.clone(),
            section: node.path.clone(),
            examples: tool.examples.clone(),
        };
        if let Some(words) = self.overrides.tools.get(&tool.name) {
            if let Some(description) = &words.description {
                shown.description.clone_from(description);
            }
            for (field, description) in &words.params {
                if let Some(schema) = shown.params.pointer_mut("/properties").and_then(|all| all.get_mut(field))
                    && schema.is_object()
                {
                    schema["description"] = Value::from(description.as_str());
                }
            }
            for (index, example) in &words.examples {
                if let Some(place) = shown.examples.get_mut(*index) {
                    place.clone_from(example);
                }
            }
        }
        shown
    }

    fn examples(&self, node: &Node) -> Vec<TaskExample> {
        let own = node.section.examples.iter().enumerate();
        let chosen = own.map(|(index, own)| self.overrides.tasks.get(&(node.path.clone(), index)).unwrap_or(own));
        chosen.cloned().collect()
    }
}

/// A workspace without a text of its own says where its files are.
fn standing_text(node: &Node) -> String {
    match (node.section.kind, &node.section.project) {
        (PartKind::Workspace, Some(project)) => {
            format!("The files of project `{project}` are under `/projects/{project}/fs`.")
        }
        _ => String::new(),
    }
}

fn joined(parts: [String; 3]) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// The record without fields, for texts without placeholders.
fn bare() -> &'static Record {
    static BARE: std::sync::OnceLock<Record> = std::sync::OnceLock::new();
    BARE.get_or_init(|| match Record::new("none", crate::schema::anything()) {
        Ok(record) => record,
        Err(why) => unreachable!("the empty record: {why}"), // cannot: a fixed schema
    })
}
