//! Requests about directories of this machine that the kernel did not bind itself.
//!
//! Everything here waits for a disk, so everything is done by a [`Pool`] and answered from there. Nothing is believed for
//! any time: names and attributes are asked for each time, and bytes that the kernel has are good as long as the file has
//! not changed. So a change made from outside is seen by the next who asks; the notices that follow it are for those who
//! do not ask, who have the file mapped.

mod attributes;
mod bytes;
mod change;
mod names;
mod pool;
mod table;
mod xattrs;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::Request;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::handles;
use super::notices::Notice;
use super::server::Server;
use acheron_base::Error;
use acheron_base::host_dir::{Facts, Outcome};
use acheron_vfs::{Access, Caller, Mirrored};

pub use attributes::{Wish, of_root};
use bytes::Held;
use names::Paged;
use pool::Pool;
pub use table::REAL;
use table::{Table, View};

/// All that is known of mirrored files.
#[derive(Default)]
pub struct Mirrors {
    table: Table,
    files: handles::Table<Held>,
    directories: handles::Table<Paged>,
    pool: Arc<Pool>,
}

impl Mirrors {
    /// The number of the directory mirrored at `path`, which the kernel is told of.
    pub fn root(&self, path: &str, mirrored: &Mirrored) -> u64 {
        self.table.root(path, &mirrored.ground, &mirrored.over)
    }

    pub fn forget(&self, ino: u64, times: u64) {
        self.table.forget(ino, times);
    }

    pub fn known(&self) -> usize {
        self.table.len()
    }

    pub fn open(&self) -> usize {
        self.files.len() + self.directories.len()
    }
}

/// Whether a number is that of a mirrored file.
pub fn is_real(ino: u64) -> bool {
    ino & table::REAL != 0
}

/// The number that the root of a directory mirrored at `path` has.
pub fn root_number(path: &str, mirrored: &Mirrored) -> u64 {
    table::number(path, mirrored.ground.facts().id)
}

/// Who asks, as far as the request says.
#[derive(Clone, Copy)]
pub struct Who {
    uid: u32,
    gid: u32,
    tid: u32,
}

impl From<&Request> for Who {
    fn from(req: &Request) -> Who {
        Who { uid: req.uid(), gid: req.gid(), tid: req.pid() }
    }
}

/// Answers requests about mirrored files.
#[derive(Clone)]
pub struct Passthrough(pub Arc<Server>);

/// A file taken hold of: really the one that its number belongs to.
struct Hold {
    view: Arc<View>,
    /// Below the view; none if it has no name any more.
    path: Option<PathBuf>,
    /// None for a place that is covered by another mount.
    fd: Option<OwnedFd>,
    facts: Facts,
}

impl Passthrough {
    /// Does `work` where waiting for a disk stalls nobody.
    fn away(&self, work: impl FnOnce(Passthrough) + Send + 'static) {
        let real = self.clone();
        self.0.mirrors.pool.run(move || {
            let runtime = real.0.runtime.clone();
            let _runtime = runtime.enter();
            work(real);
        });
    }

    fn table(&self) -> &Table {
        &self.0.mirrors.table
    }

    fn hold(&self, ino: u64) -> Outcome<Hold> {
        let known = self.table().get(ino).ok_or(Errno::STALE)?;
        let (view, before) = (known.view, known.facts);
        if before.is_covered() {
            return Ok(Hold { view, path: known.paths.into_iter().next(), fd: None, facts: before });
        }
        for path in known.paths {
            let Ok(fd) = view.ground.hold(&path) else { continue };
            let facts = Facts::of(&fd)?;
            if facts.same(&before) {
                return Ok(Hold { view, path: Some(path), fd: Some(fd), facts });
            }
        }
        // It was removed or moved away; who has it open still has it.
        let open = known.open.ok_or(Errno::STALE)?;
        let fd = open.file().try_clone().map_err(|_| Errno::MFILE)?.into();
        Ok(Hold { view, path: None, facts: Facts::of(&fd)?, fd: Some(fd) })
    }

    /// Asks the gate whether `who` may do that to `path` below the view.
    fn may(&self, who: Who, action: Access, view: &View, path: &Path) -> Outcome<()> {
        let refused = |error: Error| Errno::from_raw_os_error(error.errno());
        self.0.tree.may(&self.caller(who), action, &view.path_of(path)).map_err(refused)
    }

    fn may_move(&self, who: Who, view: &View, path: &Path) -> Outcome<()> {
        let refused = |error: Error| Errno::from_raw_os_error(error.errno());
        self.0.tree.may_move(&self.caller(who), &view.path_of(path)).map_err(refused)
    }

    fn caller(&self, who: Who) -> Caller {
        self.0.who.caller(who.uid, who.gid, who.tid)
    }

    /// Whether `path` below the view is there at all for who asks. The kernel asks for every name each time, so one that is
    /// hidden can be as one that is not there.
    fn sees(&self, caller: &Caller, view: &View, path: &Path, dir: bool) -> bool {
        let (tree, path) = (&self.0.tree, || view.path_of(path));
        match tree.sees_all(caller) {
            true => true,
            _ if dir => tree.sees(caller, &path()),
            _ => tree.sees_file(caller, &path()),
        }
    }

    /// As [`hold`](Self::hold), for who may see it.
    fn hold_for(&self, who: Who, ino: u64) -> Outcome<Hold> {
        let held = self.hold(ino)?;
        let dir = held.facts.kind == FileType::Directory;
        match self.sees(&self.caller(who), &held.view, held.path(), dir) {
            true => Ok(held),
            false => Err(Errno::NOENT),
        }
    }

    /// A file of this machine was changed from outside; `path` is where it really is.
    pub fn changed(&self, path: &Path) {
        for view in self.table().views() {
            let Ok(below) = path.strip_prefix(view.ground.source()) else { continue };
            if let Ok(facts) = view.ground.hold(below).and_then(Facts::of) {
                self.0.notices.post(Notice::Inode(table::number(&view.path, facts.id)));
            }
        }
    }

    /// So much was changed below `path` that nobody counted.
    pub fn all_changed(&self, path: &Path) {
        for view in self.table().views().into_iter().filter(|view| view.ground.source() == path) {
            for number in self.table().all_of(&view) {
                self.0.notices.post(Notice::Inode(number));
            }
        }
    }
}

impl Hold {
    fn fd(&self) -> Outcome<&OwnedFd> {
        self.fd.as_ref().ok_or(Errno::NOENT)
    }

    /// The path below the view, for the gate; what has no name any more is asked for as the whole.
    fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    /// For a change of names in it, or of itself.
    fn changeable(&self) -> Outcome<&OwnedFd> {
        self.view.ground.writable()?;
        self.fd.as_ref().ok_or(Errno::ROFS)
    }
}

fn errno(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}
