//! The door for 9P: who a client is. The protocol itself is `crates/ninep`. Opened by `host`.
//!
//! A client shows a token as the name of the tree (`aname`), or it is a process at the other end of a unix socket: then it is
//! whom the host takes that process for, as on the mount.

use std::sync::Arc;

use async_trait::async_trait;

use super::{DoorCaller, DoorContext};
use crate::policy::{Principal, PrincipalCaller};
use acheron_base::{Error, Result};
use acheron_ninep::{Attach, AttachRequest, Attached, Peer};
use acheron_vfs::Caller;

/// Whom the host takes a process for.
pub type Recognise = Arc<dyn Fn(&Peer) -> Principal + Send + Sync>;

pub struct DoorAttach {
    pub context: DoorContext,
    pub recognise: Recognise,
}

impl DoorAttach {
    async fn caller(&self, request: &AttachRequest) -> Result<DoorCaller> {
        if !request.tree.is_empty() && request.tree != "/" {
            let found = self.context.tokens.caller(&request.tree).await?;
            return found.ok_or_else(|| Error::forbidden("the name of the tree (aname) is no token, or no longer"));
        }
        let Some(peer) = &request.peer else {
            let said = "over TCP a client shows a token of `acheron token create` as the name of the tree (aname)";
            return Err(Error::forbidden(said));
        };
        let principal = (self.recognise)(peer);
        // Asked afterwards: had the process ended before, its number could belong to another.
        match principal {
            Principal::Nobody => Err(Error::forbidden("the process at the other end cannot be identified")),
            _ if !peer.is_alive() => Err(Error::forbidden("the process at the other end has ended")),
            principal => Ok(DoorCaller::peer(principal)),
        }
    }
}

#[async_trait]
impl Attach for DoorAttach {
    async fn attach(&self, request: AttachRequest) -> Result<Attached> {
        let caller = self.caller(&request).await.inspect_err(|error| {
            let who = request.peer.as_ref().map_or("tcp".to_owned(), |peer| format!("process {}", peer.pid));
            self.context.refusals.refused(&who, "attach", "/", &error.message);
        })?;
        Ok(Attached { caller: Caller::of(caller.principal), ended: caller.ended })
    }
}
