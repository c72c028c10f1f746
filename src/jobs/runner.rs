//! Runs one job: waits for room, keeps its deadline, stops it for real.

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

    /// Whether none of `calls` that come now need wait for its turn.
    pub fn is_free(&self, calls: usize) -> bool {
        self.seats.available_permits() >= calls
    }

    /// Lets `calls` in, or none of them.
    pub fn enter(&self, calls: usize) -> Result<()> {
        let fits = |inside: usize| (inside + calls <= self.limit).then_some(inside + calls);
        match self.inside.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::busy(format!("{} calls are queued already; try again later", self.limit))),
        }
    }

    /// Lets a call in that was accepted before, however many there are.
    pub fn enter_again(&self) {
        self.inside.fetch_add(1, Ordering::SeqCst);
    }

    pub fn leave(&self, calls: usize) {
        self.inside.fetch_sub(calls, Ordering::SeqCst);
    }
}

/// What is done as a job, and how long that may take.
pub struct Task<W> {
    pub work: W,
    pub deadline: Duration,
}

/// The end of a job, which nobody sees before it is safe.
pub struct End {
    pub job: Arc<Job>,
    /// What the job is from then on.
    pub now: Now,
    /// What the journal is told, together with the news.
    pub change: Option<Change>,
}

impl End {
    /// From here on everybody sees it.
    pub fn show(job: &Job, now: Now) {
        job.update(|it| *it = now);
    }
}

/// Carries `task` out as `job` to its end, whatever happens. `tell` makes the end safe, shows it and tells of it; nobody is
/// told of what is left to the host's next life.
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

/// Ends a job that nobody can run any more.
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
    // A service that panics fails its call and nothing else. The work comes first: most is done at the first look, and
    // then neither a timer nor anybody else has to be woken.
    let mut work = Box::pin(AssertUnwindSafe(async { work().await }).catch_unwind());
    let error = tokio::select! {
        biased;
        outcome = &mut work => return outcome.unwrap_or_else(|panic| Err(broken(panic.as_ref()))),
        () = job.cancel.cancelled() => job.stopped("the call was cancelled"),
        () = tokio::time::sleep(deadline) => {
            Error::timeout(format!("the call took longer than its {} ms", deadline.as_millis()))
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
        return End::show(job, now); // for this life of the host only
    }
    let change = match job.call.effect {
        Effect::Read => None,
        Effect::Write | Effect::Execute => book.keep().settling(row(job, &now)),
    };
    if let Err(error) = tell(End { job: job.clone(), now, change }).wait().await {
        tracing::error!(job = job.id, %error, "the end of a job could not be kept");
        End::show(job, ended(Err(Error::new(error.code, format!("the result could not be kept: {error}")))));
    }
    book.ended(job);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Call;
    use crate::policy::Principal;
    use crate::state::Trial;
    use crate::state::jobs as journal;
    use acheron_base::{Clock, Ids, Random};

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

    /// Ends one job as the host that goes down does; says what its journal has of it.
    async fn left(idempotent: bool, running: bool) -> String {
        let store = Trial::new();
        let book = Arc::new(Jobs::new(Arc::new((*store).clone()), Ids::new(Clock::real(), Random::real())));
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
    async fn a_host_that_goes_down_leaves_what_its_next_life_can_run() {
        assert_eq!(left(false, false).await, "queued told=false ");
        assert_eq!(left(true, true).await, "running told=false ");
        assert_eq!(left(false, true).await, "interrupted told=true the host was taken down");
    }
}
