//! A tree of names whose files may wait and take commands.
//!
//! `acheron-vfs` is the part of a synthetic file system that needs no kernel: directories, files, open handles and the
//! decision who may open what. [`acheron-fuse`](../acheron_fuse/index.html) serves such a tree as a mount, and a program
//! can use the same tree directly through [`Tree`].
//!
//! # The model
//!
//! - A [`Node`] is a directory, a file or a symbolic link. A [`Dir`] answers from memory, so its methods are ordinary
//!   functions and never block.
//! - An open file is a [`Handle`]: the state of one reader or writer, as a fid is in 9P. Several requests on one handle may
//!   be in progress at the same time.
//! - Whatever cannot be answered immediately is returned as an [`Answer`]: a future that ends by itself
//!   ([`Answer::Soon`], as from a disk) or when an event occurs ([`Answer::Later`]). A server parks such a request; the
//!   tree spends no thread on it.
//! - Each request carries a [`Caller`]. The tree never interprets its [`Identity`]; it asks one [`AccessControl`].
//! - A node that changes while it is served has a [`ChangeNotifier`], so that a server knows when its cache is stale.
//!
//! Ready-made files: [`text`], [`live`], [`waiting`], [`ComputedFile`], [`Log`], [`Control`], [`MessageFile`] and
//! [`Item`]. Ready-made directories: [`Listing`] and [`VirtualDir`].
//!
//! # Example
//!
//! A tree with one file that changes and one file that waits, read without any mount:
//!
//! ```
//! use std::sync::Arc;
//!
//! use acheron_vfs::{Access, AccessControl, Answer, Caller, Listing, Tree, live, waiting};
//! use tokio::sync::watch;
//!
//! struct Everyone;
//!
//! impl AccessControl for Everyone {
//!     fn check(&self, _caller: &Caller, _action: Access, _path: &str) -> acheron_base::Result<()> {
//!         Ok(())
//!     }
//!
//!     fn sees(&self, _caller: &Caller, _path: &str) -> bool {
//!         true
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> acheron_base::Result<()> {
//! let (open_door, door) = watch::channel(false);
//! let root = Listing::default()
//!     .file("hello", live(|caller| Ok(format!("hello, {}\n", caller.identity).into())))
//!     .file("door", waiting(move |_| {
//!         let mut door = door.clone();
//!         Answer::later(async move {
//!             door.wait_for(|open| *open).await.map_err(|_| acheron_base::Error::unavailable("no door"))?;
//!             Ok("open\n".into())
//!         })
//!     }));
//! let tree = Tree::new(Arc::new(root), Arc::new(Everyone));
//! let ada = Caller::named("ada");
//! assert_eq!(tree.read(&ada, "/hello").await?, "hello, ada\n");
//!
//! let reader = tokio::spawn({
//!     let tree = tree.clone();
//!     async move { tree.read(&ada, "/door").await }
//! });
//! open_door.send_replace(true);
//! assert_eq!(reader.await.unwrap()?, "open\n");
//! # Ok(())
//! # }
//! ```
//!
//! # What it may use
//!
//! Only `acheron-base`. It knows neither FUSE nor a service, an agent or a policy. Any crate may use it.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answer;
mod buffers;
mod caller;
mod computed;
mod control;
mod item;
mod json;
mod lazy_text;
mod listing;
mod log;
mod message;
mod notifier;
mod rechecked;
pub mod replies;
pub mod scratch;
mod scratch_names;
mod text;
mod tree;
mod virtual_dir;

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use acheron_base::host_dir::HostDir;
use acheron_base::{Code, Error, Result};

pub use answer::{Answer, Later};
pub use buffers::OpenFileBuffers;
pub use caller::{Access, Caller, Identity, Open};
pub use computed::{ComputedFile, live, waiting};
pub use control::{CommandContext, CommandSink, Control};
pub use item::{Item, VersionStore};
pub use json::{line, pretty, rows};
pub use lazy_text::{LazyTextFile, lazy_text};
pub use listing::{Listing, Smallest};
pub use log::{Log, OlderLog};
pub use message::{MessageClaim, MessageFile, MessageSink};
pub use notifier::{ChangeKind, ChangeNotifier, Listener};
pub use replies::{FixedReply, Reply, ReplyFn};
pub use text::{TextFile, text};
pub use tree::{AccessControl, Entry, Resolved, Tree, WeakTree, normalize};
pub use virtual_dir::VirtualDir;

/// The object behind a name. A clone refers to the same object.
#[derive(Clone)]
pub enum Node {
    /// A directory.
    Dir(Arc<dyn Dir>),
    /// A file.
    File(Arc<dyn File>),
    /// A symbolic link.
    Link(Arc<dyn Link>),
}

impl Node {
    /// A node for this directory.
    pub fn dir(dir: impl Dir + 'static) -> Node {
        Node::Dir(Arc::new(dir))
    }

    /// A node for this file.
    pub fn file(file: impl File + 'static) -> Node {
        Node::File(Arc::new(file))
    }

    /// A node for this link.
    pub fn link(link: impl Link + 'static) -> Node {
        Node::Link(Arc::new(link))
    }

    /// Whether its size and time are at hand ([`File::has_quick_stat`]).
    #[inline]
    pub fn has_quick_stat(&self) -> bool {
        match self {
            Node::File(file) => file.has_quick_stat(),
            Node::Dir(_) | Node::Link(_) => true,
        }
    }

    /// The notifier of the directory or file, if it announces its changes.
    #[inline]
    pub fn notifier(&self) -> Option<&ChangeNotifier> {
        match self {
            Node::Dir(dir) => dir.notifier(),
            Node::File(file) => file.notifier(),
            Node::Link(_) => None,
        }
    }
}

/// A directory.
///
/// An implementation must provide [`lookup`](Dir::lookup) and [`list`](Dir::list). Every change is refused unless the
/// directory defines it.
pub trait Dir: Send + Sync {
    /// The node called `name`, or `None` if there is no such name.
    fn lookup(&self, name: &str) -> Option<Node>;

    /// The node called `name` for this caller, where it is another than for everybody. A server that keeps what it has looked
    /// up for all callers, as a kernel does, does not ask this.
    fn lookup_for(&self, _caller: &Caller, name: &str) -> Option<Node> {
        self.lookup(name)
    }

    /// Every name with its node, sorted by name.
    fn list(&self) -> Vec<(String, Node)>;

    /// The first `most` entries of [`list`](Dir::list). A directory with very many names overrides it.
    fn first(&self, most: usize) -> Vec<(String, Node)> {
        let mut all = self.list();
        all.truncate(most);
        all
    }

    /// Whether the answer to `query` is at hand: in memory, and computed in far less than a millisecond. A server asks a
    /// directory that says no on another thread than the one that all callers share.
    fn is_quick(&self, _query: NameQuery) -> bool {
        true
    }

    /// When a name was last added or removed.
    fn modified(&self) -> SystemTime {
        STARTED
    }

    /// Sends [`ChangeKind::Name`] whenever a name is removed or replaced. A server caches the names of a directory with a
    /// notifier; it asks a directory without one again each time.
    fn notifier(&self) -> Option<&ChangeNotifier> {
        None
    }

    /// The directory of the machine that this one shows. A server may then answer requests from that directory itself.
    fn mirrored(&self) -> Option<Mirrored> {
        None
    }

    /// Makes a directory called `name` (`mkdir(2)`).
    fn make_dir(&self, _caller: &Caller, name: &str) -> Answer<Node> {
        Answer::refuse(not_permitted(format!("no directory can be made here: `{name}`")))
    }

    /// Removes the directory called `name` (`rmdir(2)`).
    fn remove_dir(&self, _caller: &Caller, name: &str) -> Answer<()> {
        Answer::refuse(not_permitted(format!("`{name}` cannot be removed")))
    }

    /// Makes and opens a file called `name` (`open(2)` with `O_CREAT`).
    fn create(&self, _caller: &Caller, name: &str, _how: Open) -> Result<(Node, Box<dyn Handle>)> {
        Err(not_permitted(format!("no file can be made here: `{name}`")))
    }

    /// Whether [`create`](Dir::create) makes files with names like this one, so that their drafts may be made, too.
    fn takes_new(&self, _name: &str) -> bool {
        false
    }

    /// Renames (`rename(2)`). Both are paths of the tree: `from` names something in this directory, `to` may be in another.
    fn rename(&self, _caller: &Caller, from: &str, _to: &str) -> Answer<()> {
        Answer::refuse(not_permitted(format!("`{from}` cannot be renamed")))
    }

    /// Removes the file called `name` (`unlink(2)`).
    fn remove(&self, _caller: &Caller, name: &str) -> Answer<()> {
        Answer::refuse(not_permitted(format!("`{name}` cannot be removed")))
    }
}

/// What a server is going to ask a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameQuery {
    /// One name, to look it up or to change it.
    One,
    /// All names.
    All,
}

/// A directory with more names than this is not listed on the thread that all callers share.
pub const MANY_NAMES: usize = 1000;

/// A directory of the machine that is shown as a directory of the tree.
pub struct Mirrored {
    /// The directory of the machine.
    pub host_dir: Arc<HostDir>,
    /// Nodes of the tree that replace names of the host directory.
    pub overlay: Arc<Listing>,
}

/// A symbolic link whose target may differ from caller to caller.
pub trait Link: Send + Sync {
    /// The target, absolute or relative to the directory of the link.
    fn target(&self, caller: &Caller) -> Result<String>;
}

/// How a file behaves. A server decides by it what the kernel may cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes that change only with a notification; the kernel may cache them.
    Text,
    /// A fresh snapshot for each pass.
    Live,
    /// A read waits until there is an answer.
    Waiting,
    /// Grows at its end.
    Log,
    /// Takes commands: each is complete with the write that ends it.
    Control,
    /// Takes text, one message per flush of its writer.
    Message,
    /// Takes a new version at each flush of its writer.
    Item,
    /// Bytes of one process, which become a write when they are renamed.
    Scratch,
}

/// The size and time that `stat(2)` reports for a file.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    /// Zero when the length is known only by reading.
    pub size: u64,
    /// When the bytes last changed.
    pub modified: SystemTime,
}

/// A file.
pub trait File: Send + Sync {
    /// How the file behaves.
    fn kind(&self) -> Kind;

    /// Its size and time.
    fn stat(&self) -> Stat {
        Stat { size: 0, modified: STARTED }
    }

    /// Whether [`stat`](File::stat) answers from memory, as for [`Dir::is_quick`].
    fn has_quick_stat(&self) -> bool {
        true
    }

    /// The permission bits. They say which direction makes sense; the [`AccessControl`] decides whether a caller may.
    /// Files whose length is known only by reading have none for others: `tar` does not even open an empty file that all
    /// may read.
    fn mode(&self) -> u16 {
        match self.kind() {
            Kind::Text | Kind::Log => 0o444,
            Kind::Live | Kind::Waiting => 0o440,
            Kind::Control | Kind::Message => 0o640,
            Kind::Item => 0o644,
            Kind::Scratch => 0o600,
        }
    }

    /// Sends [`ChangeKind::Bytes`] when the bytes or the length have changed.
    fn notifier(&self) -> Option<&ChangeNotifier> {
        None
    }

    /// Changes whenever bytes were added to the file, so that a follower need not look again and again; `None` for a file that
    /// cannot tell.
    fn growth(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        None
    }

    /// Whether a reader's `close(2)` has an effect, so that a server must call [`Handle::flush`] before `close(2)` returns.
    /// This costs each close one request.
    fn flushed_by_readers(&self) -> bool {
        false
    }

    /// A draft of this file was not renamed to it before the process that made it ended. The file can record `error`, which
    /// says so.
    fn unfinished(&self, _caller: &Caller, _error: &Error) {}

    /// Opens the file. [`Tree::open`] has asked the [`AccessControl`] before.
    fn open(&self, caller: &Caller, how: Open) -> Result<Box<dyn Handle>>;
}

/// An open file: the session of one reader or writer, as a fid is in 9P.
///
/// State that exists only because this caller has the file open belongs in the handle and ends with it. Several requests
/// on one handle may be in progress at the same time, so methods take `&self`; a future that is dropped before its end
/// must lose nothing.
pub trait Handle: Send + Sync {
    /// At most `size` bytes from `offset`; an empty answer means end of file.
    fn read(&self, _offset: u64, _size: usize) -> Answer<Bytes> {
        Answer::refuse(Error::new(Code::Os(libc::EBADF), "the file was not opened for reading"))
    }

    /// Prepares the bytes of the first pass, and returns their number; `None` where it is known only by reading. A server
    /// asks once, when a reader has opened the file, so that `fstat(2)` tells what this handle is going to read.
    fn length(&self) -> Answer<Option<u64>> {
        Answer::Now(Ok(None))
    }

    /// Takes all of `data`, or refuses it.
    fn write(&self, _offset: u64, _data: &[u8]) -> Answer<()> {
        Answer::refuse(Error::new(Code::Os(libc::EBADF), "the file was not opened for writing"))
    }

    /// One holder of the descriptor calls `close(2)`: once per duplicate, possibly before any write. `by_opener` says
    /// whether the closing process is the one that opened the file.
    fn flush(&self, _by_opener: bool) -> Answer<()> {
        Answer::Now(Ok(()))
    }

    /// `fsync(2)`.
    fn sync(&self) -> Answer<()> {
        Answer::Now(Ok(()))
    }

    /// `ftruncate(2)`: cuts or extends the file to `size`.
    fn truncate(&self, _size: u64) -> Answer<()> {
        Answer::Now(Ok(()))
    }

    /// Answered once a read would not wait. `poll(2)` asks for it.
    fn readable(&self) -> Answer<()> {
        Answer::Now(Ok(()))
    }

    /// A caller polls for input. Like [`readable`](Handle::readable), but the caller now waits for an answer, so that what
    /// it wrote so far is complete.
    fn poll_input(&self) -> Answer<()> {
        self.readable()
    }

    /// The number of bytes that the handle holds in memory for its caller.
    fn buffered_bytes(&self) -> usize {
        0
    }

    /// Drops an answer that is only partly read; the next read starts again.
    fn discard_buffer(&self) {}

    /// The server refused a part of what was written before it reached the handle: nothing of the whole may be kept.
    fn refuse(&self, _error: &Error) {}

    /// The last descriptor is closed. An error can no longer be reported.
    fn closed(&self) {}
}

/// The refusal (`EPERM`) of an operation that a node does not define.
pub fn not_permitted(message: impl Into<String>) -> Error {
    Error::new(Code::Os(libc::EPERM), message)
}

/// The part of `bytes` that a read of `size` at `offset` returns. It is not copied.
#[inline]
pub fn slice(bytes: &Bytes, offset: u64, size: usize) -> Bytes {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let end = bytes.len().min(start.saturating_add(size));
    bytes.slice(start..end)
}

/// The time of a node that has none of its own: a server shows the time at which the tree was made instead (see
/// [`Tree::started_at`]).
pub const STARTED: SystemTime = SystemTime::UNIX_EPOCH;
