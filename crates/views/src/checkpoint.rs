//! Copies of an upper, to come back to it later. A file that is as it was in the checkpoint before is not copied again: both
//! have it as one file with two names. Neither is ever written; to come back to one, its files are copied once more.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::change::EntryType;
use super::rel_path::RelPath;
use super::root::{EntryFacts, Root, facts_at};
use acheron_base::{Error, Result};

/// The limits of one checkpoint. What is beyond is an error, and nothing is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointLimits {
    pub files: usize,
    pub bytes: u64,
}

/// What a copy has of each file: by these numbers it is known to be the same later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedFiles {
    /// The inode and the change time of the original.
    pub files: BTreeMap<RelPathKey, (u64, i64)>,
    pub bytes: u64,
}

/// A path as a key of JSON.
pub type RelPathKey = String;

fn key(path: &Path) -> RelPathKey {
    RelPath::new(path).to_string()
}

/// Copies everything below `from` into `to`, which must not exist, without what `skip` names. Files that `before` has copied
/// already are taken from there.
pub fn copy(
    from: &Root,
    to: &Path,
    before: Option<(&Path, &CopiedFiles)>,
    limits: CheckpointLimits,
    skip: &dyn Fn(&Path) -> bool,
) -> Result<CopiedFiles> {
    let mut copied = CopiedFiles::default();
    let top =
        from.facts(Path::new(""))?.ok_or_else(|| Error::not_found(format!("{} is gone", from.path().display())))?;
    fs::create_dir_all(to).map_err(|err| Error::from(err).about(to.display()))?;
    let mut open = vec![(PathBuf::new(), top)];
    let mut count = 0;
    while let Some((dir, facts)) = open.pop() {
        for (name, facts) in from.list(&dir)? {
            let path = dir.join(&name);
            if skip(&path) {
                continue;
            }
            count += 1;
            if count > limits.files || copied.bytes > limits.bytes {
                let CheckpointLimits { files, bytes } = limits;
                return Err(Error::quota_exceeded(format!(
                    "the view has more than {files} changed files or {} MiB, too much to keep a copy of it at every turn",
                    bytes >> 20
                )));
            }
            let target = to.join(&path);
            match facts.kind {
                EntryType::Dir => {
                    fs::create_dir(&target).map_err(|err| Error::from(err).about(target.display()))?;
                    open.push((path, facts));
                }
                _ => one(from, &path, &facts, &target, before, &mut copied)?,
            }
        }
        // Last, because the mode may forbid to write, and writing changes the time.
        dress(from, &dir, &facts, &to.join(&dir))?;
    }
    Ok(copied)
}

fn one(
    from: &Root,
    path: &Path,
    facts: &EntryFacts,
    target: &Path,
    before: Option<(&Path, &CopiedFiles)>,
    copied: &mut CopiedFiles,
) -> Result<()> {
    let told = |errno: Errno| Error::from(std::io::Error::from(errno)).about(target.display());
    if facts.whiteout {
        return rustix::fs::mknodat(CWD, target, FileType::CharacterDevice, Mode::empty(), 0).map_err(told);
    }
    match facts.kind {
        EntryType::Link => {
            rustix::fs::symlinkat(from.read_link(path)?, CWD, target).map_err(told)?;
            own(target, facts).map_err(told)
        }
        EntryType::File => {
            let same = (facts.inode, facts.changed_ns);
            copied.files.insert(key(path), same);
            copied.bytes += facts.size;
            if let Some((dir, known)) = before
                && known.files.get(&key(path)) == Some(&same)
                && fs::hard_link(dir.join(path), target).is_ok()
            {
                return Ok(());
            }
            let mut source = from.open_file(path)?;
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(target)
                .map_err(|err| Error::from(err).about(target.display()))?;
            std::io::copy(&mut source, &mut file).map_err(|err| Error::from(err).about(target.display()))?;
            dress(from, path, facts, target)
        }
        // A pipe or a socket means nothing later.
        EntryType::Special | EntryType::Dir => Ok(()),
    }
}

fn own(target: &Path, facts: &EntryFacts) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(facts.uid), Gid::from_raw(facts.gid));
    match rustix::fs::chownat(CWD, target, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::PERM) => Ok(()),
        done => done,
    }
}

/// Gives a copy the owner, the attributes, the mode and the time of the original.
fn dress(from: &Root, path: &Path, facts: &EntryFacts, target: &Path) -> Result<()> {
    let told = |errno: Errno| Error::from(std::io::Error::from(errno)).about(target.display());
    own(target, facts).map_err(told)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let to = rustix::fs::open(target, flags, Mode::empty()).map_err(told)?;
    let source = from.at(path, OFlags::RDONLY | OFlags::NONBLOCK).map_err(told)?;
    attributes(&source, &to)?;
    rustix::fs::fchmod(&to, Mode::from_raw_mode(facts.mode)).map_err(told)?;
    let ns = facts.modified_ns;
    let at = Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) as _ };
    rustix::fs::futimens(&to, &Timestamps { last_access: at, last_modification: at }).map_err(told)
}

/// The marks of overlayfs say what the view shows: opaque directories, and those that were renamed. Where a file came from
/// belongs to the inode of the original alone.
fn attributes(source: &OwnedFd, to: &OwnedFd) -> Result<()> {
    let mut names = vec![0u8; 16 << 10];
    let Ok(length) = rustix::fs::flistxattr(source, &mut names[..]) else { return Ok(()) };
    let is_dir = facts_at(source.as_fd(), OsStr::new("")).is_ok_and(|facts| facts.is_dir());
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mark = name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.");
        let kept = is_dir && (name.ends_with(b".opaque") || name.ends_with(b".redirect"));
        if (mark && !kept) || !(mark || name.starts_with(b"user.")) {
            continue;
        }
        let mut value = vec![0u8; 4 << 10];
        let copied = rustix::fs::fgetxattr(source, name, &mut value[..])
            .and_then(|length| rustix::fs::fsetxattr(to, name, &value[..length], rustix::fs::XattrFlags::empty()));
        if let (true, Err(errno)) = (mark, copied) {
            return Err(Error::from(std::io::Error::from(errno)).about("a mark of the view"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
