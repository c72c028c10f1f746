//! The shape of a mountspec. What is absent has the value that stands here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LAYOUT;
use crate::contract::Effect;
pub use crate::model::Prices;
use crate::policy::Rule;

/// A namespace: who lives in it, on what, with which services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spec {
    /// Where an editor finds the schema of this file; not looked at.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema_url: Option<String>,
    /// The version of the names in the tree.
    pub layout: String,
    /// The agent that `agents/self` is for the operator; the first if absent.
    pub default_agent: Option<String>,
    /// Where state is kept; `$XDG_STATE_HOME/acheron` if absent.
    pub state: Option<String>,
    /// A folder to serve as `/global/library` instead of the library in the program.
    pub library: Option<String>,
    /// A folder of prompts that stand before those in the program.
    pub prompts: Option<String>,
    /// The model of every agent that does not say otherwise.
    pub model: Model,
    pub agents: BTreeMap<String, Agent>,
    pub projects: BTreeMap<String, Project>,
    /// Programs as services, and settings of the services of the house.
    pub services: BTreeMap<String, Service>,
    pub sandbox: Sandbox,
    pub memory: Memory,
    pub symbols: Symbols,
    pub recall: Recall,
    pub dm: Dm,
    pub retention: Retention,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Model {
    pub kind: ModelKind,
    /// The model's name at its provider; for `script` and `replay` a file.
    pub name: Option<String>,
    /// Another server that speaks the same protocol.
    pub base_url: Option<String>,
    /// How much it can read at once.
    #[schemars(range(min = 1024))]
    pub context_tokens: u32,
    /// What it costs; a money limit needs to know.
    pub prices: Prices,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// Answers from a file; without one, a guide that shows the tree around.
    #[default]
    Script,
    /// A recorded run.
    Replay,
    /// OpenAI, or any server that is compatible.
    Openai,
    Anthropic,
    /// Whoever reads the input and writes the reply.
    External,
}

/// What an agent says otherwise about its model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ModelKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    #[schemars(range(min = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// One who lives in the tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Agent {
    /// Who it is, in its own prompt and in listings.
    pub about: String,
    pub model: ModelChange,
    /// The projects it works in.
    pub projects: Vec<String>,
    pub limits: Limits,
    pub budget: Budget,
    /// Tried in order after the rules that every agent has; the last that matches wins.
    pub permissions: Vec<Rule>,
    /// What begins a turn by itself.
    pub wake: Vec<Wake>,
}

/// What a turn may use up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    #[schemars(range(min = 1))]
    pub rounds: u32,
    #[schemars(range(min = 1))]
    pub tokens: u64,
    /// Time spent waiting for a file does not count.
    #[schemars(range(min = 1))]
    pub seconds: u64,
    /// In the currency of `prices`.
    pub money: Option<f64>,
}

/// What all turns of an agent together may use up, those of its sub-brains included. What is not named is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Budget {
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// In the currency of `prices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

/// A selector that starts a turn when it fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wake {
    /// As in `events/control/wait.json`: `/agents/self/events/sources/time/after/60000.json`.
    pub on: String,
    /// What the agent is told.
    pub say: String,
}

/// Directories of this machine, under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Project {
    pub about: String,
    /// Where in `fs/` → which directory.
    pub binds: BTreeMap<String, Bind>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bind {
    /// A directory of this machine; a relative one begins where `mount` was started.
    pub path: String,
    #[serde(default = "yes")]
    pub read_only: bool,
    /// Shown through the mount, as where acheron may not mount, even where the kernel could bind it.
    #[serde(default)]
    pub mirror: bool,
}

/// A program that is a service, or the settings of a service of the house.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Service {
    /// The program and its arguments: JSON on stdin, JSON on stdout.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    pub scope: Scope,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, Operation>,
    /// Variables that the program gets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Whether the program may use the network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Run it as the operator would, outside the agent's sandbox.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unconfined: bool,
    /// How many calls may run at once; 8 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: Option<u32>,
    /// For `web_search`: who really searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<SearchBackend>,
    /// For `web_search`: where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// For `web_search`: how long the server may take; 45000 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 55_000))]
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchBackend {
    Searxng,
}

/// Where a program's directory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// In every agent's directory.
    #[default]
    Agent,
    /// Under `/nodes/local/services`.
    Node,
}

/// One thing that a program can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Operation {
    pub about: String,
    pub effect: Effect,
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// Whether it may simply run again after the host died.
    pub idempotent: bool,
    /// JSON Schema of what it takes.
    pub arguments: Option<Value>,
    /// JSON Schema of what it gives.
    pub result: Option<Value>,
    /// Arguments that work.
    pub example: Option<Value>,
}

/// How processes of agents are confined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sandbox {
    /// Run processes even where this machine cannot confine them. Off, they are refused.
    pub allow_unconfined: bool,
    /// Agents whose programs may use the network.
    pub network: Vec<String>,
    /// Directories of this machine that every sandbox shows beside `/usr`, read-only and under their own names: `/opt`, where
    /// programs live there. Also the point of a mount below `/usr` that is hidden otherwise: one of the network, for example.
    pub system: Vec<String>,
    /// What the programs of one call or session may use.
    pub limits: acheron_sandbox::Limits,
    /// What all programs of one agent may use together.
    pub agent_limits: acheron_sandbox::AgentLimits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Memory {
    /// How much active memory an agent carries.
    #[schemars(range(min = 1))]
    pub active_tokens: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Symbols {
    pub backend: SymbolsBackend,
    /// For `redis`: `redis://host:port/db`.
    pub url: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SymbolsBackend {
    #[default]
    Sqlite,
    Redis,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Recall {
    /// A folder of Markdown; under the state directory if absent.
    pub store: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Dm {
    /// A folder of cartridges and campaigns; under the state directory if absent.
    pub root: Option<String>,
    /// Who tells the story, as far as that differs from the agent's model. Absent: the agent's model if it is a language
    /// model, else the kernel itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrator: Option<ModelChange>,
}

/// What is kept of what is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Retention {
    #[schemars(range(min = 1))]
    pub jobs: u64,
    #[schemars(range(min = 1))]
    pub days: u64,
}

fn yes() -> bool {
    true
}

impl ModelChange {
    /// `base` with these changes.
    pub fn over(&self, base: &Model) -> Model {
        // A name or a server belongs to a kind: those of another kind mean nothing here.
        let same = self.kind.is_none_or(|kind| kind == base.kind);
        let kept = |own: &Option<String>, other: &Option<String>| own.clone().or(other.clone().filter(|_| same));
        Model {
            kind: self.kind.unwrap_or(base.kind),
            name: kept(&self.name, &base.name),
            base_url: kept(&self.base_url, &base.base_url),
            context_tokens: self.context_tokens.unwrap_or(base.context_tokens),
            prices: self.prices.unwrap_or(base.prices),
        }
    }
}

impl Default for Spec {
    fn default() -> Self {
        let here = Bind { path: ".".to_owned(), read_only: true, mirror: false };
        let here = Project {
            about: "The directory where the namespace was mounted from.".to_owned(),
            binds: BTreeMap::from([("/".to_owned(), here)]),
        };
        let charon = Agent {
            about: "The ferryman: knows the tree and shows it around.".to_owned(),
            projects: vec!["here".to_owned()],
            ..Agent::default()
        };
        Spec {
            schema_url: None,
            layout: LAYOUT.to_owned(),
            default_agent: None,
            state: None,
            library: None,
            prompts: None,
            model: Model::default(),
            agents: BTreeMap::from([("charon".to_owned(), charon)]),
            projects: BTreeMap::from([("here".to_owned(), here)]),
            services: BTreeMap::new(),
            sandbox: Sandbox::default(),
            memory: Memory::default(),
            symbols: Symbols::default(),
            recall: Recall::default(),
            dm: Dm::default(),
            retention: Retention::default(),
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        let (kind, prices) = (ModelKind::default(), Prices::default());
        Model { kind, name: None, base_url: None, context_tokens: 32_768, prices }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { rounds: 32, tokens: 200_000, seconds: 600, money: None }
    }
}

impl Default for Operation {
    fn default() -> Self {
        Operation {
            about: String::new(),
            effect: Effect::Execute,
            timeout_ms: None,
            idempotent: false,
            arguments: None,
            result: None,
            example: None,
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory { active_tokens: 8_000 }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Retention { jobs: 10_000, days: 30 }
    }
}
