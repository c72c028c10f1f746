//! Read-only connections. A reader sees the last commit and never waits for the writer. The store uses it.

use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{connect, fault};
use acheron_base::{Error, Result};

/// The number of connections kept, and of concurrent readers on the runtime.
const READERS: usize = 8;

pub(super) struct Readers {
    path: PathBuf,
    busy_timeout: Duration,
    idle: Mutex<Vec<Connection>>,
    pub(super) permits: Semaphore,
}

impl Readers {
    pub(super) fn new(path: PathBuf, busy_timeout: Duration) -> Readers {
        Readers { path, busy_timeout, idle: Mutex::default(), permits: Semaphore::new(READERS) }
    }

    /// Reads on this thread. A nested read gets a connection of its own.
    pub(super) fn look<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = self.idle.lock().pop();
        let conn = match idle {
            Some(conn) => conn,
            None => self.open()?,
        };
        // The closure sees one consistent state of the database in all its queries.
        let seen = conn.unchecked_transaction().map_err(Error::from).and_then(|moment| {
            let seen = work(&moment);
            moment.finish()?;
            seen
        });
        let seen = fault::explained(&conn, seen);
        let mut idle = self.idle.lock();
        if idle.len() < READERS && conn.is_autocommit() {
            idle.push(conn);
        }
        seen
    }

    fn open(&self) -> Result<Connection> {
        let conn = connect(&self.path, self.busy_timeout)?;
        conn.pragma_update(None, "query_only", true)?;
        Ok(conn)
    }

    pub(super) fn close(&self) {
        self.idle.lock().clear();
    }
}
