//! Where one service takes its calls.

use crate::policy::PrincipalCaller;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use serde::Serialize;
use serde_json::Value;

use super::{Cx, Serve, ServiceContext};
use crate::contract::{Call, Contract, Effect};
use crate::jobs::{self, Job, Room};
use crate::policy::Principal;
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller};

/// Calls under way at once, and calls that wait, a instance.
const RUNNING: usize = 64;
const WAITING: usize = 960;

pub struct ServiceInstance {
    context: Arc<ServiceContext>,
    serve: Arc<dyn Serve>,
    /// Whose calls they are; `None` for a service that all agents share: then it is whoever asks.
    owner: Option<String>,
    /// For calls of the operator to a shared service.
    default_agent: String,
    /// Where its directory stands.
    path: String,
    room: Arc<Room>,
    last: Mutex<HashMap<String, Last>>,
    closed: AtomicBool,
}

/// The last call of an agent.
#[derive(Clone)]
pub enum Last {
    Refused { operation: Option<String>, error: Error, at_ms: u64 },
    Job(Arc<Job>),
}

/// What `status.json` of a service shows.
#[derive(Serialize)]
pub struct Status {
    pub state: &'static str,
    pub job_id: Option<String>,
    pub operation: Option<String>,
    pub updated_at_ms: Option<u64>,
    pub error: Option<Error>,
}

impl ServiceInstance {
    /// The instance of the service that only `agent` has.
    pub fn of(context: &Arc<ServiceContext>, agent: &str, serve: Arc<dyn Serve>) -> Arc<ServiceInstance> {
        let path = format!("/agents/{agent}/{}", serve.contract().name);
        ServiceInstance::build(context, Some(agent.to_owned()), agent, path, serve)
    }

    /// The instance of a service that all agents share.
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
        let (room, last) = (Arc::new(Room::new(RUNNING, WAITING)), Mutex::default());
        Arc::new(ServiceInstance {
            context,
            serve,
            owner,
            default_agent,
            path,
            room,
            last,
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

    /// Whose call it is when `caller` calls.
    pub fn agent_for(&self, caller: &Caller) -> String {
        match (&self.owner, caller.principal()) {
            (Some(owner), _) => owner.clone(),
            (None, Principal::Agent(id)) => id.clone(),
            (None, _) => self.default_agent.clone(),
        }
    }

    /// Takes over from the instance that the service had before it changed: who asks for its last call still finds it.
    pub fn succeed(&self, old: &ServiceInstance) {
        old.closed.store(true, Ordering::SeqCst);
        *self.lasts() = old.lasts().clone();
    }

    /// No more calls; those under way end with the reason. The service was taken out of the tree.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for agent in self.context.book.agents() {
            for job in self.context.book.shelf(&agent).alive() {
                let mine =
                    job.call.service == self.name() && (self.owner.is_none() || self.owner.as_ref() == Some(&agent));
                if mine {
                    job.stop(Error::unavailable(format!("the service {} was removed", self.name())));
                }
            }
        }
    }

    /// Begins all of `calls`, or none. They are safe, if their effects matter, when the answer is there.
    pub fn begin(self: &Arc<Self>, caller: &Caller, calls: Vec<Call>) -> Answer<Vec<Arc<Job>>> {
        match self.accept(caller, &calls) {
            Err(error) => Answer::refuse(error),
            Ok((jobs, safe)) => {
                let (instance, caller) = (self.clone(), caller.clone());
                match safe.poll_once() {
                    Answer::Now(safe) => Answer::Now(instance.start(&caller, jobs, calls, safe)),
                    Answer::Soon(safe) | Answer::Later(safe) => {
                        // In a task of its own: what the journal has is run although its caller may be gone by then.
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

    fn accept(&self, caller: &Caller, calls: &[Call]) -> Result<(Vec<Arc<Job>>, Answer<()>)> {
        if self.closed.load(Ordering::SeqCst) {
            let name = self.name();
            return Err(Error::unavailable(format!("the service {name} was changed or removed; open it again")));
        }
        let mut booked = Vec::new();
        for call in calls {
            let operation = self.contract().operation(&call.op)?;
            self.context.access.check(
                caller,
                acheron_vfs::Access::Invoke,
                &format!("{}/{}", self.path, operation.control_path()),
            )?;
            booked.push(jobs::Call {
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
        self.room.enter(calls.len())?;
        self.context.book.accept(booked, self.room.is_free(calls.len())).inspect_err(|_| self.room.leave(calls.len()))
    }

    fn start(
        self: &Arc<Self>,
        caller: &Caller,
        jobs: Vec<Arc<Job>>,
        calls: Vec<Call>,
        safe: Result<()>,
    ) -> Result<Vec<Arc<Job>>> {
        if let Err(error) = safe {
            self.context.book.retract(&jobs);
            self.room.leave(jobs.len());
            return Err(error);
        }
        for (job, call) in jobs.iter().zip(calls) {
            self.note(&job.call.agent, Last::Job(job.clone()));
            self.run(caller.clone(), job.clone(), call);
        }
        Ok(jobs)
    }

    /// Runs a job that an earlier life of the host left queued, if the journal has its words.
    pub fn resume(self: &Arc<Self>, job: Arc<Job>) {
        let private = self.contract().operation(&job.call.operation).is_ok_and(|operation| operation.private);
        if private && !job.cancel.is_cancelled() {
            let said = "the host stopped before this call began, and its private words were not kept; call again";
            return self.context.abandon(job, Error::interrupted(said));
        }
        let call = Call {
            op: job.call.operation.clone(),
            arguments: job.call.arguments.clone(),
            correlation_id: job.call.correlation_id.clone(),
        };
        self.room.enter_again();
        let caller = Caller::of(job.call.principal.clone());
        self.note(&job.call.agent, Last::Job(job.clone()));
        self.run(caller, job, call);
    }

    fn run(self: &Arc<Self>, caller: Caller, job: Arc<Job>, call: Call) {
        let quick = self.contract().operation(&call.op).is_ok_and(|operation| operation.quick);
        let mut running = Box::pin(self.clone().carry_out(caller, job, call));
        // Most that is quick is over at the first look. If not, the task looks again, so nobody need be told of this one.
        if quick && running.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        self.context.runtime.spawn(running);
    }

    async fn carry_out(self: Arc<Self>, caller: Caller, job: Arc<Job>, call: Call) {
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
        let work = move || -> jobs::Work { Box::pin(async move { serve.invoke(&cx, &call).await }) };
        let task = jobs::Task { work, deadline };
        jobs::run(&context.book, &self.room, job, task, |end| context.ended(end)).await;
    }

    /// Notes the last call of an agent.
    fn note(&self, agent: &str, last: Last) {
        self.lasts().insert(agent.to_owned(), last);
    }

    fn lasts(&self) -> MutexGuard<'_, HashMap<String, Last>> {
        self.last.lock()
    }

    /// A refusal counts as the last call, so that its sentence can be read.
    pub fn refused(&self, caller: &Caller, operation: Option<String>, error: &Error) {
        let last = Last::Refused { operation, error: error.clone(), at_ms: self.context.clock.now_ms() };
        self.note(&self.agent_for(caller), last);
    }

    pub fn last(&self, caller: &Caller) -> Option<Last> {
        self.lasts().get(&self.agent_for(caller)).cloned()
    }

    pub fn status(&self, caller: &Caller) -> Status {
        match self.last(caller) {
            None => Status { state: "idle", job_id: None, operation: None, updated_at_ms: None, error: None },
            Some(Last::Refused { operation, error, at_ms }) => {
                Status { state: "refused", job_id: None, operation, updated_at_ms: Some(at_ms), error: Some(error) }
            }
            Some(Last::Job(job)) => job.look(|now| Status {
                state: now.state.name(),
                job_id: Some(job.id.clone()),
                operation: Some(job.call.operation.clone()),
                updated_at_ms: Some(now.updated_at_ms),
                error: job.status(now).error.cloned(),
            }),
        }
    }

    /// What the reader may do here.
    pub fn permissions(&self, caller: &Caller) -> Value {
        let operations: Vec<(String, Effect)> =
            self.contract().operations.iter().map(|operation| (operation.name.clone(), operation.effect)).collect();
        self.context.access.permissions(caller, &self.path, &operations)
    }
}
