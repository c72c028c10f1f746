//! The doors: ways by which clients outside reach the tree. Each door is one folder, can be left out of the program by a feature,
//! and knows no other door.
//!
//! What all of them share stands here: who calls ([`DoorCaller`]: from a token or from the peer of a socket, never from the
//! ancestry of a process), and the tree with the rights of that caller ([`tree::DoorTree`]). Rights are decided by the access
//! control of the tree alone: what a caller may not see does not exist for it. `host` opens the doors; they use the tree, the
//! policy, the table of tokens and the tools of agents.

#[cfg(feature = "door-acp")]
pub mod acp;
#[cfg(feature = "door-http")]
pub mod approve;
#[cfg(feature = "door-http")]
pub mod fs;
#[cfg(feature = "door-http")]
pub mod listener;
#[cfg(feature = "door-mcp")]
pub mod mcp;
#[cfg(feature = "door-metrics")]
pub mod metrics;
#[cfg(feature = "door-9p")]
pub mod ninep;
#[cfg(feature = "door-openai")]
pub mod openai;
pub mod tokens;
pub mod tree;
#[cfg(feature = "door-web")]
pub mod web;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::policy::{Principal, PrincipalCaller};
use acheron_approvals::LinkKey;
use acheron_base::{Error, Ids, Result};
use acheron_vfs::{Caller, WeakTree};
use tokens::Tokens;
use tree::DoorTree;

/// Who calls through a door.
#[derive(Clone, Debug)]
pub struct DoorCaller {
    pub principal: Principal,
    /// Cancelled when the rights of this caller end, as when its token is revoked: whatever is under way for it ends then.
    pub ended: CancellationToken,
    /// How long these rights last; as long as they are not taken back if it is not said.
    pub lasts: Option<Duration>,
}

impl DoorCaller {
    /// A caller that the peer of a socket vouches for, as long as the connection lasts.
    pub fn peer(principal: Principal) -> DoorCaller {
        DoorCaller { principal, ended: CancellationToken::new(), lasts: None }
    }
}

/// What the host hands to a door.
#[derive(Clone)]
pub struct DoorContext {
    /// A door must not keep the tree.
    pub tree: WeakTree,
    pub ids: Ids,
    pub tokens: Arc<Tokens>,
    pub refusals: Arc<dyn RefusalLog>,
    /// Verifies the links that were sent out with requests for approval.
    pub links: Arc<LinkKey>,
    /// Cancelled when the host goes down.
    pub down: CancellationToken,
}

/// Writes refused requests down. Refusals of the tree itself are written down by its access control.
pub trait RefusalLog: Send + Sync {
    /// `who` is a principal, or where the request came from.
    fn refused(&self, who: &str, action: &str, path: &str, reason: &str);
}

impl DoorContext {
    /// The tree with the rights of this caller.
    pub fn tree_of(&self, caller: &DoorCaller) -> Result<DoorTree> {
        if caller.ended.is_cancelled() {
            return Err(Error::forbidden("the token was revoked"));
        }
        let tree = self.tree.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))?;
        Ok(DoorTree::new(tree, Caller::of(caller.principal.clone()), self.ids.clone()))
    }
}
