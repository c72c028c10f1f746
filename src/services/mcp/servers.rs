//! The MCP servers of all agents: when they may start, how they end, and what servers of the same kind were found to offer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use acheron_mcp::Catalogue;

/// As many descriptions of servers are remembered.
const KNOWN: usize = 256;
/// How long the servers may take to end with the host.
const ENDING: Duration = Duration::from_secs(10);

/// What the servers of one entry of the mountspec offer, as far as one of them has answered. Held by the one that asks.
pub type KnownCatalogue = Arc<tokio::sync::Mutex<Option<Arc<Catalogue>>>>;

/// All servers of a host.
#[derive(Default)]
pub struct McpServers {
    opened: watch::Sender<bool>,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
    known: Mutex<HashMap<String, KnownCatalogue>>,
}

impl McpServers {
    /// Servers may start: the tree is there that their sandboxes show.
    pub fn open(&self) {
        self.opened.send_replace(true);
    }

    /// Ends all servers, and starts no more.
    pub fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
    }

    /// Waits until all have ended.
    pub async fn close(&self) {
        self.end();
        if tokio::time::timeout(ENDING, self.tasks.wait()).await.is_err() {
            tracing::warn!("an MCP server did not end in time");
        }
    }

    pub(super) async fn may_start(&self) {
        _ = self.opened.subscribe().wait_for(|opened| *opened).await; // the sender lives as long as this
    }

    /// What is known of the servers that `key` describes.
    pub(super) fn known(&self, key: &str) -> KnownCatalogue {
        let mut known = self.known.lock();
        if known.len() >= KNOWN && !known.contains_key(key) {
            known.clear();
        }
        known.entry(key.to_owned()).or_default().clone()
    }
}
