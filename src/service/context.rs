//! What all services share: the jobs, the event logs, the clock, who may do what, and each other.
//!
//! It owns neither the tree nor the services in it, which hold this context in turn: the tree owns the instances.

use std::sync::{Arc, OnceLock, Weak};

use dashmap::DashMap;
use serde_json::{Value, json};

use super::ServiceInstance;
use super::runner::JobRunner;
use crate::approvals::Approvals;
use crate::contract::Effect;
use crate::events::EventLogs;
use crate::jobs::{Job, Jobs};
use acheron_approvals::AskingRule;
use acheron_base::{Clock, Error, Ids, Result};
use acheron_store::Store;
use acheron_vfs::{Access, AccessControl, Caller, Tree, WeakTree};

/// Something of the host that changes while it runs, as it is now: a service that may look at it is handed this.
pub type Latest<T> = Arc<dyn Fn() -> Arc<T> + Send + Sync>;

/// Access control that can also describe itself to a reader.
pub trait ServiceAccess: AccessControl {
    /// Decides about a call at the control file `path`: refused, allowed, or the rule that asks the operator first.
    fn admit(&self, caller: &Caller, path: &str) -> Result<Option<AskingRule>> {
        self.check(caller, Access::Invoke, path).map(|()| None)
    }

    /// PERMISSIONS.json of the service at `path`, for `caller`.
    fn permissions(&self, caller: &Caller, path: &str, operations: &[(String, Effect)]) -> Value;
}

pub struct ServiceContext {
    pub runner: Arc<JobRunner>,
    pub approvals: Arc<Approvals>,
    pub jobs: Arc<Jobs>,
    pub event_logs: Arc<EventLogs>,
    pub clock: Clock,
    /// New names, and randomness.
    pub ids: Ids,
    pub access: Arc<dyn ServiceAccess>,
    /// The runtime that runs calls: requests arrive on FUSE threads, outside of it.
    pub runtime: tokio::runtime::Handle,
    tree: OnceLock<WeakTree>,
    /// Every instance, by the agent it serves and the name of its service.
    instances: DashMap<(String, String), Weak<ServiceInstance>>,
}

impl ServiceContext {
    pub fn new(
        jobs: Arc<Jobs>,
        event_logs: Arc<EventLogs>,
        store: Store,
        access: Arc<dyn ServiceAccess>,
        runtime: tokio::runtime::Handle,
    ) -> Arc<Self> {
        let (ids, clock) = (jobs.ids().clone(), jobs.clock().clone());
        let runner = JobRunner::new(jobs.clone(), event_logs.clone(), store, runtime.clone());
        Arc::new(ServiceContext {
            ids,
            approvals: runner.approvals.clone(),
            runner,
            jobs,
            event_logs,
            clock,
            access,
            runtime,
            tree: OnceLock::new(),
            instances: DashMap::new(),
        })
    }

    /// The tree, which is built after its services.
    pub fn tree(&self) -> Result<Tree> {
        let tree = self.tree.get().ok_or_else(|| Error::unavailable("the tree is still being built"))?;
        tree.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))
    }

    pub fn set_tree(&self, tree: &Tree) {
        _ = self.tree.set(tree.downgrade()); // there is only one
        self.event_logs.set_tree(tree);
    }

    /// Gives a service its instance, as long as a directory holds that. An instance that it had before takes no more
    /// calls; those under way run to their end.
    pub fn register(&self, agent: &str, instance: &Arc<ServiceInstance>) {
        let key = (agent.to_owned(), instance.name().to_owned());
        if let Some(old) = self.instances.insert(key, Arc::downgrade(instance)).and_then(|old| old.upgrade()) {
            instance.succeed(&old);
        }
    }

    /// Takes a service away, and its calls with it. Its directory goes after this: nothing else keeps the instance.
    pub fn unregister(&self, agent: &str, service: &str) {
        let gone = self.instances.remove(&(agent.to_owned(), service.to_owned()));
        if let Some(instance) = gone.and_then(|(_, instance)| instance.upgrade()) {
            instance.close();
        }
    }

    pub fn instance(&self, agent: &str, service: &str) -> Result<Arc<ServiceInstance>> {
        let found = self.instances.get(&(agent.to_owned(), service.to_owned())).and_then(|instance| instance.upgrade());
        found.ok_or_else(|| Error::not_found(format!("agent {agent} has no service `{service}`")))
    }

    /// The instance in the directory `path`.
    pub fn instance_at(&self, path: &str) -> Option<Arc<ServiceInstance>> {
        self.instances.iter().filter_map(|entry| entry.value().upgrade()).find(|instance| instance.path() == path)
    }

    /// Whether `path` is a control file whose commands are calls of a service: those can wait for a decision.
    pub fn takes_calls_at(&self, path: &str) -> bool {
        let Some((dir, file)) = path.rsplit_once("/control/") else { return false };
        let Some(operation) = file.strip_suffix(".json") else { return false };
        self.instance_at(dir).is_some_and(|it| operation == "invoke" || it.contract().operation(operation).is_ok())
    }

    /// Shows in `status.json` of the service that `path` belongs to why something there was refused.
    pub fn refused(&self, caller: &Caller, path: &str, error: &Error) {
        let mut instances = self.instances.iter().filter_map(|entry| entry.value().upgrade());
        let serves = |it: &Arc<ServiceInstance>| path.strip_prefix(it.path()).is_some_and(|rest| rest.starts_with('/'));
        if let Some(instance) = instances.find(serves) {
            instance.refused(caller, None, error);
        }
    }

    /// The services of an agent, by name.
    pub fn instances_of(&self, agent: &str) -> Vec<Arc<ServiceInstance>> {
        let own = self.instances.iter().filter(|entry| entry.key().0 == agent);
        let mut instances: Vec<_> = own.filter_map(|entry| entry.value().upgrade()).collect();
        instances.sort_by(|a, b| a.name().cmp(b.name()));
        instances
    }

    /// Calls a service from inside the process, with the rights of `caller`, like a write to its control file.
    pub async fn call(
        &self,
        caller: &Caller,
        agent: &str,
        service: &str,
        op: &str,
        arguments: Value,
    ) -> Result<Arc<Job>> {
        let instance = self.instance(agent, service)?;
        let call = instance.contract().envelope(json!({ "op": op, "arguments": arguments }))?;
        let mut jobs = instance.begin(caller, vec![call]).wait().await?;
        jobs.pop().ok_or_else(|| Error::internal("a call without a job"))
    }
}
