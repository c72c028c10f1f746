//! Who asks, and how.

use crate::policy::Principal;

/// The one on the other side of a request. Found once, when a file is opened, and kept with the handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    /// The process (not the thread); 0 when it cannot be seen or when the call comes from inside.
    pub pid: u32,
    pub principal: Principal,
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
        Caller { uid: nix::unistd::getuid().as_raw(), gid: nix::unistd::getgid().as_raw(), pid: 0, principal }
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
