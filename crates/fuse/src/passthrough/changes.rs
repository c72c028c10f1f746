//! Changes of names in mirrored directories: made, linked, moved, removed. Part of the passthrough.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;

use fuser::{FileHandle, FopenFlags, ReplyCreate, ReplyEmpty, ReplyEntry};
use rustix::fs::{Access as Permission, AtFlags, Dev, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::attributes::UNCACHED;
use super::file_requests;
use super::name_requests::{made, reply_entry};
use super::{FoundFile, Passthrough, Requester, errno};
use acheron_base::host_dir::{FileInfo, OsResult, beneath, look};
use acheron_vfs::Access;

/// A name in a directory that may be changed.
struct ChangeTarget {
    dir: FoundFile,
    parent: u64,
    name: OsString,
}

impl ChangeTarget {
    fn dir(&self) -> OsResult<&OwnedFd> {
        self.dir.fd()
    }
}

impl Passthrough {
    fn change_target(&self, requester: Requester, parent: u64, name: &OsStr) -> OsResult<ChangeTarget> {
        let dir = self.find_file(parent)?;
        // Checked first, so that the answer does not depend on whether the name exists.
        self.may(requester, Access::Write, &dir.view, &dir.path().join(name))?;
        dir.changeable()?;
        self.check_mode(requester, &dir.info, Permission::WRITE_OK | Permission::EXEC_OK)?;
        if self.is_overlaid(&dir.view, parent, name) {
            return Err(Errno::BUSY);
        }
        Ok(ChangeTarget { dir, parent, name: name.to_owned() })
    }

    /// Refuses unless the requester may take the name out of its directory. Returns what is there, if anything is.
    fn may_take(&self, requester: Requester, target: &ChangeTarget) -> OsResult<Option<FileInfo>> {
        let Ok(held) = look(target.dir()?, &target.name) else { return Ok(None) };
        self.check_sticky(requester, &target.dir.info, &held)?;
        Ok(Some(held))
    }

    /// Refuses to link or move between two views, as between two file systems.
    fn one_view(&self, one: u64, other: u64) -> OsResult<()> {
        let view = |ino| self.inodes().get(ino).map(|known| known.view.root).ok_or(Errno::STALE);
        if view(one)? == view(other)? { Ok(()) } else { Err(Errno::XDEV) }
    }

    /// Makes a file or directory, and tells the kernel of it.
    fn make(
        &self,
        requester: Requester,
        parent: u64,
        name: &OsStr,
        reply: ReplyEntry,
        make: impl FnOnce(&Passthrough, &OwnedFd, &OsStr) -> OsResult<()> + Send + 'static,
    ) {
        let name = name.to_owned();
        self.in_pool(move |mirror| {
            let entry = mirror.change_target(requester, parent, &name).and_then(|target| {
                make(&mirror, target.dir()?, &target.name)?;
                mirror.find(&target.dir, target.parent, &target.name)
            });
            reply_entry(entry, reply);
        });
    }

    pub fn mkdir(&self, requester: Requester, parent: u64, name: &OsStr, mode: u32, reply: ReplyEntry) {
        self.make(requester, parent, name, reply, move |_, dir, name| rustix::fs::mkdirat(dir, name, bits(mode)));
    }

    pub fn mknod(&self, requester: Requester, parent: u64, name: &OsStr, mode: u32, device: u32, reply: ReplyEntry) {
        self.make(requester, parent, name, reply, move |_, dir, name| {
            rustix::fs::mknodat(dir, name, FileType::from_raw_mode(mode), bits(mode), Dev::from(device))
        });
    }

    pub fn symlink(&self, requester: Requester, parent: u64, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.to_owned();
        self.make(requester, parent, name, reply, move |_, dir, name| rustix::fs::symlinkat(&target, dir, name));
    }

    pub fn link(&self, requester: Requester, ino: u64, parent: u64, name: &OsStr, reply: ReplyEntry) {
        self.make(requester, parent, name, reply, move |mirror, dir, name| {
            mirror.one_view(ino, parent)?;
            let held = mirror.find_file(ino)?;
            // By its name: linking an open descriptor needs a privilege.
            let path = held.path.as_ref().ok_or(Errno::NOENT)?;
            // A requester that may not write a file must not get a second name for it.
            mirror.may(requester, Access::Write, &held.view, path)?;
            mirror.check_link(requester, &held.info)?;
            let above = held.view.host_dir.open_path(path.parent().unwrap_or(Path::new("")))?;
            let old = path.file_name().ok_or(Errno::PERM)?;
            rustix::fs::linkat(above, old, dir, name, AtFlags::empty())
        });
    }

    pub fn create(&self, requester: Requester, parent: u64, name: &OsStr, mode: u32, flags: i32, reply: ReplyCreate) {
        let name = name.to_owned();
        self.in_pool(move |mirror| {
            let created = mirror.change_target(requester, parent, &name).and_then(|target| {
                if flags & libc::O_ACCMODE != libc::O_WRONLY {
                    mirror.may(requester, Access::Read, &target.dir.view, &target.dir.path().join(&target.name))?;
                }
                let exclusive = OFlags::from_bits_retain((flags & libc::O_EXCL) as u32);
                let flags =
                    file_requests::flags(flags) | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | exclusive;
                let file = beneath(target.dir()?, &target.name, flags, bits(mode))?;
                let (attributes, generation) = made(&mirror, &target.dir, parent, &target.name, &FileInfo::of(&file)?);
                Ok((attributes, generation, file))
            });
            match created {
                Ok((attributes, generation, file)) => {
                    let fh = FileHandle(mirror.keep(attributes.ino.0, file.into()));
                    reply.created(&UNCACHED, &attributes, generation, fh, FopenFlags::empty());
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn unlink(&self, requester: Requester, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        self.remove(requester, parent, name, AtFlags::empty(), reply);
    }

    pub fn rmdir(&self, requester: Requester, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        self.remove(requester, parent, name, AtFlags::REMOVEDIR, reply);
    }

    fn remove(&self, requester: Requester, parent: u64, name: &OsStr, how: AtFlags, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.in_pool(move |mirror| {
            let removed = mirror.change_target(requester, parent, &name).and_then(|target| {
                mirror.may_take(requester, &target)?;
                rustix::fs::unlinkat(target.dir()?, &target.name, how)?;
                mirror.inodes().gone(parent, &target.name);
                Ok(())
            });
            match removed {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn rename(&self, requester: Requester, from: (u64, &OsStr), to: (u64, &OsStr), flags: u32, reply: ReplyEmpty) {
        let (from, to) = ((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
        self.in_pool(move |mirror| {
            let moved = mirror.one_view(from.0, to.0).and_then(|()| {
                let (old, new) =
                    (mirror.change_target(requester, from.0, &from.1)?, mirror.change_target(requester, to.0, &to.1)?);
                for target in [&old, &new] {
                    mirror.may_move(requester, &target.dir.view, &target.dir.path().join(&target.name))?;
                    let taken = mirror.may_take(requester, target)?;
                    // A directory that gets another parent is changed itself.
                    if let Some(taken) = taken.filter(|taken| taken.kind == FileType::Directory && from.0 != to.0) {
                        mirror.check_mode(requester, &taken, Permission::WRITE_OK)?;
                    }
                }
                let flags = RenameFlags::from_bits_retain(flags);
                rustix::fs::renameat_with(old.dir()?, &old.name, new.dir()?, &new.name, flags)?;
                let exchanged = flags.contains(RenameFlags::EXCHANGE);
                mirror.inodes().moved((from.0, &from.1), (to.0, &to.1), exchanged);
                Ok(())
            });
            match moved {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }
}

fn bits(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o7777)
}
