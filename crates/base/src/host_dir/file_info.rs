//! The attributes of a file of the machine.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, StatxFlags, StatxTimestamp, makedev, statx};
use serde::{Deserialize, Serialize};

use super::OsResult;

/// The identity of a file: the numbers of its device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Id {
    pub device: u64,
    pub inode: u64,
}

/// The device number of directories that a mount covers: no real one has it.
const NOWHERE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
pub struct FileInfo {
    pub id: Id,
    pub kind: FileType,
    /// The permission bits, those for set-user-id and the like included.
    pub mode: u16,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    /// The device number of a device file.
    pub device: u32,
    pub size: u64,
    pub blocks: u64,
    pub block_size: u32,
    pub accessed: SystemTime,
    pub modified: SystemTime,
    pub changed: SystemTime,
    pub born: SystemTime,
}

impl FileInfo {
    pub fn of(held: impl AsFd) -> OsResult<FileInfo> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let said = statx(held, c"", AtFlags::EMPTY_PATH, wanted)?;
        Ok(FileInfo {
            id: Id { device: makedev(said.stx_dev_major, said.stx_dev_minor), inode: said.stx_ino },
            kind: FileType::from_raw_mode(u32::from(said.stx_mode)),
            mode: said.stx_mode & 0o7777,
            links: said.stx_nlink,
            uid: said.stx_uid,
            gid: said.stx_gid,
            device: makedev(said.stx_rdev_major, said.stx_rdev_minor) as u32,
            size: said.stx_size,
            blocks: said.stx_blocks,
            block_size: said.stx_blksize,
            accessed: time(&said.stx_atime),
            modified: time(&said.stx_mtime),
            changed: time(&said.stx_ctime),
            born: time(&said.stx_btime),
        })
    }

    /// An empty directory in this one, in place of a directory that another mount covers.
    pub fn covered(&self, name: &OsStr) -> FileInfo {
        let mut hasher = DefaultHasher::new();
        (self.id, name).hash(&mut hasher);
        let id = Id { device: NOWHERE, inode: hasher.finish() };
        FileInfo { id, mode: 0o555, links: 2, size: 0, blocks: 0, ..*self }
    }

    pub fn is_covered(&self) -> bool {
        self.id.device == NOWHERE
    }

    /// Whether both belong to one file, and not to two that had one inode number after each other.
    pub fn same(&self, other: &FileInfo) -> bool {
        self.id == other.id && self.born == other.born
    }

    /// A number for the lifetime of this file, for comparisons of numbers alone.
    pub fn life(&self) -> u64 {
        self.born.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    }
}

fn time(said: &StatxTimestamp) -> SystemTime {
    let nanos = Duration::from_nanos(u64::from(said.tv_nsec));
    let seconds = Duration::from_secs(said.tv_sec.unsigned_abs());
    match said.tv_sec < 0 {
        true => SystemTime::UNIX_EPOCH - seconds + nanos,
        false => SystemTime::UNIX_EPOCH + seconds + nanos,
    }
}
