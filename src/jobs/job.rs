//! One job: its call, its state and its outcome.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::JobSteps;
use crate::contract::Effect;
use crate::policy::{Principal, PrincipalCaller};
pub use crate::state::jobs::JobState;
use acheron_base::{Clock, Code, Error, Result};
use acheron_vfs::{Caller, Log};

/// The size of a job's log in bytes.
const LOG: usize = 2 << 20;

/// The service name of an agent's turns in the journal.
pub const TURN_SERVICE: &str = "chat";

/// A call: operation, arguments and principal.
#[derive(Clone, Debug)]
pub struct Call {
    pub agent: String,
    pub service: String,
    pub operation: String,
    pub effect: Effect,
    pub idempotent: bool,
    /// Arguments and results stay out of the journal.
    pub private: bool,
    pub correlation_id: Option<String>,
    pub principal: Principal,
    pub arguments: Value,
    /// The call must be approved first: it is journaled whatever its effect.
    pub asks: bool,
}

impl Call {
    /// Whether the journal has the call: all but those that only read, need not be approved, and stay on this host.
    pub fn is_journaled(&self) -> bool {
        self.effect != Effect::Read || self.asks || self.crosses_hosts()
    }

    /// The call came from another host, or goes to one: the service is then called `<node>/<service>`. Both write it down, so
    /// that it is known who asked whom, and that what is sent again is the same call.
    fn crosses_hosts(&self) -> bool {
        matches!(self.principal, Principal::Far(_)) || self.service.contains('/')
    }
}

/// The final state of a call with this outcome.
pub fn final_state(outcome: &Result<Value>) -> JobState {
    match outcome.as_ref().map_err(|error| error.code) {
        Ok(_) => JobState::Done,
        Err(Code::Cancelled) => JobState::Cancelled,
        Err(Code::Timeout) => JobState::TimedOut,
        Err(Code::Interrupted) => JobState::Interrupted,
        Err(_) => JobState::Failed,
    }
}

pub type JobOutcome = Arc<Result<Value>>;

/// The part of a job that changes while it exists.
#[derive(Clone, Debug)]
pub struct JobSnapshot {
    pub state: JobState,
    pub started_at_ms: Option<u64>,
    pub updated_at_ms: u64,
    pub attempt: u32,
    /// The progress that the service reported last.
    pub progress: Option<Value>,
    /// Set once the state is settled.
    pub outcome: Option<JobOutcome>,
}

/// `status.json`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct JobStatus<'a> {
    pub job_id: &'a str,
    pub state: JobState,
    pub service: &'a str,
    pub operation: &'a str,
    pub agent: &'a str,
    pub correlation_id: Option<&'a str>,
    pub created_at_ms: u64,
    pub started_at_ms: Option<u64>,
    pub updated_at_ms: u64,
    pub attempt: u32,
    pub error: Option<&'a Error>,
}

/// Whether a job has decided to change files, which cannot be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Decision {
    #[default]
    Open,
    Made,
    /// The job ends without it.
    Barred,
}

pub struct Job {
    pub id: String,
    pub call: Call,
    pub created_at_ms: u64,
    pub log: Log,
    /// The journal records the job as running since it was accepted, because a slot was free.
    pub at_once: bool,
    /// Cancelled by a write to `control/cancel`.
    pub cancel: CancellationToken,
    /// The reason for stopping, unless the caller cancelled the job.
    reason: OnceLock<Error>,
    /// The host is shutting down and runs this job again after the next start.
    deferred: AtomicBool,
    decision: Mutex<Decision>,
    /// What the call left beside its result, such as an image. They are kept in memory, as the log is.
    files: Mutex<Vec<(String, Bytes)>>,
    /// The steps of a turn.
    steps: Option<JobSteps>,
    /// The approval that it waits for, or that allowed it.
    approval: Mutex<Option<String>>,
    now: watch::Sender<JobSnapshot>,
}

impl Job {
    pub fn new(id: String, call: Call, now_ms: u64, clock: &Clock) -> Self {
        let state = if call.asks { JobState::WaitingForApproval } else { JobState::Queued };
        let now = JobSnapshot {
            state,
            started_at_ms: None,
            updated_at_ms: now_ms,
            attempt: 0,
            progress: None,
            outcome: None,
        };
        let steps = (call.service == TURN_SERVICE).then(JobSteps::default);
        Job {
            id,
            call,
            steps,
            at_once: false,
            created_at_ms: now_ms,
            log: Log::new(LOG, clock.clone()),
            cancel: CancellationToken::new(),
            reason: OnceLock::new(),
            deferred: AtomicBool::new(false),
            decision: Mutex::default(),
            files: Mutex::default(),
            approval: Mutex::default(),
            now: watch::Sender::new(now),
        }
    }

    /// Ends the job with this reason.
    pub fn stop(&self, reason: Error) {
        _ = self.reason.set(reason); // the first reason counts
        self.cancel.cancel();
    }

    /// Decides that the job happens: from now on it ends by itself. Fails if it was stopped before.
    pub fn decide(&self) -> Result<()> {
        let mut decision = self.decision.lock();
        if *decision == Decision::Barred {
            return Err(self.stopped("the call was cancelled"));
        }
        *decision = Decision::Made;
        Ok(())
    }

    /// Ends the time in which the job can decide. Returns false if it has: then it has to be awaited.
    pub fn bar(&self) -> bool {
        let mut decision = self.decision.lock();
        if *decision == Decision::Open {
            *decision = Decision::Barred;
        }
        *decision == Decision::Barred
    }

    pub fn has_decided(&self) -> bool {
        *self.decision.lock() == Decision::Made
    }

    /// Stops the job because the host shuts down. A job that has not started, or is idempotent, runs again after the
    /// next start; any other ends now.
    pub fn shut_down(&self) {
        if self.cancel.is_cancelled() {
            return; // its end was decided before
        }
        let unbegun = matches!(self.now.borrow().state, JobState::Queued | JobState::WaitingForApproval);
        let again = self.call.idempotent || unbegun;
        self.deferred.store(again, Ordering::SeqCst);
        self.stop(Error::interrupted("the host was shut down"));
    }

    pub fn is_deferred(&self) -> bool {
        self.deferred.load(Ordering::SeqCst)
    }

    /// Whether the job was stopped in this process only: the journal does not record an end.
    pub fn was_deferred(&self) -> bool {
        self.is_deferred() && self.now.borrow().state == JobState::Interrupted
    }

    /// The error of a stopped job: its reason, or else that it was cancelled.
    pub fn stopped(&self, otherwise: &str) -> Error {
        self.reason.get().cloned().unwrap_or_else(|| Error::cancelled(otherwise))
    }

    /// Keeps a file beside the result. Who calls it has bounded the bytes, and made the name one of a file.
    pub fn keep_file(&self, name: String, bytes: Bytes) {
        self.files.lock().push((name, bytes));
    }

    /// The files beside the result, in the order in which they came.
    pub fn files(&self) -> Vec<(String, Bytes)> {
        self.files.lock().clone()
    }

    /// The steps of a turn as they happen; other jobs have none.
    pub fn steps(&self) -> Option<&JobSteps> {
        self.steps.as_ref()
    }

    /// The approval that the job waits for, or that allowed it.
    pub fn approval(&self) -> Option<String> {
        self.approval.lock().clone()
    }

    pub fn set_approval(&self, approval: Option<String>) {
        *self.approval.lock() = approval;
    }

    pub fn at_once(self, at_once: bool) -> Self {
        Job { at_once, ..self }
    }

    /// A job from an earlier run of the host, restored from the journal.
    pub fn from_row(row: &crate::state::jobs::JobRow, clock: &Clock) -> Self {
        let effect = match row.effect.as_str() {
            "read" => Effect::Read,
            "write" => Effect::Write,
            _ => Effect::Execute,
        };
        let call = Call {
            agent: row.agent.clone(),
            service: row.service.clone(),
            operation: row.operation.clone(),
            effect,
            idempotent: row.idempotent,
            private: false,
            correlation_id: row.correlation_id.clone(),
            principal: Principal::named(&row.principal),
            arguments: row.request.clone(),
            asks: row.approval.is_some(),
        };
        let job = Job::new(row.id.clone(), call, row.created_at_ms, clock);
        job.set_approval(row.approval.clone());
        job.update(|now| (now.attempt, now.state) = (row.attempt, row.state));
        if let Some(error) = &row.error {
            job.stop(error.clone());
        }
        job
    }

    /// Drops a result that takes too much memory; a journaled result can still be read from the store.
    pub fn drop_result(&self) {
        let message = match self.call.is_journaled() {
            false => "the result is no longer kept, because newer results of this agent need the memory; call again"
                .to_owned(),
            true => format!("the result is no longer in memory; jobs/{} has it", self.id),
        };
        self.log.rotate();
        self.log.drop_older();
        self.files.lock().clear();
        self.steps().inspect(|steps| steps.clear());
        self.update(|now| now.outcome = Some(Arc::new(Err(Error::budget_exceeded(message)))));
    }

    pub fn now(&self) -> JobSnapshot {
        self.now.borrow().clone()
    }

    pub fn settled(&self) -> bool {
        self.now.borrow().state.settled()
    }

    /// Changes the snapshot and wakes its waiters.
    pub fn update(&self, change: impl FnOnce(&mut JobSnapshot)) {
        self.now.send_modify(change);
    }

    /// Whether `caller` may wait for the end of the job.
    pub fn may_be_awaited(&self, caller: &Caller) -> Result<()> {
        match self.call.service == TURN_SERVICE && !self.settled() {
            true => caller.may_await_turns(&self.call.agent),
            false => Ok(()),
        }
    }

    /// Waits until the job has settled.
    pub async fn end(&self) -> JobSnapshot {
        let mut now = self.now.subscribe();
        // The sender lives as long as this job, so waiting cannot fail.
        let settled = now.wait_for(|now| now.state.settled()).await.map(|now| now.clone());
        settled.unwrap_or_else(|_| self.now())
    }

    /// Calls `show` with the current snapshot, which is locked for the duration.
    pub fn look<T>(&self, show: impl FnOnce(&JobSnapshot) -> T) -> T {
        show(&self.now.borrow())
    }

    pub fn status<'a>(&'a self, now: &'a JobSnapshot) -> JobStatus<'a> {
        JobStatus {
            job_id: &self.id,
            state: now.state,
            service: &self.call.service,
            operation: &self.call.operation,
            agent: &self.call.agent,
            correlation_id: self.call.correlation_id.as_deref(),
            created_at_ms: self.created_at_ms,
            started_at_ms: now.started_at_ms,
            updated_at_ms: now.updated_at_ms,
            attempt: now.attempt,
            error: now.outcome.as_deref().and_then(|outcome| outcome.as_ref().err()),
        }
    }

    /// The current status as JSON.
    pub fn status_json(&self) -> Value {
        self.look(|now| serde_json::to_value(self.status(now))).unwrap_or_default()
    }
}
