//! The connection of a change, and what is put off until all changes of a commit are made. The writer uses it.

use std::cell::RefCell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;

use super::{fault, time_limit};
use acheron_base::{Error, Result};

/// A connection on which a change may be made. Only [`Store::write`](super::Store::write) provides it.
pub struct Tx<'c> {
    conn: &'c Connection,
    last: &'c LastSteps,
}

/// The steps that come after all changes of a commit, in the order in which they were put off.
#[derive(Default)]
pub struct LastSteps(RefCell<Vec<LastStep>>);

type LastWork = Box<dyn FnOnce(&Connection) -> Result<()>>;

enum LastStep {
    Work(LastWork),
    Note(String),
}

/// Keeps what the changes of a commit have noted: all notes of a commit at once, before it is made.
pub trait NoteKeeper: Send {
    /// Writes the notes, in their order. An error fails the commit.
    fn keep(&mut self, conn: &Connection, notes: Vec<String>) -> Result<()>;

    /// The commit with the last notes was made.
    fn kept(&mut self);
}

impl LastSteps {
    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// Forgets the steps of a change that was undone.
    pub fn cut(&self, count: usize) {
        self.0.borrow_mut().truncate(count);
    }

    /// Takes the steps, and then hands over the notes. The first failure is that of the whole commit. Returns whether there
    /// were notes.
    pub fn take(&self, conn: &Connection, keeper: Option<&mut (dyn NoteKeeper + 'static)>) -> Result<bool> {
        let steps = self.0.take();
        let taken = catch_unwind(AssertUnwindSafe(|| {
            let mut notes = Vec::new();
            for step in steps {
                match step {
                    LastStep::Work(work) => work(conn)?,
                    LastStep::Note(note) => notes.push(note),
                }
            }
            match (notes.is_empty(), keeper) {
                (true, _) => Ok(false),
                (false, Some(keeper)) => keeper.keep(conn, notes).map(|()| true),
                (false, None) => Err(Error::internal("nobody keeps the notes of this store")),
            }
        }));
        fault::explained(conn, taken.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))))
    }
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.conn
    }
}

impl<'c> Tx<'c> {
    pub(super) fn new(conn: &'c Connection, last: &'c LastSteps) -> Tx<'c> {
        Tx { conn, last }
    }

    /// Puts a step off until all changes of this commit are made, outside their savepoints. If this change is undone, the
    /// step is not taken; if the step fails, the commit is not made. Meant for full-text indexes: FTS5 writes a segment at
    /// each savepoint, and merges them all later.
    pub fn put_off(&self, step: impl FnOnce(&Connection) -> Result<()> + 'static) {
        self.last.0.borrow_mut().push(LastStep::Work(Box::new(step)));
    }

    /// Notes something for the [`NoteKeeper`] of the store, as a part of this change: if the change is undone, so is the note.
    pub fn note(&self, note: String) {
        self.last.0.borrow_mut().push(LastStep::Note(note));
    }

    /// Makes a part of the change that may fail alone: if it returns an error, panics, or takes more processor time than
    /// [`ATTEMPT_LIMIT`](time_limit::ATTEMPT_LIMIT), what it did is undone, and the rest of the change goes on.
    pub fn attempt<T>(&self, part: impl FnOnce() -> Result<T>) -> Result<T> {
        step(self, "SAVEPOINT attempt")?;
        let before = self.last.count();
        let done = catch_unwind(AssertUnwindSafe(|| time_limit::limited(part)));
        let done = done.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        // SQLite rolls everything back when the disk is full or fails: there is no savepoint any more.
        if self.is_autocommit() {
            return done.and_then(|_| Err(Error::no_space("the disk failed the change")));
        }
        if done.is_err() {
            step(self, "ROLLBACK TO attempt")?;
            self.last.cut(before);
        }
        step(self, "RELEASE attempt")?;
        done
    }
}

/// Runs a statement that begins or ends a part of a transaction.
pub(super) fn step(conn: &Connection, sql: &str) -> Result<()> {
    let taken = conn.prepare_cached(sql).and_then(|mut step| step.execute([]));
    fault::explained(conn, taken.map(drop).map_err(Error::from))
}

pub(super) fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let said = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    Error::internal(format!("a change of the database panicked: {}", said.unwrap_or("without a word")))
}
