//! The caller of a request and the way a file is opened. Uses nothing of the tree.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The process or component that makes a request. It is determined once, when a file is opened, and kept with the
/// handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user that the process runs as.
    pub uid: u32,
    /// The group that the process runs as.
    pub gid: u32,
    /// The process (not the thread); 0 when it cannot be seen or when the call comes from inside.
    pub pid: u32,
    /// The caller as the host of the tree knows it.
    pub identity: Identity,
}

impl Caller {
    /// A caller inside this process.
    pub fn inside(identity: Identity) -> Self {
        let (uid, gid) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
        Caller { uid, gid, pid: 0, identity }
    }

    /// A caller inside this process that has only a name.
    pub fn named(name: &str) -> Self {
        Caller::inside(Identity::named(name))
    }
}

/// The identity of a caller, as the host of the tree knows it.
///
/// The tree compares identities and shows their names, but never interprets them: two handles with the same name share
/// one quota, and the [`AccessControl`](super::AccessControl) decides everything else. What it must know beyond the name
/// is stored as the extension.
#[derive(Clone)]
pub struct Identity {
    name: Arc<str>,
    extension: Arc<dyn Any + Send + Sync>,
}

impl Identity {
    /// An identity without an extension.
    pub fn named(name: &str) -> Self {
        Identity::with(name, ())
    }

    /// An identity with an extension of the host.
    pub fn with<T: Any + Send + Sync>(name: impl Into<Arc<str>>, extension: T) -> Self {
        Identity { name: name.into(), extension: Arc::new(extension) }
    }

    /// The name, for messages and for counting.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The extension, if it has this type.
    pub fn extension<T: Any>(&self) -> Option<&T> {
        self.extension.downcast_ref()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.name).finish()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The right that a caller needs at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read it, list it, wait for it.
    Read,
    /// Change its contents, or the names in it.
    Write,
    /// Write a command or a message to it.
    Invoke,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Every write goes to the end (`O_APPEND`).
    pub append: bool,
    /// The file is emptied first (`O_TRUNC`).
    pub truncate: bool,
}

impl Open {
    /// As `cat` opens a file.
    pub const READ: Open = Open { read: true, write: false, append: false, truncate: false };
    /// As `>` opens a file.
    pub const WRITE: Open = Open { read: false, write: true, append: false, truncate: true };
    /// As `>>` opens a file.
    pub const APPEND: Open = Open { read: false, write: true, append: true, truncate: false };
    /// As `<>` opens a file.
    pub const BOTH: Open = Open { read: true, write: true, append: false, truncate: false };
}
