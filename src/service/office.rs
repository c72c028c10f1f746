//! What all services share.

use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use serde_json::{Value, json};

use super::Desk;
use crate::contract::Effect;
use crate::events::Diaries;
use crate::jobs::{self, Book, End, Job, State};
use acheron_base::Clock;
use acheron_base::{Error, Result};
use acheron_vfs::{AccessControl, Answer, Caller, Tree};

/// A gate that also tells a reader what it may do.
pub trait Warden: AccessControl {
    /// PERMISSIONS.json of the service at `path`, for `caller`.
    fn permissions(&self, caller: &Caller, path: &str, operations: &[(String, Effect)]) -> Value;
}

pub struct Office {
    pub book: Arc<Book>,
    pub diaries: Arc<Diaries>,
    pub clock: Clock,
    pub warden: Arc<dyn Warden>,
    /// Where work is started: requests come on threads of the kernel's side.
    pub runtime: tokio::runtime::Handle,
    tree: OnceLock<Tree>,
    /// Every desk, by the agent it serves and the name of its service.
    desks: DashMap<(String, String), Arc<Desk>>,
}

impl Office {
    pub fn new(
        book: Arc<Book>,
        diaries: Arc<Diaries>,
        clock: Clock,
        warden: Arc<dyn Warden>,
        runtime: tokio::runtime::Handle,
    ) -> Arc<Self> {
        Arc::new(Office { book, diaries, clock, warden, runtime, tree: OnceLock::new(), desks: DashMap::new() })
    }

    /// The tree, which is built after the services that stand in it.
    pub fn tree(&self) -> Result<Tree> {
        self.tree.get().cloned().ok_or_else(|| Error::unavailable("the tree is still being built"))
    }

    pub fn set_tree(&self, tree: Tree) {
        _ = self.tree.set(tree); // there is only one
    }

    /// Gives a service its desk; one that it had before takes no more calls; those under way run to their end.
    pub fn seat(&self, agent: &str, desk: &Arc<Desk>) {
        if let Some(old) = self.desks.insert((agent.to_owned(), desk.name().to_owned()), desk.clone()) {
            desk.succeed(&old);
        }
    }

    /// Takes a service away, and its calls with it.
    pub fn unseat(&self, agent: &str, service: &str) {
        if let Some((_, desk)) = self.desks.remove(&(agent.to_owned(), service.to_owned())) {
            desk.close();
        }
    }

    /// Lets go of every desk; those hold the office in turn.
    pub fn empty(&self) {
        self.desks.clear();
    }

    pub fn desk(&self, agent: &str, service: &str) -> Result<Arc<Desk>> {
        let found = self.desks.get(&(agent.to_owned(), service.to_owned())).map(|desk| desk.clone());
        found.ok_or_else(|| Error::not_found(format!("agent {agent} has no service `{service}`")))
    }

    /// The services of an agent, by name.
    pub fn desks_of(&self, agent: &str) -> Vec<Arc<Desk>> {
        let mut desks: Vec<_> =
            self.desks.iter().filter(|entry| entry.key().0 == agent).map(|entry| entry.value().clone()).collect();
        desks.sort_by(|a, b| a.name().cmp(b.name()));
        desks
    }

    /// Makes the end of a job safe, shows it and tells of it. What was only read is not worth writing down, but may be
    /// waited for.
    pub fn ended(&self, end: End) -> Answer<()> {
        let End { job, now, change } = end;
        let diary = match self.diaries.of(&job.call.agent) {
            Ok(diary) => diary,
            Err(error) => return Answer::refuse(error),
        };
        if (job.call.effect, now.state) == (Effect::Read, State::Done) {
            End::show(&job, now);
            diary.wake();
            return Answer::ok(());
        }
        let path = format!("/agents/{}/jobs/{}/status.json", job.call.agent, job.id);
        let status = serde_json::to_value(job.status(&now)).unwrap_or_default();
        diary.add_with("job", &path, status, change, move || End::show(&job, now)).map(drop)
    }

    /// Ends a job that nobody can run any more.
    pub fn abandon(self: &Arc<Self>, job: Arc<Job>, error: Error) {
        let office = self.clone();
        self.runtime.spawn(async move { jobs::abandon(&office.book, job, error, |end| office.ended(end)).await });
    }

    /// Calls a service from inside, with the rights of `caller`, as a write to its control file would.
    pub async fn call(
        &self,
        caller: &Caller,
        agent: &str,
        service: &str,
        op: &str,
        arguments: Value,
    ) -> Result<Arc<Job>> {
        let desk = self.desk(agent, service)?;
        let call = desk.contract().envelope(json!({ "op": op, "arguments": arguments }))?;
        let mut jobs = desk.begin(caller, vec![call]).wait().await?;
        jobs.pop().ok_or_else(|| Error::internal("a call without a job"))
    }
}
