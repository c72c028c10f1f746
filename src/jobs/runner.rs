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
mod tests {
    use super::*;
    use crate::jobs::JobCall;
    use crate::policy::Principal;
    use crate::state::TestStore;
    use crate::state::jobs as journal;
    use acheron_base::{Clock, Ids, Random};

    fn call(idempotent: bool) -> JobCall {
        JobCall {
            agent: "ada".into(),
            service: "bench".into(),
            operation: "hang".into(),
            effect: Effect::Execute,
            idempotent,
            private: false,
            correlation_id: None,
            principal: Principal::Operator,
            arguments: Value::Null,
        }
    }

    #[test]
    fn there_is_room_for_all_of_several_calls_or_they_wait() {
        let queue = CallQueue::new(2, 1);
        assert!(queue.is_free(2) && !queue.is_free(3));
        (0..5).for_each(|_| queue.readmit());
        assert!(queue.admit(1).is_err());
        queue.release(3);
        assert!(queue.admit(1).is_ok(), "what was let in again was counted");
    }

    /// Shuts down a host with one job and returns the journal's record of that job.
    async fn left(idempotent: bool, running: bool) -> String {
        let store = TestStore::new();
        let jobs = Arc::new(Jobs::new(Arc::new((*store).clone()), Ids::new(Clock::real(), Random::real())));
        let (accepted, safe) = jobs.accept(vec![call(idempotent)], false).unwrap();
        safe.wait().await.unwrap();
        let (job, queue) = (accepted[0].clone(), Arc::new(CallQueue::new(usize::from(running), 1)));
        let (began, begun) = tokio::sync::oneshot::channel();
        let work = move || -> JobWork {
            _ = began.send(());
            Box::pin(std::future::pending())
        };
        let (of, slots, of_store) = (jobs.clone(), queue.clone(), (*store).clone());
        let running_job = job.clone();
        let task = tokio::spawn(async move {
            let mut published = false;
            let task = Task { work, deadline: Duration::from_secs(600) };
            let publish = |JobEnd { job, now, change }: JobEnd| {
                published = true;
                let written = of_store.write(move |tx| change.map_or(Ok(()), |change| change(tx)));
                Answer::soon(written).map(move |()| JobEnd::show(&job, now))
            };
            run(&of, &slots, running_job, task, publish).await;
            published
        });
        if running {
            begun.await.unwrap();
        }
        job.shut_down();
        let published = task.await.unwrap();
        let kept = store.look(|conn| journal::get(conn, &job.id)).unwrap().unwrap();
        format!(
            "{} published={published} {}",
            kept.state.name(),
            kept.error.map_or(String::new(), |error| error.message)
        )
    }

    #[tokio::test]
    async fn a_host_that_shuts_down_leaves_jobs_that_its_next_start_can_run() {
        assert_eq!(left(false, false).await, "queued published=false ");
        assert_eq!(left(true, true).await, "running published=false ");
        assert_eq!(left(false, true).await, "interrupted published=true the host was shut down");
    }
}
