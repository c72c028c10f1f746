//! The one way in which a call runs: accepted, journaled, run, ended, told. Calls of services, chat turns, wake-ups and
//! jobs that an earlier run of the host left go through it. It knows no service: the work of a call comes in as a
//! function. Used by `service`, `agent` and `host`; uses `jobs`, `events` and the store.
//!
//! A call of effect `write` is a function of the transaction: its change, its row (already ended) and its event are one
//! commit ([`write`]). Any other is a future: its intent is journaled, then it runs, then its end is journaled together
//! with the event ([`execute`]). A call that must be approved first is journaled and waits, whatever its effect ([`parked`]).

mod end_with;
mod execute;
mod files;
mod parked;
mod queue;
mod write;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::approvals::Approvals;
use crate::events::{Commit, EventLog, EventLogs, commit};
use crate::jobs::{Call, Job, Jobs};
use acheron_base::{Error, Result, failpoint};
use acheron_store::Store;
use acheron_vfs::Answer;

pub use parked::{Deed, ParkedCall, PlannedAsk};
pub use queue::CallQueue;

/// The work of a job that awaits something.
pub type JobWork = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

/// The work of a job of effect `write`.
pub type WriteWork = Box<dyn FnOnce(&Commit<'_>, &Arc<Job>) -> Result<Value> + Send>;

/// A call and how it is done.
pub struct PlannedCall {
    pub call: Call,
    pub work: Work,
    /// Made in the same commit that accepts the call.
    pub accepted: Option<AcceptedFn>,
}

/// Part of the commit that accepts a call, such as an event about it.
pub type AcceptedFn = Box<dyn FnOnce(&Commit<'_>, &Arc<Job>) -> Result<()> + Send>;

pub enum Work {
    Write(WriteWork),
    Run(RunWork),
    /// The operator decides first.
    Ask(PlannedAsk),
    /// It waits for the operator.
    Parked(ParkedCall),
}

/// Work that is a future.
pub struct RunWork {
    pub start: Box<dyn FnOnce(Arc<Job>) -> JobWork + Send>,
    pub deadline: Duration,
    /// Most calls end at the first poll: it is made by the thread that took the call.
    pub quick: bool,
    /// Awaited before the work takes a slot, unless the job is cancelled first.
    pub turn: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

pub struct JobRunner {
    pub jobs: Arc<Jobs>,
    pub event_logs: Arc<EventLogs>,
    pub approvals: Arc<Approvals>,
    store: Store,
    runtime: tokio::runtime::Handle,
}

/// Jobs that are accepted and not journaled yet. If that fails they are gone, and so is their place in the queue.
struct Admitted {
    queue: Arc<CallQueue>,
    list: Arc<Jobs>,
    jobs: Vec<Arc<Job>>,
}

impl Admitted {
    fn keep(mut self) -> (Arc<CallQueue>, Vec<Arc<Job>>) {
        (self.queue.clone(), std::mem::take(&mut self.jobs))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if !self.jobs.is_empty() {
            self.queue.release(self.jobs.len());
            self.list.retract(&self.jobs);
        }
    }
}

/// An accepted job and its work.
struct Accepted {
    job: Arc<Job>,
    log: Arc<EventLog>,
    work: Work,
    accepted: Option<AcceptedFn>,
}

impl JobRunner {
    pub fn new(
        jobs: Arc<Jobs>,
        event_logs: Arc<EventLogs>,
        store: Store,
        runtime: tokio::runtime::Handle,
    ) -> Arc<JobRunner> {
        let approvals = Approvals::new(store.clone(), event_logs.clone(), jobs.ids().clone(), runtime.clone());
        Arc::new(JobRunner { jobs, event_logs, approvals, store, runtime })
    }

    /// Accepts all of `calls` or none. When the answer resolves, what is journaled of them is durable, and those of
    /// effect `write` have ended.
    ///
    /// `told` gets the jobs then, before those that run are started.
    pub fn begin(
        self: &Arc<Self>,
        queue: &Arc<CallQueue>,
        calls: Vec<PlannedCall>,
        told: impl FnOnce(&[Arc<Job>]) + Send + 'static,
    ) -> Answer<Vec<Arc<Job>>> {
        let accepted = match self.accept(queue, calls) {
            Ok(accepted) => accepted,
            Err(error) => return Answer::refuse(error),
        };
        let jobs: Vec<Arc<Job>> = accepted.iter().map(|one| one.job.clone()).collect();
        if jobs.iter().all(|job| !job.call.is_journaled()) {
            told(&jobs);
            self.start(queue, accepted);
            return Answer::ok(jobs);
        }
        failpoint::step("call.accepted");
        let admitted = Admitted { queue: queue.clone(), list: self.jobs.clone(), jobs: jobs.clone() };
        let runner = self.clone();
        let safe = commit(&self.store, move |commit| {
            let mut waiting = Vec::new();
            for one in accepted {
                waiting.extend(write::journal(&runner.jobs, commit, one)?);
            }
            // Not when the answer is awaited: a journaled call runs even if its caller has gone by then.
            commit.after(move || {
                let (queue, jobs) = admitted.keep();
                queue.release(jobs.len() - waiting.len());
                told(&jobs);
                runner.start(&queue, waiting);
            });
            Ok(())
        });
        Answer::soon(safe.map(move |()| jobs))
    }

    fn accept(&self, queue: &CallQueue, calls: Vec<PlannedCall>) -> Result<Vec<Accepted>> {
        let count = calls.len();
        queue.admit(count)?;
        let released = |_: &Error| queue.release(count);
        let mut rest = Vec::with_capacity(count);
        let mut planned = Vec::with_capacity(count);
        let at_once = queue.is_free(count);
        for PlannedCall { call, work, accepted } in calls {
            let log = self.event_logs.of(&call.agent).inspect_err(released)?;
            let starts_now = at_once && matches!(&work, Work::Run(run) if run.turn.is_none());
            planned.push((call, starts_now));
            rest.push((log, work, accepted));
        }
        let jobs = self.jobs.accept(planned).inspect_err(released)?;
        let accepted = jobs.into_iter().zip(rest);
        Ok(accepted.map(|(job, (log, work, accepted))| Accepted { job, log, work, accepted }).collect())
    }

    fn start(self: &Arc<Self>, queue: &Arc<CallQueue>, accepted: Vec<Accepted>) {
        for Accepted { job, log, work, .. } in accepted {
            match work {
                Work::Run(run) => self.run(queue, job, log, run),
                Work::Parked(parked) => self.park(queue, job, log, parked),
                Work::Write(_) | Work::Ask(_) => (), // done, or parked, by the commit
            }
        }
    }

    /// Runs a job that an earlier run of the host accepted.
    pub fn resume(self: &Arc<Self>, queue: &Arc<CallQueue>, job: Arc<Job>, work: RunWork) {
        match self.event_logs.of(&job.call.agent) {
            Ok(log) => {
                queue.readmit();
                self.run(queue, job, log, work);
            }
            Err(error) => tracing::error!(job = job.id, %error, "a job could not be resumed"),
        }
    }
}

#[cfg(test)]
mod tests;
