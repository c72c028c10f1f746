//! The service `agents`: lists, creates, changes and deletes agents. An agent is a directory as soon as it was created.
//!
//! The operator may do everything. An agent may look, and may do to another what a rule of its own allows on that
//! agent's `agents/control/<op>.json`; no agent can give itself more rights than it has.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agent::budget::Spent;
use crate::agent::lifecycle::AgentLifecycle;
use crate::agent::profiles::{AgentProfiles, Profile};
use crate::agent::runtimes::AgentRuntimes;
use crate::contract::Operation;
use crate::policy::{Action, Policy, Principal, PrincipalCaller, Rule, authorize};
use crate::service::{Cx, Latest, Service};
use crate::spec::{Budget, ModelChange, Spec, TurnLimits, Wake, is_id};
use acheron_base::{Error, Result};
use acheron_vfs::Caller;

/// The parts from which the service is built.
pub struct AgentsParts {
    pub profiles: Arc<AgentProfiles>,
    pub runtimes: Arc<AgentRuntimes>,
    pub policy: Latest<Policy>,
    /// The mountspec as it reads now.
    pub spec: Latest<Spec>,
    pub lifecycle: Arc<dyn AgentLifecycle>,
}

pub struct Agents {
    parts: AgentsParts,
}

impl Agents {
    pub fn new(parts: AgentsParts) -> Agents {
        Agents { parts }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Lists the agents that the caller may see.
    List {},
    /// Creates an agent; its directory exists when the job has ended.
    Create {
        /// `[a-z0-9][a-z0-9_-]{0,63}`, and not `self`.
        agent_id: String,
        #[serde(flatten)]
        with: AgentChange,
    },
    /// One agent.
    Get { agent_id: String },
    /// Changes what is given and leaves the rest. Rights change at once, the rest from the next turn on. What is changed of
    /// an agent of the mountspec holds, over restarts too, until its entry there is edited: then only the entry counts.
    Update {
        agent_id: String,
        #[serde(flatten)]
        with: AgentChange,
    },
    /// New turns wait until it is resumed; the one under way goes on.
    Pause { agent_id: String },
    /// Lets a paused agent go on. What the operator paused, only the operator resumes.
    Resume { agent_id: String },
    /// Cancels its turns, the one under way and those that wait.
    Stop { agent_id: String },
    /// Takes an agent away that was created here. Those of the mountspec are taken away there.
    Delete {
        agent_id: String,
        /// Remove what it left behind, for good.
        #[serde(default)]
        purge: bool,
    },
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    List { agents: Vec<AgentView>, count: usize },
    One(Box<AgentView>),
    Deleted { agent_id: String, deleted: bool, purged: bool },
}

/// One agent, as others see it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Shown")]
pub struct AgentView {
    pub agent_id: String,
    pub name: String,
    pub about: String,
    pub is_default: bool,
    /// Was created here; the mountspec does not know it.
    pub created: bool,
    pub parent: Option<String>,
    pub state: String,
    pub model: String,
    pub limits: TurnLimits,
    pub budget: Budget,
    /// The total use of its turns.
    pub spent: Spent,
    pub projects: Vec<String>,
    pub path: String,
}

/// The settings that `create` and `update` accept.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentChange {
    pub name: Option<String>,
    /// Its description, in its own prompt and in listings; only the operator sets it.
    pub about: Option<String>,
    /// Its model, where that differs from the mountspec's.
    pub model: Option<ModelChange>,
    /// The limits of one turn.
    pub limits: Option<TurnLimits>,
    /// The limits of all its turns together; a limit that is not named does not apply.
    pub budget: Option<Budget>,
    /// Tried in order after the rules that every agent has.
    pub permissions: Option<Vec<Rule>>,
    /// The projects it works in.
    pub projects: Option<Vec<String>>,
    /// The events that begin a turn by themselves.
    pub wake: Option<Vec<Wake>>,
}

impl AgentChange {
    /// Whether it could give an agent more rights than it had, or another purpose.
    fn widens(&self) -> bool {
        let costs = self.model.is_some() || self.limits.is_some() || self.budget.is_some();
        // `about` is read as the agent's own description: an agent that was misled would mislead the next.
        let purpose = self.about.is_some();
        // A wake rule begins turns, which cost money, and gives them a purpose in place of the operator.
        purpose || costs || self.permissions.is_some() || self.projects.is_some() || self.wake.is_some()
    }

    fn apply(self, profile: &mut Profile) {
        fn set<T>(to: &mut T, from: Option<T>) {
            if let Some(from) = from {
                *to = from;
            }
        }
        set(&mut profile.name, self.name);
        set(&mut profile.spec.about, self.about);
        set(&mut profile.spec.model, self.model);
        set(&mut profile.spec.limits, self.limits);
        set(&mut profile.spec.budget, self.budget);
        set(&mut profile.spec.permissions, self.permissions);
        set(&mut profile.spec.projects, self.projects);
        set(&mut profile.spec.wake, self.wake);
    }
}

#[async_trait]
impl Service for Agents {
    const NAME: &'static str = "agents";
    const ABOUT: &'static str = "Lists, creates, changes and deletes the agents of this tree.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        let one = json!({"agent_id": "scribe"});
        let (limits, example) = (json!({"rounds": 8}), json!({"agent_id": "scribe", "about": "Takes notes."}));
        vec![
            Operation::read("list").example(json!({})),
            Operation::execute("create").example(example).idempotent(),
            Operation::read("get").example(one.clone()).gives::<AgentView>(),
            Operation::execute("update")
                .example(json!({"agent_id": "scribe", "limits": limits}))
                .gives::<AgentView>()
                .idempotent(),
            Operation::execute("pause").example(one.clone()).gives::<AgentView>().idempotent(),
            Operation::execute("resume").example(one.clone()).gives::<AgentView>().idempotent(),
            Operation::execute("stop").example(one).gives::<AgentView>().idempotent(),
            Operation::execute("delete").example(json!({"agent_id": "scribe", "purge": true})).idempotent(),
        ]
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        match command {
            Command::Create { agent_id, .. } => check_new_id(&agent_id),
            _ => Ok(()),
        }
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        let call = AgentsCall { parts: &self.parts, cx };
        let one = |shown: AgentView| Ok(Output::One(Box::new(shown)));
        match command {
            Command::List {} => call.list(),
            Command::Get { agent_id } => one(call.get(&agent_id)?),
            Command::Create { agent_id, with } => one(call.create(&agent_id, with)?),
            Command::Update { agent_id, with } => one(call.update(&agent_id, with)?),
            Command::Pause { agent_id } => one(call.pause(&agent_id, true)?),
            Command::Resume { agent_id } => one(call.pause(&agent_id, false)?),
            Command::Stop { agent_id } => {
                call.may("stop", &agent_id)?;
                self.parts.runtimes.chat(&agent_id)?.stop();
                one(call.shown(&agent_id)?)
            }
            Command::Delete { agent_id, purge } => call.delete(&agent_id, purge).await,
        }
    }
}

/// One call.
struct AgentsCall<'a> {
    parts: &'a AgentsParts,
    cx: &'a Cx,
}

impl AgentsCall<'_> {
    fn may(&self, op: &str, agent: &str) -> Result<()> {
        let path = format!("/agents/{agent}/agents/control/{op}.json");
        let decision = authorize(&(self.parts.policy)(), self.cx.caller.principal(), Action::Invoke, &path);
        // A rule that asks has asked about this call, or about the same file.
        let answered = self.cx.job.approval().is_some() || self.cx.agent == agent;
        match decision.allowed || decision.asks.is_some() && answered {
            true => Ok(()),
            false => Err(Error::forbidden(format!("{op} of {agent}: {}", decision.reason))),
        }
    }

    /// Whether the call was begun before, by a host that died.
    fn again(&self) -> bool {
        self.cx.job.now().attempt > 1
    }

    fn operator(&self) -> bool {
        self.cx.caller.principal() == &Principal::Operator
    }

    fn may_widen(&self, change: &AgentChange) -> Result<()> {
        match self.operator() || !change.widens() {
            true => Ok(()),
            false => {
                let said = "only the operator gives an agent its `about`, a model, limits, a budget, permissions, \
                            projects or wakes";
                Err(Error::forbidden(said))
            }
        }
    }

    fn list(&self) -> Result<Output> {
        let ids = self.parts.profiles.ids().into_iter().filter(|id| self.sees(id));
        let agents: Vec<_> = ids.map(|id| self.shown(&id)).collect::<Result<_>>()?;
        Ok(Output::List { count: agents.len(), agents })
    }

    fn sees(&self, id: &str) -> bool {
        crate::policy::sees(&(self.parts.policy)(), self.cx.caller.principal(), &format!("/agents/{id}"))
    }

    /// An agent that the caller may not see is reported as absent.
    fn get(&self, id: &str) -> Result<AgentView> {
        match self.sees(id) {
            true => self.shown(id),
            false => Err(Error::not_found(format!("there is no agent `{id}`"))),
        }
    }

    fn shown(&self, id: &str) -> Result<AgentView> {
        let profile = self.parts.profiles.get(id)?;
        let chat = self.parts.runtimes.chat(id)?;
        let settings = chat.agent_runtime().settings();
        let state = match chat.current() {
            Some(_) => "running",
            None if settings.paused => "paused",
            None => "idle",
        };
        Ok(AgentView {
            agent_id: id.to_owned(),
            name: if profile.name.is_empty() { id.to_owned() } else { profile.name },
            about: profile.spec.about,
            is_default: id == (self.parts.spec)().default_agent(),
            created: profile.created,
            parent: profile.parent,
            state: state.to_owned(),
            model: settings.model_name(),
            limits: profile.spec.limits,
            budget: profile.spec.budget,
            spent: chat.spent(),
            projects: profile.spec.projects,
            path: format!("/agents/{id}"),
        })
    }

    fn create(&self, id: &str, change: AgentChange) -> Result<AgentView> {
        check_new_id(id)?;
        self.may("create", id)?;
        self.may_widen(&change)?;
        let mut profile = Profile { name: id.to_owned(), created: true, ..Profile::default() };
        change.apply(&mut profile);
        match self.parts.profiles.get(id) {
            // The host died before this call ended.
            Ok(there) if self.again() && there == profile => return self.shown(id),
            Ok(_) => return Err(Error::already_exists(format!("there is an agent `{id}` already"))),
            Err(_) => {}
        }
        self.parts.lifecycle.admit(id, profile)?;
        self.shown(id)
    }

    fn update(&self, id: &str, change: AgentChange) -> Result<AgentView> {
        self.may("update", id)?;
        self.may_widen(&change)?;
        let mut profile = self.parts.profiles.get(id)?;
        change.apply(&mut profile);
        if !profile.created {
            profile.over = (self.parts.spec)().agents.get(id).cloned().map(Box::new);
        }
        self.parts.lifecycle.settle(id, profile)?;
        self.shown(id)
    }

    fn pause(&self, id: &str, paused: bool) -> Result<AgentView> {
        self.may(if paused { "pause" } else { "resume" }, id)?;
        let profile = self.parts.profiles.get(id)?;
        if !paused {
            self.may_end_pause(id, &profile)?;
        }
        // Pausing what the operator has paused changes nothing of whose pause it is.
        let free = !profile.paused || profile.paused_by_agent;
        let paused_by_agent = paused && free && !self.operator();
        self.parts.profiles.put(id, Profile { paused, paused_by_agent, ..profile })?;
        self.parts.runtimes.chat(id)?.pause(paused);
        self.shown(id)
    }

    /// Refuses unless the caller may let an agent go on. A deleted agent could be created again, and would not be paused.
    fn may_end_pause(&self, id: &str, profile: &Profile) -> Result<()> {
        match profile.paused && !profile.paused_by_agent && !self.operator() {
            true => {
                Err(Error::forbidden(format!("the operator has paused {id}; only the operator resumes or deletes it")))
            }
            false => Ok(()),
        }
    }

    async fn delete(&self, id: &str, purge: bool) -> Result<Output> {
        self.may("delete", id)?;
        let deleted = || Output::Deleted { agent_id: id.to_owned(), deleted: true, purged: purge };
        if self.again() && !self.parts.profiles.has(id) {
            return Ok(deleted()); // the host died before this call ended
        }
        let profile = self.parts.profiles.get(id)?;
        self.may_end_pause(id, &profile)?;
        if !profile.created {
            return Err(Error::forbidden(format!("{id} stands in the mountspec; take it out there")));
        }
        if id == self.cx.agent {
            return Err(Error::forbidden("an agent cannot delete itself while this call of its own is under way"));
        }
        self.parts.lifecycle.remove(id, purge).await?;
        Ok(deleted())
    }
}

fn check_new_id(id: &str) -> Result<()> {
    match is_id(id) && id != "self" {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "`{id}` cannot be an agent's id: up to 64 of a-z, 0-9, _ and -, a letter or digit first, and not self"
        ))),
    }
}
