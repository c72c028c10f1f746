//! Changes in a [`ConfinedDir`](super::ConfinedDir): complete files by rename, appending, removing, renaming, locking. A change that returned `Ok` is on the
//! disk.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::read::{child, kind_at, look};
use super::{ConfinedDir, DEPTH_LIMIT, Kind, Lock, UNFINISHED, beneath, plain, split};
use crate::error::{Code, Error, Result};

/// How long the lock of another process is waited for, and how often it is tried.
const LOCK_TIME: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

impl ConfinedDir {
    /// Puts `bytes` under that name, whole, whatever was there before; makes the directories above it.
    ///
    /// A link is not written through, nor silently replaced: it is refused.
    pub fn write(&self, rel: &str, bytes: &[u8]) -> Result<()> {
        let (parent, name) = split(rel)?;
        let dir = self.make_dirs(parent)?;
        let unfinished = self.put(&dir, self.replaced(&dir, name, rel)?, rel, bytes)?;
        let renamed = rustix::fs::renameat(&dir, &unfinished, &dir, name).and_then(|()| rustix::fs::fsync(&dir));
        renamed.map_err(|errno| {
            let _ = rustix::fs::unlinkat(&dir, &unfinished, AtFlags::empty());
            self.refused(rel, errno)
        })
    }

    /// Puts `bytes` into an unfinished file near that name: in its directory, or in the nearest one above that exists.
    /// Gives its path.
    pub(super) fn put_near(&self, rel: &str, bytes: &[u8]) -> Result<String> {
        let (parent, name) = split(rel)?;
        let mut near = parent;
        let dir = loop {
            match self.open_dir(near) {
                Err(error) if error.code == Code::NotFound && near != "." => {
                    near = near.rsplit_once('/').map_or(".", |(above, _)| above);
                }
                opened => break opened?,
            }
        };
        let kept = if near == parent { self.replaced(&dir, name, rel)? } else { None };
        self.put(&dir, kept, rel, bytes).map(|unfinished| format!("{near}/{unfinished}"))
    }

    /// The mode of the file that would be replaced, if there is one that may be.
    fn replaced(&self, dir: &OwnedFd, name: &str, rel: &str) -> Result<Option<Mode>> {
        match look(dir, name) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => Err(Error::forbidden(format!("{rel} is a link; write to what it leads to"))),
                FileType::Directory => Err(self.refused(rel, Errno::ISDIR)),
                _ => Ok(Some(Mode::from_raw_mode(stat.st_mode & 0o777))),
            },
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.refused(rel, errno)),
        }
    }

    /// Puts `bytes` into an unfinished file in `dir`, for `rel`; gives its name.
    fn put(&self, dir: &OwnedFd, mode: Option<Mode>, rel: &str, bytes: &[u8]) -> Result<String> {
        self.take_room(bytes)?;
        let (fd, unfinished) = unfinished(dir).map_err(|errno| self.refused(rel, errno))?;
        let mut file = File::from(fd);
        let put = file.write_all(bytes).and_then(|()| {
            if let Some(mode) = mode {
                rustix::fs::fchmod(file.as_fd(), mode)?;
            }
            file.sync_all()
        });
        match put {
            Ok(()) => Ok(unfinished),
            Err(err) => {
                let _ = rustix::fs::unlinkat(dir, &unfinished, AtFlags::empty());
                Err(Error::from(err).about(rel))
            }
        }
    }

    /// Appends `bytes` to a file, which is made if necessary; all of them or none.
    pub fn append(&self, rel: &str, bytes: &[u8]) -> Result<()> {
        let (parent, _) = split(rel)?;
        self.take_room(bytes)?;
        let dir = self.make_dirs(parent)?;
        let mut file = File::from(self.open_file(rel, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?);
        locked(&file).map_err(|error| error.about(rel))?;
        let mut add = || {
            let before = file.metadata()?.len();
            let added = file.write_all(bytes).and_then(|()| file.sync_all());
            if added.is_err() {
                let _ = file.set_len(before);
            }
            added?;
            // The file may be new: then its name must last too.
            if before == 0 {
                rustix::fs::fsync(&dir)?;
            }
            Ok(())
        };
        let added: std::io::Result<()> = add();
        added.map_err(|err| Error::from(err).about(rel))
    }

    fn take_room(&self, bytes: &[u8]) -> Result<()> {
        self.room.as_ref().map_or(Ok(()), |room| room.take(bytes.len() as u64))
    }

    /// Makes a directory and those above it; one that is there is fine.
    pub fn make_dir(&self, rel: &str) -> Result<()> {
        self.make_dirs(plain(rel)?).map(drop)
    }

    /// Removes a file, a link or an empty directory.
    pub fn remove(&self, rel: &str) -> Result<()> {
        let (parent, name) = split(rel)?;
        let dir = self.open_dir(parent)?;
        let kind = kind_at(&dir, name).map_err(|errno| self.refused(rel, errno))?;
        let flags = if kind == Kind::Dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let removed = rustix::fs::unlinkat(&dir, name, flags).and_then(|()| rustix::fs::fsync(&dir));
        removed.map_err(|errno| self.refused(rel, errno))
    }

    /// Removes a directory with all that is in it; links are removed, not followed.
    pub fn remove_dir_all(&self, rel: &str) -> Result<()> {
        let (parent, name) = split(rel)?;
        let dir = self.open_dir(parent)?;
        clear(&dir, name, 0).map_err(|errno| self.refused(rel, errno))?;
        rustix::fs::fsync(&dir).map_err(|errno| self.refused(rel, errno))
    }

    /// Renames as rename(2) does; makes the directories above the new name.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let ((from_parent, from_name), (to_parent, to_name)) = (split(from)?, split(to)?);
        let old = self.open_dir(from_parent)?;
        kind_at(&old, from_name).map_err(|errno| self.refused(from, errno))?;
        let new = self.make_dirs(to_parent)?;
        let mut renamed = rustix::fs::renameat(&old, from_name, &new, to_name).and_then(|()| rustix::fs::fsync(&new));
        if from_parent != to_parent {
            renamed = renamed.and_then(|()| rustix::fs::fsync(&old));
        }
        renamed.map_err(|errno| self.refused(from, errno))
    }

    /// Takes the lock of that name, or fails if another process has it.
    pub fn lock(&self, rel: &str) -> Result<Lock> {
        let (parent, _) = split(rel)?;
        self.make_dirs(parent)?;
        let held = self.open_file(rel, OFlags::RDWR | OFlags::CREATE)?;
        match rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock { _held: held }),
            Err(Errno::WOULDBLOCK) => Err(Error::busy(format!("{rel} is held by someone else"))),
            Err(errno) => Err(self.refused(rel, errno)),
        }
    }

    /// Opens the directory of that path and makes what is missing of it.
    fn make_dirs(&self, rel: &str) -> Result<OwnedFd> {
        let mut dir = self.open_dir(".")?;
        let mut reached = String::new();
        for part in rel.split('/').filter(|part| !matches!(*part, "" | ".")) {
            // Opened from the root each time: a link may lead sideways, which is not below its own directory.
            reached = if reached.is_empty() { part.to_owned() } else { format!("{reached}/{part}") };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = match self.beneath(&reached, flags, Mode::empty()) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&dir, part, Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(self.refused(&reached, errno)),
                    }
                    rustix::fs::fsync(&dir).map_err(|errno| self.refused(&reached, errno))?;
                    self.beneath(&reached, flags, Mode::empty())
                }
                opened => opened,
            };
            dir = opened.map_err(|errno| self.refused(&reached, errno))?;
        }
        Ok(dir)
    }
}

/// A new file with a unique name.
fn unfinished(dir: &OwnedFd) -> Result<(OwnedFd, String), Errno> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let name = format!("{UNFINISHED}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match beneath(dir, &name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(0o644)) {
            Err(Errno::EXIST) => {} // left by a process of this number that died
            Ok(fd) => return Ok((fd, name)),
            Err(errno) => return Err(errno),
        }
    }
}

fn clear(dir: &OwnedFd, name: &str, depth: usize) -> Result<(), Errno> {
    if kind_at(dir, name)? != Kind::Dir {
        return rustix::fs::unlinkat(dir, name, AtFlags::empty());
    }
    if depth > DEPTH_LIMIT {
        return Err(Errno::NAMETOOLONG);
    }
    let below = child(dir, name).ok_or(Errno::ACCESS)?;
    // Removing while reading may skip names, so the directory is read again until nothing is left.
    loop {
        let mut removed = 0;
        for item in rustix::fs::Dir::read_from(&below)? {
            let item = item?;
            let bytes = item.file_name();
            if bytes == c"." || bytes == c".." {
                continue;
            }
            match bytes.to_str() {
                Ok(name) => clear(&below, name, depth + 1)?,
                Err(_) => rustix::fs::unlinkat(&below, bytes, AtFlags::empty())?,
            }
            removed += 1;
        }
        if removed == 0 {
            return rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Takes the lock of a file that other processes may lock too. One that holds it for long keeps nobody here for ever.
fn locked(file: &File) -> Result<()> {
    let end = Instant::now() + LOCK_TIME;
    loop {
        match rustix::fs::flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(LOCK_PAUSE),
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::busy(
                    "another process holds the lock of this file; end it, or have it unlock the file",
                ));
            }
            Err(errno) => return Err(Error::from(std::io::Error::from(errno))),
        }
    }
}
