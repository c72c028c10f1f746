//! A directory of the machine that is shown as part of the tree: the system calls below one open descriptor. The kernel
//! resolves every path below that descriptor, never across devices and through no link, so a caller gets what is really
//! there or nothing. A file is identified by [`FileInfo::same`] and not by its path: a name may lead elsewhere a moment
//! later. The host and `acheron-fuse` use it; it knows neither the tree nor FUSE. Calls may wait for a disk.

mod file_info;
mod source;

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

pub use file_info::{FileInfo, Id};
pub use source::{Source, same};

pub type OsResult<T> = std::result::Result<T, Errno>;

/// The open directory.
#[derive(Debug)]
pub struct HostDir {
    root: OwnedFd,
    source: PathBuf,
    read_only: bool,
    info: FileInfo,
}

impl HostDir {
    pub fn open(source: &Path, read_only: bool) -> OsResult<HostDir> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(source, flags, Mode::empty())?;
        let info = FileInfo::of(&root)?;
        Ok(HostDir { root, source: source.to_owned(), read_only, info })
    }

    /// The attributes of the root when it was opened.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// Its path when it was opened.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Refuses a change of a read-only directory.
    pub fn writable(&self) -> OsResult<()> {
        if self.read_only { Err(Errno::ROFS) } else { Ok(()) }
    }

    /// Opens what is at `path`, a link itself included, for reference only (`O_PATH`).
    pub fn open_path(&self, path: &Path) -> OsResult<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        beneath(&self.root, path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())
    }

    /// The size and free space of the file system.
    pub fn room(&self) -> OsResult<rustix::fs::StatVfs> {
        rustix::fs::fstatvfs(&self.root)
    }
}

/// Opens `path` below `dir`; repeats if something was renamed while the kernel resolved it.
pub fn beneath(dir: impl AsFd, path: impl AsRef<Path>, flags: OFlags, mode: Mode) -> OsResult<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(&dir, path.as_ref(), flags | OFlags::CLOEXEC, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < 1000 => tries += 1,
            opened => return opened,
        }
    }
}

/// The attributes of `name` in `dir`. A directory that another mount covers is shown as an empty one.
pub fn look(dir: &OwnedFd, name: &OsStr) -> OsResult<FileInfo> {
    if matches!(name.as_bytes(), b"" | b"." | b"..") || name.as_bytes().contains(&b'/') {
        return Err(Errno::NOENT); // no name of this directory
    }
    match beneath(dir, name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(held) => FileInfo::of(&held),
        Err(Errno::XDEV) => covered(dir, name),
        Err(errno) => Err(errno),
    }
}

/// A directory of another file system, perhaps of our own mount: asks only for what the kernel has cached.
fn covered(dir: &OwnedFd, name: &OsStr) -> OsResult<FileInfo> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let there = rustix::fs::statx(dir, name, flags, StatxFlags::TYPE)?;
    match FileType::from_raw_mode(u32::from(there.stx_mode)) {
        FileType::Directory => Ok(FileInfo::of(dir)?.covered(name)),
        _ => Err(Errno::XDEV),
    }
}

/// Opens an `O_PATH` descriptor, whatever the name of the file is now.
pub fn reopen(held: &OwnedFd, flags: OFlags) -> OsResult<OwnedFd> {
    // A pipe that has replaced a file must not block us.
    rustix::fs::open(by_number(held), flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())
}

/// The path of an open descriptor, for calls that take no descriptor.
pub fn by_number(held: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()))
}

#[cfg(test)]
mod tests;
