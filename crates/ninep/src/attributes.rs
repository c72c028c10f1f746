//! The attributes of a node as 9P shows them. Used by the requests; uses only the tree.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use super::message::{QID_DIR, QID_FILE, QID_LINK, Qid, Reply};
use acheron_vfs::{Node, Open, STARTED, Stat, Tree};

/// What [`Reply::Getattr`] tells: all that `stat(2)` shows.
const BASIC: u64 = 0x7ff;

/// Gives files their numbers, and knows to whom they belong.
pub struct Numbering {
    keys: RandomState,
    pub uid: u32,
    pub gid: u32,
}

impl Default for Numbering {
    fn default() -> Self {
        Numbering { keys: RandomState::new(), uid: nix::unistd::getuid().as_raw(), gid: nix::unistd::getgid().as_raw() }
    }
}

impl Numbering {
    /// A number belongs to a path. It is a hash, so that nothing has to be remembered: of a million files, two have the same
    /// number once in thirty million servers.
    pub fn qid(&self, path: &str, node: &Node) -> Qid {
        let kind = match node {
            Node::Dir(_) => QID_DIR,
            Node::File(_) => QID_FILE,
            Node::Link(_) => QID_LINK,
        };
        Qid { kind, version: 0, path: self.keys.hash_one(path) }
    }

    /// May read from a disk, unless [`Node::has_quick_stat`].
    pub fn attributes(&self, tree: &Tree, path: &str, node: &Node) -> Reply {
        let (mode, Stat { size, modified }) = match node {
            Node::Dir(dir) => (libc::S_IFDIR | 0o555, Stat { size: 0, modified: dir.modified() }),
            Node::File(file) => (libc::S_IFREG | u32::from(file.mode()), file.stat()),
            Node::Link(_) => (libc::S_IFLNK | 0o777, Stat { size: 0, modified: STARTED }),
        };
        let (time, nanos) = since_1970(tree.shown_time(modified));
        Reply::Getattr {
            valid: BASIC,
            qid: self.qid(path, node),
            mode,
            uid: self.uid,
            gid: self.gid,
            links: 1,
            device: 0,
            size,
            block_size: 4096,
            blocks: size.div_ceil(512),
            atime: time,
            atime_ns: nanos,
            mtime: time,
            mtime_ns: nanos,
            ctime: time,
            ctime_ns: nanos,
            btime: 0,
            btime_ns: 0,
            generation: 0,
            data_version: 0,
        }
    }
}

fn since_1970(time: SystemTime) -> (u64, u64) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs(), since.subsec_nanos().into())
}

/// The type of a node, as `readdir(3)` has it.
pub fn entry_kind(node: &Node) -> u8 {
    match node {
        Node::Dir(_) => libc::DT_DIR,
        Node::File(_) => libc::DT_REG,
        Node::Link(_) => libc::DT_LNK,
    }
}

/// How a file is opened, from the flags of `open(2)` on Linux, and whether its reads wait.
pub fn open_mode(flags: u32) -> (Open, bool) {
    let flags = flags as i32;
    let access = flags & libc::O_ACCMODE;
    let write = access == libc::O_WRONLY || access == libc::O_RDWR;
    let how = Open {
        read: access == libc::O_RDONLY || access == libc::O_RDWR,
        write,
        append: flags & libc::O_APPEND != 0,
        truncate: write && flags & libc::O_TRUNC != 0,
    };
    (how, flags & libc::O_NONBLOCK == 0)
}
