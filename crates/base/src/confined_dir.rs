//! A directory that no path escapes. The kernel resolves every path below one open descriptor (`openat2` with
//! `RESOLVE_BENEATH` and `RESOLVE_NO_XDEV`), so neither `..`, nor a link, nor a renamed parent, nor a mount below leads
//! out. Writes are complete or absent: temporary file, fsync, rename, fsync of the directory. Any crate may use it.
//! Calls may wait for a disk; call them where blocking is allowed.

mod plan;
mod read;
mod resolve;
#[cfg(test)]
mod tests;
mod write;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::{Code, Error, Result, quoted};
use crate::host_dir::{Source, reopen};
use crate::room::Room;

pub use plan::{FileChange, FilePlan};
pub use resolve::ResolvedPath;

/// The size limit of [`ConfinedDir::read`].
pub const READ_LIMIT: u64 = 64 << 20;
/// The entry limit of [`ConfinedDir::walk`].
pub const WALK_LIMIT: usize = 200_000;
/// How deep [`ConfinedDir::walk`] and [`ConfinedDir::remove_dir_all`] go.
const DEPTH_LIMIT: usize = 128;
/// The prefix of a file that is not complete yet; never listed.
const UNFINISHED: &str = ".acheron-unfinished-";

/// The open directory. Cheap to share by reference, closed when dropped.
#[derive(Debug)]
pub struct ConfinedDir {
    root: OwnedFd,
    path: PathBuf,
    /// Whether links that lead to something inside are followed.
    follow: bool,
    /// Limits what is written.
    room: Option<Arc<Room>>,
}

/// One name of a directory, links not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The bare name from [`ConfinedDir::list`]; the path below what was walked from [`ConfinedDir::walk`].
    pub name: String,
    pub kind: Kind,
    pub size: u64,
    /// Zero for a directory that another mount covers, which is never asked.
    pub modified_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Link,
    /// A pipe, a socket, a device: listed, never opened.
    Other,
}

/// Holds a lock file until dropped. The lock also ends with the process.
#[derive(Debug)]
pub struct Lock {
    _held: OwnedFd,
}

impl ConfinedDir {
    /// Opens an existing directory.
    pub fn open(path: impl AsRef<Path>) -> Result<ConfinedDir> {
        let path = path.as_ref();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| said(&path.display(), errno))?;
        Ok(ConfinedDir { root, path: path.to_owned(), follow: true, room: None })
    }

    /// Opens a directory that was resolved before, if it is still the same.
    pub fn found(source: &Source) -> Result<ConfinedDir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let root = reopen(&source.open()?, flags).map_err(|errno| said(&source.path.display(), errno))?;
        Ok(ConfinedDir { root, path: source.path.clone(), follow: true, room: None })
    }

    /// Opens a directory; makes it first, for its owner alone, if it is missing.
    pub fn create(path: impl AsRef<Path>) -> Result<ConfinedDir> {
        use std::os::unix::fs::DirBuilderExt as _;
        let path = path.as_ref();
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|err| Error::from(err).about(path.display()))?;
        ConfinedDir::open(path)
    }

    /// The same directory, in which no link is followed: a file is exactly where its path says. For directories where
    /// others may make links at any moment.
    pub fn without_links(self) -> ConfinedDir {
        ConfinedDir { follow: false, ..self }
    }

    /// The same directory, in which no more is written than there is room for.
    pub fn with_room(self, room: Arc<Room>) -> ConfinedDir {
        ConfinedDir { room: Some(room), ..self }
    }

    /// A subdirectory as a confined directory of its own.
    pub fn within(&self, rel: &str) -> Result<ConfinedDir> {
        let root = self.open_dir(rel)?;
        Ok(ConfinedDir { root, path: self.path.join(rel), follow: self.follow, room: self.room.clone() })
    }

    /// Its path when it was opened; for messages, not for opening it again.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_dir(&self, rel: &str) -> Result<OwnedFd> {
        let rel = plain(rel)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.beneath(rel, flags, Mode::empty()).map_err(|errno| self.refused(rel, errno))
    }

    fn beneath(&self, rel: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let links = if self.follow { ResolveFlags::empty() } else { ResolveFlags::NO_SYMLINKS };
        resolved(&self.root, rel, flags, mode, links)
    }

    /// The error for what the kernel answered about `rel`.
    fn refused(&self, rel: &str, errno: Errno) -> Error {
        match errno {
            // Without the path of the directory: an agent may read this.
            Errno::XDEV => Error::forbidden(format!("{rel} leads out of its directory")),
            Errno::LOOP if !self.follow => Error::forbidden(format!("{rel} is a link, and links are not followed")),
            Errno::NOSYS => Error::unavailable("this kernel has no openat2, which keeps paths where they belong"),
            errno => said(&rel, errno),
        }
    }
}

/// `openat2` below `dir`; repeats where the kernel saw a rename and could not be sure.
fn beneath(dir: &OwnedFd, rel: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    resolved(dir, rel, flags, mode, ResolveFlags::empty())
}

fn resolved(dir: &OwnedFd, rel: &str, flags: OFlags, mode: Mode, more: ResolveFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS | more;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir, rel, flags | OFlags::CLOEXEC, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < 64 => tries += 1,
            answer => return answer,
        }
    }
}

/// The path for the kernel: relative, without `..`; the empty path is the directory itself.
fn plain(rel: &str) -> Result<&str> {
    if rel.contains('\0') {
        return Err(Error::invalid(format!("{} holds a NUL, which no path can", quoted(rel))));
    }
    if rel.starts_with('/') {
        return Err(Error::forbidden(format!("{} is absolute; paths here begin below the directory", quoted(rel))));
    }
    if rel.split('/').any(|part| part == "..") {
        return Err(Error::forbidden(format!("{} climbs out by ..", quoted(rel))));
    }
    Ok(if rel.is_empty() { "." } else { rel })
}

/// The directory part and the last name of a path, which must name something below the directory.
fn split(rel: &str) -> Result<(&str, &str)> {
    let rel = plain(rel)?.trim_end_matches('/');
    let (parent, name) = rel.rsplit_once('/').unwrap_or((".", rel));
    match name {
        "" | "." => Err(Error::invalid(format!("{} names the directory itself", quoted(rel)))),
        name => Ok((parent, name)),
    }
}

/// The error of the system about `what`, with our code.
fn said(what: &dyn std::fmt::Display, errno: Errno) -> Error {
    let err = Error::from(std::io::Error::from_raw_os_error(errno.raw_os_error()));
    let word = match err.code {
        Code::NotFound => "no such file or directory".to_owned(),
        _ => err.message.to_lowercase(),
    };
    Error::new(err.code, word).about(what)
}
