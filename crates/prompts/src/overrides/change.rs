//! One requested override, for one of five targets. Putting it into a file is strict: it
//! has to fit the prompt as it is now.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::{ExampleEntry, OverrideFile, SectionEntry, TaskEntry, ToolEntry};
use super::resolve;
use crate::fault::Fault;
use crate::manifest::{TaskExample, ToolExample, Visibility};
use crate::tree::PromptTemplate;
use acheron_base::Code;

/// What to say otherwise. `expected_hash` is that of the descriptor that the writer looked at; left out, it is the one
/// of now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "target", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Change")]
pub enum OverrideChange {
    /// Another text for a section.
    Section {
        /// Its keys joined by `/`.
        path: String,
        body: String,
        #[serde(default)]
        summary: Option<String>,
        #[serde(default)]
        visibility: Option<Visibility>,
        #[serde(default)]
        expected_hash: Option<String>,
    },
    /// Another description for a tool, or for some of its parameters.
    Tool {
        name: String,
        #[serde(default)]
        description: Option<String>,
        #[serde(default)]
        param_descriptions: BTreeMap<String, String>,
        #[serde(default)]
        expected_hash: Option<String>,
    },
    /// Another example for a tool.
    ToolExample {
        name: String,
        index: usize,
        example: ToolExample,
        #[serde(default)]
        expected_hash: Option<String>,
    },
    /// Another task example.
    TaskExample {
        path: String,
        index: usize,
        example: TaskExample,
        #[serde(default)]
        expected_hash: Option<String>,
    },
}

impl OverrideChange {
    /// Puts the change into a file. What is stale there stays: it is not this change's to remove.
    pub fn put(&self, template: &PromptTemplate, file: &mut OverrideFile) -> Result<(), Fault> {
        let descriptor = template.descriptor();
        match self {
            OverrideChange::Section { path, body, summary, visibility, expected_hash } => {
                let path = accepting(template, path)?;
                let mark = descriptor.sections.iter().find(|mark| mark.path == path);
                let mark = mark.ok_or_else(|| Fault::overrides(format!("section `{path}` has no text to override")))?;
                let entry = SectionEntry {
                    path: path.split('/').map(str::to_owned).collect(),
                    expected_hash: same(&format!("section `{path}`"), expected_hash.as_deref(), &mark.content_hash)?,
                    body: body.clone(),
                    summary: summary.clone(),
                    expected_summary_hash: summary.as_ref().and(mark.summary_hash.clone()),
                    visibility: *visibility,
                };
                resolve::section(template, &path, &entry)?;
                file.sections.insert(path, entry);
            }
            OverrideChange::Tool { name, description, param_descriptions, expected_hash } => {
                let hash = contract(template, name, expected_hash.as_deref())?;
                let entry = ToolEntry {
                    expected_contract_hash: hash.clone(),
                    description: description.clone(),
                    param_descriptions: Some(param_descriptions.clone()).filter(|all| !all.is_empty()),
                    examples: BTreeMap::new(),
                };
                resolve::tool(template, name, &entry)?;
                // The description and each parameter are targets of their own: what is not named stays as it was.
                let old = file.tools.remove(name).filter(|old| old.expected_contract_hash == hash).unwrap_or_default();
                let mut params = old.param_descriptions.unwrap_or_default();
                params.extend(entry.param_descriptions.unwrap_or_default());
                let entry = ToolEntry {
                    expected_contract_hash: hash,
                    description: entry.description.or(old.description),
                    param_descriptions: Some(params).filter(|all| !all.is_empty()),
                    examples: old.examples,
                };
                file.tools.insert(name.clone(), entry);
            }
            OverrideChange::ToolExample { name, index, example, expected_hash } => {
                let hash = contract(template, name, None)?;
                let marks = descriptor.tools.iter().find(|mark| mark.name == *name);
                let current = marks.and_then(|mark| mark.example_hashes.get(*index)).ok_or_else(|| {
                    Fault::overrides(format!("tool `{name}` has no example {index}")).coded(Code::NotFound)
                })?;
                let expected_hash = same(&format!("example {name}#{index}"), expected_hash.as_deref(), current)?;
                let entry = ExampleEntry { expected_hash, example: example.clone() };
                resolve::tool_example(template, name, &entry)?;
                let tool = file.tools.entry(name.clone()).or_default();
                if tool.expected_contract_hash != hash {
                    *tool = ToolEntry { expected_contract_hash: hash, ..ToolEntry::default() };
                }
                tool.examples.insert(*index, entry);
            }
            OverrideChange::TaskExample { path, index, example, expected_hash } => {
                let path = accepting(template, path)?;
                let current = resolve::current_task(&descriptor, &path, *index).ok_or_else(|| {
                    Fault::overrides(format!("section `{path}` has no task example {index}")).coded(Code::NotFound)
                })?;
                let entry = TaskEntry {
                    path: path.split('/').map(str::to_owned).collect(),
                    index: *index,
                    expected_hash: same(&format!("task example {path}#{index}"), expected_hash.as_deref(), &current)?,
                    example: example.clone(),
                };
                resolve::task(template, &entry)?;
                let all = &mut file.task_example_overrides;
                match all.iter_mut().find(|old| old.path == entry.path && old.index == entry.index) {
                    Some(old) => *old = entry,
                    None => all.push(entry),
                }
            }
        }
        Ok(())
    }
}

/// The whole path of a section that accepts overrides.
fn accepting(template: &PromptTemplate, path: &str) -> Result<String, Fault> {
    let index = template.find(path).map_err(|fault| Fault::overrides(fault.message).coded(fault.code))?;
    let node = &template.nodes[index];
    match node.section.accepts_overrides {
        true => Ok(node.path.clone()),
        false => Err(refuses(&format!("section `{}`", node.path))),
    }
}

fn contract(template: &PromptTemplate, name: &str, expected: Option<&str>) -> Result<String, Fault> {
    let (_, tool) = template.tool(name).ok_or_else(|| {
        Fault::overrides(format!("tool `{}` is not registered", crate::names::clipped(name))).coded(Code::NotFound)
    })?;
    if !tool.accepts_overrides {
        return Err(refuses(&format!("tool `{name}`")));
    }
    same(&format!("tool `{name}`"), expected, &crate::descriptor::contract_hash(tool))
}

fn same(target: &str, expected: Option<&str>, current: &str) -> Result<String, Fault> {
    match expected {
        Some(expected) if expected != current => {
            Err(Fault::overrides(format!("hash mismatch for {target}: it is {current} now")).coded(Code::Conflict))
        }
        _ => Ok(current.to_owned()),
    }
}

fn refuses(target: &str) -> Fault {
    Fault::overrides(format!("{target} does not accept overrides")).coded(Code::Os(libc::EPERM))
}
