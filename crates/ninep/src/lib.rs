//! Serves a tree over 9P2000.L: for virtual machines, for WSL, and for machines without `/dev/fuse`.
//!
//! A fid is a handle of the tree, so that everything holds that holds on a mount: reads wait, a write to a control file is a
//! command, and each open fid is a conversation of its own. A request that waits is a future and costs no thread. `Tflush`
//! cancels it, and no reply follows its `Rflush`.
//!
//! # Differences to the mount
//!
//! Sentences do not travel, as with FUSE: a refusal is a number of Linux, and its sentence stands in `status.json`. There are no
//! locks, no extended attributes, and no scratch files: a program that saves by renaming a temporary file cannot do so
//! here, because the protocol does not say which process asks. What is written to a message or an item when the connection
//! breaks is refused, because nobody knows whether it was all.
//!
//! # What it may use
//!
//! `acheron-vfs` and `acheron-base`. It knows neither a service nor an agent; who a client is, [`Attach`] says.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod attributes;
mod fids;
mod listener;
pub mod message;
mod requests;
mod session;
mod wire;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use async_trait::async_trait;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio_util::sync::CancellationToken;

use acheron_base::Result;
use acheron_vfs::{Caller, Tree};
use attributes::Numbering;

pub use listener::{Address, Listening, listen};
pub use wire::Malformed;

/// The process at the other end of a unix socket.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its number, as it was when it connected; 0 if it cannot be seen.
    pub pid: u32,
    /// The process itself. Its number may belong to another by now; this tells.
    pub process: Arc<OwnedFd>,
}

impl Peer {
    /// Whether the process still runs, so that its number is its own. Ask after the number was used.
    pub fn is_alive(&self) -> bool {
        let mut process = [PollFd::new(self.process.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut process, PollTimeout::ZERO), Ok(0))
    }
}

/// A client that attaches to the tree.
#[derive(Clone, Debug)]
pub struct AttachRequest {
    /// The process, if the connection is a unix socket.
    pub peer: Option<Peer>,
    /// The name of a user. The client chooses it, so that it proves nothing.
    pub user: String,
    /// The name of a tree (`aname`).
    pub tree: String,
    /// The number of a user. The client chooses it, too.
    pub uid: u32,
}

/// A client that was let in.
pub struct Attached {
    /// The caller as which its requests are made.
    pub caller: Caller,
    /// Cancelled when its rights end: the connection ends with them.
    pub ended: CancellationToken,
}

/// Decides who a client is.
#[async_trait]
pub trait Attach: Send + Sync {
    /// Lets a client in, or refuses it.
    async fn attach(&self, request: AttachRequest) -> Result<Attached>;
}

/// A tree that is served.
pub struct Server {
    tree: Tree,
    attach: Arc<dyn Attach>,
    numbering: Arc<Numbering>,
}

impl Server {
    /// A server of this tree.
    pub fn new(tree: Tree, attach: Arc<dyn Attach>) -> Server {
        Server { tree, attach, numbering: Arc::default() }
    }
}
