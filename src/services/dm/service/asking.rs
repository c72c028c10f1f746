//! The wait for the narrator of a turn, and how it ends. Only `service` uses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::GameSession;
use acheron_base::{Code, Error, Result};
use acheron_dm::brief::Brief;
use acheron_dm::proposal::FAILED;

/// Clears the flag that the narrator is asked, in whatever way that ends.
struct AskingGuard<'a>(&'a AtomicBool);

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl GameSession {
    /// Asks the narrator. One that fails, or that nobody waits for any longer, counts as silent.
    pub(super) async fn proposal(self: &Arc<Self>, id: &str, brief: &Brief) -> Option<Value> {
        let turn = self.turn_of(id);
        turn.asking.store(true, Ordering::Relaxed);
        let _asked = AskingGuard(&turn.asking);
        let asked = tokio::select! {
            asked = self.narrator.propose(brief) => asked,
            () = turn.skip.notified() => Err(Error::cancelled("skip_narrator ended the wait for it")),
        };
        asked.unwrap_or_else(|fault| {
            tracing::warn!(%fault, campaign = id, "the narrator failed, and the rules engine tells the turn");
            // What stands in backquotes is taken for code and cut; a sentence of this host names settings so.
            let ours = fault.code != Code::ProviderError;
            Some(json!({FAILED: if ours { fault.message.replace('`', "\"") } else { fault.message }}))
        })
    }

    /// Ends the wait for the narrator: the rules engine tells the turn.
    pub(super) fn skip_narrator(&self, id: &str) -> Result<()> {
        let turn = self.turn_of(id);
        if !turn.is_asking() {
            return Err(Error::conflict(format!("campaign {id} does not wait for a narrator")));
        }
        turn.skip.notify_waiters();
        Ok(())
    }
}
