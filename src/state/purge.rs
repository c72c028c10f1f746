//! Deletes an agent's rows and overwrites the bytes that held them. Used by `host`.

use acheron_base::Result;
use acheron_store::{Store, Tx};

/// Deletes the jobs, events, turns, requests to models, approvals and spending of an agent and runs `others` for further tables in the same transaction. Blocks.
pub fn purge(store: &Store, agent: &str, others: impl FnOnce(&Tx<'_>) -> Result<()> + Send + 'static) -> Result<()> {
    let agent = agent.to_owned();
    store.erase(move |tx| {
        for table in ["jobs", "events", "event_logs", "turns", "model_requests", "approvals", "approval_exceptions"] {
            tx.execute(&format!("DELETE FROM {table} WHERE agent = ?1"), [&agent])?;
        }
        for table in ["spending", "reservations"] {
            tx.execute(&format!("DELETE FROM {table} WHERE payer = ?1"), [&agent])?;
        }
        others(tx)
    })
}
