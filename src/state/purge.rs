//! Removing an agent for good: not only its rows, but the bytes that they were written with.

use acheron_base::Result;
use acheron_store::{Store, Tx};

/// Removes the jobs and events of an agent, and what `others` do with their own tables. Blocks.
pub fn purge(store: &Store, agent: &str, others: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static) -> Result<()> {
    let agent = agent.to_owned();
    store.erase(move |tx| {
        for table in ["jobs", "events", "event_logs"] {
            tx.execute(&format!("DELETE FROM {table} WHERE agent = ?1"), [&agent])?;
        }
        others(tx)
    })
}
