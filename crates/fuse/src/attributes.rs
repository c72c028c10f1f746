//! The attributes of a node, and how long the kernel may cache them. The request modules use it; it uses only the tree.

use std::time::Duration;

use fuser::{FileAttr, FileType, FopenFlags, INodeNo};

use acheron_vfs::{Dir, File, Kind, Node, Open, STARTED, Stat, Tree};

/// The cache time of names whose changes are announced. It is long: an hour costs one request.
const NAME_TTL: Duration = Duration::from_secs(3600);

/// The cache time of attributes whose changes are announced. It is shorter: a notice that is sent while the first
/// answer is on its way reaches a kernel that does not know the inode yet.
const ATTRIBUTE_TTL: Duration = Duration::from_secs(60);

/// The cache time of attributes that may be slightly stale: the time of a file without a size.
const LIVE_TTL: Duration = Duration::from_secs(1);

/// The owner of the mount, and so of every file in it.
#[derive(Clone, Copy)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

pub fn kind(node: &Node) -> FileType {
    match node {
        Node::Dir(_) => FileType::Directory,
        Node::File(_) => FileType::RegularFile,
        Node::Link(_) => FileType::Symlink,
    }
}

pub fn attributes(ino: u64, node: &Node, owner: Owner, tree: &Tree) -> FileAttr {
    let (perm, Stat { size, modified }) = match node {
        Node::Dir(dir) => (0o555, Stat { size: 0, modified: dir.modified() }),
        Node::File(file) => (file.mode(), file.stat()),
        Node::Link(_) => (0o777, Stat { size: 0, modified: STARTED }),
    };
    let modified = tree.shown_time(modified);
    FileAttr {
        ino: INodeNo(ino),
        size,
        blocks: size.div_ceil(512),
        atime: modified,
        mtime: modified,
        ctime: modified,
        crtime: modified,
        kind: kind(node),
        perm,
        nlink: 1, // "unknown" for a directory, so that `find` counts nothing by it
        uid: owner.uid,
        gid: owner.gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// Whether the length of a file is counted when it is opened, because nothing tells it before.
pub fn is_counted(node: &Node) -> bool {
    let counted = |kind| matches!(kind, Kind::Live | Kind::Waiting | Kind::Control | Kind::Message);
    matches!(node, Node::File(file) if counted(file.kind()))
}

pub fn with_length(attributes: FileAttr, length: u64) -> FileAttr {
    FileAttr { size: length, blocks: length.div_ceil(512), ..attributes }
}

/// How long the kernel may cache a name of this directory.
pub fn name_ttl(dir: &dyn Dir) -> Duration {
    match dir.notifier() {
        Some(_) => NAME_TTL,
        None => Duration::ZERO,
    }
}

/// How long the kernel may cache the attributes of a node.
pub fn attribute_ttl(node: &Node) -> Duration {
    match node {
        Node::Link(_) => NAME_TTL,
        Node::Dir(dir) => dir.notifier().map_or(Duration::ZERO, |_| ATTRIBUTE_TTL),
        Node::File(file) => match file.kind() {
            Kind::Text | Kind::Item => file.notifier().map_or(Duration::ZERO, |_| ATTRIBUTE_TTL),
            Kind::Log | Kind::Scratch => Duration::ZERO,
            Kind::Live | Kind::Waiting | Kind::Control | Kind::Message => LIVE_TTL,
        },
    }
}

/// How the kernel treats an open file. `keep`: it may use the bytes that it has cached.
pub fn file_flags(file: &dyn File, how: Open, keep: bool) -> FopenFlags {
    let flags = match file.kind() {
        Kind::Text if keep && file.notifier().is_some() => FopenFlags::FOPEN_KEEP_CACHE,
        Kind::Text => FopenFlags::empty(),
        _ => FopenFlags::FOPEN_DIRECT_IO,
    };
    // The kernel must send a flush where the close has an effect: there a message or a version becomes complete, and an
    // incomplete command fails.
    let writes = how.write && matches!(file.kind(), Kind::Message | Kind::Item | Kind::Control);
    match writes || how.read && file.flushed_by_readers() {
        true => flags,
        false => flags | FopenFlags::FOPEN_NOFLUSH,
    }
}

pub fn directory_flags(dir: &dyn Dir) -> FopenFlags {
    match dir.notifier() {
        Some(_) => FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE,
        None => FopenFlags::empty(),
    }
}

/// How a file is opened, from the flags of `open(2)`.
pub fn open_mode(flags: i32) -> Open {
    let access = flags & libc::O_ACCMODE;
    let write = access == libc::O_WRONLY || access == libc::O_RDWR;
    Open {
        read: access == libc::O_RDONLY || access == libc::O_RDWR,
        write,
        append: flags & libc::O_APPEND != 0,
        truncate: write && flags & libc::O_TRUNC != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_flags_are_translated() {
        assert_eq!(open_mode(libc::O_RDONLY), Open::READ);
        assert_eq!(open_mode(libc::O_WRONLY | libc::O_TRUNC | libc::O_NONBLOCK), Open::WRITE);
        assert_eq!(open_mode(libc::O_WRONLY | libc::O_APPEND), Open::APPEND);
        assert_eq!(open_mode(libc::O_RDWR), Open::BOTH);
        assert_eq!(open_mode(libc::O_RDONLY | libc::O_TRUNC), Open::READ);
    }
}
