//! Changes of names in mirrored directories: made, linked, moved, removed.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;

use fuser::{FileHandle, FopenFlags, ReplyCreate, ReplyEmpty, ReplyEntry};
use rustix::fs::{AtFlags, Dev, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::attributes::NOT_AT_ALL;
use super::bytes;
use super::names::{made, tell};
use super::{Hold, Passthrough, Who, errno};
use acheron_base::host_dir::{Facts, Outcome, beneath};
use acheron_vfs::Access;

/// A name in a directory that may be changed.
struct Place {
    dir: Hold,
    parent: u64,
    name: OsString,
}

impl Place {
    fn dir(&self) -> Outcome<&OwnedFd> {
        self.dir.fd()
    }
}

impl Passthrough {
    fn place(&self, who: Who, parent: u64, name: &OsStr) -> Outcome<Place> {
        let dir = self.hold(parent)?;
        // Before anything that depends on what stands there.
        self.may(who, Access::Write, &dir.view, &dir.path().join(name))?;
        dir.changeable()?;
        if self.is_over(&dir.view, parent, name) {
            return Err(Errno::BUSY);
        }
        Ok(Place { dir, parent, name: name.to_owned() })
    }

    /// Between two directories of the machine nothing is linked or moved, as between two file systems.
    fn one_view(&self, one: u64, other: u64) -> Outcome<()> {
        let view = |ino| self.table().get(ino).map(|known| known.view.root).ok_or(Errno::STALE);
        if view(one)? == view(other)? { Ok(()) } else { Err(Errno::XDEV) }
    }

    /// Makes something new under a name, and tells the kernel of it.
    fn make(
        &self,
        who: Who,
        parent: u64,
        name: &OsStr,
        reply: ReplyEntry,
        make: impl FnOnce(&Passthrough, &OwnedFd, &OsStr) -> Outcome<()> + Send + 'static,
    ) {
        let name = name.to_owned();
        self.away(move |real| {
            let found = real.place(who, parent, &name).and_then(|place| {
                make(&real, place.dir()?, &place.name)?;
                real.find(&place.dir, place.parent, &place.name)
            });
            tell(found, reply);
        });
    }

    pub fn mkdir(&self, who: Who, parent: u64, name: &OsStr, mode: u32, reply: ReplyEntry) {
        self.make(who, parent, name, reply, move |_, dir, name| rustix::fs::mkdirat(dir, name, bits(mode)));
    }

    pub fn mknod(&self, who: Who, parent: u64, name: &OsStr, mode: u32, device: u32, reply: ReplyEntry) {
        self.make(who, parent, name, reply, move |_, dir, name| {
            rustix::fs::mknodat(dir, name, FileType::from_raw_mode(mode), bits(mode), Dev::from(device))
        });
    }

    pub fn symlink(&self, who: Who, parent: u64, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.to_owned();
        self.make(who, parent, name, reply, move |_, dir, name| rustix::fs::symlinkat(&target, dir, name));
    }

    pub fn link(&self, who: Who, ino: u64, parent: u64, name: &OsStr, reply: ReplyEntry) {
        self.make(who, parent, name, reply, move |real, dir, name| {
            real.one_view(ino, parent)?;
            let held = real.hold(ino)?;
            // By its name: a link to what a handle holds needs a right that few have.
            let path = held.path.as_ref().ok_or(Errno::NOENT)?;
            // Who may not write a file may not write it by another name.
            real.may(who, Access::Write, &held.view, path)?;
            let above = held.view.ground.hold(path.parent().unwrap_or(Path::new("")))?;
            let old = path.file_name().ok_or(Errno::PERM)?;
            rustix::fs::linkat(above, old, dir, name, AtFlags::empty())
        });
    }

    pub fn create(&self, who: Who, parent: u64, name: &OsStr, mode: u32, flags: i32, reply: ReplyCreate) {
        let name = name.to_owned();
        self.away(move |real| {
            let created = real.place(who, parent, &name).and_then(|place| {
                if flags & libc::O_ACCMODE != libc::O_WRONLY {
                    real.may(who, Access::Read, &place.dir.view, &place.dir.path().join(&place.name))?;
                }
                let exclusive = OFlags::from_bits_retain((flags & libc::O_EXCL) as u32);
                let flags = bytes::flags(flags) | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | exclusive;
                let file = beneath(place.dir()?, &place.name, flags, bits(mode))?;
                let (attributes, generation) = made(&real, &place.dir, parent, &place.name, &Facts::of(&file)?);
                Ok((attributes, generation, file))
            });
            match created {
                Ok((attributes, generation, file)) => {
                    let fh = FileHandle(real.keep(attributes.ino.0, file.into()));
                    reply.created(&NOT_AT_ALL, &attributes, generation, fh, FopenFlags::empty());
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn unlink(&self, who: Who, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        self.remove(who, parent, name, AtFlags::empty(), reply);
    }

    pub fn rmdir(&self, who: Who, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        self.remove(who, parent, name, AtFlags::REMOVEDIR, reply);
    }

    fn remove(&self, who: Who, parent: u64, name: &OsStr, how: AtFlags, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.away(move |real| {
            let removed = real.place(who, parent, &name).and_then(|place| {
                rustix::fs::unlinkat(place.dir()?, &place.name, how)?;
                real.table().gone(parent, &place.name);
                Ok(())
            });
            match removed {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn rename(&self, who: Who, from: (u64, &OsStr), to: (u64, &OsStr), flags: u32, reply: ReplyEmpty) {
        let (from, to) = ((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
        self.away(move |real| {
            let moved = real.one_view(from.0, to.0).and_then(|()| {
                let (old, new) = (real.place(who, from.0, &from.1)?, real.place(who, to.0, &to.1)?);
                for place in [&old, &new] {
                    real.may_move(who, &place.dir.view, &place.dir.path().join(&place.name))?;
                }
                let flags = RenameFlags::from_bits_retain(flags);
                rustix::fs::renameat_with(old.dir()?, &old.name, new.dir()?, &new.name, flags)?;
                let exchanged = flags.contains(RenameFlags::EXCHANGE);
                real.table().moved((from.0, &from.1), (to.0, &to.1), exchanged);
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
