//! The wait for the narrator of a turn, and how it ends. Only `service` uses it.

use std::sync::Arc;
use std::task::Poll;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::GameSession;
use acheron_base::{Code, Error, Result};
use acheron_dm::brief::Brief;
use acheron_dm::proposal::{FAILED, STOPPED};

/// Clears the flag that the narrator is asked, in whatever way that ends.
struct AskingGuard<'a>(&'a watch::Sender<bool>);

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

/// An answer without the key that only the host writes.
fn of_narrator(mut answer: Value) -> Value {
    if let Some(own) = answer.as_object_mut() {
        own.remove(STOPPED);
    }
    answer
}

impl GameSession {
    /// Asks the narrator. One that fails, or that nobody waits for any longer, counts as silent.
    pub(super) async fn proposal(self: &Arc<Self>, id: &str, brief: &Brief) -> Option<Value> {
        let turn = self.turn_of(id);
        let mut asked = std::pin::pin!(self.narrator.propose(brief));
        let asked = match futures_util::poll!(asked.as_mut()) {
            // One that answers at once is not waited for, and a writer hears of the whole turn.
            Poll::Ready(asked) => asked,
            Poll::Pending => {
                turn.asking.send_replace(true);
                let _asked = AskingGuard(&turn.asking);
                tokio::select! {
                    asked = asked => asked,
                    () = turn.skip.notified() => Err(Error::cancelled("skip_narrator ended the wait for it")),
                }
            }
        };
        match asked {
            Ok(answer) => answer.map(of_narrator),
            Err(fault) => {
                tracing::warn!(%fault, campaign = id, "the narrator failed, and the rules engine tells the turn");
                // A sentence of this host is told as it is; one of a server is cleaned.
                let key = if fault.code == Code::ProviderError { FAILED } else { STOPPED };
                Some(json!({key: fault.message}))
            }
        }
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
