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

use super::{Job, Jobs, Now, State, ending, row};
use crate::contract::Effect;
use acheron_base::{Error, Result};
use acheron_store::Change;
use acheron_vfs::Answer;

/// The work of a job.
pub type Work = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

/// Limits the number of running and waiting calls.
pub struct Room {
    seats: Semaphore,
    inside: AtomicUsize,
    limit: usize,
}

impl Room {
    pub fn new(running: usize, waiting: usize) -> Self {
        Room { seats: Semaphore::new(running), inside: AtomicUsize::new(0), limit: running + waiting }
    }

    /// Whether `calls` new calls can start without waiting.
    pub fn is_free(&self, calls: usize) -> bool {
        self.seats.available_permits() >= calls
    }

    /// Admits all of `calls` or none.
    pub fn enter(&self, calls: usize) -> Result<()> {
        let fits = |inside: usize| (inside + calls <= self.limit).then_some(inside + calls);
        match self.inside.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::busy(format!("{} calls are queued already; try again later", self.limit))),
        }
    }

    /// Admits a call that was accepted earlier, even beyond the limit.
    pub fn enter_again(&self) {
        self.inside.fetch_add(1, Ordering::SeqCst);
    }

    pub fn leave(&self, calls: usize) {
        self.inside.fetch_sub(calls, Ordering::SeqCst);
    }
}

/// The work of a job and its time limit.
pub struct Task<W> {
    pub work: W,
    pub deadline: Duration,
}

/// The end of a job, which is not visible before it is durable.
pub struct End {
    pub job: Arc<Job>,
    /// The final snapshot of the job.
    pub now: Now,
    /// The change of the journal, written together with the event.
    pub change: Option<Change>,
}

impl End {
    /// Makes the end visible.
    pub fn show(job: &Job, now: Now) {
        job.update(|it| *it = now);
    }
}

/// Runs `task` as `job` to its end. `publish` makes the end durable, shows it and emits the event; it is not called for
/// a job that runs again after the next start of the host.
pub async fn run<W: FnOnce() -> Work>(
    book: &Jobs,
    room: &Room,
    job: Arc<Job>,
    task: Task<W>,
    tell: impl FnOnce(End) -> Answer<()>,
) {
    let seat = tokio::select! {
        biased;
        () = job.cancel.cancelled() => None,
        seat = room.seats.acquire() => seat.ok(),
    };
    let outcome = match &seat {
        Some(_) => begin(book, &job, task).await,
        None => Err(job.stopped("the call was cancelled before it began")),
    };
    drop(seat);
    settle(book, &job, outcome, tell).await;
    room.leave(1);
}

/// Ends a job that can no longer run.
pub async fn abandon(book: &Jobs, job: Arc<Job>, error: Error, tell: impl FnOnce(End) -> Answer<()>) {
    settle(book, &job, Err(error), tell).await;
}

async fn begin<W: FnOnce() -> Work>(book: &Jobs, job: &Arc<Job>, task: Task<W>) -> Result<Value> {
    let Task { work, deadline } = task;
    let now = book.clock().now_ms();
    job.update(|it| {
        it.state = State::Running;
        it.started_at_ms = Some(now);
        it.attempt += 1;
        it.updated_at_ms = now;
    });
    if job.call.effect != Effect::Read && !job.at_once {
        book.keep().begun(&job.id, now).await?;
    }
    // A panicking service fails only its own call. The work is polled first: most calls finish at the first poll and
    // need no timer and no wakeup.
    let mut work = Box::pin(AssertUnwindSafe(async { work().await }).catch_unwind());
    let error = tokio::select! {
        biased;
        outcome = &mut work => return outcome.unwrap_or_else(|panic| Err(broken(panic.as_ref()))),
        () = job.cancel.cancelled() => job.stopped("the call was cancelled"),
        () = tokio::time::sleep(deadline) => {
            Error::timeout(format!("the call took longer than its {} ms", deadline.as_millis()))
        }
    };
    // Dropping the work ends its processes and requests; only then has the job ended.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(work))) {
        tracing::error!("{}", broken(panic.as_ref()));
    }
    Err(error)
}

fn broken(panic: &(dyn Any + Send)) -> Error {
    let said = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(said, "a service panicked");
    Error::internal(format!("the service panicked: {said}"))
}

async fn settle(book: &Jobs, job: &Arc<Job>, outcome: Result<Value>, tell: impl FnOnce(End) -> Answer<()>) {
    let at_ms = book.clock().now_ms();
    let ended = |outcome: Result<Value>| Now {
        state: ending(&outcome),
        updated_at_ms: at_ms,
        outcome: Some(Arc::new(outcome)),
        ..job.now()
    };
    let now = ended(outcome);
    if job.is_leaving() && now.state == State::Interrupted {
        return End::show(job, now); // the journal keeps it for the next start
    }
    let change = match job.call.effect {
        Effect::Read => None,
        Effect::Write | Effect::Execute => book.keep().settling(row(job, &now)),
    };
    if let Err(error) = tell(End { job: job.clone(), now, change }).wait().await {
        tracing::error!(job = job.id, %error, "the end of a job could not be stored");
        End::show(job, ended(Err(Error::new(error.code, format!("the result could not be stored: {error}")))));
    }
    book.ended(job);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Call;
    use crate::policy::Principal;
    use crate::state::TestStore;
    use crate::state::jobs as journal;
    use acheron_base::Clock;

    fn call(idempotent: bool) -> Call {
        Call {
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
        let room = Room::new(2, 1);
        assert!(room.is_free(2) && !room.is_free(3));
        (0..5).for_each(|_| room.enter_again());
        assert!(room.enter(1).is_err());
        room.leave(3);
        assert!(room.enter(1).is_ok(), "what was let in again was counted");
    }

    /// Shuts down a host with one job and returns the journal's record of that job.
    async fn left(idempotent: bool, running: bool) -> String {
        let store = TestStore::new();
        let book = Arc::new(Jobs::new(Arc::new((*store).clone()), Clock::real()));
        let (jobs, safe) = book.accept(vec![call(idempotent)], false).unwrap();
        safe.wait().await.unwrap();
        let (job, room) = (jobs[0].clone(), Arc::new(Room::new(usize::from(running), 1)));
        let (began, begun) = tokio::sync::oneshot::channel();
        let work = move || -> Work {
            _ = began.send(());
            Box::pin(std::future::pending())
        };
        let (of, seats, of_store) = (book.clone(), room.clone(), (*store).clone());
        let running_job = job.clone();
        let task = tokio::spawn(async move {
            let mut told = false;
            let task = Task { work, deadline: Duration::from_secs(600) };
            let tell = |End { job, now, change }: End| {
                told = true;
                let written = of_store.write(move |tx| change.map_or(Ok(()), |change| change(tx)));
                Answer::soon(written).map(move |()| End::show(&job, now))
            };
            run(&of, &seats, running_job, task, tell).await;
            told
        });
        if running {
            begun.await.unwrap();
        }
        job.leave();
        let told = task.await.unwrap();
        let kept = store.look(|conn| journal::get(conn, &job.id)).unwrap().unwrap();
        format!("{} told={told} {}", kept.state.name(), kept.error.map_or(String::new(), |error| error.message))
    }

    #[tokio::test]
    async fn a_host_that_shuts_down_leaves_jobs_that_its_next_start_can_run() {
        assert_eq!(left(false, false).await, "queued told=false ");
        assert_eq!(left(true, true).await, "running told=false ");
        assert_eq!(left(false, true).await, "interrupted told=true the host was shut down");
    }
}
