//! The commands of the service `prompts`, and the results that have a type of their own.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use acheron_prompts::manifest::{Headings, Need, Visibility};
use acheron_prompts::overrides::{OverrideChange, OverrideFile};

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Lists the prompts, those that are open, and what is wrong with any.
    List {},
    /// Renders a prompt in one go, without opening it.
    Render {
        /// `<ns>/<key>`.
        prompt: String,
        /// Records by the name of their type; for a prompt of one file its fields.
        #[serde(default)]
        params: Value,
        /// The tag of the overrides that apply; `latest` by default.
        #[serde(default)]
        tag: Option<String>,
        #[serde(default)]
        headings: Option<Headings>,
        /// Values for its conditions.
        #[serde(default)]
        session: Map<String, Value>,
        /// How much of which section is shown, by path.
        #[serde(default)]
        visibility: BTreeMap<String, Visibility>,
    },
    /// Opens a prompt: `open/<id>/` is there until it is closed.
    Open {
        prompt: String,
        #[serde(default)]
        params: Value,
        /// The name of its directory; made up when absent.
        #[serde(default)]
        id: Option<String>,
        #[serde(default)]
        tag: Option<String>,
        #[serde(default)]
        headings: Option<Headings>,
        #[serde(default)]
        session: Map<String, Value>,
        /// Resources instead of, or beside, those that the prompt declares.
        #[serde(default)]
        resources: BTreeMap<String, Need>,
        /// How long one evaluation may take, instead of what the prompt says.
        #[serde(default)]
        time_limit_ms: Option<u64>,
    },
    /// Binds params to an open prompt, one record per type, and resources; all or none.
    Bind {
        open_id: String,
        #[serde(default)]
        params: Value,
        /// Resources beside, or instead of, those that it has. Those are closed and made again when they are needed.
        #[serde(default)]
        resources: BTreeMap<String, Need>,
    },
    /// Closes an open prompt and its resources, last opened first. Closing what is not open is nothing.
    Close { open_id: String },
    /// Finds the declared output in a reply; with `open_id` the reply is kept too.
    Parse {
        reply: String,
        #[serde(default)]
        open_id: Option<String>,
        #[serde(default)]
        prompt: Option<String>,
    },
    /// Opens sections that are shown in short, for good; all or none.
    Expand {
        open_id: String,
        /// `a.b` or `a/b`.
        section_keys: Vec<String>,
        #[serde(default)]
        reason: String,
    },
    /// Reads a section that is shown in short; nothing changes.
    ReadSection { open_id: String, section_key: String },
    /// Asks a model, opens what it asks for, and finds the output in its answer.
    Evaluate {
        open_id: String,
        /// `KIND[:NAME]` as `--model` takes it, said by the operator; else the agent's own.
        #[serde(default)]
        model: Option<String>,
    },
    /// Runs a tool that the open prompt offers; if it fails, every resource is taken back.
    CallTool {
        open_id: String,
        /// `<service>.<operation>`.
        tool: String,
        #[serde(default)]
        arguments: Map<String, Value>,
        #[serde(default)]
        tag: Option<String>,
    },
    /// Notes the state of every resource of an open prompt.
    Snapshot {
        open_id: String,
        #[serde(default)]
        tag: Option<String>,
    },
    /// Takes every resource back to a snapshot.
    Restore {
        open_id: String,
        /// Its id, or its tag: then the newest.
        snapshot: String,
    },
    /// Lists the files of overrides.
    OverrideList {},
    /// Which overrides of a tag apply now, and which are stale.
    OverrideResolve {
        prompt: String,
        #[serde(default)]
        tag: Option<String>,
    },
    /// Puts one override into the file of a tag.
    OverrideStore {
        prompt: String,
        change: OverrideChange,
        #[serde(default)]
        tag: Option<String>,
    },
    /// Replaces the whole file of a tag.
    OverrideUpsert { prompt: String, file: OverrideFile },
    /// Writes down a prompt's own words, so that there is something to edit.
    OverrideSeed {
        prompt: String,
        #[serde(default)]
        tag: Option<String>,
    },
    /// Takes the overrides of a tag away.
    OverrideDelete {
        prompt: String,
        #[serde(default)]
        tag: Option<String>,
    },
    /// Reads the folder of prompts again. An edit is noticed without it.
    Reload {},
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Listed")]
pub struct PromptList {
    pub prompts: Vec<PromptView>,
    pub open: Vec<String>,
    /// Those of them whose template was edited since: each keeps what it was opened with until it is closed.
    pub stale: Vec<String>,
    /// Each with file, line and column.
    pub faults: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Shown")]
pub struct PromptView {
    pub prompt: String,
    pub name: Option<String>,
    /// `built_in` or `folder`.
    pub origin: Value,
    pub params: Vec<String>,
    pub output: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Opening {
    pub open_id: String,
    pub path: String,
}
