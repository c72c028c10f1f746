//! Runs a job whose work is a future: waits for a slot, enforces the deadline, cancels the work, and makes the end durable
//! before anybody sees it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Waker};

use futures_util::FutureExt;
use serde_json::Value;

use super::write::{ended_record, status_path};
use super::{CallQueue, JobRunner, RunWork};
use crate::events::EventLog;
use crate::jobs::{Job, JobSnapshot, JobState, final_state, row};
use crate::state::audit;
use crate::state::{file_plans, jobs as journal};
use acheron_base::{Code, Error, Result, failpoint};

impl JobRunner {
    pub(super) fn run(self: &Arc<Self>, queue: &Arc<CallQueue>, job: Arc<Job>, log: Arc<EventLog>, work: RunWork) {
        // Any other is begun by the thread that writes, which must not work for it.
        let quick = work.quick && !job.call.is_journaled();
        let mut running = Box::pin(self.clone().run_to_end(queue.clone(), job, log, work));
        // Most quick calls finish at the first poll. Otherwise the spawned task polls again, so this waker may do
        // nothing.
        if quick && running.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        self.runtime.spawn(running);
    }

    pub(super) async fn run_to_end(
        self: Arc<Self>,
        queue: Arc<CallQueue>,
        job: Arc<Job>,
        log: Arc<EventLog>,
        mut work: RunWork,
    ) {
        let turn = work.turn.take();
        let slot = tokio::select! {
            biased;
            () = job.cancel.cancelled() => None,
            slot = async {
                if let Some(turn) = turn {
                    turn.await;
                }
                queue.slot().await
            } => slot,
        };
        let outcome = match &slot {
            Some(_) => self.work(&job, work).await,
            None => Err(job.stopped("the call was cancelled before it began")),
        };
        drop(slot);
        failpoint::step("run.worked");
        self.settle(&job, &log, outcome).await;
        failpoint::step("run.ended");
        queue.release(1);
    }

    async fn work(&self, job: &Arc<Job>, work: RunWork) -> Result<Value> {
        let RunWork { start, deadline, .. } = work;
        let now = self.jobs.clock().now_ms();
        job.update(|it| {
            it.state = JobState::Running;
            it.started_at_ms = Some(now);
            it.attempt += 1;
            it.updated_at_ms = now;
        });
        if job.call.is_journaled() && !job.at_once {
            // Only then may it start: a job that is found queued after a crash runs, and one that has run must not run
            // again.
            let id = job.id.clone();
            self.store.write(move |tx| journal::begin(tx, &id, now).map(drop)).await?;
        }
        // A panicking service fails only its own call. The work is polled first: most calls finish at the first poll and
        // need no timer and no wakeup.
        failpoint::step("run.begins");
        let own = job.clone();
        let mut work = Box::pin(AssertUnwindSafe(async { start(own).await }).catch_unwind());
        let error = tokio::select! {
            biased;
            outcome = &mut work => return worked(job, outcome),
            () = job.cancel.cancelled() => job.stopped("the call was cancelled"),
            () = tokio::time::sleep(deadline) => {
                Error::timeout(format!("the call took longer than its {} ms", deadline.as_millis()))
            }
        };
        if !job.bar() {
            return worked(job, work.await); // it has decided: what it changes is on the way
        }
        // Dropping the work ends its processes and requests; only then has the job ended.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(work))) {
            tracing::error!("{}", panic_error(panic.as_ref()));
        }
        Err(error)
    }

    /// Ends a job that can no longer run.
    pub fn abandon(self: &Arc<Self>, job: Arc<Job>, error: Error) {
        let runner = self.clone();
        self.runtime.spawn(async move {
            match runner.event_logs.of(&job.call.agent) {
                Ok(log) => runner.settle(&job, &log, Err(error)).await,
                Err(fault) => runner.show_unstored(&job, &fault),
            }
        });
    }

    /// Makes the end of a job durable together with the event about it, then shows both. A read is not stored, and only a
    /// failed one is told.
    pub(super) async fn settle(&self, job: &Arc<Job>, log: &Arc<EventLog>, outcome: Result<Value>) {
        if job.settled() {
            return self.jobs.ended(job); // with a change of its own: `end_with`
        }
        let at_ms = self.jobs.clock().now_ms();
        let now = ended(job, outcome, at_ms);
        if job.is_deferred() && now.state == JobState::Interrupted {
            return show(job, now); // the journal keeps it for the next start
        }
        if !job.call.is_journaled() && now.state == JobState::Done {
            show(job, now);
            log.wake();
            return self.jobs.ended(job);
        }
        let change = job.call.is_journaled().then(|| row(job, &now));
        let (own, to) = (job.clone(), log.clone());
        let safe = log.commit(move |commit| {
            if own.has_decided() {
                file_plans::delete(commit.tx(), &own.id)?;
            }
            if let Some(row) = change {
                journal::settle(commit.tx(), &row.id, row.state, row.result.as_ref(), row.error.as_ref(), at_ms)?;
                audit::note(commit.tx(), &ended_record(&own, now.state, at_ms));
            }
            let (path, status) = (status_path(&own), serde_json::to_value(own.status(&now)).unwrap_or_default());
            // The event is there for everybody who sees that the job has ended.
            commit.emit(&to, "job", &path, status)?;
            commit.after(move || show(&own, now));
            Ok(())
        });
        match safe.await {
            Ok(_) => self.jobs.ended(job),
            Err(fault) => self.show_unstored(job, &fault),
        }
    }

    /// Ends a job in memory alone, because the state cannot be written.
    pub(super) fn show_unstored(&self, job: &Arc<Job>, fault: &Error) {
        tracing::error!(job = job.id, error = %fault, "the end of a job could not be stored");
        let error = Error::new(fault.code, format!("the result could not be stored: {fault}"));
        show(job, ended(job, Err(error), self.jobs.clock().now_ms()));
        self.jobs.ended(job);
    }
}

/// The outcome of work that came to its end.
fn worked(job: &Job, outcome: std::thread::Result<Result<Value>>) -> Result<Value> {
    match outcome {
        // A service that notices the cancellation itself does not know its reason.
        Ok(Err(error)) if error.code == Code::Cancelled && job.cancel.is_cancelled() => {
            Err(job.stopped(&error.message))
        }
        Ok(outcome) => outcome,
        Err(panic) => Err(panic_error(panic.as_ref())),
    }
}

/// The last state of a job with this outcome.
fn ended(job: &Job, outcome: Result<Value>, at_ms: u64) -> JobSnapshot {
    JobSnapshot { state: final_state(&outcome), updated_at_ms: at_ms, outcome: Some(Arc::new(outcome)), ..job.now() }
}

fn show(job: &Job, now: JobSnapshot) {
    job.update(|it| *it = now);
}

fn panic_error(panic: &(dyn Any + Send)) -> Error {
    let message = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(panic = message, "a service panicked");
    Error::internal(format!("the service panicked: {message}"))
}
