//! Runs one job: waits for a free slot, enforces the deadline, cancels the work.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{Job, JobSnapshot, JobState, Jobs, final_state, row};
use crate::contract::Effect;
use acheron_base::{Error, Result};
use acheron_store::Change;
use acheron_vfs::Answer;

/// The work of a job.
pub type JobWork = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

/// Limits the number of running and waiting calls.
pub struct CallQueue {
    slots: Semaphore,
    accepted: AtomicUsize,
    limit: usize,
}

impl CallQueue {
    pub fn new(running: usize, waiting: usize) -> Self {
        CallQueue { slots: Semaphore::new(running), accepted: AtomicUsize::new(0), limit: running + waiting }
    }

    /// Whether `calls` new calls can start without waiting.
    pub fn is_free(&self, calls: usize) -> bool {
        self.slots.available_permits() >= calls
    }

    /// Admits all of `calls` or none.
    pub fn admit(&self, calls: usize) -> Result<()> {
        let fits = |accepted: usize| (accepted + calls <= self.limit).then_some(accepted + calls);
        match self.accepted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::busy(format!("{} calls are queued already; try again later", self.limit))),
        }
    }

    /// Admits a call that was accepted earlier, even beyond the limit.
    pub fn readmit(&self) {
        self.accepted.fetch_add(1, Ordering::SeqCst);
    }

    pub fn release(&self, calls: usize) {
        self.accepted.fetch_sub(calls, Ordering::SeqCst);
    }
}

/// The work of a job and its time limit.
pub struct Task<W> {
    pub work: W,
    pub deadline: Duration,
}

/// The end of a job, which is not visible before it is durable.
pub struct JobEnd {
    pub job: Arc<Job>,
    /// The final snapshot of the job.
    pub now: JobSnapshot,
    /// The change of the journal, written together with the event.
    pub change: Option<Change>,
}

impl JobEnd {
    /// Makes the end visible.
    pub fn show(job: &Job, now: JobSnapshot) {
        job.update(|it| *it = now);
    }
}

/// Runs `task` as `job` to its end. `publish` makes the end durable, shows it and emits the event; it is not called for
/// a job that runs again after the next start of the host.
pub async fn run<W: FnOnce() -> JobWork>(
    jobs: &Jobs,
    queue: &CallQueue,
    job: Arc<Job>,
    task: Task<W>,
    publish: impl FnOnce(JobEnd) -> Answer<()>,
) {
    let slot = tokio::select! {
        biased;
        () = job.cancel.cancelled() => None,
        slot = queue.slots.acquire() => slot.ok(),
    };
    let outcome = match &slot {
        Some(_) => begin(jobs, &job, task).await,
        None => Err(job.stopped("the call was cancelled before it began")),
    };
    drop(slot);
    settle(jobs, &job, outcome, publish).await;
    queue.release(1);
}

/// Ends a job that can no longer run.
pub async fn abandon(jobs: &Jobs, job: Arc<Job>, error: Error, publish: impl FnOnce(JobEnd) -> Answer<()>) {
    settle(jobs, &job, Err(error), publish).await;
}

async fn begin<W: FnOnce() -> JobWork>(jobs: &Jobs, job: &Arc<Job>, task: Task<W>) -> Result<Value> {
    let Task { work, deadline } = task;
    let now = jobs.clock().now_ms();
    job.update(|it| {
        it.state = JobState::Running;
        it.started_at_ms = Some(now);
        it.attempt += 1;
        it.updated_at_ms = now;
    });
    if job.call.effect != Effect::Read && !job.at_once {
        jobs.store().begun(&job.id, now).await?;
    }
    // A panicking service fails only its own call. The work is polled first: most calls finish at the first poll and
    // need no timer and no wakeup.
    let mut work = Box::pin(AssertUnwindSafe(async { work().await }).catch_unwind());
    let error = tokio::select! {
        biased;
        outcome = &mut work => return outcome.unwrap_or_else(|panic| Err(panic_error(panic.as_ref()))),
        () = job.cancel.cancelled() => job.stopped("the call was cancelled"),
        () = tokio::time::sleep(deadline) => {
            Error::timeout(format!("the call took longer than its {} ms", deadline.as_millis()))
        }
    };
    // Dropping the work ends its processes and requests; only then has the job ended.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(work))) {
        tracing::error!("{}", panic_error(panic.as_ref()));
    }
    Err(error)
}

fn panic_error(panic: &(dyn Any + Send)) -> Error {
    let message = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(panic = message, "a service panicked");
    Error::internal(format!("the service panicked: {message}"))
}

async fn settle(jobs: &Jobs, job: &Arc<Job>, outcome: Result<Value>, publish: impl FnOnce(JobEnd) -> Answer<()>) {
    let at_ms = jobs.clock().now_ms();
    let ended = |outcome: Result<Value>| JobSnapshot {
        state: final_state(&outcome),
        updated_at_ms: at_ms,
        outcome: Some(Arc::new(outcome)),
        ..job.now()
    };
    let now = ended(outcome);
    if job.is_deferred() && now.state == JobState::Interrupted {
        return JobEnd::show(job, now); // the journal keeps it for the next start
    }
    let change = match job.call.effect {
        Effect::Read => None,
        Effect::Write | Effect::Execute => jobs.store().settling(row(job, &now)),
    };
    if let Err(error) = publish(JobEnd { job: job.clone(), now, change }).wait().await {
        tracing::error!(job = job.id, %error, "the end of a job could not be stored");
        JobEnd::show(job, ended(Err(Error::new(error.code, format!("the result could not be stored: {error}")))));
    }
    jobs.ended(job);
}

#[cfg(test)]
mod tests;
