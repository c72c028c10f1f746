//! The one thread that writes: it takes what is queued, commits it together, and only then answers.
//!
//! Many callers share one fsync. Each change has a savepoint of its own, so that one that fails takes nothing along.

use parking_lot::Mutex;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault;
use acheron_base::{Error, Result};

/// More in one commit would let the first wait too long for the last.
const GROUP: usize = 256;
/// How often others are let run before a commit.
const YIELDS: usize = 8;
/// More than this waiting means that the disk does not keep up: callers hear `busy` instead of filling the memory.
const QUEUE: usize = 16 * 1024;

/// A connection on which a change may be made. Only [`Store::write`](super::Store::write) hands it out.
pub struct Tx<'c>(&'c Connection);

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

/// The answer to a change, there when it is on the disk. Dropping it does not take the change back.
#[must_use = "a change is only known to be kept when its answer has come"]
pub struct Written<T>(Pin<Box<dyn Future<Output = Result<T>> + Send>>);

impl<T: Send + 'static> Written<T> {
    fn new(answer: oneshot::Receiver<Result<T>>) -> Self {
        Written(Box::pin(async { answer.await.unwrap_or_else(|_| Err(closed())) }))
    }

    fn refused(error: Error) -> Self {
        Written(Box::pin(std::future::ready(Err(error))))
    }

    /// The same answer in other words.
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

/// A queued change of whatever type.
trait Change: Send {
    /// Does the work and keeps its outcome; false when it failed.
    fn run(&mut self, conn: &Connection) -> bool;
    /// Tells the caller: its own failure, or else what became of the group.
    fn answer(self: Box<Self>, group: &Result<()>);
}

struct Asked<T, F, A> {
    work: Option<F>,
    after: A,
    /// Nothing until it has run.
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F, A> Change for Asked<T, F, A>
where
    T: Send,
    F: FnOnce(&Tx<'_>) -> Result<T> + Send,
    A: FnOnce(&T) + Send,
{
    fn run(&mut self, conn: &Connection) -> bool {
        let Some(work) = self.work.take() else { return false };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&Tx(conn))));
        let outcome = fault::explained(conn, outcome.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))));
        self.outcome.insert(outcome).is_ok()
    }

    fn answer(self: Box<Self>, group: &Result<()>) {
        let Asked { after, outcome, reply, .. } = *self;
        let answer = match (outcome, group) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.clone()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(closed()),
        };
        if let Ok(value) = &answer
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| after(value)))
        {
            tracing::error!("{}", panicked(panic.as_ref()));
        }
        let _ = reply.send(answer); // nobody waits for it any more
    }
}

/// The queue's end that callers hold.
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Change>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    waiting: AtomicUsize,
    commits: AtomicU64,
}

impl Writer {
    pub(super) fn start(conn: Connection) -> Result<Writer> {
        let (queue, queued) = mpsc::channel();
        let counts = Arc::<Counts>::default();
        let desk = Queue { conn, queued, counts: counts.clone() };
        let thread = thread::Builder::new().name("store".into()).spawn(move || desk.serve())?;
        Ok(Writer { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)), counts })
    }

    /// Queues a change. The order of calls is the order of changes.
    pub(super) fn write<T, F, A>(&self, work: F, after: A) -> Written<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        let queue = self.queue.lock();
        let Some(queue) = queue.as_ref() else { return Written::refused(closed()) };
        if self.counts.waiting.fetch_add(1, Ordering::SeqCst) >= QUEUE {
            self.counts.waiting.fetch_sub(1, Ordering::SeqCst);
            return Written::refused(Error::busy("too many changes wait for the disk; try again"));
        }
        let (reply, answer) = oneshot::channel();
        let change = Asked { work: Some(work), after, outcome: None, reply };
        // a queue without a thread drops the change, and the answer says so
        let _ = queue.send(Box::new(change));
        Written::new(answer)
    }

    pub(super) fn commits(&self) -> u64 {
        self.counts.commits.load(Ordering::SeqCst)
    }

    /// Finishes what is queued and takes nothing more.
    pub(super) fn close(&self) {
        drop(self.queue.lock().take());
        let thread = self.thread.lock().take();
        // the last to hold the store may have been a change, on this very thread
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

/// The thread's side.
struct Queue {
    conn: Connection,
    queued: mpsc::Receiver<Box<dyn Change>>,
    counts: Arc<Counts>,
}

impl Queue {
    fn serve(&self) {
        while let Ok(first) = self.queued.recv() {
            let group = self.gather(first);
            let waited = group.len();
            self.commit(group);
            self.counts.waiting.fetch_sub(waited, Ordering::SeqCst);
        }
        // so that the database is one file when nobody uses it
        let _ = self.conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    /// What is committed together with `first`: all that is there, and all that comes from those who can run and are let
    /// run. Where nobody else has anything to do this takes no time, and where many do, they share one fsync.
    fn gather(&self, first: Box<dyn Change>) -> Vec<Box<dyn Change>> {
        let mut group = vec![first];
        for _ in 0..YIELDS {
            thread::yield_now();
            group.extend(self.queued.try_iter().take(GROUP - group.len()));
        }
        group
    }

    fn commit(&self, mut group: Vec<Box<dyn Change>>) {
        while !group.is_empty() {
            group = self.transaction(group);
        }
    }

    /// Commits a group and answers it. Returns those that have not run, because one before them spoilt the transaction:
    /// a full or failing disk makes SQLite roll all of it back at once.
    fn transaction(&self, group: Vec<Box<dyn Change>>) -> Vec<Box<dyn Change>> {
        if let Err(error) = self.step("BEGIN IMMEDIATE") {
            let refused = Err(error);
            group.into_iter().for_each(|change| change.answer(&refused));
            return Vec::new();
        }
        let mut ran = Vec::with_capacity(group.len());
        let mut group = group.into_iter();
        let mut ended = Ok(());
        for mut change in group.by_ref() {
            ended = self.one(change.as_mut());
            ran.push(change);
            if ended.is_err() {
                break;
            }
        }
        let ended = ended.and_then(|()| self.step("COMMIT"));
        if ended.is_ok() {
            self.counts.commits.fetch_add(1, Ordering::SeqCst);
        } else if !self.conn.is_autocommit() {
            let _ = self.step("ROLLBACK");
        }
        ran.into_iter().for_each(|change| change.answer(&ended));
        group.collect()
    }

    /// One change in its savepoint. An error here is the group's, not the change's.
    fn one(&self, change: &mut dyn Change) -> Result<()> {
        self.step("SAVEPOINT change")?;
        let done = change.run(&self.conn);
        if self.conn.is_autocommit() {
            return Err(Error::no_space("the disk failed a change that was to be committed together with this one"));
        }
        if !done {
            self.step("ROLLBACK TO change")?;
        }
        self.step("RELEASE change")
    }

    fn step(&self, sql: &str) -> Result<()> {
        let taken = self.conn.prepare_cached(sql).and_then(|mut step| step.execute([]));
        fault::explained(&self.conn, taken.map(drop).map_err(Error::from))
    }
}

fn closed() -> Error {
    Error::unavailable("the store is closed")
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let said = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    Error::internal(format!("a change of the database panicked: {}", said.unwrap_or("without a word")))
}
