//! Who asks, and how.

use crate::error::{Error, Result};
use crate::policy::Principal;

/// The one on the other side of a request. Found once, when a file is opened, and kept with the handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    /// The process (not the thread); 0 when it cannot be seen or when the call comes from inside.
    pub pid: u32,
    pub principal: Principal,
    /// The principal is an agent that asks in the course of a turn, with its own three tools.
    pub in_turn: bool,
}

impl Caller {
    /// The host itself, or the person who started it, acting from inside this process.
    pub fn operator() -> Self {
        Caller::inside(Principal::Operator)
    }

    pub fn agent(id: &str) -> Self {
        Caller::inside(Principal::Agent(id.to_owned()))
    }

    pub fn inside(principal: Principal) -> Self {
        let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
        Caller { uid, gid, pid: 0, principal, in_turn: false }
    }

    /// The agent itself, in the course of a turn.
    pub fn agent_in_turn(id: &str) -> Self {
        Caller { in_turn: true, ..Caller::agent(id) }
    }

    /// Whether it may wait for turns of `agent` to end. Those of one agent come one after another, so who is in the midst
    /// of one would wait for itself, until its deadline. It is told that this is not ready, which is all that it could
    /// ever hear. A program that it started may wait: the turn can end without it.
    pub fn may_await_turns(&self, agent: &str) -> Result<()> {
        match &self.principal {
            Principal::Agent(id) if self.in_turn && id == agent => Err(Error::busy(
                "this waits for your own turn to end, and a turn cannot wait for itself; write your reply to end it",
            )),
            _ => Ok(()),
        }
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    pub read: bool,
    pub write: bool,
    pub append: bool,
    pub truncate: bool,
}

impl Open {
    pub const READ: Open = Open { read: true, write: false, append: false, truncate: false };
    pub const WRITE: Open = Open { read: false, write: true, append: false, truncate: true };
    pub const APPEND: Open = Open { read: false, write: true, append: true, truncate: false };
    pub const BOTH: Open = Open { read: true, write: true, append: false, truncate: false };
}
