//! `sub_brains`: kinds of helper that an agent keeps, and helpers at work.
//!
//! A helper is an agent of its own, a directory beside its parent's. It may do what its parent may, or less; it has a
//! share of its parent's budget; it does one task and its reply is the result of the job that started it. How deep and
//! how many is bounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::select_all;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agent::budget::{BudgetLimits, Spent};
use crate::agent::chat::ChatMessage;
use crate::agent::lifecycle::AgentLifecycle;
use crate::agent::profiles::{AgentProfiles, Profile};
use crate::agent::runtimes::{AgentRuntimes, limits_of};
use crate::agent::transcript::TurnSource;
use crate::contract::Operation;
use crate::jobs::Job;
use crate::model::Usage;
use crate::policy::{Principal, PrincipalCaller, Rule};
use crate::service::{Cx, Service};
use crate::spec::{self, ModelChange, TurnLimits, is_id};
use acheron_base::{ConfinedDir, Error, Result};
use acheron_vfs::Caller;

const FILE: &str = "sub_brains.json";
/// Kinds of helper an agent may keep, helpers that may live at once (others wait), and parents above a helper.
const BRAINS: usize = 64;
const CHILDREN: usize = 8;
const DEPTH: u32 = 3;

/// The parts from which the service is built.
pub struct SubBrainsParts {
    /// The agent that keeps the helpers.
    pub agent: String,
    /// The agent's own directory, where the kinds of helper are kept.
    pub home: ConfinedDir,
    pub profiles: Arc<AgentProfiles>,
    pub runtimes: Arc<AgentRuntimes>,
    pub lifecycle: Arc<dyn AgentLifecycle>,
}

pub struct SubBrains {
    parts: SubBrainsParts,
    brains: Mutex<BTreeMap<String, Brain>>,
    /// Held while a helper is admitted, so that no two take the last slot or the same budget.
    admission: tokio::sync::Mutex<()>,
}

/// A kind of helper.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Brain {
    /// Its purpose; it reads this as its own description.
    pub about: String,
    /// Its model, where that differs from its parent's.
    pub model: Option<ModelChange>,
    /// At most this; never more than its parent has.
    pub limits: Option<TurnLimits>,
    /// Rights of the parent that it does not get. Rules that allow are refused.
    pub permissions: Vec<Rule>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// The kinds of helper there are, and the helpers at work.
    List {},
    /// Keeps a kind of helper, or changes it.
    Upsert {
        /// `[a-z0-9][a-z0-9_-]{0,31}`
        brain: String,
        /// Its purpose; it reads this as its own description.
        about: String,
        /// Its model; only the operator may set one.
        #[serde(default)]
        model: Option<ModelChange>,
        #[serde(default)]
        limits: Option<TurnLimits>,
        /// Only rules that deny.
        #[serde(default)]
        permissions: Vec<Rule>,
    },
    /// Forgets a kind of helper. Those at work go on.
    Delete { brain: String },
    /// Starts a helper on a task. The job ends with its reply.
    Spawn {
        brain: String,
        /// The task.
        task: String,
        /// Its share of the parent's limits.
        #[serde(default)]
        budget: Option<TurnLimits>,
    },
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    List { sub_brains: Vec<ListedBrain>, children: Vec<String>, count: usize },
    Kept { brain: String, updated: bool },
    Removed { brain: String, removed: bool },
    Ended(TaskResult),
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Listed")]
pub struct ListedBrain {
    pub brain: String,
    #[serde(flatten)]
    pub kept: Brain,
}

/// How a helper's task ended.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ended")]
pub struct TaskResult {
    pub agent_id: String,
    /// The turn, among the jobs of the helper.
    pub job_id: String,
    pub reply: String,
}

impl SubBrains {
    pub fn new(parts: SubBrainsParts) -> Result<SubBrains> {
        let brains = match parts.home.read_if_exists(FILE)? {
            None => BTreeMap::new(),
            Some(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| Error::invalid(format!("{FILE}: {error}")))?
            }
        };
        Ok(SubBrains { parts, brains: Mutex::new(brains), admission: tokio::sync::Mutex::default() })
    }

    fn brains(&self) -> BTreeMap<String, Brain> {
        self.brains.lock().clone()
    }

    /// Changes the kinds of helper; on the disk when this returns.
    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Brain>) -> Result<T>) -> Result<T> {
        let mut held = self.brains.lock();
        let mut brains = held.clone();
        let done = change(&mut brains)?;
        let json = serde_json::to_vec_pretty(&brains).map_err(|error| Error::internal(error.to_string()))?;
        self.parts.home.write(FILE, &json)?;
        *held = brains;
        Ok(done)
    }

    fn upsert(&self, cx: &Cx, name: String, brain: Brain) -> Result<Output> {
        check_name(&name)?;
        // A rule that asks would take the place of one of the parent that denies.
        if brain.permissions.iter().any(|rule| !rule.allow.is_empty() || !rule.ask.is_empty()) {
            return Err(Error::forbidden(
                "a sub-brain may be given less than its parent, not more: only rules that deny",
            ));
        }
        // A model says which server gets the host's key, which file is read and what tokens cost.
        if brain.model.is_some() && cx.caller.principal() != &Principal::Operator {
            return Err(Error::forbidden(
                "only the operator gives a sub-brain a model; without one it thinks with its parent's",
            ));
        }
        let updated = self.change(|brains| {
            if brains.len() >= BRAINS && !brains.contains_key(&name) {
                return Err(Error::busy(format!("{BRAINS} sub-brains are the limit")));
            }
            Ok(brains.insert(name.clone(), brain).is_some())
        })?;
        Ok(Output::Kept { brain: name, updated })
    }

    async fn spawn(&self, cx: &Cx, name: &str, task: String, budget: Option<TurnLimits>) -> Result<Output> {
        let SubBrainsParts { agent, profiles, runtimes, lifecycle, .. } = &self.parts;
        let brain = self.brains().get(name).cloned();
        let brain =
            brain.ok_or_else(|| Error::not_found(format!("there is no sub-brain `{name}`; upsert it first")))?;
        let parent = profiles.get(agent)?;
        if parent.depth >= DEPTH {
            return Err(Error::budget_exceeded(format!("{DEPTH} levels of sub-brains are the limit")));
        }
        let admission = self.admission.lock().await;
        self.make_room(cx).await?;
        let id = name_of(agent, name, cx.job_id());
        let left = runtimes.chat(agent)?.left(&self.promised());
        let profile = child(agent, &parent, &brain, budget, &left)?;
        lifecycle.admit(&id, profile)?;
        cx.log(&format!("{id} has begun"));
        cx.progress(json!({"agent_id": id}));
        let chat = runtimes.chat(&id)?;
        let from = Principal::Agent(agent.clone());
        let job = chat.say(ChatMessage { source: TurnSource::Task(agent.clone()), text: task, from }).wait().await?;
        drop(admission);
        // A spawn that is cancelled takes its helper's turn along.
        let turn = CancelOnDrop(job.clone());
        let now = job.end().await;
        drop(turn);
        match now.outcome.as_deref() {
            Some(Ok(reply)) => {
                let reply = reply.as_str().map_or_else(|| reply.to_string(), str::to_owned);
                Ok(Output::Ended(TaskResult { agent_id: id, job_id: job.id.clone(), reply }))
            }
            Some(Err(error)) => Err(error.clone().about(&id)),
            None => Err(Error::internal(format!("{id} ended without an outcome"))),
        }
    }

    /// Waits for a slot: a helper that has ended is taken away, and if all are at work, the next one that ends is waited for.
    async fn make_room(&self, cx: &Cx) -> Result<()> {
        let parts = &self.parts;
        loop {
            let all = parts.profiles.all();
            let own = |child: &Profile| child.parent.as_deref() == Some(&*parts.agent);
            let children: Vec<&str> = all.iter().filter(|(_, child)| own(child)).map(|(id, _)| id.as_str()).collect();
            if children.len() < CHILDREN {
                return Ok(());
            }
            let chat = |id: &str| parts.runtimes.chat(id).ok();
            let idle = |id: &str| chat(id).is_none_or(|chat| chat.idle());
            let trees: Vec<Vec<String>> = children.iter().map(|id| descent(&all, id)).collect();
            if let Some(ended) = trees.iter().find(|tree| tree.iter().all(|id| idle(id))) {
                // Those of a helper first, so that none is left without its parent.
                for id in ended.iter().rev() {
                    parts.lifecycle.remove(id, true).await?;
                }
                continue;
            }
            cx.progress(json!({"waiting_for": "a helper that ends", "at_work": children.len()}));
            let ends = trees.iter().flatten().filter(|id| !idle(id)).filter_map(|id| chat(id));
            let ends: Vec<_> = ends.map(|chat| Box::pin(async move { chat.wait_idle().await })).collect();
            if !ends.is_empty() {
                select_all(ends).await;
            }
        }
    }

    /// The part of the parent's budget that the running helpers may still use.
    fn promised(&self) -> Spent {
        let (mut promised, own) = (Spent::default(), Some(&*self.parts.agent));
        for (id, child) in self.parts.profiles.all().iter().filter(|(_, child)| child.parent.as_deref() == own) {
            if let Ok(chat) = self.parts.runtimes.chat(id)
                && !chat.idle()
            {
                // What a helper has used is paid for by its parent at once.
                let left = limits_of(&child.spec.limits).less(&chat.spent());
                let usage = Usage { input: left.tokens.unwrap_or_default(), ..Usage::default() };
                let ms = left.seconds.unwrap_or_default().saturating_mul(1000);
                let (rounds, money) = (left.rounds.unwrap_or_default(), left.money.unwrap_or_default());
                promised = promised.plus(&Spent { rounds, usage, ms, money });
            }
        }
        promised
    }
}

/// Cancels a turn when its waiter is dropped; no effect on one that has ended.
struct CancelOnDrop(Arc<Job>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if !self.0.settled() {
            self.0.cancel.cancel();
        }
    }
}

/// A helper and all that are below it, each after its parent. Pure.
pub fn descent(all: &BTreeMap<String, Profile>, id: &str) -> Vec<String> {
    let mut found = vec![id.to_owned()];
    let mut at = 0;
    while let Some(parent) = found.get(at).cloned() {
        let below = all.iter().filter(|(id, child)| child.parent.as_ref() == Some(&parent) && !found.contains(id));
        let below: Vec<String> = below.map(|(id, _)| id.clone()).collect();
        found.extend(below);
        at += 1;
    }
    found
}

/// A name that no other helper has: the job that starts it is its own.
fn name_of(parent: &str, brain: &str, job_id: &str) -> String {
    let tail: String = job_id.chars().rev().filter(char::is_ascii_alphanumeric).take(8).collect();
    let parent: String = parent.chars().take(64 - brain.len() - tail.len() - 2).collect();
    format!("{parent}-{brain}-{tail}")
}

/// Applies a rule for the parent's own subtree to that of its helper.
fn own(path: &str, parent: &str) -> String {
    match path.strip_prefix("/agents/").and_then(|rest| rest.strip_prefix(parent)) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/agents/self{rest}"),
        _ => path.to_owned(),
    }
}

/// The profile of a helper: its parent's, with less. Pure.
fn child(
    agent: &str,
    parent: &Profile,
    brain: &Brain,
    budget: Option<TurnLimits>,
    left: &BudgetLimits,
) -> Result<Profile> {
    let mut spec = parent.spec.clone();
    spec.about = brain.about.clone();
    spec.wake = Vec::new();
    for rule in &mut spec.permissions {
        rule.path = own(&rule.path, agent);
    }
    spec.permissions.extend(brain.permissions.iter().cloned());
    if let Some(model) = &brain.model {
        spec.model = model.clone();
    }
    let shares = [Some(spec.limits), brain.limits, budget];
    let bound = shares.iter().flatten().fold(*left, |bound, share| bound.and(&limits_of(share)));
    let (Some(rounds), Some(tokens), Some(seconds)) = (bound.rounds, bound.tokens, bound.seconds) else {
        return Err(Error::internal("a turn without limits"));
    };
    if rounds == 0 || tokens == 0 || seconds == 0 {
        return Err(Error::budget_exceeded(format!("{agent} has nothing left to give")));
    }
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    spec.limits = TurnLimits { rounds, tokens, seconds, money: bound.money };
    // It lives for one task, so that what a turn may use is all that it may.
    spec.budget =
        spec::Budget { rounds: bound.rounds, tokens: bound.tokens, seconds: bound.seconds, money: bound.money };
    let (parent, depth) = (Some(agent.to_owned()), parent.depth + 1);
    Ok(Profile { spec, created: true, parent, depth, ..Profile::default() })
}

#[async_trait]
impl Service for SubBrains {
    const NAME: &'static str = "sub_brains";
    const ABOUT: &'static str =
        "Helpers that an agent starts on tasks of their own, with a share of its rights and budget.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        let upsert = json!({"brain": "scout", "about": "Looks things up and reports in one paragraph."});
        vec![
            Operation::read("list").example(json!({})),
            Operation::execute("upsert").example(upsert).idempotent(),
            Operation::execute("delete").example(json!({"brain": "scout"})).idempotent(),
            Operation::execute("spawn")
                .example(json!({"brain": "scout", "task": "What is in the README of this project?"}))
                .gives::<TaskResult>()
                .deadline(std::time::Duration::from_secs(24 * 3600)),
        ]
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        match command {
            Command::Upsert { brain, .. } => check_name(&brain),
            Command::List {} | Command::Delete { .. } | Command::Spawn { .. } => Ok(()),
        }
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        match command {
            Command::List {} => {
                let sub_brains: Vec<_> =
                    self.brains().into_iter().map(|(brain, kept)| ListedBrain { brain, kept }).collect();
                let all = self.parts.profiles.all();
                let mine = all.into_iter().filter(|(_, child)| child.parent.as_ref() == Some(&self.parts.agent));
                let children = mine.map(|(id, _)| id).collect();
                Ok(Output::List { count: sub_brains.len(), sub_brains, children })
            }
            Command::Upsert { brain, about, model, limits, permissions } => {
                self.upsert(cx, brain, Brain { about, model, limits, permissions })
            }
            Command::Delete { brain } => {
                let removed = self.change(|brains| Ok(brains.remove(&brain).is_some()))?;
                Ok(Output::Removed { brain, removed })
            }
            Command::Spawn { brain, task, budget } => self.spawn(cx, &brain, task, budget).await,
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    match is_id(name) && name.len() <= 32 {
        true => Ok(()),
        false => Err(Error::invalid(format!("`{name}` cannot name a sub-brain: up to 32 of a-z, 0-9, _ and -"))),
    }
}

#[cfg(test)]
mod tests;
