//! Forgetting an agent for good: not only its rows, but the bytes that they were written with.

use super::{PATIENCE, Store, Tx, connect};
use crate::error::{Error, Result};

impl Store {
    /// Removes what the journal has of an agent, and what `others` do with their own tables. May block.
    pub fn purge(&self, agent: &str, others: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static) -> Result<()> {
        let agent = agent.to_owned();
        self.write_blocking(move |tx| {
            // Deleted rows are overwritten, not only let go.
            tx.pragma_update(None, "secure_delete", true)?;
            let done = journal(tx, &agent).and_then(|()| others(tx));
            tx.pragma_update(None, "secure_delete", false)?;
            done
        })?;
        self.empty_log()
    }

    /// Moves the write-ahead log into the database and cuts it off: old versions of pages stand in it.
    fn empty_log(&self) -> Result<()> {
        let conn = connect(self.path(), PATIENCE)?;
        let busy: bool = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy { Err(Error::busy("the log of the database is in use: purge again")) } else { Ok(()) }
    }
}

fn journal(tx: &Tx<'_>, agent: &str) -> Result<()> {
    for table in ["jobs", "events", "event_logs"] {
        tx.execute(&format!("DELETE FROM {table} WHERE agent = ?1"), [agent])?;
    }
    Ok(())
}
