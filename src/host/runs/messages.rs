//! What `acheron run` and the host say to each other over `host.sock`: one JSON object per line. A listener goes with its
//! message as a descriptor.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::agent::budget::{BudgetLimits, Spent};
use acheron_sandbox::Plan;

/// From the command to the host, after its request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToHost {
    /// Comes with a listener at this port of the sandbox.
    Listener { port: u16 },
    /// The program has ended.
    Ended,
}

/// A program that wants to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramRequest {
    /// Its name, for the record.
    pub program: String,
    /// The agent as which it runs; otherwise one that is named after the program.
    pub agent: Option<String>,
    /// The working directory, which becomes a project.
    pub directory: PathBuf,
    /// What this run may use up.
    #[serde(default)]
    pub budget: BudgetLimits,
    /// `KIND:NAME` of the model; otherwise that of the mountspec.
    pub model: Option<String>,
    /// The model where the mountspec names none.
    pub usual_model: Option<String>,
    /// Where requests and answers are recorded.
    pub record: Option<PathBuf>,
    /// Rules for more hosts that it may reach during this run.
    #[serde(default)]
    pub network: Vec<String>,
    /// Whether it uses a log-in of its own even if there is a key for the gateway.
    #[serde(default)]
    pub login: bool,
    /// The hosts that it needs with a log-in of its own.
    #[serde(default)]
    pub login_hosts: Vec<String>,
    /// Whether it works in a view of the directory.
    #[serde(default)]
    pub view: bool,
}

/// From the host to the command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromHost {
    /// The plan for the program.
    Started(Box<RunStarted>),
    /// The program must end.
    EndedBecause(String),
    /// After the end of the program: what it has done.
    Record(RunRecord),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunStarted {
    pub agent: String,
    pub project: String,
    /// Where the tree is mounted.
    pub mount: PathBuf,
    /// The lasting home of the agent's programs.
    pub home: PathBuf,
    /// The model as its provider names it.
    pub model: String,
    /// Why the program uses a log-in of its own, if it does; there is no gateway then.
    pub login: Option<String>,
    /// The rules for the hosts that it may reach.
    pub hosts: Vec<String>,
    /// Whether the library has skills.
    #[serde(default)]
    pub skills: bool,
    pub plan: Plan,
}

/// What a run has used and changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub spent: Spent,
    /// Whether the model has prices; without them `money` says nothing.
    pub priced: bool,
    /// Files of the project that were changed, made or removed, as far as they are known by name.
    pub changed: Vec<String>,
    /// The number of files that were changed, where there were too many to name them.
    pub more_changed: u64,
    /// The number of connections that went through the proxy to the network.
    pub connections: u64,
    /// Hosts that the program asked for and did not get.
    pub refused_hosts: Vec<RefusedHost>,
    /// The view that it worked in.
    #[serde(default)]
    pub view: Option<RunView>,
}

/// What a program has left in its view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    pub name: String,
    /// The number of changes of each kind, `removed` first.
    pub counts: Vec<(String, u64)>,
    /// How many of them are held back.
    pub held: u64,
}

/// A host that a program asked for and did not get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusedHost {
    /// `host:port`.
    pub host: String,
    pub why: String,
    /// The rule that would allow it, if there is one.
    pub allow: Option<String>,
}
