//! The attributes of a mirrored file: those of the disk, with the inode number of this mount. Part of the passthrough.

use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, Generation, INodeNo, ReplyAttr, ReplyEmpty, ReplyStatfs, TimeOrNow};
use rustix::fs::{Access, AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};

use super::{Passthrough, Requester, errno};
use crate::attributes::Owner;
use acheron_base::host_dir::{FileInfo, OsResult, by_number, reopen};
use acheron_vfs::Access as TreeAccess;

/// The cache time of names and attributes: none, so that the next request sees a change from outside.
pub const UNCACHED: Duration = Duration::ZERO;

/// Lets the kernel distinguish two files that had one number after each other.
pub fn generation(info: &FileInfo) -> Generation {
    Generation(info.life())
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

pub fn attributes(ino: u64, info: &FileInfo) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: info.size,
        blocks: info.blocks,
        atime: info.accessed,
        mtime: info.modified,
        ctime: info.changed,
        crtime: info.born,
        kind: kind(info.kind),
        perm: info.mode,
        nlink: info.links,
        uid: info.uid,
        gid: info.gid,
        rdev: info.device,
        blksize: info.block_size,
        flags: 0,
    }
}

/// The root of a mirrored directory, before the disk was asked. The kernel does not cache it.
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

/// The changes that `chmod`, `chown`, `truncate` and `utimensat` request.
pub struct AttributeChange {
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
        self.in_pool(move |mirror| match mirror.find_file(ino) {
            Ok(found) => reply.attr(&UNCACHED, &attributes(ino, &found.info)),
            Err(error) => reply.error(errno(error)),
        });
    }

    pub fn setattr(&self, requester: Requester, ino: u64, change: AttributeChange, reply: ReplyAttr) {
        self.in_pool(move |mirror| match mirror.set(requester, ino, &change) {
            Ok(info) => reply.attr(&UNCACHED, &attributes(ino, &info)),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn set(&self, requester: Requester, ino: u64, change: &AttributeChange) -> OsResult<FileInfo> {
        let found = self.find_file(ino)?;
        let opened = change.by.and_then(|by| self.0.mirrors.files.get(by).ok());
        if opened.is_none() {
            self.may(requester, TreeAccess::Write, &found.view, found.path())?;
        }
        let fd = found.changeable()?;
        self.check_change(requester, &found.info, change, opened.is_some())?;
        let path = by_number(fd);
        if change.uid.is_some() || change.gid.is_some() {
            let (uid, gid) = (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw));
            rustix::fs::chownat(fd, c"", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        if let Some(mode) = change.mode {
            rustix::fs::chmod(&path, Mode::from_raw_mode(mode & 0o7777))?;
        }
        match (change.size, opened) {
            (Some(size), Some(opened)) => rustix::fs::ftruncate(opened.file(), size)?,
            (Some(size), None) => rustix::fs::ftruncate(reopen(fd, OFlags::WRONLY)?, size)?,
            (None, _) => (),
        }
        if change.accessed.is_some() || change.modified.is_some() {
            let times = Timestamps {
                last_access: time(change.accessed.as_ref()),
                last_modification: time(change.modified.as_ref()),
            };
            rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty())?;
        }
        FileInfo::of(fd)
    }

    pub fn access(&self, requester: Requester, ino: u64, mask: i32, reply: ReplyEmpty) {
        self.in_pool(move |mirror| {
            let asked = mirror.find_visible(requester, ino).and_then(|found| {
                let access = Access::from_bits_truncate(mask as u32);
                if access.contains(Access::WRITE_OK) {
                    mirror.may(requester, TreeAccess::Write, &found.view, found.path())?;
                    found.view.host_dir.writable()?;
                }
                mirror.check_mode(requester, &found.info, access)?;
                match &found.fd {
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
        self.in_pool(move |mirror| match mirror.find_file(ino).and_then(|found| found.view.host_dir.room()) {
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

fn time(change: Option<&TimeOrNow>) -> Timespec {
    let special = |nanos| Timespec { tv_sec: 0, tv_nsec: nanos };
    match change {
        None => special(UTIME_OMIT),
        Some(TimeOrNow::Now) => special(UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Timespec { tv_sec: since.as_secs() as i64, tv_nsec: since.subsec_nanos().into() },
            // Before 1970 fuser counts the seconds backwards and the nanoseconds forwards, as the kernel does.
            Err(before) => {
                let before = before.duration();
                Timespec { tv_sec: -(before.as_secs() as i64), tv_nsec: before.subsec_nanos().into() }
            }
        },
    }
}
