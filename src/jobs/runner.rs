//! Runs one job: waits for room, keeps its deadline, stops it for real.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::keep::kept;
use super::{Book, Job, Row, State, ending, row};
use crate::contract::Effect;
use crate::error::{Error, Result};

/// What a job does.
pub type Work = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

/// How many calls may be under way, and how many may wait.
pub struct Room {
    seats: Semaphore,
    inside: AtomicUsize,
    limit: usize,
}

impl Room {
    pub fn new(running: usize, waiting: usize) -> Self {
        Room { seats: Semaphore::new(running), inside: AtomicUsize::new(0), limit: running + waiting }
    }

    /// Whether a call that comes now need not wait for its turn.
    pub fn is_free(&self) -> bool {
        self.seats.available_permits() > 0
    }

    /// Lets `calls` in, or none of them.
    pub fn enter(&self, calls: usize) -> Result<()> {
        let fits = |inside: usize| (inside + calls <= self.limit).then_some(inside + calls);
        match self.inside.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::busy(format!("{} calls are queued already; try again later", self.limit))),
        }
    }

    pub fn leave(&self, calls: usize) {
        self.inside.fetch_sub(calls, Ordering::SeqCst);
    }
}

/// Runs `work` as `job` to its end, whatever happens, then tells `ended`.
pub async fn run(book: &Book, room: &Room, job: Arc<Job>, work: impl FnOnce() -> Work, ended: impl FnOnce(&Job)) {
    let seat = tokio::select! {
        biased;
        () = job.cancel.cancelled() => None,
        seat = room.seats.acquire() => seat.ok(),
    };
    let outcome = match &seat {
        Some(_) => begin(book, &job, work).await,
        None => Err(job.stopped("the call was cancelled before it began")),
    };
    drop(seat);
    settle(book, &job, outcome).await;
    room.leave(1);
    ended(&job);
}

/// Ends a job that nobody can run any more.
pub fn abandon(book: &Arc<Book>, job: Arc<Job>, error: Error) {
    let book = book.clone();
    tokio::spawn(async move { settle(&book, &job, Err(error)).await });
}

async fn begin(book: &Book, job: &Arc<Job>, work: impl FnOnce() -> Work) -> Result<Value> {
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
    // A service that panics fails its call and nothing else. The work comes first: most is done at the first look, and
    // then neither a timer nor anybody else has to be woken.
    let mut work = Box::pin(AssertUnwindSafe(async { work().await }).catch_unwind());
    let error = tokio::select! {
        biased;
        outcome = &mut work => return outcome.unwrap_or_else(|panic| Err(broken(panic.as_ref()))),
        () = job.cancel.cancelled() => job.stopped("the call was cancelled"),
        () = tokio::time::sleep(job.call.deadline) => {
            Error::timeout(format!("the call took longer than its {} ms", job.call.deadline.as_millis()))
        }
    };
    // Dropping the work is what ends its processes and requests; only then is the job over.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(work))) {
        tracing::error!("{}", broken(panic.as_ref()));
    }
    Err(error)
}

fn broken(panic: &(dyn Any + Send)) -> Error {
    let said = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(said, "a service panicked");
    Error::internal(format!("the service broke down: {said}"))
}

/// Nobody sees the end of a job before it is safe.
async fn settle(book: &Book, job: &Job, mut outcome: Result<Value>) {
    let now = book.clock().now_ms();
    if job.call.effect != Effect::Read {
        let ended = Row {
            state: ending(&outcome),
            result: kept(job, &outcome),
            error: outcome.as_ref().err().cloned(),
            updated_at_ms: now,
            ..row(job)
        };
        if let Err(error) = book.keep().settled(ended).await {
            tracing::error!(job = job.id, %error, "the end of a job could not be kept");
            outcome = Err(Error::new(error.code, format!("the result could not be kept: {error}")));
        }
    }
    job.update(|it| {
        it.state = ending(&outcome);
        it.updated_at_ms = now;
        it.outcome = Some(Arc::new(outcome));
    });
}
