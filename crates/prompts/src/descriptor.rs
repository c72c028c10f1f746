//! Hashes of every text and contract of a prompt that may be overridden; an override names the hash that it was written for.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::manifest::{TaskExample, ToolExample};
use crate::tool::Tool;
use crate::tree::PromptTemplate;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Descriptor {
    pub ns: String,
    pub key: String,
    pub sections: Vec<SectionMark>,
    pub tools: Vec<ToolMark>,
    pub task_examples: Vec<TaskMark>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SectionMark {
    pub path: String,
    pub number: String,
    /// Of the text, without the indentation and the white space around it: re-indenting a file makes nothing stale.
    pub content_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_hash: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolMark {
    pub path: String,
    pub name: String,
    pub contract_hash: String,
    pub example_hashes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskMark {
    pub path: String,
    pub index: usize,
    pub key: String,
    pub content_hash: String,
}

impl PromptTemplate {
    /// Computed once.
    pub fn descriptor(&self) -> Arc<Descriptor> {
        self.descriptor.get_or_init(|| Arc::new(describe(self))).clone()
    }
}

fn describe(template: &PromptTemplate) -> Descriptor {
    let open = template.nodes.iter().filter(|node| node.section.accepts_overrides);
    let sections = open.clone().filter_map(|node| {
        let body = node.section.body.as_ref()?;
        Some(SectionMark {
            path: node.path.clone(),
            number: node.number.clone(),
            content_hash: text_hash(body.source()),
            summary_hash: node.section.summary.as_ref().map(|summary| text_hash(summary.source())),
        })
    });
    let tools = template.tools().filter(|(_, tool)| tool.accepts_overrides).map(|(node, tool)| ToolMark {
        path: node.path.clone(),
        name: tool.name.clone(),
        contract_hash: contract_hash(tool),
        example_hashes: tool.examples.iter().map(example_hash).collect(),
    });
    let tasks = open.flat_map(|node| {
        node.section.examples.iter().enumerate().map(|(index, example)| TaskMark {
            path: node.path.clone(),
            index,
            key: example.key.clone(),
            content_hash: task_hash(example),
        })
    });
    Descriptor {
        ns: template.ns.clone(),
        key: template.key.clone(),
        sections: sections.collect(),
        tools: tools.collect(),
        task_examples: tasks.collect(),
    }
}

/// SHA-256 of a text with `\n` for line ends, in hexadecimal.
pub fn text_hash(text: &str) -> String {
    let digest = Sha256::digest(text.replace("\r\n", "\n").as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of a value: sorted keys, no spaces.
pub fn json_hash(value: &Value) -> String {
    text_hash(&sorted(value).to_string())
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut all: Vec<(&String, &Value)> = fields.iter().collect();
            all.sort_by_key(|(name, _)| *name);
            Value::Object(all.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// The words and the types of a tool; neither its examples nor what its parameters are said to be.
pub fn contract_hash(tool: &Tool) -> String {
    let parts =
        [text_hash(&tool.description), json_hash(&undescribed(&tool.params)), json_hash(&undescribed(&tool.result))];
    text_hash(&parts.join("::"))
}

/// A schema without its descriptions. A field that is called so stays: it lies under `properties`.
fn undescribed(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut kept = fields.clone();
            kept.remove("description");
            for (name, inner) in &mut kept {
                *inner = match name.as_str() {
                    "default" | "const" | "enum" | "examples" => inner.clone(),
                    "properties" | "$defs" => match &*inner {
                        Value::Object(named) => {
                            Value::Object(named.iter().map(|(name, one)| (name.clone(), undescribed(one))).collect())
                        }
                        other => other.clone(),
                    },
                    _ => undescribed(inner),
                };
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.iter().map(undescribed).collect()),
        other => other.clone(),
    }
}

pub fn example_hash(example: &ToolExample) -> String {
    json_hash(&json!({"description": example.description, "input": example.input, "output": example.output}))
}

pub fn task_hash(example: &TaskExample) -> String {
    json_hash(&json!({
        "objective": example.objective,
        "outcome": example.outcome,
        "steps": example.steps.iter().map(|step| json!({
            "tool": step.tool, "description": step.description, "input": step.input, "output": step.output,
        })).collect::<Vec<Value>>(),
    }))
}
