//! State that outlives the process: one SQLite database, one writer, many readers. The crate defines no tables: its
//! user brings the migrations, and writes queries against [`Tx`] and [`Connection`]. Any crate may use it; it uses only
//! `acheron-base`.

#![deny(unsafe_code)] // one exception, in `fault`

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// The result of a function that reads a row.
pub use rusqlite::Result as Sql;
pub use rusqlite::{Connection, OptionalExtension, Row, Rows, named_params, params};

pub use self::tx::{NoteKeeper, Tx};
pub use self::writer::Written;
use acheron_base::{Error, Result, blocking, sync};

mod backup;
pub mod cache;
mod fault;
pub mod json;
mod lock;
mod readers;
mod schema;
#[cfg(test)]
mod tests;
mod time_limit;
mod tx;
mod writer;

/// How long a change waits for another process that has locked the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A change that is made together with another.
pub type Change = Box<dyn FnOnce(&Tx<'_>) -> Result<()> + Send>;

/// The open database. Cheap to clone; the last one to be dropped closes it.
#[derive(Clone)]
pub struct Store(Arc<OpenStore>);

struct OpenStore {
    path: PathBuf,
    writer: writer::Writer,
    readers: readers::Readers,
    lock: Mutex<Option<lock::Lock>>,
}

impl Store {
    /// Opens the database of a state directory, makes both if necessary, and locks out every other daemon. `migrations`
    /// are the steps from an empty database to the current schema.
    pub fn open(dir: &Path, migrations: &[&str]) -> Result<Store> {
        Store::open_with(dir, migrations, BUSY_TIMEOUT)
    }

    /// [`open`](Store::open) with another time limit for processes that lock the database.
    pub fn open_with(dir: &Path, migrations: &[&str], busy_timeout: Duration) -> Result<Store> {
        Store::begin(dir, migrations, busy_timeout).map_err(|error| {
            let message = format!("cannot open the state in {}: {}", dir.display(), error.message);
            Error::new(error.code, message)
        })
    }

    fn begin(dir: &Path, migrations: &[&str], busy_timeout: Duration) -> Result<Store> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let lock = lock::Lock::take(dir)?;
        let path = dir.join(FILE);
        // SQLite gives its other files the same mode: the memory of an agent is private.
        OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let mut conn = connect(&path, busy_timeout)?;
        conn.pragma_update(None, "journal_mode", "wal")?;
        keep_before(&conn, dir, migrations.len())?;
        schema::migrate(&mut conn, migrations)?;
        let writer = writer::Writer::start(conn)?;
        let readers = readers::Readers::new(path.clone(), busy_timeout);
        Ok(Store(Arc::new(OpenStore { path, writer, readers, lock: Mutex::new(Some(lock)) })))
    }

    /// Makes a change completely or not at all. This call queues it; the answer comes when it is on the disk.
    pub fn write<T, F>(&self, work: F) -> Written<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.0.writer.write(work, |_| ())
    }

    /// [`write`](Store::write), then calls `after`, even if the caller no longer waits for the answer. `after` runs on
    /// the thread of the writer, in the order of the commits and before the answer: it must be short.
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

    /// Reads one consistent state of the database, on the blocking pool of the runtime.
    pub async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let Ok(_permit) = self.0.readers.permits.acquire().await else {
            return Err(Error::unavailable("the store is closed"));
        };
        let store = self.clone();
        blocking(move || store.look(work)).await
    }

    /// [`read`](Store::read) on this thread.
    pub fn look<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.0.readers.look(work)
    }

    /// The number of committed transactions; less than the number of changes when many are committed together.
    pub fn commits(&self) -> u64 {
        self.0.writer.commits()
    }

    /// Hands what later changes note ([`Tx::note`]) to this keeper.
    pub fn keep_notes(&self, keeper: Box<dyn NoteKeeper>) {
        self.0.writer.keep_notes(keeper);
    }

    /// Why the disk refused the last change; `None` if it took it.
    pub fn fault(&self) -> Option<Error> {
        self.0.writer.fault()
    }

    /// Makes a change whose deleted rows are overwritten, and empties the write-ahead log, which holds old versions of
    /// pages. Blocks.
    pub fn erase(&self, work: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static) -> Result<()> {
        self.write_blocking(move |tx| {
            tx.pragma_update(None, "secure_delete", true)?;
            let done = work(tx);
            tx.pragma_update(None, "secure_delete", false)?;
            done
        })?;
        let conn = connect(self.path(), BUSY_TIMEOUT)?;
        let busy: bool = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy { Err(Error::busy("the log of the database is in use: purge again")) } else { Ok(()) }
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Completes the queued changes and unlocks the directory. Later changes are refused.
    pub fn close(&self) {
        self.0.close();
    }
}

impl OpenStore {
    fn close(&self) {
        self.writer.close();
        self.readers.close();
        drop(self.lock.lock().take());
    }
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        self.close();
    }
}

/// Copies a database of an earlier schema before it is migrated, beside it; a copy of an even earlier one goes.
fn keep_before(conn: &Connection, dir: &Path, newest: usize) -> Result<()> {
    let version = schema::version(conn)?;
    if version == 0 || version >= newest {
        return Ok(());
    }
    let name = format!("{BEFORE}{version}");
    backup::copy(conn, &dir.join(&name)).map_err(|error| {
        let said = format!("the database could not be copied before its migration: {}", error.message);
        Error::new(error.code, said)
    })?;
    for entry in std::fs::read_dir(dir)?.flatten() {
        let other = entry.file_name();
        if other.to_str().is_some_and(|other| other.starts_with(BEFORE) && other != name) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The name of a copy from before a migration begins so; the schema follows.
pub const BEFORE: &str = "acheron.db.schema-";

/// The database in a state directory.
pub const FILE: &str = "acheron.db";

/// Copies the database of a state directory into `file`, whether or not a daemon uses it.
pub fn backup(dir: &Path, file: &Path) -> Result<()> {
    backup::copy(&connect_unlocked(dir)?, file)
}

/// The problems of the database of a state directory, whether or not a daemon uses it; `None` when there is no
/// database. `newest` is the schema version that the caller knows.
pub fn faults(dir: &Path, newest: usize) -> Result<Option<Vec<String>>> {
    if !dir.join(FILE).exists() {
        return Ok(None);
    }
    let conn = connect_unlocked(dir)?;
    let version = schema::version(&conn)?;
    let mut found = backup::faults(&conn)?;
    if version > newest {
        found.push(format!("its schema version is {version}, and this acheron knows {newest}"));
    }
    Ok(Some(found))
}

/// Reads the database of a state directory, whether or not a daemon uses it.
pub fn look_unlocked<T>(dir: &Path, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    work(&connect_unlocked(dir)?)
}

/// Reads a database that nobody uses, such as a copy.
pub fn look_file<T>(file: &Path, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let conn = connect(file, BUSY_TIMEOUT)?;
    conn.pragma_update(None, "query_only", true)?;
    work(&conn)
}

/// A read-only connection without the lock.
fn connect_unlocked(dir: &Path) -> Result<Connection> {
    let path = dir.join(FILE);
    if !path.exists() {
        return Err(Error::not_found(format!("there is no database in {}", dir.display())));
    }
    let conn = connect(&path, BUSY_TIMEOUT)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// A connection with the settings that all share. `FULL` syncs the log at every commit: the store promises it.
fn connect(path: &Path, busy_timeout: Duration) -> Result<Connection> {
    use rusqlite::OpenFlags;
    use rusqlite::config::DbConfig;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(128);
    // Else a statement is parsed again when a bound value might change its plan: FTS5's own at every search.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    for (setting, value) in [("synchronous", "full"), ("foreign_keys", "on"), ("cache_size", "-8000")] {
        conn.pragma_update(None, setting, value)?;
    }
    // Pages that change again and again are copied back once in 16 MB of log, not once in 4.
    conn.pragma_update(None, "wal_autocheckpoint", 4000)?;
    // A log that grew during a long read is shortened afterwards.
    conn.pragma_update(None, "journal_size_limit", 64 << 20)?;
    Ok(conn)
}
