//! The types of a mountspec, with the defaults of absent keys.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ApprovalsSpec, FabricSpec, LAYOUT, NetworkAccess};
use crate::contract::Effect;
pub use crate::model::{ModelProtocol, Prices};
use crate::policy::Rule;
pub use crate::state::quota::ByteLimits;

/// A namespace: its agents, models, projects and services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spec {
    /// The schema of this file, for editors; ignored by the host.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema_url: Option<String>,
    /// The version of the namespace layout.
    pub layout: String,
    /// The agent that `agents/self` refers to for the operator; by default the first.
    pub default_agent: Option<String>,
    /// The state directory; by default `$XDG_STATE_HOME/acheron`.
    pub state: Option<String>,
    /// A directory to serve as `/global/library` instead of the built-in library.
    pub library: Option<String>,
    /// Directories of skills (folders with a SKILL.md), shown in `/global/library/skills`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// A directory of prompts that override the built-in ones.
    pub prompts: Option<String>,
    /// The default model of all agents.
    pub model: ModelSpec,
    pub agents: BTreeMap<String, AgentSpec>,
    pub projects: BTreeMap<String, ProjectSpec>,
    /// Programs that act as services, and settings of built-in services.
    pub services: BTreeMap<String, ServiceSpec>,
    pub sandbox: Sandbox,
    pub memory: MemorySpec,
    pub symbols: SymbolsSpec,
    pub recall: RecallSpec,
    pub dm: DmSpec,
    pub retention: Retention,
    pub limits: ByteLimits,
    #[serde(skip_serializing_if = "is_default")]
    pub telemetry: TelemetrySpec,
    #[serde(skip_serializing_if = "is_default")]
    pub approvals: ApprovalsSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<FabricSpec>,
}

/// A language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Model")]
pub struct ModelSpec {
    pub kind: ModelKind,
    /// The provider's name of the model; for `script` and `replay` a file.
    pub name: Option<String>,
    /// The URL of another server with the same protocol, with or without `/v1`.
    pub base_url: Option<String>,
    /// The API of an OpenAI-like server.
    #[serde(skip_serializing_if = "is_default")]
    pub api: ModelApi,
    /// The size of the context window.
    #[schemars(range(min = 1024))]
    pub context_tokens: u32,
    /// The prices; required by a limit in money.
    pub prices: Prices,
    /// How long the server may take to begin its answer; by default 120.
    #[schemars(range(min = 1, max = 3600))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_seconds: Option<u32>,
    /// How long the server may be silent within its answer; by default 60.
    #[schemars(range(min = 1, max = 3600))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u32>,
    /// Whether a call that is not written exactly as the contract asks is a fault. It is for the protocol `json`; in `native`
    /// calls are never guessed.
    #[serde(skip_serializing_if = "is_default")]
    pub strict: bool,
    /// How the model calls tools in the turns of an agent.
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: ModelProtocol,
    /// The model that programs behind the gateway get when this one cannot be reached or refuses for a passing reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<FallbackModel>>,
    /// Whether the bodies of what programs ask through the gateway are kept, in `model/bodies.ndjson`.
    #[serde(skip_serializing_if = "is_default")]
    pub keep_bodies: bool,
    /// For `acp`: the program and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// For `acp`: the model that the program asks through the gateway, and that services of the agent ask. Without one, the program
    /// uses a log-in of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Box<FallbackModel>>,
}

/// A second model for when the first fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FallbackModel {
    pub kind: ModelKind,
    /// The provider's name of the model.
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub api: ModelApi,
    /// Its prices; by default those of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

impl FallbackModel {
    /// The whole description of it, as a change of the first.
    pub fn over(&self, first: &ModelSpec) -> ModelSpec {
        let FallbackModel { kind, name, base_url, api, prices } = self.clone();
        let prices = prices.unwrap_or(first.prices);
        let (command, gateway) = (Vec::new(), None);
        ModelSpec { kind, name, base_url, api, prices, fallback: None, command, gateway, ..first.clone() }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelApi {
    /// `/v1/chat/completions`, which every such server has.
    #[default]
    Chat,
    /// `/v1/responses`.
    Responses,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// Answers from a file; without one, a guide that explains the tree.
    #[default]
    Script,
    /// A recorded run.
    Replay,
    /// OpenAI or a compatible server.
    Openai,
    Anthropic,
    /// Google's own language, with `GEMINI_API_KEY`; only for programs that ask through the gateway.
    Gemini,
    /// A local Ollama: http://127.0.0.1:11434.
    Ollama,
    /// https://openrouter.ai/api/v1, with `OPENROUTER_API_KEY`.
    Openrouter,
    /// A local vLLM: http://127.0.0.1:8000.
    Vllm,
    /// A local llama.cpp server: http://127.0.0.1:8080.
    Llamacpp,
    /// A process outside reads `chat/pending.json` and writes `chat/control/reply.json`.
    External,
    /// A program that speaks the Agent Client Protocol is the mind of the agent, in the agent's sandbox.
    Acp,
}

/// An agent's changes to the default model.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<ModelApi>,
    #[schemars(range(min = 1, max = 3600))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_seconds: Option<u32>,
    #[schemars(range(min = 1, max = 3600))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ModelProtocol>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<FallbackModel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_bodies: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Box<FallbackModel>>,
}

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Agent")]
pub struct AgentSpec {
    /// A description for its own prompt and for listings.
    pub about: String,
    pub model: ModelChange,
    /// The projects that it works in.
    pub projects: Vec<String>,
    pub limits: TurnLimits,
    pub budget: Budget,
    /// Tried in order after the default rules; the last match wins.
    pub permissions: Vec<Rule>,
    /// Events that start a turn.
    pub wake: Vec<Wake>,
    /// Whether it works in its projects, or in copies of them whose changes are promoted later.
    #[serde(skip_serializing_if = "is_default")]
    pub view: ViewMode,
}

/// Where the changes of an agent go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ViewMode {
    /// Into the projects themselves.
    #[default]
    None,
    /// Into a view of each project, of its own.
    Own,
    /// Into one view of each project, together with the other agents that say so.
    Shared,
}

/// The limits of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Limits")]
pub struct TurnLimits {
    #[schemars(range(min = 1))]
    pub rounds: u32,
    #[schemars(range(min = 1))]
    pub tokens: u64,
    /// Excludes the time spent waiting for files.
    #[schemars(range(min = 1))]
    pub seconds: u64,
    /// In the currency of `prices`.
    pub money: Option<f64>,
}

/// The limits of all turns of an agent together, including its sub-brains. An absent limit is unlimited.
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

/// A selector that starts a turn, or a call, when it fires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wake {
    /// As in `events/control/wait.json`: `/agents/self/events/sources/time/after/60000.json`.
    pub on: String,
    /// The message to the agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub say: String,
    /// A call instead of a turn: no model is asked, unless the operation asks one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<WakeCall>,
}

/// A call of one of the agent's services, with the rights of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeCall {
    /// `recall`
    pub service: String,
    /// `consolidate`
    pub op: String,
    /// As its control file takes them.
    #[serde(default)]
    pub arguments: serde_json::Map<String, serde_json::Value>,
}

/// Directories of this machine under one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Project")]
pub struct ProjectSpec {
    pub about: String,
    /// Maps a path in `fs/` to a directory.
    pub binds: BTreeMap<String, Bind>,
    /// What other programs run or obey by themselves: agents may read it, but not change it. Each path holds in every
    /// directory of a writable bind where something has it, and at the top of the bind even if nothing has it yet. Leave
    /// `.git/config` out if agents are to configure git (`git push -u`).
    #[serde(skip_serializing_if = "is_protected_by_default")]
    pub protected: Vec<String>,
}

/// The files of a project that other programs run or obey by themselves.
const PROTECTED: [&str; 35] = [
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".mcp.json",
    ".claude",
    ".codex",
    ".cursor",
    ".vscode",
    ".idea",
    ".envrc",
    ".github/workflows",
    ".gitlab-ci.yml",
    ".husky",
    ".gemini",
    ".qwen",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".windsurf",
    ".zed",
    ".aider.conf.yml",
    ".devcontainer",
    ".devcontainer.json",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    ".mise.toml",
    "mise.toml",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".pnpmfile.cjs",
    ".yarnrc.yml",
];

fn is_protected_by_default(protected: &[String]) -> bool {
    protected == PROTECTED
}

impl Default for ProjectSpec {
    fn default() -> Self {
        let protected = PROTECTED.map(str::to_owned).to_vec();
        ProjectSpec { about: String::new(), binds: BTreeMap::new(), protected }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bind {
    /// A directory of this machine; a relative path starts where `mount` was run.
    pub path: String,
    #[serde(default = "yes")]
    pub read_only: bool,
    /// Serve it through the mount even if the kernel could bind it, as on machines where acheron may not mount.
    #[serde(default)]
    pub mirror: bool,
}

/// A program that acts as a service, or the settings of a built-in service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Service")]
pub struct ServiceSpec {
    /// The program and its arguments: JSON on stdin, JSON on stdout. A relative path such as `./tool` starts in the directory
    /// where `mount` was run; a bare name is searched in the service's own `env.PATH`, or else in the PATH of the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Instead of a command: a server of the Model Context Protocol, whose tools are the operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpSpec>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    pub scope: ServiceScope,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, OperationSpec>,
    /// Environment variables of the program.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Whether the program may use the network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Run it with the operator's rights, outside the agent's sandbox.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unconfined: bool,
    /// The most calls that may run at once; by default 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: Option<u32>,
    /// For `web_search`: the search backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<SearchBackend>,
    /// For `web_search`: the URL of the backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// For `web_search`: the timeout of the backend; by default 45000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 55_000))]
    pub timeout_ms: Option<u64>,
}

impl ServiceSpec {
    /// The program that the service runs, and where the service names it.
    pub fn program(&self) -> (&[String], &'static str) {
        match &self.mcp {
            Some(mcp) => (&mcp.command, "mcp.command"),
            None => (&self.command, "command"),
        }
    }
}

/// A server of the Model Context Protocol as a service. Each tool is an operation of effect `execute`, unless `operations` says
/// otherwise; `env`, `network` and `unconfined` hold for its program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Mcp")]
pub struct McpSpec {
    /// The program and its arguments; it speaks the protocol on stdin and stdout. Paths are found as for the command of a
    /// service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Instead of a program: the URL of a server that runs already (streamable HTTP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The variable in the environment of `acheron mount` that holds the bearer token for `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// How long the server may take to start and to list its tools; by default 60000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 600_000))]
    pub start_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchBackend {
    Searxng,
}

/// The place of a program's directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
pub enum ServiceScope {
    /// In every agent's directory.
    #[default]
    Agent,
    /// Under `/nodes/local/services`.
    Node,
}

/// One operation of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Operation")]
pub struct OperationSpec {
    pub about: String,
    pub effect: Effect,
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// May run again after the host crashed.
    pub idempotent: bool,
    /// The JSON Schema of the arguments.
    pub arguments: Option<Value>,
    /// The JSON Schema of the result.
    pub result: Option<Value>,
    /// Arguments that work.
    pub example: Option<Value>,
}

/// The confinement of agents' processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sandbox {
    /// The walls that must stand around programs. With `namespaces` a machine that refuses them is refused at mount. With
    /// `landlock` programs are confined by Landlock and a filter of system calls alone where namespaces are refused, which
    /// holds less: see `acheron doctor` and docs/security.md. Absent: namespaces, and a machine without them refuses each
    /// program.
    pub require: Option<acheron_sandbox::Level>,
    /// Run processes even on a machine that cannot confine them; otherwise they are refused.
    pub allow_unconfined: bool,
    /// Agents whose programs may use the network: a list for all of it, or a map to the hosts that each may reach.
    pub network: NetworkAccess,
    /// Directories of this machine that every sandbox shows beside `/usr`, read-only and at the same path, such as
    /// `/opt`. Also mount points below `/usr` that are hidden by default, such as network file systems.
    pub system: Vec<String>,
    /// The limits of the programs of one call or session.
    pub limits: acheron_sandbox::Limits,
    /// The limits of all programs of one agent together.
    pub agent_limits: acheron_sandbox::AgentLimits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Memory")]
pub struct MemorySpec {
    /// The size of an agent's active memory.
    #[schemars(range(min = 1))]
    pub active_tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Symbols")]
pub struct SymbolsSpec {
    pub backend: SymbolsBackend,
    /// For `redis`: `redis://host:port/db`, or `rediss://` with TLS.
    pub url: Option<String>,
    /// For `redis`: begins every key. Hosts that share symbols have the same one.
    pub prefix: String,
    /// For `redis`: the environment variable with the user.
    pub user_env: Option<String>,
    /// For `redis`: the environment variable with the password, which need not stand in the URL then.
    pub password_env: Option<String>,
    /// For `rediss://`: a file with the certificates to trust, instead of those of the system.
    pub ca_file: Option<String>,
}

impl Default for SymbolsSpec {
    fn default() -> Self {
        SymbolsSpec {
            backend: SymbolsBackend::default(),
            url: None,
            prefix: "acheron:".to_owned(),
            user_env: None,
            password_env: None,
            ca_file: None,
        }
    }
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
#[schemars(rename = "Recall")]
pub struct RecallSpec {
    /// A directory of Markdown; by default below the state directory.
    pub store: Option<String>,
    pub limits: RecallLimits,
}

/// The limits of one turn of a conversation of recall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecallLimits {
    /// The pages that the model may read, missing ones included.
    #[schemars(range(min = 0, max = 100))]
    pub recalls: u32,
    /// The searches that it may make.
    #[schemars(range(min = 0, max = 100))]
    pub searches: u32,
    /// The answers that it may give until it must be done.
    #[schemars(range(min = 1, max = 200))]
    pub generations: u32,
    #[schemars(range(min = 1, max = 3600))]
    pub seconds: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Dm")]
pub struct DmSpec {
    /// A directory of cartridges and campaigns; by default below the state directory.
    pub root: Option<String>,
    /// The narrator's model, as changes to the agent's model. By default the agent's model if it is a language model,
    /// otherwise the rules engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrator: Option<ModelChange>,
    /// How long a turn waits for the narrator; after that the rules engine tells it.
    #[schemars(range(min = 1, max = 600))]
    pub narrator_seconds: u64,
}

impl Default for DmSpec {
    fn default() -> Self {
        DmSpec { root: None, narrator: None, narrator_seconds: 60 }
    }
}

/// Where traces are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Telemetry")]
pub struct TelemetrySpec {
    /// The URL of an OpenTelemetry collector that takes OTLP over HTTP; `/v1/traces` is added.
    pub otlp: Option<String>,
}

/// Retention limits of ended jobs, events and audit entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Retention {
    /// Jobs of one agent.
    #[schemars(range(min = 1))]
    pub jobs: u64,
    #[schemars(range(min = 1))]
    pub days: u64,
}

fn yes() -> bool {
    true
}

impl ModelChange {
    /// Applies these changes to `base`.
    pub fn over(&self, base: &ModelSpec) -> ModelSpec {
        // A name or a server belongs to one kind; those of another kind do not apply.
        let same = self.kind.is_none_or(|kind| kind == base.kind);
        let kept = |own: &Option<String>, other: &Option<String>| own.clone().or(other.clone().filter(|_| same));
        ModelSpec {
            kind: self.kind.unwrap_or(base.kind),
            name: kept(&self.name, &base.name),
            base_url: kept(&self.base_url, &base.base_url),
            context_tokens: self.context_tokens.unwrap_or(base.context_tokens),
            prices: self.prices.unwrap_or(base.prices),
            api: self.api.unwrap_or(if same { base.api } else { ModelApi::default() }),
            first_byte_seconds: self.first_byte_seconds.or(base.first_byte_seconds),
            idle_seconds: self.idle_seconds.or(base.idle_seconds),
            strict: self.strict.unwrap_or(base.strict),
            protocol: self.protocol.unwrap_or(if same { base.protocol } else { ModelProtocol::default() }),
            fallback: self.fallback.clone().or(base.fallback.clone().filter(|_| same)),
            keep_bodies: self.keep_bodies.unwrap_or(base.keep_bodies),
            command: self.command.clone().unwrap_or(if same { base.command.clone() } else { Vec::new() }),
            gateway: self.gateway.clone().or(base.gateway.clone().filter(|_| same)),
        }
    }
}

impl Default for Spec {
    fn default() -> Self {
        let here = Bind { path: ".".to_owned(), read_only: true, mirror: false };
        let here = ProjectSpec {
            about: "The directory where the namespace was mounted from.".to_owned(),
            binds: BTreeMap::from([("/".to_owned(), here)]),
            ..ProjectSpec::default()
        };
        let charon = AgentSpec {
            about: "The ferryman: knows the tree and shows it around.".to_owned(),
            projects: vec!["here".to_owned()],
            ..AgentSpec::default()
        };
        Spec {
            schema_url: None,
            layout: LAYOUT.to_owned(),
            default_agent: None,
            state: None,
            library: None,
            skills: Vec::new(),
            prompts: None,
            model: ModelSpec::default(),
            agents: BTreeMap::from([("charon".to_owned(), charon)]),
            projects: BTreeMap::from([("here".to_owned(), here)]),
            services: BTreeMap::new(),
            sandbox: Sandbox::default(),
            memory: MemorySpec::default(),
            symbols: SymbolsSpec::default(),
            recall: RecallSpec::default(),
            dm: DmSpec::default(),
            retention: Retention::default(),
            limits: ByteLimits::default(),
            telemetry: TelemetrySpec::default(),
            approvals: ApprovalsSpec::default(),
            fabric: None,
        }
    }
}

impl Default for ModelSpec {
    fn default() -> Self {
        let (kind, prices) = (ModelKind::default(), Prices::default());
        let (api, context_tokens) = (ModelApi::default(), 32_768);
        let (name, base_url, first_byte_seconds, idle_seconds) = (None, None, None, None);
        let (strict, protocol) = (false, ModelProtocol::default());
        ModelSpec {
            kind,
            name,
            base_url,
            api,
            context_tokens,
            prices,
            first_byte_seconds,
            idle_seconds,
            strict,
            protocol,
            fallback: None,
            keep_bodies: false,
            command: Vec::new(),
            gateway: None,
        }
    }
}

impl Default for RecallLimits {
    fn default() -> Self {
        RecallLimits { recalls: 3, searches: 3, generations: 8, seconds: 600 }
    }
}

impl Default for TurnLimits {
    fn default() -> Self {
        TurnLimits { rounds: 32, tokens: 200_000, seconds: 600, money: None }
    }
}

impl Default for OperationSpec {
    fn default() -> Self {
        OperationSpec {
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

impl Default for MemorySpec {
    fn default() -> Self {
        MemorySpec { active_tokens: 8_000 }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Retention { jobs: 10_000, days: 30 }
    }
}
