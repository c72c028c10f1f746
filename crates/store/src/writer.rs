//! The only thread that writes: it takes the queued changes, commits them together, and then answers. Many callers
//! share one fsync. Each change has a savepoint of its own, so that a failed one does not affect the others. The store
//! uses it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use rusqlite::Connection;

use super::tx::{LastSteps, NoteKeeper, Tx, panicked, step};
use super::{fault, time_limit};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::thread::{self, JoinHandle, Thread};
use crate::sync::{Mutex, mpsc, oneshot};
use acheron_base::{Error, Result, failpoint};

/// The limit of changes per commit: with more, the first would wait too long for the last.
const GROUP_LIMIT: usize = 256;
/// The number of times that other threads may run before a commit.
const YIELDS: usize = 8;
/// The limit of queued changes. Above it the disk is too slow, and callers get `busy` instead of filling the memory.
const QUEUE_LIMIT: usize = 16 * 1024;

/// The answer to a change; it comes when the change is on the disk. Dropping it does not undo the change.
#[must_use = "a change is only known to be kept when its answer has come"]
pub struct Written<T>(Pin<Box<dyn Future<Output = Result<T>> + Send>>);

impl<T: Send + 'static> Written<T> {
    fn new(answer: oneshot::Receiver<Result<T>>) -> Self {
        Written(Box::pin(async { answer.await.unwrap_or_else(|_| Err(closed())) }))
    }

    fn refused(error: Error) -> Self {
        Written(Box::pin(std::future::ready(Err(error))))
    }

    /// Converts the value of the answer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U + Send + 'static) -> Written<U> {
        Written(Box::pin(async { self.await.map(change) }))
    }

    /// Blocks this thread until the answer is there.
    pub fn wait(mut self) -> Result<T> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut self).poll(&mut cx) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => thread::park(),
            }
        }
    }
}

impl<T> Future for Written<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        self.0.as_mut().poll(cx)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A queued change of any type.
trait QueuedChange: Send {
    /// Does the work and keeps its outcome; returns false when it failed.
    fn run(&mut self, tx: &Tx<'_>) -> bool;
    /// The failure of the disk, if that is how the work failed.
    fn disk_fault(&self) -> Option<Error>;
    /// Answers the caller: with its own failure, or with that of the group.
    fn answer(self: Box<Self>, group: &Result<()>);
}

struct QueuedWork<T, F, A> {
    work: Option<F>,
    after: A,
    /// `None` until it has run.
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F, A> QueuedChange for QueuedWork<T, F, A>
where
    T: Send,
    F: FnOnce(&Tx<'_>) -> Result<T> + Send,
    A: FnOnce(&T) + Send,
{
    fn run(&mut self, tx: &Tx<'_>) -> bool {
        let Some(work) = self.work.take() else { return false };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(tx)));
        let outcome = fault::explained(tx, outcome.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))));
        self.outcome.insert(outcome).is_ok()
    }

    fn disk_fault(&self) -> Option<Error> {
        let failed = self.outcome.as_ref().and_then(|outcome| outcome.as_ref().err());
        failed.filter(|error| fault::is_of_the_disk(error)).cloned()
    }

    fn answer(self: Box<Self>, group: &Result<()>) {
        let QueuedWork { after, outcome, reply, .. } = *self;
        let answer = match (outcome, group) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.clone()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(closed()),
        };
        // In both cases before the caller is answered: what holds on to a failed change lets go of it.
        let told = match &answer {
            Ok(value) => catch_unwind(AssertUnwindSafe(|| after(value))),
            Err(_) => catch_unwind(AssertUnwindSafe(|| drop(after))),
        };
        if let Err(panic) = told {
            tracing::error!("{}", panicked(panic.as_ref()));
        }
        failpoint::step("store.shown");
        let _ = reply.send(answer); // the caller may be gone
    }
}

/// The side of the callers.
pub struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn QueuedChange>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    waiting: AtomicUsize,
    commits: AtomicU64,
    /// Why the disk refused the last group; `None` once one was committed.
    fault: Mutex<Option<Error>>,
    /// Keeps the notes; used by the thread alone once it is set.
    keeper: Mutex<Option<Box<dyn NoteKeeper>>>,
}

impl Writer {
    pub fn start(mut conn: Connection) -> Result<Writer> {
        time_limit::watch(&mut conn)?;
        let (queue, queued) = mpsc::channel();
        let counts = Arc::<Counts>::default();
        let writer = WriterThread { conn, queued, counts: counts.clone() };
        let thread = thread::Builder::new().name("store".into()).spawn(move || writer.serve())?;
        Ok(Writer { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)), counts })
    }

    /// Queues a change. Changes are made in the order of the calls.
    pub fn write<T, F, A>(&self, work: F, after: A) -> Written<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        let queue = self.queue.lock();
        let Some(queue) = queue.as_ref() else { return Written::refused(closed()) };
        if self.counts.waiting.fetch_add(1, Ordering::SeqCst) >= QUEUE_LIMIT {
            self.counts.waiting.fetch_sub(1, Ordering::SeqCst);
            return Written::refused(Error::busy("too many changes wait for the disk; try again"));
        }
        let (reply, answer) = oneshot::channel();
        let change = QueuedWork { work: Some(work), after, outcome: None, reply };
        // A queue without a thread drops the change, and the answer says so.
        let _ = queue.send(Box::new(change));
        Written::new(answer)
    }

    pub fn commits(&self) -> u64 {
        self.counts.commits.load(Ordering::SeqCst)
    }

    /// Why the disk failed the last commit; `None` if it was made.
    pub fn fault(&self) -> Option<Error> {
        self.counts.fault.lock().clone()
    }

    /// Hands the notes of all later commits to this keeper.
    pub fn keep_notes(&self, keeper: Box<dyn NoteKeeper>) {
        *self.counts.keeper.lock() = Some(keeper);
    }

    /// Completes the queued changes and takes no more.
    pub fn close(&self) {
        drop(self.queue.lock().take());
        let thread = self.thread.lock().take();
        // A change may hold the last reference to the store, on this very thread.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

/// The side of the thread.
struct WriterThread {
    conn: Connection,
    queued: mpsc::Receiver<Box<dyn QueuedChange>>,
    counts: Arc<Counts>,
}

impl WriterThread {
    fn serve(&self) {
        while let Ok(first) = self.queued.recv() {
            let group = self.gather(first);
            let waited = group.len();
            self.commit(group);
            self.counts.waiting.fetch_sub(waited, Ordering::SeqCst);
        }
        // So that an unused database is one file.
        let _ = self.conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    /// The changes to commit together with `first`: those that are queued, and those that come from threads that can
    /// run now. Where no other thread has work this takes no time; where many have, they share one fsync.
    fn gather(&self, first: Box<dyn QueuedChange>) -> Vec<Box<dyn QueuedChange>> {
        let mut group = vec![first];
        for _ in 0..YIELDS {
            thread::yield_now();
            group.extend(self.queued.try_iter().take(GROUP_LIMIT - group.len()));
        }
        group
    }

    fn commit(&self, mut group: Vec<Box<dyn QueuedChange>>) {
        while !group.is_empty() {
            group = self.transaction(group);
        }
    }

    /// Commits a group and answers it. Returns those that have not run because one before them broke the transaction:
    /// SQLite rolls all of it back when the disk is full or fails.
    fn transaction(&self, group: Vec<Box<dyn QueuedChange>>) -> Vec<Box<dyn QueuedChange>> {
        if let Err(error) = self.step("BEGIN IMMEDIATE") {
            self.note(&Err(error.clone()));
            let refused = Err(error);
            group.into_iter().for_each(|change| change.answer(&refused));
            return Vec::new();
        }
        let mut ran = Vec::with_capacity(group.len());
        let mut group = group.into_iter();
        let mut ended = Ok(());
        let mut failed = None;
        let last = LastSteps::default();
        for mut change in group.by_ref() {
            ended = self.one(change.as_mut(), &last);
            failed = failed.or(change.disk_fault());
            ran.push(change);
            if ended.is_err() {
                break;
            }
        }
        let mut keeper = self.counts.keeper.lock();
        let noted = ended.and_then(|()| last.take(&self.conn, keeper.as_deref_mut()));
        failpoint::step("store.made");
        let ended = noted.and_then(|noted| self.step("COMMIT").map(|()| noted));
        failpoint::step("store.committed");
        if let Ok(noted) = ended {
            self.counts.commits.fetch_add(1, Ordering::SeqCst);
            if let Some(keeper) = keeper.as_deref_mut().filter(|_| noted) {
                keeper.kept();
            }
        } else if !self.conn.is_autocommit() {
            let _ = self.step("ROLLBACK");
        }
        drop(keeper);
        let ended = ended.map(drop);
        self.note(&failed.map_or_else(|| ended.clone(), Err));
        ran.into_iter().for_each(|change| change.answer(&ended));
        group.collect()
    }

    /// Makes one change in its savepoint. An error here is that of the group, not of the change.
    fn one(&self, change: &mut dyn QueuedChange, last: &LastSteps) -> Result<()> {
        self.step("SAVEPOINT change")?;
        let before = last.count();
        let done = change.run(&Tx::new(&self.conn, last));
        if self.conn.is_autocommit() {
            return Err(Error::no_space("the disk failed a change that was to be committed together with this one"));
        }
        if !done {
            self.step("ROLLBACK TO change")?;
            last.cut(before);
        }
        self.step("RELEASE change")
    }

    /// Keeps how the disk took a group, before its callers are answered.
    fn note(&self, ended: &Result<()>) {
        let fault = ended.as_ref().err().filter(|error| fault::is_of_the_disk(error));
        *self.counts.fault.lock() = fault.cloned();
    }

    fn step(&self, sql: &str) -> Result<()> {
        step(&self.conn, sql)
    }
}

fn closed() -> Error {
    Error::unavailable("the store is closed")
}
