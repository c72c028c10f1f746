//! What `stat` shows of a mirrored file: what the disk says, under our number.

use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, Generation, INodeNo, ReplyAttr, ReplyEmpty, ReplyStatfs, TimeOrNow};
use rustix::fs::{Access, AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};

use super::{Passthrough, Who, errno};
use crate::attributes::Owner;
use acheron_base::host_dir::{Facts, Outcome, by_number, reopen};
use acheron_vfs::Access as TreeAccess;

/// Nothing is believed: a change from outside is seen by the next who asks.
pub const NOT_AT_ALL: Duration = Duration::ZERO;

/// The kernel tells apart two files that had one number after each other.
pub fn generation(facts: &Facts) -> Generation {
    Generation(facts.life())
}

pub fn kind(kind: rustix::fs::FileType) -> FileType {
    match kind {
        rustix::fs::FileType::Directory => FileType::Directory,
        rustix::fs::FileType::Symlink => FileType::Symlink,
        rustix::fs::FileType::Fifo => FileType::NamedPipe,
        rustix::fs::FileType::Socket => FileType::Socket,
        rustix::fs::FileType::CharacterDevice => FileType::CharDevice,
        rustix::fs::FileType::BlockDevice => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

pub fn attributes(ino: u64, facts: &Facts) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: facts.size,
        blocks: facts.blocks,
        atime: facts.accessed,
        mtime: facts.modified,
        ctime: facts.changed,
        crtime: facts.born,
        kind: kind(facts.kind),
        perm: facts.mode,
        nlink: facts.links,
        uid: facts.uid,
        gid: facts.gid,
        rdev: facts.device,
        blksize: facts.block_size,
        flags: 0,
    }
}

/// The root of a mirrored directory, before the disk was asked: believed by nobody.
pub fn of_root(ino: u64, owner: Owner, modified: SystemTime) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: 0,
        blocks: 0,
        atime: modified,
        mtime: modified,
        ctime: modified,
        crtime: modified,
        kind: FileType::Directory,
        perm: 0o755,
        nlink: 2,
        uid: owner.uid,
        gid: owner.gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// What `chmod`, `chown`, `truncate` and `utimensat` ask for.
pub struct Wish {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub accessed: Option<TimeOrNow>,
    pub modified: Option<TimeOrNow>,
    pub by: Option<u64>,
}

impl Passthrough {
    pub fn getattr(&self, ino: u64, reply: ReplyAttr) {
        self.away(move |real| match real.hold(ino) {
            Ok(held) => reply.attr(&NOT_AT_ALL, &attributes(ino, &held.facts)),
            Err(error) => reply.error(errno(error)),
        });
    }

    pub fn setattr(&self, who: Who, ino: u64, wish: Wish, reply: ReplyAttr) {
        self.away(move |real| match real.set(who, ino, &wish) {
            Ok(facts) => reply.attr(&NOT_AT_ALL, &attributes(ino, &facts)),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn set(&self, who: Who, ino: u64, wish: &Wish) -> Outcome<Facts> {
        let held = self.hold(ino)?;
        let opened = wish.by.and_then(|by| self.0.mirrors.files.get(by).ok());
        if opened.is_none() {
            self.may(who, TreeAccess::Write, &held.view, held.path())?;
        }
        let fd = held.changeable()?;
        let path = by_number(fd);
        if wish.uid.is_some() || wish.gid.is_some() {
            let (uid, gid) = (wish.uid.map(Uid::from_raw), wish.gid.map(Gid::from_raw));
            rustix::fs::chownat(fd, c"", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        if let Some(mode) = wish.mode {
            rustix::fs::chmod(&path, Mode::from_raw_mode(mode & 0o7777))?;
        }
        match (wish.size, opened) {
            (Some(size), Some(opened)) => rustix::fs::ftruncate(opened.file(), size)?,
            (Some(size), None) => rustix::fs::ftruncate(reopen(fd, OFlags::WRONLY)?, size)?,
            (None, _) => (),
        }
        if wish.accessed.is_some() || wish.modified.is_some() {
            let times = Timestamps {
                last_access: time(wish.accessed.as_ref()),
                last_modification: time(wish.modified.as_ref()),
            };
            rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty())?;
        }
        Facts::of(fd)
    }

    pub fn access(&self, ino: u64, mask: i32, reply: ReplyEmpty) {
        self.away(move |real| {
            let asked = real.hold(ino).and_then(|held| {
                let access = Access::from_bits_truncate(mask as u32);
                if access.contains(Access::WRITE_OK) {
                    held.view.ground.writable()?;
                }
                match &held.fd {
                    Some(fd) => rustix::fs::accessat(CWD, by_number(fd), access, AtFlags::EACCESS),
                    None => Ok(()),
                }
            });
            match asked {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn statfs(&self, ino: u64, reply: ReplyStatfs) {
        self.away(move |real| match real.hold(ino).and_then(|held| held.view.ground.room()) {
            Ok(it) => reply.statfs(
                it.f_blocks,
                it.f_bfree,
                it.f_bavail,
                it.f_files,
                it.f_ffree,
                it.f_bsize as u32,
                it.f_namemax as u32,
                it.f_frsize as u32,
            ),
            Err(error) => reply.error(errno(error)),
        });
    }
}

fn time(wish: Option<&TimeOrNow>) -> Timespec {
    let special = |nanos| Timespec { tv_sec: 0, tv_nsec: nanos };
    match wish {
        None => special(UTIME_OMIT),
        Some(TimeOrNow::Now) => special(UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Timespec { tv_sec: since.as_secs() as i64, tv_nsec: since.subsec_nanos().into() },
            // Before 1970: fuser counts the seconds backwards and the rest of one still forwards, as the kernel does.
            Err(before) => {
                let before = before.duration();
                Timespec { tv_sec: -(before.as_secs() as i64), tv_nsec: before.subsec_nanos().into() }
            }
        },
    }
}
