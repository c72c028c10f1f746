//! Makes the steps of a promote, or undoes them. Each looks first whether it was made already, so that all can be made again
//! after a crash; what somebody else has put in the place meanwhile is left alone and told.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::stage::{Stage, copy, sync_parent};
use super::step::{PromoteStep, SkippedStep};
use crate::rel_path::RelPath;
use crate::root::{EntryFacts, Root, facts_at};
use acheron_base::{Result, failpoint};

/// Makes every step. An error means that the disk failed; what was made by then can be undone.
pub fn apply(base: &Root, stage: &Stage, steps: &[PromoteStep]) -> Result<Vec<SkippedStep>> {
    let mut skipped = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        failpoint::numbered("promote.step", number);
        if let Err(fault) = forward(base, stage, steps, step) {
            skipped.push(fault.skipped(base, step)?);
        }
    }
    durable(base, stage, steps);
    Ok(skipped)
}

/// Undoes every step, the last first.
pub fn undo(base: &Root, stage: &Stage, steps: &[PromoteStep]) -> Result<Vec<SkippedStep>> {
    let mut skipped = Vec::new();
    for (number, step) in steps.iter().enumerate().rev() {
        failpoint::numbered("undo.step", number);
        if let Err(fault) = backward(base, stage, steps, step) {
            skipped.push(fault.skipped(base, step)?);
        }
    }
    durable(base, stage, steps);
    Ok(skipped)
}

/// When the last of the promoted files was changed, which was by the promote itself.
pub fn last_change(base: &Root, steps: &[PromoteStep]) -> Result<i64> {
    let mut last = 0;
    for step in steps {
        last = base.facts(&step.path().0)?.map_or(last, |facts| last.max(facts.changed_ns));
    }
    Ok(last)
}

/// The paths that were changed since they were promoted, which an undo would destroy.
pub fn check_undo(base: &Root, steps: &[PromoteStep], promoted_ns: i64) -> Result<Vec<RelPath>> {
    let mut changed = Vec::new();
    for step in steps {
        let (path, inode) = match step {
            PromoteStep::Put { path, inode, .. } | PromoteStep::PutInPlace { path, inode, .. } => (path, *inode),
            PromoteStep::Remove { path, .. } => {
                let filled =
                    steps.iter().any(|other| other.path() == path && !matches!(other, PromoteStep::Remove { .. }));
                if !filled && base.facts(&path.0)?.is_some() {
                    changed.push(path.clone());
                }
                continue;
            }
            _ => continue,
        };
        let facts = base.facts(&path.0)?;
        if facts.is_none_or(|facts| facts.inode != inode || facts.changed_ns > promoted_ns) {
            changed.push(path.clone());
        }
    }
    Ok(changed)
}

enum StepFault {
    /// Something else is there.
    Taken(String),
    Os(Errno),
}

impl From<Errno> for StepFault {
    fn from(errno: Errno) -> StepFault {
        StepFault::Os(errno)
    }
}

impl StepFault {
    fn skipped(self, base: &Root, step: &PromoteStep) -> Result<SkippedStep> {
        let path = step.path().clone();
        match self {
            StepFault::Taken(why) => Ok(SkippedStep { path, why }),
            // The way there is gone or another.
            StepFault::Os(errno @ (Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::EXIST)) => {
                Ok(SkippedStep { path, why: std::io::Error::from(errno).to_string() })
            }
            StepFault::Os(errno) => Err(base.told(&path.0, errno)),
        }
    }
}

fn taken() -> StepFault {
    StepFault::Taken("something else has taken its place since it was checked".to_owned())
}

/// A path of the base: its open directory, its name, and what is there.
struct StepPlace<'a> {
    dir: OwnedFd,
    name: &'a std::ffi::OsStr,
    there: Option<EntryFacts>,
}

fn place<'a>(base: &Root, path: &'a RelPath) -> Result<StepPlace<'a>, StepFault> {
    let (dir, name) = base.parent(&path.0)?;
    let there = match facts_at(dir.as_fd(), name) {
        Ok(facts) => Some(facts),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(errno.into()),
    };
    Ok(StepPlace { dir, name, there })
}

impl StepPlace<'_> {
    fn inode(&self) -> Option<u64> {
        self.there.map(|facts| facts.inode)
    }

    fn put_from(&self, stage: &Stage, name: &str, flags: RenameFlags) -> rustix::io::Result<()> {
        rustix::fs::renameat_with(&stage.fd, name, &self.dir, self.name, flags)
    }

    fn keep_in(&self, stage: &Stage, name: &str) -> rustix::io::Result<()> {
        rustix::fs::renameat_with(&self.dir, self.name, &stage.fd, name, RenameFlags::NOREPLACE)
    }

    fn chmod(&self, mode: u32) -> Result<(), StepFault> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let held = rustix::fs::openat(&self.dir, self.name, flags, Mode::empty())?;
        Ok(rustix::fs::fchmod(held, Mode::from_raw_mode(mode))?)
    }

    /// Writes a file of the stage into the one that is here.
    fn write(&self, stage: &Stage, name: &str, mode: u32) -> Result<(), StepFault> {
        let from = stage.read(name)?;
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let held = rustix::fs::openat(&self.dir, self.name, flags, Mode::empty())?;
        let mut to = std::fs::File::from(held);
        copy(from, &mut to, Path::new(self.name)).map_err(|error| Errno::from_raw_os_error(error.errno()))?;
        rustix::fs::fchmod(&to, Mode::from_raw_mode(mode))?;
        Ok(rustix::fs::fsync(&to)?)
    }
}

fn forward(base: &Root, stage: &Stage, steps: &[PromoteStep], step: &PromoteStep) -> Result<(), StepFault> {
    let at = place(base, step.path());
    match step {
        PromoteStep::Remove { kept, inode, .. } => match at {
            Ok(at) if at.inode() == Some(*inode) => Ok(at.keep_in(stage, kept)?),
            // It was made before, and perhaps has its new place already.
            Ok(StepPlace { there: None, .. }) | Err(StepFault::Os(Errno::NOENT | Errno::NOTDIR)) => Ok(()),
            Ok(_) if stage.inode(kept).is_some() || went_on(base, steps, kept) => Ok(()),
            Ok(_) => Err(taken()),
            Err(fault) => Err(fault),
        },
        PromoteStep::RemoveDir { .. } => {
            let Ok(at) = at else { return Ok(()) };
            match rustix::fs::unlinkat(&at.dir, at.name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
                Err(Errno::NOTEMPTY | Errno::EXIST) => Err(StepFault::Taken("it is not empty".to_owned())),
                Err(errno) => Err(errno.into()),
            }
        }
        PromoteStep::MakeDir { mode, .. } => make_dir(&at?, *mode),
        PromoteStep::Put { staged, inode, old, .. } => {
            let at = at?;
            match (at.inode(), old) {
                (Some(there), _) if there == *inode => Ok(()),
                (None, None) => Ok(at.put_from(stage, staged, RenameFlags::NOREPLACE)?),
                (Some(there), Some(old)) if there == *old => {
                    at.put_from(stage, staged, RenameFlags::EXCHANGE)?;
                    // Between the look and the exchange something else may have come: it gets its place back.
                    match stage.inode(staged) == Some(*old) {
                        true => Ok(()),
                        false => {
                            at.put_from(stage, staged, RenameFlags::EXCHANGE)?;
                            Err(taken())
                        }
                    }
                }
                _ => Err(taken()),
            }
        }
        PromoteStep::PutInPlace { staged, inode, mode, .. } => {
            let at = at?;
            if at.inode() == Some(*inode) { at.write(stage, staged, *mode) } else { Err(taken()) }
        }
        PromoteStep::Chmod { mode, inode, .. } => {
            let at = at?;
            if at.inode() == Some(*inode) { at.chmod(*mode) } else { Err(taken()) }
        }
    }
}

fn backward(base: &Root, stage: &Stage, steps: &[PromoteStep], step: &PromoteStep) -> Result<(), StepFault> {
    let at = place(base, step.path());
    match step {
        PromoteStep::Remove { kept, inode, .. } => {
            let at = at?;
            match (at.inode(), stage.inode(kept)) {
                (Some(there), _) if there == *inode => Ok(()),
                (None, Some(kept_inode)) if kept_inode == *inode => {
                    Ok(at.put_from(stage, kept, RenameFlags::NOREPLACE)?)
                }
                // It had not been taken out.
                (_, None) => Ok(()),
                _ => Err(taken()),
            }
        }
        PromoteStep::RemoveDir { mode, .. } => make_dir(&at?, *mode),
        PromoteStep::MakeDir { .. } => {
            let Ok(at) = at else { return Ok(()) };
            match rustix::fs::unlinkat(&at.dir, at.name, AtFlags::REMOVEDIR) {
                // Something else is in it: it stays.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
                Err(errno) => Err(errno.into()),
            }
        }
        PromoteStep::Put { path, staged, inode, old } => {
            let Ok(at) = at else { return Ok(()) };
            match (at.inode(), old) {
                (Some(there), None) if there == *inode => Ok(at.keep_in(stage, staged)?),
                (Some(there), Some(_)) if there == *inode => Ok(at.put_from(stage, staged, RenameFlags::EXCHANGE)?),
                (Some(there), Some(old)) if there == *old => Ok(()),
                (None, None) => Ok(()),
                (Some(_), None) if at.there.is_some_and(|there| was_there(steps, path, &there)) => Ok(()),
                _ => Err(taken()),
            }
        }
        PromoteStep::PutInPlace { kept, inode, old_mode, .. } => {
            let at = at?;
            if at.inode() == Some(*inode) { at.write(stage, kept, *old_mode) } else { Err(taken()) }
        }
        PromoteStep::Chmod { old_mode, inode, .. } => {
            let at = at?;
            if at.inode() == Some(*inode) { at.chmod(*old_mode) } else { Err(taken()) }
        }
    }
}

/// Whether what was taken out and kept under this name has its new place already.
fn went_on(base: &Root, steps: &[PromoteStep], kept: &str) -> bool {
    steps.iter().any(|step| match step {
        PromoteStep::Put { path, staged, inode, .. } if staged == kept => {
            base.facts(&path.0).is_ok_and(|facts| facts.is_some_and(|facts| facts.inode == *inode))
        }
        _ => false,
    })
}

/// Whether this is what a step before has to take out of the place of another, and has not, or has brought back.
fn was_there(steps: &[PromoteStep], place: &RelPath, there: &EntryFacts) -> bool {
    steps.iter().any(|step| match step {
        PromoteStep::Remove { path, inode, .. } => path == place && *inode == there.inode,
        PromoteStep::RemoveDir { path, .. } => path == place && there.is_dir(),
        _ => false,
    })
}

fn make_dir(at: &StepPlace<'_>, mode: u32) -> Result<(), StepFault> {
    match rustix::fs::mkdirat(&at.dir, at.name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) if at.there.is_some_and(|facts| facts.is_dir()) => Ok(()),
        Err(Errno::EXIST) => Err(taken()),
        Err(errno) => Err(errno.into()),
        // The directory belongs to the owner of the one that it is in.
        Ok(()) => {
            let above = facts_at(at.dir.as_fd(), std::ffi::OsStr::new(""))?;
            let owner = (rustix::fs::Uid::from_raw(above.uid), rustix::fs::Gid::from_raw(above.gid));
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            match rustix::fs::chownat(&at.dir, at.name, Some(owner.0), Some(owner.1), flags) {
                Ok(()) | Err(Errno::PERM) => at.chmod(mode),
                Err(errno) => Err(errno.into()),
            }
        }
    }
}

/// Every directory that the steps touched is on the disk before anybody is told.
fn durable(base: &Root, stage: &Stage, steps: &[PromoteStep]) {
    let dirs: BTreeSet<PathBuf> =
        steps.iter().map(|step| step.path().0.parent().unwrap_or(Path::new("")).join("x")).collect();
    dirs.iter().for_each(|path| sync_parent(base, path));
    _ = rustix::fs::fsync(&stage.fd); // the base is what counts
}
