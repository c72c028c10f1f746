//! Joins this host to others, if its mountspec says so: `joining` takes its name and keeps everything going while it has it,
//! `answers` does what other hosts ask, `monitor` asks the server how it writes, `roster` knows the other hosts, `far_node` shows one of them. Only the host uses it.

mod answers;
mod far_node;
mod joining;
pub mod monitor;
mod roster;

use std::collections::HashMap;
use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use super::HostState;
use crate::services::remote::{HostLink, JoinedLink};
use roster::KnownNode;

pub use joining::{FabricTask, begin};

/// What a host knows of the fabric.
pub struct FabricState {
    joined: watch::Sender<Option<JoinedLink>>,
    /// Why this host is not joined, or not well.
    faults: RwLock<Vec<String>>,
    /// The other hosts, by name.
    known: Mutex<HashMap<String, KnownNode>>,
    /// The highest fencing token seen of each host.
    tokens: DashMap<String, u64>,
    /// Something may have changed at other hosts.
    changed: Arc<Notify>,
}

impl Default for FabricState {
    fn default() -> Self {
        FabricState {
            joined: watch::Sender::new(None),
            faults: RwLock::default(),
            known: Mutex::default(),
            tokens: DashMap::new(),
            changed: Arc::default(),
        }
    }
}

impl FabricState {
    pub fn link(&self) -> HostLink {
        HostLink::new(self.joined.subscribe())
    }

    /// Why this host is not joined, or not well.
    pub fn faults(&self) -> Vec<String> {
        self.faults.read().iter().map(|fault| format!("fabric: {fault}")).collect()
    }

    /// Notes the token of a host; false if it is lower than one that was seen: that host lost its name to another.
    fn note_token(&self, node: &str, token: u64) -> bool {
        let mut highest = self.tokens.entry(node.to_owned()).or_insert(token);
        *highest = token.max(*highest);
        *highest == token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_lost_its_name_is_not_heard_any_more() {
        let state = FabricState::default();
        assert!(state.note_token("styx", 7));
        assert!(state.note_token("styx", 7) && state.note_token("lethe", 1));
        assert!(state.note_token("styx", 9));
        assert!(!state.note_token("styx", 7));
    }
}
