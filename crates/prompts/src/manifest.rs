//! `prompt.json`: a prompt as its author declares it. Rust code that declares a prompt fills in the same types.
//!
//! Everything here is plain data, so a clone is complete and shares nothing. What it means is decided in `check`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;

/// A prompt of several sections.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub ns: String,
    pub key: String,
    /// A name for people.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub headings: Headings,
    /// The types of the parameters: a name, and a JSON Schema of type object.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
    #[serde(default)]
    pub sections: Vec<Part>,
    #[serde(default)]
    pub output: Option<Shape>,
    #[serde(default)]
    pub resources: BTreeMap<String, Need>,
    /// How long one evaluation may take.
    #[serde(default)]
    pub time_limit_ms: Option<u64>,
}

/// Whether a heading ends in the path of its section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Headings {
    /// `## 1. Title`
    #[default]
    Plain,
    /// `## 1. Title (a.b)`
    Path,
    /// No heading at all.
    None,
}

/// A section as it is declared.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub key: String,
    pub title: String,
    #[serde(default)]
    pub kind: PartKind,
    /// The name of its params type.
    #[serde(default)]
    pub params: Option<String>,
    /// Params for when none are bound.
    #[serde(default)]
    pub default: Option<Value>,
    /// The file of its text.
    #[serde(default)]
    pub body: Option<String>,
    /// The file of its text in short.
    #[serde(default)]
    pub summary: Option<String>,
    #[serde(default)]
    pub enabled: Condition,
    #[serde(default)]
    pub visibility: Selector,
    /// True unless it is a workspace.
    #[serde(default)]
    pub accepts_overrides: Option<bool>,
    #[serde(default)]
    pub tools: Vec<ToolPart>,
    #[serde(default)]
    pub children: Vec<Part>,
    /// Of a workspace: the project whose files it offers.
    #[serde(default)]
    pub project: Option<String>,
    /// Of task examples.
    #[serde(default)]
    pub examples: Vec<TaskExample>,
    #[serde(default)]
    pub resources: BTreeMap<String, Need>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    #[default]
    Markdown,
    Workspace,
    TaskExamples,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    #[default]
    Full,
    Summary,
}

/// How much of a section is shown, or when it is shown in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Selector {
    Constant(Visibility),
    When { summary_when: Condition },
}

impl Default for Selector {
    fn default() -> Self {
        Selector::Constant(Visibility::Full)
    }
}

/// A tool: `<service>.<operation>`, run as a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolPart {
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments.
    #[serde(default)]
    pub params: Option<Value>,
    /// JSON Schema of its result.
    #[serde(default)]
    pub result: Option<Value>,
    #[serde(default)]
    pub examples: Vec<ToolExample>,
    #[serde(default)]
    pub accepts_overrides: Option<bool>,
    /// Fields of its result and the values that they must have; another value is a failure, as `{"exit_code": 0}` says
    /// of a program. What a failed call changed is taken back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fails_unless: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolExample {
    pub description: String,
    #[serde(default)]
    pub input: Value,
    #[serde(default)]
    pub output: Value,
}

/// A task, the steps that solve it and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskExample {
    pub key: String,
    pub objective: String,
    /// A text, or a value of the prompt's output type if it has one.
    pub outcome: Value,
    pub steps: Vec<TaskStep>,
    #[serde(default)]
    pub title: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStep {
    pub tool: String,
    pub description: String,
    #[serde(default)]
    pub input: Value,
    #[serde(default)]
    pub output: Value,
}

/// The type of the answer that the prompt asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    pub name: String,
    /// JSON Schema of the object, or of one element of the array.
    pub schema: Value,
    #[serde(default)]
    pub container: Container,
    #[serde(default)]
    pub allow_extra_keys: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Container {
    #[default]
    Object,
    Array,
}

/// A resource that the prompt needs while it is open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// `filesystem`, `session`, `memory`, or what Rust code has registered.
    pub kind: String,
    #[serde(default)]
    pub scope: Scope,
    #[serde(default)]
    pub eager: bool,
    /// Of a filesystem: which project.
    #[serde(default)]
    pub project: Option<String>,
    /// Of a session: what it holds at first.
    #[serde(default)]
    pub initial: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One for the open prompt.
    #[default]
    Singleton,
    /// One for each tool call.
    ToolCall,
    /// One for each time it is asked for.
    Prototype,
}
