//! What `stat` shows of a node, and how long the kernel may believe it.

use std::time::Duration;

use fuser::{FileAttr, FileType, FopenFlags, INodeNo};

use acheron_vfs::{Dir, File, Kind, Node, Open, STARTED, Stat, Tree};

/// How long what is announced by a bell is believed. Long: an hour costs one question.
const LONG: Duration = Duration::from_secs(3600);

/// Attributes whose change is announced are believed for less: a bell that rings while the first answer is on its way
/// is heard by a kernel that does not know the inode yet.
const WHILE: Duration = Duration::from_secs(60);

/// What programs may find slightly old: the time of a file that has no size.
const MOMENT: Duration = Duration::from_secs(1);

/// Who owns the mount, and so every file in it.
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

/// How long a name of this directory is believed.
pub fn name_lasts(dir: &dyn Dir) -> Duration {
    match dir.notifier() {
        Some(_) => LONG,
        None => Duration::ZERO,
    }
}

/// How long the attributes of a node are believed.
pub fn attributes_last(node: &Node) -> Duration {
    match node {
        Node::Link(_) => LONG,
        Node::Dir(dir) => dir.notifier().map_or(Duration::ZERO, |_| WHILE),
        Node::File(file) => match file.kind() {
            Kind::Text | Kind::Item => file.notifier().map_or(Duration::ZERO, |_| WHILE),
            Kind::Log => Duration::ZERO,
            Kind::Live | Kind::Waiting | Kind::Control | Kind::Message => MOMENT,
        },
    }
}

/// How the kernel treats an open file. `keep`: it may show again what it has read before.
pub fn file_flags(file: &dyn File, how: Open, keep: bool) -> FopenFlags {
    match file.kind() {
        Kind::Text if keep && file.notifier().is_some() => FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH,
        Kind::Text => FopenFlags::FOPEN_NOFLUSH,
        Kind::Live | Kind::Waiting | Kind::Log | Kind::Control => {
            FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH
        }
        // What is written here takes effect when it is closed.
        Kind::Message | Kind::Item if how.write => FopenFlags::FOPEN_DIRECT_IO,
        Kind::Message | Kind::Item => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH,
    }
}

pub fn directory_flags(dir: &dyn Dir) -> FopenFlags {
    match dir.notifier() {
        Some(_) => FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE,
        None => FopenFlags::empty(),
    }
}

/// How a file is opened, from the flags of `open(2)`.
pub fn how(flags: i32) -> Open {
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
    fn flags_say_how() {
        assert_eq!(how(libc::O_RDONLY), Open::READ);
        assert_eq!(how(libc::O_WRONLY | libc::O_TRUNC | libc::O_NONBLOCK), Open::WRITE);
        assert_eq!(how(libc::O_WRONLY | libc::O_APPEND), Open::APPEND);
        assert_eq!(how(libc::O_RDWR), Open::BOTH);
        assert_eq!(how(libc::O_RDONLY | libc::O_TRUNC), Open::READ);
    }
}
