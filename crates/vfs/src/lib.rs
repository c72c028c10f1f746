//! The tree of names. Knows nothing of FUSE, of services or of agents.
//!
//! Names never block; only bytes do. A [`Dir`] answers from memory, so its methods are plain functions. An open file is
//! a [`Handle`]; what it cannot say at once it says as an [`Answer`] that comes later. So is a name that is made or
//! removed, which may have to reach a disk first.

mod answer;
mod caller;
mod control;
mod holdings;
mod item;
mod json;
mod listing;
mod log;
mod message;
mod notifier;
pub mod replies;
mod shown;
mod text;
mod tree;
mod virtual_dir;

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use acheron_base::host_dir::HostDir;
use acheron_base::{Code, Error, Result};

pub use answer::{Answer, Later, at_once};
pub use caller::{Access, Caller, Identity, Open};
pub use control::{Asked, CommandSink, Control};
pub use holdings::Holdings;
pub use item::{Item, VersionStore};
pub use json::{line, pretty, rows};
pub use listing::{Listing, Smallest};
pub use log::Log;
pub use message::{MessageFile, MessageSink};
pub use notifier::{ChangeKind, ChangeNotifier, Listener};
pub use replies::{Once, Reply, Said};
pub use shown::{Shown, live, waiting};
pub use text::{Page, text};
pub use tree::{AccessControl, Entry, Standing, Tree, WeakTree, normal};
pub use virtual_dir::Virtual;

/// What a name leads to.
#[derive(Clone)]
pub enum Node {
    Dir(Arc<dyn Dir>),
    File(Arc<dyn File>),
    Link(Arc<dyn Link>),
}

impl Node {
    pub fn dir(dir: impl Dir + 'static) -> Node {
        Node::Dir(Arc::new(dir))
    }

    pub fn file(file: impl File + 'static) -> Node {
        Node::File(Arc::new(file))
    }

    pub fn link(link: impl Link + 'static) -> Node {
        Node::Link(Arc::new(link))
    }

    /// Who rings when what is behind the name has changed, if anybody does.
    pub fn notifier(&self) -> Option<&ChangeNotifier> {
        match self {
            Node::Dir(dir) => dir.notifier(),
            Node::File(file) => file.notifier(),
            Node::Link(_) => None,
        }
    }
}

/// A place where names are looked up.
///
/// Only the first two methods must be provided; a directory refuses whatever it does not define.
pub trait Dir: Send + Sync {
    fn lookup(&self, name: &str) -> Option<Node>;

    /// Every name, sorted.
    fn list(&self) -> Vec<(String, Node)>;

    /// The first `most` of them. A directory of the machine may have a million.
    fn first(&self, most: usize) -> Vec<(String, Node)> {
        let mut all = self.list();
        all.truncate(most);
        all
    }

    /// When a name last came or went.
    fn modified(&self) -> SystemTime {
        STARTED
    }

    /// Rings with [`ChangeKind::Name`] whenever a name goes or comes to mean something else. Names of a directory without a
    /// bell are asked for again each time.
    fn notifier(&self) -> Option<&ChangeNotifier> {
        None
    }

    /// The directory of this machine that this one shows; requests of the kernel go to that itself.
    fn mirrored(&self) -> Option<Mirrored> {
        None
    }

    fn make_dir(&self, _caller: &Caller, name: &str) -> Answer<Node> {
        Answer::refuse(not_permitted(format!("no directory can be made here: `{name}`")))
    }

    fn remove_dir(&self, _caller: &Caller, name: &str) -> Answer<()> {
        Answer::refuse(not_permitted(format!("`{name}` cannot be removed")))
    }

    /// Opens `name` as a new file, where the directory takes new files.
    fn create(&self, _caller: &Caller, name: &str, _how: Open) -> Result<(Node, Box<dyn Handle>)> {
        Err(not_permitted(format!("no file can be made here: `{name}`")))
    }

    fn remove(&self, _caller: &Caller, name: &str) -> Answer<()> {
        Answer::refuse(not_permitted(format!("`{name}` cannot be removed")))
    }
}

/// A directory of this machine, and what stands over names of it.
pub struct Mirrored {
    pub ground: Arc<HostDir>,
    pub over: Arc<Listing>,
}

/// A name that stands for another, read anew by each caller.
pub trait Link: Send + Sync {
    /// The target, relative to the directory in which the link stands.
    fn target(&self, caller: &Caller) -> Result<String>;
}

/// How a file behaves. Decides what the kernel may keep of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes that change only with a ring of the bell; the kernel keeps them.
    Text,
    /// A fresh snapshot at each pass.
    Live,
    /// Parks its reader until there is something to say.
    Waiting,
    /// Grows.
    Log,
    /// Takes commands, each by the write that completes it.
    Control,
    /// Takes text, as one message, when its writer flushes.
    Message,
    /// Takes a new version when its writer flushes.
    Item,
}

/// What `stat` shows of a file.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    /// Zero when the length is only known by reading.
    pub size: u64,
    pub modified: SystemTime,
}

/// Something that can be opened.
pub trait File: Send + Sync {
    fn kind(&self) -> Kind;

    fn stat(&self) -> Stat {
        Stat { size: 0, modified: STARTED }
    }

    /// The permission bits. They say which direction makes sense; who may is decided by the [`AccessControl`].
    fn mode(&self) -> u16 {
        match self.kind() {
            Kind::Text | Kind::Live | Kind::Waiting | Kind::Log => 0o444,
            Kind::Control | Kind::Message | Kind::Item => 0o644,
        }
    }

    /// Rings with [`ChangeKind::Bytes`] when the bytes or the length have changed.
    fn notifier(&self) -> Option<&ChangeNotifier> {
        None
    }

    fn open(&self, caller: &Caller, how: Open) -> Result<Box<dyn Handle>>;
}

/// An open file: the session of one reader or writer, as a fid is in 9P.
///
/// State that exists because this caller is here lives in the handle and dies with it. Several requests of one handle
/// may be under way at once, so methods take `&self`; a future handed out must lose nothing when it is dropped.
pub trait Handle: Send + Sync {
    /// At most `size` bytes from `offset`; none means end of file.
    fn read(&self, _offset: u64, _size: usize) -> Answer<Bytes> {
        Answer::refuse(Error::new(Code::Os(libc::EBADF), "the file was not opened for reading"))
    }

    /// Takes all of `data`, or refuses it.
    fn write(&self, _offset: u64, _data: &[u8]) -> Answer<()> {
        Answer::refuse(Error::new(Code::Os(libc::EBADF), "the file was not opened for writing"))
    }

    /// A `close(2)` by one holder of the descriptor; once per duplicate, and possibly before any write. `by_opener`:
    /// the process that closes is the one that opened.
    fn flush(&self, _by_opener: bool) -> Answer<()> {
        Answer::Now(Ok(()))
    }

    /// `fsync(2)`.
    fn sync(&self) -> Answer<()> {
        Answer::Now(Ok(()))
    }

    /// The file is cut to `size` by somebody who holds it open.
    fn truncate(&self, _size: u64) -> Answer<()> {
        Answer::Now(Ok(()))
    }

    /// Now, if a read would answer at once; else when one would.
    fn readable(&self) -> Answer<()> {
        Answer::Now(Ok(()))
    }

    /// How many bytes it keeps in memory for whoever has it open.
    fn keeps(&self) -> usize {
        0
    }

    /// Lets go of an answer that is being read; whoever reads on begins anew.
    fn let_go(&self) {}

    /// A part of what was written was refused before it came here: nothing of the whole may be kept.
    fn refuse(&self, _error: &Error) {}

    /// The last descriptor is gone. Nobody hears an error any more.
    fn closed(&self) {}
}

/// What is not defined at some place of the tree.
pub fn not_permitted(message: impl Into<String>) -> Error {
    Error::new(Code::Os(libc::EPERM), message)
}

/// The part of `bytes` that a read of `size` at `offset` gets.
pub fn slice(bytes: &Bytes, offset: u64, size: usize) -> Bytes {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let end = bytes.len().min(start.saturating_add(size));
    bytes.slice(start..end)
}

/// The time of what is there from the start and does not change: in its place, a mount shows the time at which the tree
/// was made (see [`Tree::started_at`]).
pub const STARTED: SystemTime = SystemTime::UNIX_EPOCH;
