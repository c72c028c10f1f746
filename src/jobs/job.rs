//! One job: what was asked, how far it is, how it ended.

use crate::policy::PrincipalCaller;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::contract::Effect;
use crate::policy::Principal;
pub use crate::state::jobs::State;
use acheron_base::{Clock, Code, Error, Result};
use acheron_vfs::{Caller, Log};

/// How much of a job's log is kept.
const LOG: usize = 2 << 20;

/// The name under which the turns of an agent stand in the journal.
pub const TURNS: &str = "chat";

/// What was asked, by whom.
#[derive(Clone, Debug)]
pub struct Call {
    pub agent: String,
    pub service: String,
    pub operation: String,
    pub effect: Effect,
    pub idempotent: bool,
    /// Its words stay out of the journal.
    pub private: bool,
    pub correlation_id: Option<String>,
    pub principal: Principal,
    pub arguments: Value,
}

/// How a call that ended with `outcome` ended.
pub fn ending(outcome: &Result<Value>) -> State {
    match outcome.as_ref().map_err(|error| error.code) {
        Ok(_) => State::Done,
        Err(Code::Cancelled) => State::Cancelled,
        Err(Code::Timeout) => State::TimedOut,
        Err(Code::Interrupted) => State::Interrupted,
        Err(_) => State::Failed,
    }
}

pub type Outcome = Arc<Result<Value>>;

/// What changes while a job lives.
#[derive(Clone, Debug)]
pub struct Now {
    pub state: State,
    pub started_at_ms: Option<u64>,
    pub updated_at_ms: u64,
    pub attempt: u32,
    /// What the service says about how far it is.
    pub progress: Option<Value>,
    /// There when the state is settled.
    pub outcome: Option<Outcome>,
}

/// What `status.json` shows.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Status<'a> {
    pub job_id: &'a str,
    pub state: State,
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

pub struct Job {
    pub id: String,
    pub call: Call,
    pub created_at_ms: u64,
    pub log: Log,
    /// The journal has it as running since it was accepted, because there was room for it at once.
    pub at_once: bool,
    /// Cancelled by whoever writes to `control/cancel`.
    pub cancel: CancellationToken,
    /// Why it was stopped, if not by whom it belongs to.
    why: OnceLock<Error>,
    /// The host goes down, and its next life can run this job.
    leaving: AtomicBool,
    now: watch::Sender<Now>,
}

impl Job {
    pub fn new(id: String, call: Call, now_ms: u64, clock: &Clock) -> Self {
        let state = State::Queued;
        let now = Now { state, started_at_ms: None, updated_at_ms: now_ms, attempt: 0, progress: None, outcome: None };
        Job {
            id,
            call,
            at_once: false,
            created_at_ms: now_ms,
            log: Log::new(LOG, clock.clone()),
            cancel: CancellationToken::new(),
            why: OnceLock::new(),
            leaving: AtomicBool::new(false),
            now: watch::Sender::new(now),
        }
    }

    /// Ends it with this reason.
    pub fn stop(&self, why: Error) {
        _ = self.why.set(why); // the first reason counts
        self.cancel.cancel();
    }

    /// The host goes down. What has not begun, or may be done twice, is left to its next life; anything else ends here.
    pub fn leave(&self) {
        if self.cancel.is_cancelled() {
            return; // its end was decided before
        }
        let again = self.call.idempotent || self.now.borrow().state == State::Queued;
        self.leaving.store(again, Ordering::SeqCst);
        self.stop(Error::interrupted("the host was taken down"));
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::SeqCst)
    }

    /// Whether it has ended for this life of the host only: its journal does not know of that end.
    pub fn left(&self) -> bool {
        self.is_leaving() && self.now.borrow().state == State::Interrupted
    }

    /// What a job that was stopped ends with: the reason, or else that it was cancelled.
    pub fn stopped(&self, otherwise: &str) -> Error {
        self.why.get().cloned().unwrap_or_else(|| Error::cancelled(otherwise))
    }

    pub fn at_once(self, at_once: bool) -> Self {
        Job { at_once, ..self }
    }

    /// A job of an earlier life of the host, as its journal has it.
    pub fn from_row(row: &crate::state::jobs::Job, clock: &Clock) -> Self {
        let effect = match row.effect.as_str() {
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
        };
        let job = Job::new(row.id.clone(), call, row.created_at_ms, clock);
        job.update(|now| now.attempt = row.attempt);
        if let Some(error) = &row.error {
            job.stop(error.clone());
        }
        job
    }

    /// Lets go of a result that takes too much memory; what is journaled is fetched from there by who looks for it.
    pub fn empty(&self) {
        let said = match self.call.effect {
            Effect::Read => {
                "the result is no longer kept: newer ones of this agent take too much memory; call again".to_owned()
            }
            Effect::Write | Effect::Execute => format!("the result is no longer in memory; jobs/{} has it", self.id),
        };
        self.log.turn_over();
        self.log.forget_older();
        self.update(|now| now.outcome = Some(Arc::new(Err(Error::budget_exceeded(said)))));
    }

    pub fn now(&self) -> Now {
        self.now.borrow().clone()
    }

    pub fn settled(&self) -> bool {
        self.now.borrow().state.settled()
    }

    /// Changes what is shown and wakes whoever waits for it.
    pub fn update(&self, change: impl FnOnce(&mut Now)) {
        self.now.send_modify(change);
    }

    /// Whether `caller` may wait for its end.
    pub fn may_be_awaited(&self, caller: &Caller) -> Result<()> {
        match self.call.service == TURNS && !self.settled() {
            true => caller.may_await_turns(&self.call.agent),
            false => Ok(()),
        }
    }

    /// The job as it is once it has settled.
    pub async fn end(&self) -> Now {
        let mut now = self.now.subscribe();
        // The sender lives as long as this job, so waiting cannot fail.
        let settled = now.wait_for(|now| now.state.settled()).await.map(|now| now.clone());
        settled.unwrap_or_else(|_| self.now())
    }

    /// What `show` makes of the job as it is at this moment, which lasts as long as that takes.
    pub fn look<T>(&self, show: impl FnOnce(&Now) -> T) -> T {
        show(&self.now.borrow())
    }

    pub fn status<'a>(&'a self, now: &'a Now) -> Status<'a> {
        Status {
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

    /// The status at this moment as JSON.
    pub fn told(&self) -> Value {
        self.look(|now| serde_json::to_value(self.status(now))).unwrap_or_default()
    }
}
