//! Which entries of an override file apply to a prompt as it is now. What was written for another text does not, and
//! is listed instead of being dropped in silence.

use serde::Serialize;

use super::file::{ExampleEntry, OverrideFile, SectionEntry, TaskEntry, ToolEntry};
use super::{Overrides, SectionWords, ToolWords};
use crate::check::strangers;
use crate::descriptor::Descriptor;
use crate::fault::Fault;
use crate::names;
use crate::record::Record;
use crate::template::{Dialect, Template};
use crate::tree::PromptTemplate;
use crate::{output, tasks, tool};

#[derive(Clone, Debug, Default)]
pub struct Resolved {
    pub overrides: Overrides,
    pub stale: Vec<Stale>,
}

/// An entry that does not apply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stale {
    /// `a/b`, `tool`, `tool#0`, `a/b#0`.
    pub target: String,
    pub reason: String,
    pub expected_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_hash: Option<String>,
}

/// Splits the entries into those that apply and those that are stale. An entry that applies and is itself wrong (an
/// unknown placeholder, an over-long description) is an error: it would otherwise be found in the middle of a render.
pub fn resolve(template: &PromptTemplate, file: &OverrideFile) -> Result<Resolved, Fault> {
    let descriptor = template.descriptor();
    let mut out = Resolved::default();
    for (path, entry) in &file.sections {
        let mark = descriptor.sections.iter().find(|mark| mark.path == *path);
        let current = mark.map(|mark| mark.content_hash.clone());
        if out.applies(path, "section", &entry.expected_hash, current) {
            let mut words = section(template, path, entry)?;
            let summary = mark.and_then(|mark| mark.summary_hash.clone());
            if entry.summary.is_some() && entry.expected_summary_hash != summary {
                words.summary = None;
                out.stale.push(Stale {
                    target: path.clone(),
                    reason: "the summary has changed".to_owned(),
                    expected_hash: entry.expected_summary_hash.clone().unwrap_or_default(),
                    current_hash: summary,
                });
            }
            out.overrides.sections.insert(path.clone(), words);
        }
    }
    for (name, entry) in &file.tools {
        let mark = descriptor.tools.iter().find(|mark| mark.name == *name);
        if out.applies(name, "tool", &entry.expected_contract_hash, mark.map(|mark| mark.contract_hash.clone())) {
            let mut words = tool(template, name, entry)?;
            for (index, example) in &entry.examples {
                let current = mark.and_then(|mark| mark.example_hashes.get(*index).cloned());
                if out.applies(&format!("{name}#{index}"), "example", &example.expected_hash, current) {
                    words.examples.insert(*index, tool_example(template, name, example)?);
                }
            }
            out.overrides.tools.insert(name.clone(), words);
        }
    }
    for entry in &file.task_example_overrides {
        let path = entry.path.join("/");
        let current = current_task(&descriptor, &path, entry.index);
        if out.applies(&format!("{path}#{}", entry.index), "task example", &entry.expected_hash, current) {
            task(template, entry)?;
            out.overrides.tasks.insert((path, entry.index), entry.example.clone());
        }
    }
    Ok(out)
}

impl Resolved {
    fn applies(&mut self, target: &str, what: &str, expected: &str, current: Option<String>) -> bool {
        if current.as_deref() == Some(expected) {
            return true;
        }
        let reason = match &current {
            Some(_) => format!("the {what} has changed"),
            None => format!("the prompt has no such {what} that takes overrides"),
        };
        let expected_hash = expected.to_owned();
        self.stale.push(Stale { target: target.to_owned(), reason, expected_hash, current_hash: current });
        false
    }
}

pub(super) fn current_task(descriptor: &Descriptor, path: &str, index: usize) -> Option<String> {
    let mut marks = descriptor.task_examples.iter();
    marks.find(|mark| mark.path == path && mark.index == index).map(|mark| mark.content_hash.clone())
}

/// The texts of an entry, checked against the params of its section.
pub(super) fn section(template: &PromptTemplate, path: &str, entry: &SectionEntry) -> Result<SectionWords, Fault> {
    let node = template.at(path).map(|index| &template.nodes[index]);
    let record: Option<&Record> = node.and_then(|node| node.section.record.as_deref());
    let dialect = if template.single { template.front.dialect } else { Dialect::Plain };
    let parse = |what: &str, text: &str| {
        let shown = format!("override of {}/{path}, {what}", template.id());
        let parsed = Template::parse(text, dialect)
            .map_err(|wrong| Fault::overrides(wrong.message).section(path).at(&shown, wrong.line, wrong.column))?;
        match strangers(&parsed, record).into_iter().next() {
            None => Ok(parsed),
            Some((fault, line, column)) => {
                let placeholder = fault.whereabouts.placeholder.clone().unwrap_or_default();
                let record = record.map_or("none", |record| record.name.as_str());
                let fault = Fault::overrides(fault.message).section(path).record(record).placeholder(placeholder);
                Err(fault.at(shown, line, column))
            }
        }
    };
    let has_summary = entry.summary.is_some() || node.is_some_and(|node| node.section.summary.is_some());
    if entry.visibility == Some(crate::manifest::Visibility::Summary) && !has_summary {
        return Err(Fault::overrides("summary visibility is chosen where no summary is defined").section(path));
    }
    Ok(SectionWords {
        body: Some(parse("body", &entry.body)?),
        summary: entry.summary.as_deref().map(|text| parse("summary", text)).transpose()?,
        visibility: entry.visibility,
    })
}

fn overridden(fault: Fault) -> Fault {
    Fault::overrides(fault.message)
}

pub(super) fn tool(template: &PromptTemplate, name: &str, entry: &ToolEntry) -> Result<ToolWords, Fault> {
    let description = entry.description.as_deref();
    let description = description
        .map(|text| names::line(&format!("the description of tool `{name}`"), text, tool::DESCRIPTION))
        .transpose()
        .map_err(overridden)?;
    let params = entry.param_descriptions.clone().unwrap_or_default();
    if let Some((_, known)) = template.tool(name)
        && let Some(field) = params.keys().find(|field| !known.has_param(field))
    {
        return Err(Fault::overrides(format!("tool `{name}` has no parameter `{}`", names::clipped(field))));
    }
    Ok(ToolWords { description, params, examples: Default::default() })
}

pub(super) fn tool_example(
    template: &PromptTemplate,
    name: &str,
    entry: &ExampleEntry,
) -> Result<crate::manifest::ToolExample, Fault> {
    match template.tool(name) {
        Some((_, known)) => known.example(&entry.example).map_err(overridden),
        None => Err(Fault::overrides(format!("tool `{name}` is not registered"))),
    }
}

pub(super) fn task(template: &PromptTemplate, entry: &TaskEntry) -> Result<(), Fault> {
    let tool = |name: &str| template.tool(name).map(|(_, tool)| tool);
    let output: Option<&output::Output> = template.output.as_ref();
    tasks::check(&entry.example, &tool, output).map_err(overridden)
}
