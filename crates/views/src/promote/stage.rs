//! The stage: a directory on the file system of the base, where everything that a promote needs lies ready, and what it took
//! out is kept until the next one.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::plan::{PromotePlan, StageOrder};
use super::step::PromoteStep;
use crate::change::{Content, EntryType};
use crate::root::{Root, facts_at};
use crate::walk::Layers;
use acheron_base::{Error, Result};

/// The open directory. It is the host's own: nothing else writes there.
#[derive(Debug)]
pub struct Stage {
    pub(super) fd: OwnedFd,
    path: PathBuf,
}

impl Stage {
    pub fn open(path: &Path) -> Result<Stage> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let told = |errno: Errno| Error::from(std::io::Error::from(errno)).about(path.display());
        Ok(Stage { fd: rustix::fs::open(path, flags, Mode::empty()).map_err(told)?, path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn inode(&self, name: &str) -> Option<u64> {
        facts_at(self.fd.as_fd(), OsStr::new(name)).ok().map(|facts| facts.inode)
    }

    fn told(&self, name: &Path, errno: Errno) -> Error {
        let error = Error::from(std::io::Error::from(errno));
        Error::new(
            error.code,
            format!("{} could not be staged in {}: {}", name.display(), self.path.display(), error.message),
        )
    }

    pub(super) fn create(&self, name: &str, mode: u32) -> rustix::io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(mode)).map(File::from)
    }

    pub(super) fn read(&self, name: &str) -> rustix::io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, name, flags, Mode::empty()).map(File::from)
    }
}

/// Copies what a plan needs into the stage and makes it durable; returns the complete steps. Nothing of the base is changed,
/// and a file that a program has open for writing is refused.
pub fn stage(layers: &Layers<'_>, plan: PromotePlan, stage: &Stage) -> Result<Vec<PromoteStep>> {
    let mut inodes = std::collections::BTreeMap::new();
    for order in &plan.orders {
        inodes.insert(order.staged.clone(), one(layers, order, stage)?);
    }
    for (kept, path) in &plan.copies {
        let from = layers.base.open_file(path)?;
        let mut to = stage.create(kept, 0o600).map_err(|errno| stage.told(path, errno))?;
        copy(from, &mut to, path)?;
    }
    rustix::fs::syncfs(&stage.fd).map_err(|errno| stage.told(Path::new("all of it"), errno))?;
    let mut steps = plan.steps;
    for step in &mut steps {
        if let PromoteStep::Put { staged, inode, .. } = step
            && let Some(made) = inodes.get(staged)
        {
            *inode = *made;
        }
    }
    Ok(steps)
}

fn one(layers: &Layers<'_>, order: &StageOrder, stage: &Stage) -> Result<u64> {
    let told = |errno| stage.told(&order.path, errno);
    let (root, path) = match &order.content {
        Content::Upper => (layers.upper, &order.path),
        Content::Base(from) => (layers.base, from),
    };
    let (uid, gid) = (Uid::from_raw(order.owner.0), Gid::from_raw(order.owner.1));
    let name = order.staged.as_str();
    if order.kind == EntryType::Link {
        rustix::fs::symlinkat(root.read_link(path)?, &stage.fd, name).map_err(told)?;
    } else {
        let from = root.open_file(path)?;
        not_written(&from, &order.path)?;
        let before = facts_at(from.as_fd(), OsStr::new("")).map_err(told)?;
        let mut to = stage.create(name, 0o600).map_err(told)?;
        copy(from.try_clone()?, &mut to, &order.path)?;
        attributes(&from, &to);
        rustix::fs::fchmod(&to, Mode::from_raw_mode(order.mode)).map_err(told)?;
        let after = facts_at(from.as_fd(), OsStr::new("")).map_err(told)?;
        if (before.size, before.changed_ns) != (after.size, after.changed_ns) {
            return Err(being_written(&order.path));
        }
        let at = Timespec {
            tv_sec: before.modified_ns.div_euclid(1_000_000_000),
            tv_nsec: before.modified_ns.rem_euclid(1_000_000_000) as _,
        };
        rustix::fs::futimens(&to, &Timestamps { last_access: at, last_modification: at }).map_err(told)?;
    }
    match rustix::fs::chownat(&stage.fd, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(()) | Err(Errno::PERM) => (),
        Err(errno) => return Err(told(errno)),
    }
    stage.inode(name).ok_or_else(|| Error::internal(format!("{} is not in the stage", order.path.display())))
}

/// Copies the bytes; the kernel shares them where the file system can.
pub(super) fn copy(mut from: File, to: &mut File, path: &Path) -> Result<()> {
    std::io::copy(&mut from, to).map(drop).map_err(|err| Error::from(err).about(path.display()))
}

/// The attributes that programs set themselves. Those of the kernel, and of overlayfs, are not carried back.
fn attributes(from: &File, to: &File) {
    let mut names = vec![0u8; 16 << 10];
    let Ok(length) = rustix::fs::flistxattr(from, &mut names[..]) else { return };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        if name.starts_with(b"user.overlay.") {
            continue;
        }
        let mut value = vec![0u8; 4 << 10];
        if let Ok(length) = rustix::fs::fgetxattr(from, name, &mut value[..]) {
            // A file system without attributes takes the file all the same.
            _ = rustix::fs::fsetxattr(to, name, &value[..length], rustix::fs::XattrFlags::empty());
        }
    }
}

const F_SETSIG: libc::c_int = 10;

/// Refuses a file that a program has open for writing.
fn not_written(file: &File, path: &Path) -> Result<()> {
    if is_written(file) { Err(being_written(path)) } else { Ok(()) }
}

/// Whether a program has the file open for writing: a lease is not given then. Where there are no leases, it does not tell.
pub(crate) fn is_written(file: &File) -> bool {
    let raw = file.as_raw_fd();
    // SAFETY: the descriptor is open, and these calls take integers. A program that opens the file while the lease is held
    // would have the kernel send us a signal; this one does nothing unless it is asked for.
    let refused = unsafe {
        libc::fcntl(raw, F_SETSIG, libc::SIGURG);
        let leased = libc::fcntl(raw, libc::F_SETLEASE, libc::F_RDLCK);
        let errno = std::io::Error::last_os_error();
        libc::fcntl(raw, libc::F_SETLEASE, libc::F_UNLCK);
        (leased != 0).then_some(errno)
    };
    refused.is_some_and(|err| err.raw_os_error() == Some(libc::EAGAIN))
}

fn being_written(path: &Path) -> Error {
    Error::busy(format!("a program has {} open for writing; promote when it is closed", path.display()))
}

/// Makes the directory of the base durable that holds a path.
pub(super) fn sync_parent(base: &Root, path: &Path) {
    let above = path.parent().unwrap_or(Path::new(""));
    if let Ok(dir) = base.at(above, OFlags::RDONLY | OFlags::DIRECTORY) {
        _ = rustix::fs::fsync(dir); // it may be gone by a later step
    }
}
