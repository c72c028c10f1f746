//! An instance of a service in the tree: accepts its calls and runs them as jobs.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::Value;

use super::{Cx, Serve, ServiceContext};
use crate::contract::{Contract, Effect, ServiceCall};
use crate::jobs::{self, CallQueue, Job};
use crate::policy::{Principal, PrincipalCaller};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller};

/// The number of running and of waiting calls per instance.
const RUNNING: usize = 64;
const WAITING: usize = 960;

pub struct ServiceInstance {
    context: Arc<ServiceContext>,
    serve: Arc<dyn Serve>,
    /// The agent that calls belong to; `None` for a shared service, where they belong to the calling agent.
    owner: Option<String>,
    /// The agent that calls of the operator to a shared service belong to.
    default_agent: String,
    /// The path of the directory.
    path: String,
    call_queue: Arc<CallQueue>,
    last_calls: Mutex<HashMap<String, LastCall>>,
    closed: AtomicBool,
}

/// The last call of an agent.
#[derive(Clone)]
pub enum LastCall {
    Refused { operation: Option<String>, error: Error, at_ms: u64 },
    Job(Arc<Job>),
}

/// `status.json` of a service.
#[derive(Serialize)]
pub struct ServiceStatus {
    pub state: &'static str,
    pub job_id: Option<String>,
    pub operation: Option<String>,
    pub updated_at_ms: Option<u64>,
    pub error: Option<Error>,
}

impl ServiceInstance {
    /// An instance that belongs to one agent.
    pub fn of(context: &Arc<ServiceContext>, agent: &str, serve: Arc<dyn Serve>) -> Arc<ServiceInstance> {
        let path = format!("/agents/{agent}/{}", serve.contract().name);
        ServiceInstance::build(context, Some(agent.to_owned()), agent, path, serve)
    }

    /// An instance that all agents share.
    pub fn shared(
        context: &Arc<ServiceContext>,
        default_agent: &str,
        path: String,
        serve: Arc<dyn Serve>,
    ) -> Arc<ServiceInstance> {
        ServiceInstance::build(context, None, default_agent, path, serve)
    }

    fn build(
        context: &Arc<ServiceContext>,
        owner: Option<String>,
        default_agent: &str,
        path: String,
        serve: Arc<dyn Serve>,
    ) -> Arc<ServiceInstance> {
        let (context, default_agent) = (context.clone(), default_agent.to_owned());
        let (call_queue, last_calls) = (Arc::new(CallQueue::new(RUNNING, WAITING)), Mutex::default());
        Arc::new(ServiceInstance {
            context,
            serve,
            owner,
            default_agent,
            path,
            call_queue,
            last_calls,
            closed: AtomicBool::new(false),
        })
    }

    pub fn name(&self) -> &str {
        &self.contract().name
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn contract(&self) -> &Contract {
        self.serve.contract()
    }

    pub fn serve(&self) -> &Arc<dyn Serve> {
        &self.serve
    }

    /// The agent that a call of `caller` belongs to.
    pub fn agent_for(&self, caller: &Caller) -> String {
        match (&self.owner, caller.principal()) {
            (Some(owner), _) => owner.clone(),
            (None, Principal::Agent(id)) => id.clone(),
            (None, _) => self.default_agent.clone(),
        }
    }

    /// Replaces `old` after a change of the service and keeps its record of last calls.
    pub fn succeed(&self, old: &ServiceInstance) {
        old.closed.store(true, Ordering::SeqCst);
        *self.last_calls() = old.last_calls().clone();
    }

    /// Refuses further calls and stops the running ones: the service was removed from the tree.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for agent in self.context.jobs.agents() {
            for job in self.context.jobs.of(&agent).unfinished() {
                let mine =
                    job.call.service == self.name() && (self.owner.is_none() || self.owner.as_ref() == Some(&agent));
                if mine {
                    job.stop(Error::unavailable(format!("the service {} was removed", self.name())));
                }
            }
        }
    }

    /// Starts all of `calls` or none. Calls with effects are durable when the answer resolves.
    pub fn begin(self: &Arc<Self>, caller: &Caller, calls: Vec<ServiceCall>) -> Answer<Vec<Arc<Job>>> {
        match self.accept(caller, &calls) {
            Err(error) => Answer::refuse(error),
            Ok((jobs, safe)) => {
                let (instance, caller) = (self.clone(), caller.clone());
                match safe.poll_once() {
                    Answer::Now(safe) => Answer::Now(instance.start(&caller, jobs, calls, safe)),
                    Answer::Soon(safe) | Answer::Later(safe) => {
                        // In a separate task: a journaled call runs even if its caller has gone by then.
                        let start = async move { instance.start(&caller, jobs, calls, safe.await) };
                        let started = self.context.runtime.spawn(start);
                        Answer::soon(async move {
                            started.await.unwrap_or_else(|err| Err(Error::internal(err.to_string())))
                        })
                    }
                }
            }
        }
    }

    fn accept(&self, caller: &Caller, calls: &[ServiceCall]) -> Result<(Vec<Arc<Job>>, Answer<()>)> {
        if self.closed.load(Ordering::SeqCst) {
            let name = self.name();
            return Err(Error::unavailable(format!("the service {name} was changed or removed; open it again")));
        }
        let mut job_calls = Vec::new();
        for call in calls {
            let operation = self.contract().operation(&call.op)?;
            self.context.access.check(
                caller,
                acheron_vfs::Access::Invoke,
                &format!("{}/{}", self.path, operation.control_path()),
            )?;
            job_calls.push(jobs::JobCall {
                agent: self.agent_for(caller),
                service: self.name().to_owned(),
                operation: call.op.clone(),
                effect: operation.effect,
                idempotent: operation.idempotent && !operation.private,
                private: operation.private,
                correlation_id: call.correlation_id.clone(),
                principal: caller.principal().clone(),
                arguments: call.arguments.clone(),
            });
        }
        self.call_queue.admit(calls.len())?;
        self.context
            .jobs
            .accept(job_calls, self.call_queue.is_free(calls.len()))
            .inspect_err(|_| self.call_queue.release(calls.len()))
    }

    fn start(
        self: &Arc<Self>,
        caller: &Caller,
        jobs: Vec<Arc<Job>>,
        calls: Vec<ServiceCall>,
        safe: Result<()>,
    ) -> Result<Vec<Arc<Job>>> {
        if let Err(error) = safe {
            self.context.jobs.retract(&jobs);
            self.call_queue.release(jobs.len());
            return Err(error);
        }
        for (job, call) in jobs.iter().zip(calls) {
            self.note(&job.call.agent, LastCall::Job(job.clone()));
            self.run(caller.clone(), job.clone(), call);
        }
        Ok(jobs)
    }

    /// Runs a job that an earlier run of the host left queued, if its arguments were journaled.
    pub fn resume(self: &Arc<Self>, job: Arc<Job>) {
        let private = self.contract().operation(&job.call.operation).is_ok_and(|operation| operation.private);
        if private && !job.cancel.is_cancelled() {
            let message =
                "the host stopped before this call started, and its private arguments were not stored; call again";
            return self.context.abandon(job, Error::interrupted(message));
        }
        let call = ServiceCall {
            op: job.call.operation.clone(),
            arguments: job.call.arguments.clone(),
            correlation_id: job.call.correlation_id.clone(),
        };
        self.call_queue.readmit();
        let caller = Caller::of(job.call.principal.clone());
        self.note(&job.call.agent, LastCall::Job(job.clone()));
        self.run(caller, job, call);
    }

    fn run(self: &Arc<Self>, caller: Caller, job: Arc<Job>, call: ServiceCall) {
        let quick = self.contract().operation(&call.op).is_ok_and(|operation| operation.quick);
        let mut running = Box::pin(self.clone().run_job(caller, job, call));
        // Most quick calls finish at the first poll. Otherwise the spawned task polls again, so this waker may do
        // nothing.
        if quick && running.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        self.context.runtime.spawn(running);
    }

    async fn run_job(self: Arc<Self>, caller: Caller, job: Arc<Job>, call: ServiceCall) {
        let context = &self.context;
        let operation = self.contract().operation(&call.op);
        let deadline = operation.map_or(job.call.effect.deadline(), |operation| operation.deadline);
        let cx = Cx {
            caller,
            agent: job.call.agent.clone(),
            job: job.clone(),
            deadline,
            clock: context.clock.clone(),
            context: context.clone(),
        };
        let serve = self.serve.clone();
        let work = move || -> jobs::JobWork { Box::pin(async move { serve.invoke(&cx, &call).await }) };
        let task = jobs::Task { work, deadline };
        jobs::run(&context.jobs, &self.call_queue, job, task, |end| context.ended(end)).await;
    }

    /// Records the last call of an agent.
    fn note(&self, agent: &str, last: LastCall) {
        self.last_calls().insert(agent.to_owned(), last);
    }

    fn last_calls(&self) -> MutexGuard<'_, HashMap<String, LastCall>> {
        self.last_calls.lock()
    }

    /// A refusal counts as the last call, so that its message can be read.
    pub fn refused(&self, caller: &Caller, operation: Option<String>, error: &Error) {
        let last = LastCall::Refused { operation, error: error.clone(), at_ms: self.context.clock.now_ms() };
        self.note(&self.agent_for(caller), last);
    }

    pub fn last(&self, caller: &Caller) -> Option<LastCall> {
        self.last_calls().get(&self.agent_for(caller)).cloned()
    }

    pub fn status(&self, caller: &Caller) -> ServiceStatus {
        match self.last(caller) {
            None => ServiceStatus { state: "idle", job_id: None, operation: None, updated_at_ms: None, error: None },
            Some(LastCall::Refused { operation, error, at_ms }) => ServiceStatus {
                state: "refused",
                job_id: None,
                operation,
                updated_at_ms: Some(at_ms),
                error: Some(error),
            },
            Some(LastCall::Job(job)) => job.look(|now| ServiceStatus {
                state: now.state.name(),
                job_id: Some(job.id.clone()),
                operation: Some(job.call.operation.clone()),
                updated_at_ms: Some(now.updated_at_ms),
                error: job.status(now).error.cloned(),
            }),
        }
    }

    /// PERMISSIONS.json for `caller`.
    pub fn permissions(&self, caller: &Caller) -> Value {
        let operations: Vec<(String, Effect)> =
            self.contract().operations.iter().map(|operation| (operation.name.clone(), operation.effect)).collect();
        self.context.access.permissions(caller, &self.path, &operations)
    }
}
