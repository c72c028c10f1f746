//! `agents`: who lives here, and letting others in. An agent is a directory as soon as it was created.
//!
//! The operator may do everything. An agent may look, and may do to another what a rule of its own allows on that
//! agent's `agents/control/<op>.json`; nobody can give itself more than it has.

use crate::policy::PrincipalCaller;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::AgentEnv;
use crate::agent::budget::Spent;
use crate::agent::runtime::Settings;
use crate::agent::runtimes::check_wake_rules;
use crate::contract::Operation;
use crate::host::{HostState, Profile};
use crate::policy::{Action, Principal, Rule, authorize};
use crate::service::{Cx, Service};
use crate::spec::{Budget, ModelChange, TurnLimits, Wake, agent_faults, is_id};
use acheron_base::blocking;
use acheron_base::{Error, Result};

/// How long an agent that is taken away may need to come to its end.
const ENDING: Duration = Duration::from_secs(30);

pub struct Agents {
    host: Weak<HostState>,
}

impl Agents {
    pub fn of(world: &AgentEnv) -> Agents {
        Agents { host: Arc::downgrade(&world.host) }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Everybody who lives here, as far as the reader may know.
    List {},
    /// Lets a new agent in; its directory is there when the job is done.
    Create {
        /// `[a-z0-9][a-z0-9_-]{0,63}`, and not `self`.
        agent_id: String,
        #[serde(flatten)]
        with: Change,
    },
    /// One agent.
    Get { agent_id: String },
    /// Changes what is given and leaves the rest. Rights change at once, the rest from the next turn on. What is changed of
    /// an agent of the mountspec holds, over restarts too, until somebody edits its entry there: then that counts alone.
    Update {
        agent_id: String,
        #[serde(flatten)]
        with: Change,
    },
    /// New turns wait until it is resumed; the one under way goes on.
    Pause { agent_id: String },
    /// Lets a paused agent go on.
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
    List { agents: Vec<Shown>, count: usize },
    One(Box<Shown>),
    Deleted { agent_id: String, deleted: bool, purged: bool },
}

/// One agent, as others see it.
#[derive(Serialize, JsonSchema)]
pub struct Shown {
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
    /// What all its turns have used.
    pub spent: Spent,
    pub projects: Vec<String>,
    pub path: String,
}

/// What `create` and `update` may say.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Change {
    pub name: Option<String>,
    /// Who it is, in its own prompt and in listings.
    pub about: Option<String>,
    /// What it thinks with, where that differs from the mountspec's model.
    pub model: Option<ModelChange>,
    /// What one of its turns may use up.
    pub limits: Option<TurnLimits>,
    /// What all its turns together may use up; what is not named is not bounded.
    pub budget: Option<Budget>,
    /// Tried in order after the rules that every agent has.
    pub permissions: Option<Vec<Rule>>,
    /// The projects it works in.
    pub projects: Option<Vec<String>>,
    /// What begins a turn by itself.
    pub wake: Option<Vec<Wake>>,
}

impl Change {
    /// Whether it could give somebody more than they had.
    fn widens(&self) -> bool {
        let costs = self.model.is_some() || self.limits.is_some() || self.budget.is_some();
        // What wakes an agent begins turns, which cost, and says in the operator's place what they are for.
        costs || self.permissions.is_some() || self.projects.is_some() || self.wake.is_some()
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
    const ABOUT: &'static str = "Who lives in this tree, and letting others in.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        let one = json!({"agent_id": "scribe"});
        let (limits, example) = (json!({"rounds": 8}), json!({"agent_id": "scribe", "about": "Takes notes."}));
        vec![
            Operation::read("list").example(json!({})),
            Operation::write("create").example(example),
            Operation::read("get").example(one.clone()).gives::<Shown>(),
            Operation::write("update").example(json!({"agent_id": "scribe", "limits": limits})).gives::<Shown>(),
            Operation::write("pause").example(one.clone()).gives::<Shown>().idempotent(),
            Operation::write("resume").example(one.clone()).gives::<Shown>().idempotent(),
            Operation::write("stop").example(one).gives::<Shown>().idempotent(),
            Operation::write("delete").example(json!({"agent_id": "scribe", "purge": true})),
        ]
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        let host = self.host.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))?;
        let desk = Visit { host: &host, cx };
        let one = |shown: Shown| Ok(Output::One(Box::new(shown)));
        match command {
            Command::List {} => desk.list(),
            Command::Get { agent_id } => one(desk.get(&agent_id)?),
            Command::Create { agent_id, with } => one(desk.create(&agent_id, with)?),
            Command::Update { agent_id, with } => one(desk.update(&agent_id, with)?),
            Command::Pause { agent_id } => one(desk.pause(&agent_id, true)?),
            Command::Resume { agent_id } => one(desk.pause(&agent_id, false)?),
            Command::Stop { agent_id } => {
                desk.may("stop", &agent_id)?;
                host.shared.runtimes.chat(&agent_id)?.stop();
                one(desk.shown(&agent_id)?)
            }
            Command::Delete { agent_id, purge } => desk.delete(&agent_id, purge).await,
        }
    }
}

/// One call.
struct Visit<'a> {
    host: &'a Arc<HostState>,
    cx: &'a Cx,
}

impl Visit<'_> {
    fn may(&self, op: &str, agent: &str) -> Result<()> {
        let path = format!("/agents/{agent}/agents/control/{op}.json");
        let decision = authorize(&self.host.access.policy(), self.cx.caller.principal(), Action::Invoke, &path);
        match decision.allowed {
            true => Ok(()),
            false => Err(Error::forbidden(format!("{op} of {agent}: {}", decision.reason))),
        }
    }

    fn operator(&self) -> bool {
        self.cx.caller.principal() == &Principal::Operator
    }

    fn may_widen(&self, change: &Change) -> Result<()> {
        match self.operator() || !change.widens() {
            true => Ok(()),
            false => {
                let said = "only the operator gives an agent a model, limits, a budget, permissions, projects or wakes";
                Err(Error::forbidden(said))
            }
        }
    }

    fn list(&self) -> Result<Output> {
        let ids = self.host.profiles.ids().into_iter().filter(|id| self.sees(id));
        let agents: Vec<_> = ids.map(|id| self.shown(&id)).collect::<Result<_>>()?;
        Ok(Output::List { count: agents.len(), agents })
    }

    fn sees(&self, id: &str) -> bool {
        crate::policy::sees(&self.host.access.policy(), self.cx.caller.principal(), &format!("/agents/{id}"))
    }

    /// One whom the caller may not know of is as absent as one who is not.
    fn get(&self, id: &str) -> Result<Shown> {
        match self.sees(id) {
            true => self.shown(id),
            false => Err(Error::not_found(format!("there is no agent `{id}`"))),
        }
    }

    fn shown(&self, id: &str) -> Result<Shown> {
        let profile = self.host.profiles.get(id)?;
        let chat = self.host.shared.runtimes.chat(id)?;
        let settings = chat.agent_runtime().settings();
        let state = match chat.current() {
            Some(_) => "running",
            None if settings.paused => "paused",
            None => "idle",
        };
        Ok(Shown {
            agent_id: id.to_owned(),
            name: if profile.name.is_empty() { id.to_owned() } else { profile.name },
            about: profile.spec.about,
            is_default: id == self.host.current.spec().default_agent(),
            created: profile.created,
            parent: profile.parent,
            state: state.to_owned(),
            model: settings.model.map_or("external".to_owned(), |model| model.name()),
            limits: profile.spec.limits,
            budget: profile.spec.budget,
            spent: chat.spent(),
            projects: profile.spec.projects,
            path: format!("/agents/{id}"),
        })
    }

    fn create(&self, id: &str, change: Change) -> Result<Shown> {
        if !is_id(id) || id == "self" {
            return Err(Error::invalid(format!(
                "`{id}` cannot be an agent's id: up to 64 of a-z, 0-9, _ and -, a letter or digit first, and not self"
            )));
        }
        self.may("create", id)?;
        if self.host.profiles.has(id) {
            return Err(Error::already_exists(format!("there is an agent `{id}` already")));
        }
        self.may_widen(&change)?;
        let mut profile = Profile { name: id.to_owned(), created: true, ..Profile::default() };
        change.apply(&mut profile);
        admit(self.host, id, profile)?;
        self.shown(id)
    }

    fn update(&self, id: &str, change: Change) -> Result<Shown> {
        self.may("update", id)?;
        self.may_widen(&change)?;
        let mut profile = self.host.profiles.get(id)?;
        change.apply(&mut profile);
        if !profile.created {
            profile.over = self.host.current.spec().agents.get(id).cloned().map(Box::new);
        }
        settle(self.host, id, profile)?;
        self.shown(id)
    }

    fn pause(&self, id: &str, paused: bool) -> Result<Shown> {
        self.may(if paused { "pause" } else { "resume" }, id)?;
        let profile = self.host.profiles.get(id)?;
        self.host.profiles.put(id, Profile { paused, ..profile })?;
        self.host.shared.runtimes.chat(id)?.pause(paused);
        self.shown(id)
    }

    async fn delete(&self, id: &str, purge: bool) -> Result<Output> {
        self.may("delete", id)?;
        if !self.host.profiles.get(id)?.created {
            return Err(Error::forbidden(format!("{id} stands in the mountspec; take it out there")));
        }
        if id == self.cx.agent {
            return Err(Error::forbidden("an agent cannot delete itself while this call of its own is under way"));
        }
        remove(self.host, id, purge).await?;
        Ok(Output::Deleted { agent_id: id.to_owned(), deleted: true, purged: purge })
    }
}

/// Checks a profile, writes it down and lets the agent move in; if that fails, nothing has happened.
pub(super) fn admit(host: &Arc<HostState>, id: &str, profile: Profile) -> Result<()> {
    sound(host, id, &profile)?;
    host.profiles.put(id, profile)?;
    host.access.follow(host.profiles.policy()?);
    let Some(agent_dirs) = host.agent_dirs.get() else { return Err(Error::unavailable("the host is not ready")) };
    agent_dirs.move_in(host, id)
}

/// Lets an agent live by a profile, at once and without an end to what it is doing. One who was not there moves in.
pub fn settle(host: &Arc<HostState>, id: &str, profile: Profile) -> Result<()> {
    let Ok(before) = host.profiles.get(id) else { return admit(host, id, profile) };
    let mut settings = sound(host, id, &profile)?;
    let model = |profile: &Profile| host.mounted_with.model_of(&profile.spec);
    let runtimes = &host.shared.runtimes;
    if model(&before) == model(&profile) {
        // The same model goes on: a script is not begun anew.
        settings.model = runtimes.chat(id)?.agent_runtime().settings().model;
    }
    host.profiles.put(id, profile.clone())?;
    host.access.follow(host.profiles.policy()?);
    runtimes.change(id, settings)?;
    if before.spec.wake != profile.spec.wake || before.spec.budget != profile.spec.budget {
        runtimes.set_wake_rules(id, &profile.spec.wake)?;
    }
    Ok(())
}

/// What a profile comes to, if it could stand in the mountspec.
fn sound(host: &HostState, id: &str, profile: &Profile) -> Result<Settings> {
    let faults = agent_faults(&host.current.spec(), id, &profile.spec);
    if !faults.is_empty() {
        return Err(Error::invalid(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")));
    }
    check_wake_rules(&host.context.jobs, id, &profile.spec.wake)?;
    Ok(Settings { paused: profile.paused, ..super::chat::settings(host, id, &profile.spec)? })
}

/// Takes an agent away: ends what it does, waits for that, and forgets it. With `purge` nothing is left of it.
pub async fn remove(host: &Arc<HostState>, id: &str, purge: bool) -> Result<()> {
    let Some(agent_dirs) = host.agent_dirs.get() else { return Err(Error::unavailable("the host is not ready")) };
    let (chat, jobs) = (host.shared.runtimes.chat(id).ok(), host.context.jobs.of(id).unfinished());
    agent_dirs.move_out(host, id);
    jobs.iter().for_each(|job| job.cancel.cancel());
    let over = async {
        for job in &jobs {
            job.end().await;
        }
        if let Some(chat) = chat {
            chat.wait_idle().await;
        }
    };
    // What it wrote at its end must not come after what is removed here.
    if tokio::time::timeout(ENDING, over).await.is_err() {
        return Err(Error::busy(format!("{id} does not come to its end: try again")));
    }
    let (host, id) = (host.clone(), id.to_owned());
    blocking(move || {
        host.profiles.remove(&id, purge)?;
        host.access.follow(host.profiles.policy()?);
        host.context.event_logs.forget(&id);
        host.context.jobs.forget(&id);
        let agent = id.clone();
        if purge { crate::state::purge(&host.store, &id, move |tx| super::purge(tx, &agent)) } else { Ok(()) }
    })
    .await
}
