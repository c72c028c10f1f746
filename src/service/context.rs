//! The state that all services share: jobs, event logs, access control, the tree, and the registry of instances.

use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use serde_json::{Value, json};

use super::ServiceInstance;
use crate::contract::Effect;
use crate::events::EventLogs;
use crate::jobs::{self, Job, JobEnd, JobState, Jobs};
use acheron_base::Clock;
use acheron_base::{Error, Result};
use acheron_vfs::{AccessControl, Answer, Caller, Tree};

/// Access control that can also describe itself to a reader.
pub trait ServiceAccess: AccessControl {
    /// PERMISSIONS.json of the service at `path`, for `caller`.
    fn permissions(&self, caller: &Caller, path: &str, operations: &[(String, Effect)]) -> Value;
}

pub struct ServiceContext {
    pub jobs: Arc<Jobs>,
    pub event_logs: Arc<EventLogs>,
    pub clock: Clock,
    pub access: Arc<dyn ServiceAccess>,
    /// The runtime that runs calls: requests arrive on FUSE threads, outside of it.
    pub runtime: tokio::runtime::Handle,
    tree: OnceLock<Tree>,
    /// All instances by agent and service name.
    instances: DashMap<(String, String), Arc<ServiceInstance>>,
}

impl ServiceContext {
    pub fn new(
        jobs: Arc<Jobs>,
        event_logs: Arc<EventLogs>,
        clock: Clock,
        access: Arc<dyn ServiceAccess>,
        runtime: tokio::runtime::Handle,
    ) -> Arc<Self> {
        Arc::new(ServiceContext {
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
        self.tree.get().cloned().ok_or_else(|| Error::unavailable("the tree is still being built"))
    }

    pub fn set_tree(&self, tree: Tree) {
        _ = self.tree.set(tree); // there is only one
    }

    /// Registers an instance. An instance that it replaces takes no more calls; running calls finish.
    pub fn register(&self, agent: &str, instance: &Arc<ServiceInstance>) {
        if let Some(old) = self.instances.insert((agent.to_owned(), instance.name().to_owned()), instance.clone()) {
            instance.succeed(&old);
        }
    }

    /// Unregisters a service and stops its calls.
    pub fn unregister(&self, agent: &str, service: &str) {
        if let Some((_, instance)) = self.instances.remove(&(agent.to_owned(), service.to_owned())) {
            instance.close();
        }
    }

    /// Drops all instances, which hold references to this context.
    pub fn clear(&self) {
        self.instances.clear();
    }

    pub fn instance(&self, agent: &str, service: &str) -> Result<Arc<ServiceInstance>> {
        let found = self.instances.get(&(agent.to_owned(), service.to_owned())).map(|instance| instance.clone());
        found.ok_or_else(|| Error::not_found(format!("agent {agent} has no service `{service}`")))
    }

    /// The services of an agent, by name.
    pub fn instances_of(&self, agent: &str) -> Vec<Arc<ServiceInstance>> {
        let mut instances: Vec<_> =
            self.instances.iter().filter(|entry| entry.key().0 == agent).map(|entry| entry.value().clone()).collect();
        instances.sort_by(|a, b| a.name().cmp(b.name()));
        instances
    }

    /// Makes the end of a job durable, shows it and emits the event. A finished read is not stored, but its waiters are
    /// woken.
    pub fn ended(&self, end: JobEnd) -> Answer<()> {
        let JobEnd { job, now, change } = end;
        let event_log = match self.event_logs.of(&job.call.agent) {
            Ok(event_log) => event_log,
            Err(error) => return Answer::refuse(error),
        };
        if (job.call.effect, now.state) == (Effect::Read, JobState::Done) {
            JobEnd::show(&job, now);
            event_log.wake();
            return Answer::ok(());
        }
        let path = format!("/agents/{}/jobs/{}/status.json", job.call.agent, job.id);
        let status = serde_json::to_value(job.status(&now)).unwrap_or_default();
        event_log.add_with("job", &path, status, change, move || JobEnd::show(&job, now)).map(drop)
    }

    /// Ends a job that can no longer run.
    pub fn abandon(self: &Arc<Self>, job: Arc<Job>, error: Error) {
        let context = self.clone();
        self.runtime.spawn(async move { jobs::abandon(&context.jobs, job, error, |end| context.ended(end)).await });
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
