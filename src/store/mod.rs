//! State that outlives the process: one SQLite database, one writer, many readers.
//!
//! The only module that names `rusqlite`. It knows the tables of the journal (jobs, events, audit); a part with tables
//! of its own appends a step to `schema::STEPS` and writes its queries against [`Tx`] and [`Connection`].

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a function answers that reads a row.
pub use rusqlite::Result as Sql;
pub use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

pub use self::tidy::{Forgotten, Keep};
pub use self::writer::{Tx, Written};
use crate::blocking::blocking;
use crate::error::{Error, Result};

pub mod audit;
mod backup;
pub mod events;
mod fault;
pub mod jobs;
mod json;
mod lock;
mod purge;
mod readers;
mod schema;
#[cfg(test)]
pub(crate) mod tests;
mod tidy;
mod writer;

/// How long a change waits for another process that has locked the database.
const PATIENCE: Duration = Duration::from_secs(5);

/// A change that is to be made together with another.
pub type Change = Box<dyn FnOnce(&Tx<'_>) -> Result<()> + Send>;

/// The open database. Cheap to clone; the last one to be dropped closes it.
#[derive(Clone)]
pub struct Store(Arc<Open>);

struct Open {
    path: PathBuf,
    writer: writer::Writer,
    readers: readers::Readers,
    lock: Mutex<Option<lock::Lock>>,
}

impl Store {
    /// Opens the database of a state directory, making both if need be, and keeps every other daemon out.
    pub fn open(dir: &Path) -> Result<Store> {
        Store::open_with(dir, PATIENCE)
    }

    /// [`open`](Store::open) with another patience towards processes that lock the database.
    pub fn open_with(dir: &Path, patience: Duration) -> Result<Store> {
        Store::begin(dir, patience).map_err(|error| {
            let message = format!("cannot open the state in {}: {}", dir.display(), error.message);
            Error::new(error.code, message)
        })
    }

    fn begin(dir: &Path, patience: Duration) -> Result<Store> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let lock = lock::Lock::take(dir)?;
        let path = dir.join(FILE);
        // SQLite gives its companions the same mode: what an agent remembers is nobody else's
        OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let mut conn = connect(&path, patience)?;
        conn.pragma_update(None, "journal_mode", "wal")?;
        schema::migrate(&mut conn, schema::STEPS)?;
        let writer = writer::Writer::start(conn)?;
        let readers = readers::Readers::new(path.clone(), patience);
        Ok(Store(Arc::new(Open { path, writer, readers, lock: Mutex::new(Some(lock)) })))
    }

    /// Makes a change, whole or not at all. It is queued by this very call; the answer comes when it is on the disk.
    pub fn write<T, F>(&self, work: F) -> Written<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.0.writer.write(work, |_| ())
    }

    /// [`write`](Store::write), and then something that must follow the commit even if nobody waits for the answer any
    /// more. It runs on the writer's thread, in the order of the commits, before the answer: it must be short.
    pub fn write_then<T, F, A>(&self, work: F, after: A) -> Written<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        self.0.writer.write(work, after)
    }

    /// [`write`](Store::write) for a caller that may block.
    pub fn write_blocking<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.write(work).wait()
    }

    /// Looks at one moment of the database, on the runtime's blocking pool.
    pub async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let Ok(_room) = self.0.readers.room.acquire().await else {
            return Err(Error::unavailable("the store is closed"));
        };
        let store = self.clone();
        blocking(move || store.look(work)).await
    }

    /// [`read`](Store::read) on this thread.
    pub fn look<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.0.readers.look(work)
    }

    /// How many transactions were committed; fewer than changes when many came at once.
    pub fn commits(&self) -> u64 {
        self.0.writer.commits()
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Finishes what is queued, and lets the directory go. Later changes are refused.
    pub fn close(&self) {
        self.0.close();
    }
}

impl Open {
    fn close(&self) {
        self.writer.close();
        self.readers.close();
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.close();
    }
}

const FILE: &str = "acheron.db";

/// Copies the database of a state directory into `file`, whether or not a daemon uses it.
pub fn backup(dir: &Path, file: &Path) -> Result<()> {
    backup::copy(&stranger(dir)?, file)
}

/// What is wrong with the database of a state directory, whether or not a daemon uses it; `None` when there is none.
pub fn faults(dir: &Path) -> Result<Option<Vec<String>>> {
    if !dir.join(FILE).exists() {
        return Ok(None);
    }
    let conn = stranger(dir)?;
    let newest = schema::STEPS.len();
    let version = schema::version(&conn)?;
    let mut found = backup::faults(&conn)?;
    if version > newest {
        found.push(format!("its schema version is {version}, and this acheron knows {newest}"));
    }
    Ok(Some(found))
}

/// A connection of somebody who does not hold the lock.
fn stranger(dir: &Path) -> Result<Connection> {
    let path = dir.join(FILE);
    if !path.exists() {
        return Err(Error::not_found(format!("there is no database in {}", dir.display())));
    }
    let conn = connect(&path, PATIENCE)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// A connection with the settings that all share. `FULL` syncs the log at every commit: that is the promise.
fn connect(path: &Path, patience: Duration) -> Result<Connection> {
    use rusqlite::OpenFlags;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(patience)?;
    conn.set_prepared_statement_cache_capacity(128);
    for (setting, value) in [("synchronous", "full"), ("foreign_keys", "on"), ("cache_size", "-8000")] {
        conn.pragma_update(None, setting, value)?;
    }
    // a log that grew under a long reader is cut back afterwards
    conn.pragma_update(None, "journal_size_limit", 64 << 20)?;
    Ok(conn)
}
