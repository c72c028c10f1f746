//! Connections that only look. A reader sees the last commit and never waits for the writer.

use parking_lot::Mutex;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{connect, fault};
use acheron_base::{Error, Result};

/// How many connections are kept, and how many readers of the runtime look at once.
const READERS: usize = 8;

pub(super) struct Readers {
    path: PathBuf,
    patience: Duration,
    idle: Mutex<Vec<Connection>>,
    pub(super) room: Semaphore,
}

impl Readers {
    pub(super) fn new(path: PathBuf, patience: Duration) -> Readers {
        Readers { path, patience, idle: Mutex::default(), room: Semaphore::new(READERS) }
    }

    /// Looks on this thread. A look within a look gets a connection of its own.
    pub(super) fn look<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = self.idle.lock().pop();
        let conn = match idle {
            Some(conn) => conn,
            None => self.open()?,
        };
        // what the closure reads is one moment of the database, however many queries it makes
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
        let conn = connect(&self.path, self.patience)?;
        conn.pragma_update(None, "query_only", true)?;
        Ok(conn)
    }

    pub(super) fn close(&self) {
        self.idle.lock().clear();
    }
}
