//! An instance of a service in the tree: accepts its calls and runs them as jobs.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::Value;

use super::runner::{CallQueue, Deed, JobWork, ParkedCall, PlannedAsk, PlannedCall, RunWork, Work, WriteWork};
use super::{Cx, Serve, ServiceContext, WriteCx};
use crate::contract::{Contract, Effect, Envelope, Operation};
use crate::jobs::{Call, Job, JobState};
use crate::policy::{Principal, PrincipalCaller};
use acheron_approvals::{AskingRule, Request, Subject, SubjectFacts};
use acheron_base::{Error, Result, blocking};
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

/// A call that its caller may make, and the rules that ask the operator first.
struct CheckedCall {
    call: Call,
    asks: Vec<AskingRule>,
    reason: Option<String>,
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
    /// How far work in the background is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Value>,
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

    /// Starts all of `calls` or none. Calls with effects are durable when the answer resolves, and those of effect
    /// `write` have ended.
    pub fn begin(self: &Arc<Self>, caller: &Caller, calls: Vec<Envelope>) -> Answer<Vec<Arc<Job>>> {
        self.begin_at(caller, calls, None)
    }

    /// [`begin`](Self::begin) for calls that were written to the control file `file`.
    pub fn begin_at(
        self: &Arc<Self>,
        caller: &Caller,
        calls: Vec<Envelope>,
        file: Option<&str>,
    ) -> Answer<Vec<Arc<Job>>> {
        let checked = match calls.into_iter().map(|call| self.check(caller, call, file)).collect::<Result<Vec<_>>>() {
            Ok(checked) => checked,
            Err(error) => return Answer::refuse(error),
        };
        let instance = self.clone();
        let told = move |jobs: &[Arc<Job>]| {
            for job in jobs {
                instance.note(&job.call.agent, LastCall::Job(job.clone()));
            }
        };
        if checked.iter().all(|it| it.asks.is_empty()) {
            return match checked.into_iter().map(|it| self.plan(caller, it.call)).collect() {
                Ok(planned) => self.context.runner.begin(&self.call_queue, planned, told),
                Err(error) => Answer::refuse(error),
            };
        }
        // What would be done is looked at first, which may be files.
        let (instance, caller) = (self.clone(), caller.clone());
        Answer::soon(async move {
            let (own, from) = (instance.clone(), caller.clone());
            let plan = move || checked.into_iter().map(|it| own.plan_or_ask(&from, it)).collect::<Result<Vec<_>>>();
            let planned = blocking(plan).await?;
            instance.context.runner.begin(&instance.call_queue, planned, told).wait().await
        })
    }

    /// Checks that the caller may make the call, perhaps after the operator has decided.
    fn check(&self, caller: &Caller, call: Envelope, file: Option<&str>) -> Result<CheckedCall> {
        if self.closed.load(Ordering::SeqCst) {
            let name = self.name();
            return Err(Error::unavailable(format!("the service {name} was changed or removed; open it again")));
        }
        let Envelope { op, arguments, correlation_id, reason } = call;
        let operation = self.contract().operation(&op)?;
        let mut asks: Vec<AskingRule> =
            self.context.access.admit(caller, &self.control_path(operation))?.into_iter().collect();
        if let (true, Some(file)) = (asks.is_empty(), file) {
            asks.extend(self.context.access.admit(caller, &format!("{}/control/{file}", self.path))?);
        }
        self.serve.check(caller, &op, &arguments)?;
        asks.extend(self.admit_beside(caller, &op, &arguments)?);
        let call = Call {
            agent: self.agent_for(caller),
            service: self.name().to_owned(),
            operation: op,
            effect: operation.effect,
            idempotent: operation.idempotent && !operation.private,
            private: operation.private,
            correlation_id,
            principal: caller.principal().clone(),
            arguments,
            asks: false,
        };
        Ok(CheckedCall { call, asks, reason })
    }

    /// Decides about the paths that a call invokes beside its control file: the rules there that ask.
    fn admit_beside(&self, caller: &Caller, operation: &str, arguments: &Value) -> Result<Vec<AskingRule>> {
        let paths = self.serve.invoked_paths(operation, arguments)?;
        paths.iter().filter_map(|path| self.context.access.admit(caller, path).transpose()).collect()
    }

    fn control_path(&self, operation: &Operation) -> String {
        format!("{}/{}", self.path, operation.control_path())
    }

    fn plan(&self, caller: &Caller, call: Call) -> Result<PlannedCall> {
        let work = self.work(caller, &call)?;
        Ok(PlannedCall { call, work, accepted: None })
    }

    fn work(&self, caller: &Caller, call: &Call) -> Result<Work> {
        let operation = self.contract().operation(&call.operation)?;
        Ok(match operation.effect {
            Effect::Write => Work::Write(self.write_work(caller, &call.agent)?),
            Effect::Read | Effect::Execute => Work::Run(self.run_work(caller.clone(), operation, call)),
        })
    }

    /// Plans a call, or asks about it, unless an earlier answer covers it. May look at files: it blocks.
    fn plan_or_ask(self: &Arc<Self>, caller: &Caller, checked: CheckedCall) -> Result<PlannedCall> {
        let CheckedCall { mut call, asks, reason } = checked;
        if asks.is_empty() {
            return self.plan(caller, call);
        }
        let Principal::Agent(agent) = caller.principal() else {
            return Err(Error::forbidden(format!(
                "a rule asks the operator about {}, who cannot ask",
                caller.principal()
            )));
        };
        let (subject, facts) = self.subject(&call)?;
        // An answer to one rule is none to another.
        let open = asks.into_iter().find(|rule| !self.context.approvals.lets(agent, &rule.hash, &subject));
        let Some(rule) = open else { return self.plan(caller, call) };
        call.asks = true;
        let request = Request { agent: agent.clone(), subject, facts, rule, stated_reason: reason };
        let ticket = self.context.approvals.ask(request, call.private)?;
        let again = self.deed(caller, &call);
        Ok(PlannedCall { call, work: Work::Ask(PlannedAsk { ticket, again }), accepted: None })
    }

    /// What a call would do, and what is known of it.
    fn subject(&self, call: &Call) -> Result<(Subject, SubjectFacts)> {
        let operation = self.contract().operation(&call.operation)?;
        let (runs, facts) = self.serve.described(call);
        let subject = Subject::Invoke {
            path: self.control_path(operation),
            service: call.service.clone(),
            operation: call.operation.clone(),
            effect: operation.effect.name().to_owned(),
            arguments: call.arguments.clone(),
            runs,
        };
        Ok((subject, facts))
    }

    /// Finds out what a call does at the time of the deed: by the service that stands there then, if the caller still may.
    fn deed(&self, caller: &Caller, call: &Call) -> Arc<dyn Fn() -> Result<Deed> + Send + Sync> {
        let (context, path, caller, call) = (self.context.clone(), self.path.clone(), caller.clone(), call.clone());
        Arc::new(move || {
            let instance = context.instance_at(&path);
            let instance =
                instance.ok_or_else(|| Error::unavailable(format!("there is no service at {path} any more")))?;
            let operation = instance.contract().operation(&call.operation)?;
            instance.context.access.admit(&caller, &instance.control_path(operation))?;
            instance.contract().check(&call.operation, &call.arguments)?;
            instance.serve.check(&caller, &call.operation, &call.arguments)?;
            instance.admit_beside(&caller, &call.operation, &call.arguments)?;
            let (subject, facts) = instance.subject(&call)?;
            Ok(Deed { subject, facts, work: instance.work(&caller, &call)? })
        })
    }

    fn write_work(&self, caller: &Caller, agent: &str) -> Result<WriteWork> {
        let (serve, caller, clock) = (self.serve.clone(), caller.clone(), self.context.clock.clone());
        let log = self.context.event_logs.of(agent)?;
        Ok(Box::new(move |commit, job| serve.write(&WriteCx::new(commit, &caller, job, &clock, &log), &job.call)))
    }

    fn run_work(&self, caller: Caller, operation: &Operation, call: &Call) -> RunWork {
        let (serve, context, deadline) = (self.serve.clone(), self.context.clone(), operation.deadline);
        let (turn, place) = serve.turn(call).map(|turn| (turn.first, turn.place)).unzip();
        let start = move |job: Arc<Job>| -> JobWork {
            let (agent, clock) = (job.call.agent.clone(), context.clock.clone());
            let cx = Cx { caller, agent, job, deadline, clock, context };
            Box::pin(async move {
                let _place = place;
                serve.invoke(&cx, &cx.job.call).await
            })
        };
        RunWork { start: Box::new(start), deadline, quick: operation.quick, turn }
    }

    /// Runs a job that an earlier run of the host left queued, if its arguments were journaled.
    pub fn resume(self: &Arc<Self>, job: Arc<Job>) {
        let operation = match self.contract().operation(&job.call.operation) {
            Ok(operation) => operation,
            Err(error) => return self.context.runner.abandon(job, error),
        };
        if operation.private && !job.cancel.is_cancelled() {
            let message =
                "the host stopped before this call started, and its private arguments were not stored; call again";
            return self.context.runner.abandon(job, Error::interrupted(message));
        }
        if job.now().state == JobState::WaitingForApproval {
            return self.resume_parked(job);
        }
        if operation.effect == Effect::Write {
            // Only an earlier version of the host accepted such a call without making its change.
            return self
                .context
                .runner
                .abandon(job, Error::interrupted("the host stopped before this call; call again"));
        }
        let caller = Caller::of(job.call.principal.clone());
        self.note(&job.call.agent, LastCall::Job(job.clone()));
        let work = self.run_work(caller, operation, &job.call);
        self.context.runner.resume(&self.call_queue, job, work);
    }

    /// Parks a job that waits for the operator since an earlier run of the host.
    fn resume_parked(self: &Arc<Self>, job: Arc<Job>) {
        let Some(approval) = job.approval().and_then(|id| self.context.approvals.get(&id)) else {
            let lost = Error::interrupted("the request for the approval of this call is no longer kept; call again");
            return self.context.runner.abandon(job, lost);
        };
        self.note(&job.call.agent, LastCall::Job(job.clone()));
        approval.add_job(&job.id);
        let again = self.deed(&Caller::of(job.call.principal.clone()), &job.call);
        self.context.runner.resume_parked(&self.call_queue, job, ParkedCall { approval, again });
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
        let progress = self.serve.progress();
        match self.last(caller) {
            None => {
                let (job_id, operation, updated_at_ms, error) = (None, None, None, None);
                ServiceStatus { state: "idle", job_id, operation, updated_at_ms, error, progress }
            }
            Some(LastCall::Refused { operation, error, at_ms }) => ServiceStatus {
                state: "refused",
                job_id: None,
                operation,
                updated_at_ms: Some(at_ms),
                error: Some(error),
                progress,
            },
            Some(LastCall::Job(job)) => job.look(|now| ServiceStatus {
                state: now.state.name(),
                job_id: Some(job.id.clone()),
                operation: Some(job.call.operation.clone()),
                updated_at_ms: Some(now.updated_at_ms),
                error: job.status(now).error.cloned(),
                progress,
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
