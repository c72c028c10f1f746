//! Requests about directories of the machine that are mirrored and not bind-mounted. Every request may wait for a disk,
//! so the pool runs it and answers it. The kernel caches no names and no attributes, and it uses cached bytes only
//! while the file has not changed. So the next request sees a change made from outside; the notices that follow are for
//! processes that have the file mapped. The server uses this module; it uses `acheron_base::host_dir`.

mod attributes;
mod changes;
mod file_requests;
mod inodes;
mod name_requests;
mod permissions;
mod xattrs;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::handles;
use super::notices::Notice;
use super::server::{Requester, Server};
use acheron_base::Error;
use acheron_base::host_dir::{FileInfo, OsResult};
use acheron_vfs::{Access, Caller, Mirrored};

pub use attributes::{AttributeChange, of_root};
use file_requests::OpenMirrorFile;
pub use inodes::MIRRORED;
use inodes::{MirrorInodes, View};
use name_requests::OpenMirrorDir;

/// The state of all mirrored files.
#[derive(Default)]
pub struct Mirrors {
    inodes: MirrorInodes,
    files: handles::HandleTable<OpenMirrorFile>,
    directories: handles::HandleTable<OpenMirrorDir>,
}

impl Mirrors {
    /// Records that the kernel is told of the directory mirrored at `path`; returns its number.
    pub fn root(&self, path: &str, mirrored: &Mirrored) -> u64 {
        self.inodes.root(path, &mirrored.host_dir, &mirrored.overlay)
    }

    pub fn forget(&self, ino: u64, times: u64) {
        self.inodes.forget(ino, times);
    }

    pub fn known(&self) -> usize {
        self.inodes.len()
    }

    pub fn open(&self) -> usize {
        self.files.len() + self.directories.len()
    }
}

/// Whether an inode number belongs to a mirrored file.
pub fn is_mirrored(ino: u64) -> bool {
    ino & inodes::MIRRORED != 0
}

/// The number of the root of a directory mirrored at `path`.
pub fn root_number(path: &str, mirrored: &Mirrored) -> u64 {
    inodes::number(path, mirrored.host_dir.info().id)
}

/// Answers requests about mirrored files.
#[derive(Clone)]
pub struct Passthrough(pub Arc<Server>);

/// A file that was found: certainly the one that its number belongs to.
struct FoundFile {
    view: Arc<View>,
    /// The path below the view; `None` if it has no name any more.
    path: Option<PathBuf>,
    /// `None` for a directory that another mount covers.
    fd: Option<OwnedFd>,
    info: FileInfo,
}

impl Passthrough {
    /// Runs `work` on the pool, where waiting for a disk blocks no other request.
    fn in_pool(&self, work: impl FnOnce(Passthrough) + Send + 'static) {
        self.0.in_pool(|server| work(Passthrough(server)));
    }

    fn inodes(&self) -> &MirrorInodes {
        &self.0.mirrors.inodes
    }

    fn find_file(&self, ino: u64) -> OsResult<FoundFile> {
        let known = self.inodes().get(ino).ok_or(Errno::STALE)?;
        let (view, before) = (known.view, known.info);
        if before.is_covered() {
            return Ok(FoundFile { view, path: known.paths.into_iter().next(), fd: None, info: before });
        }
        for path in known.paths {
            let Ok(fd) = view.host_dir.open_path(&path) else { continue };
            let info = FileInfo::of(&fd)?;
            if info.same(&before) {
                return Ok(FoundFile { view, path: Some(path), fd: Some(fd), info });
            }
        }
        // It was removed or renamed; a process that has it open can still use it.
        let open = known.open.ok_or(Errno::STALE)?;
        let fd = open.file().try_clone().map_err(|_| Errno::MFILE)?.into();
        Ok(FoundFile { view, path: None, info: FileInfo::of(&fd)?, fd: Some(fd) })
    }

    /// Refuses unless the requester may do `action` at `path` below the view.
    fn may(&self, requester: Requester, action: Access, view: &View, path: &Path) -> OsResult<()> {
        let refused = |error: Error| Errno::from_raw_os_error(error.errno());
        self.0.tree.may(&self.caller(requester), action, &view.path_of(path)).map_err(refused)
    }

    fn may_move(&self, requester: Requester, view: &View, path: &Path) -> OsResult<()> {
        let refused = |error: Error| Errno::from_raw_os_error(error.errno());
        self.0.tree.may_move(&self.caller(requester), &view.path_of(path)).map_err(refused)
    }

    fn caller(&self, requester: Requester) -> Caller {
        self.0.caller(requester)
    }

    /// Whether `path` below the view exists for the requester. The kernel asks for every name each time, so a hidden
    /// name can be treated like a missing one.
    fn sees(&self, caller: &Caller, view: &View, path: &Path, dir: bool) -> bool {
        let (tree, path) = (&self.0.tree, || view.path_of(path));
        match tree.sees_all(caller) {
            true => true,
            _ if dir => tree.sees(caller, &path()),
            _ => tree.sees_file(caller, &path()),
        }
    }

    /// As [`find_file`](Self::find_file), if the caller may see it.
    fn find_visible(&self, requester: Requester, ino: u64) -> OsResult<FoundFile> {
        let found = self.find_file(ino)?;
        let dir = found.info.kind == FileType::Directory;
        match self.sees(&self.caller(requester), &found.view, found.path(), dir) {
            true => Ok(found),
            false => Err(Errno::NOENT),
        }
    }

    /// A mirrored file was changed from outside; `path` is its path on the machine.
    pub fn changed(&self, path: &Path) {
        for view in self.inodes().views() {
            let Ok(below) = path.strip_prefix(view.host_dir.source()) else { continue };
            if let Ok(info) = view.host_dir.open_path(below).and_then(FileInfo::of) {
                self.0.notices.post(Notice::Inode(inodes::number(&view.path, info.id)));
            }
        }
    }

    /// An unknown number of files changed below `path`.
    pub fn all_changed(&self, path: &Path) {
        for view in self.inodes().views().into_iter().filter(|view| view.host_dir.source() == path) {
            for number in self.inodes().all_of(&view) {
                self.0.notices.post(Notice::Inode(number));
            }
        }
    }
}

impl FoundFile {
    fn fd(&self) -> OsResult<&OwnedFd> {
        self.fd.as_ref().ok_or(Errno::NOENT)
    }

    /// The path below the view, for access control; a file without a name counts as the whole view.
    fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    /// The descriptor, if the file or the names in it may be changed.
    fn changeable(&self) -> OsResult<&OwnedFd> {
        self.view.host_dir.writable()?;
        self.fd.as_ref().ok_or(Errno::ROFS)
    }
}

fn errno(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}
