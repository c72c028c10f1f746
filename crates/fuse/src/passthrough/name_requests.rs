//! Names in mirrored directories: lookups and listings. Part of the passthrough.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use fuser::{
    FileAttr, FileHandle, FileType, FopenFlags, Generation, INodeNo, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyOpen,
};
use parking_lot::Mutex;
use rustix::fs::{Access as Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::attributes::{UNCACHED, attributes, generation, kind};
use super::inodes::{View, number};
use super::{FoundFile, Passthrough, Requester, errno};
use crate::inodes::join;
use acheron_base::host_dir::{FileInfo, Id, OsResult, look, reopen};
use acheron_vfs::{Access, Dir};

/// The buffer size for reading a directory.
const PAGE: usize = 32 << 10;

/// An open mirrored directory.
pub struct OpenMirrorDir {
    ino: u64,
    view: Arc<View>,
    /// Its path below the view.
    path: PathBuf,
    /// `None` for a directory that another mount covers.
    fd: Option<OwnedFd>,
    device: u64,
    /// Serialises readers, because the position belongs to the descriptor.
    turn: Mutex<()>,
}

/// One entry of a directory, and the offset after it.
struct RawEntry<'a> {
    name: &'a OsStr,
    inode: u64,
    kind: FileType,
    next: u64,
}

impl Passthrough {
    pub fn lookup(&self, requester: Requester, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.in_pool(move |mirror| {
            let found = mirror.find_file(parent).and_then(|dir| {
                mirror.check_mode(requester, &dir.info, Mode::EXEC_OK)?;
                match mirror.shows(requester, &dir, parent, &name)? {
                    true => mirror.find(&dir, parent, &name),
                    false => Err(Errno::NOENT),
                }
            });
            reply_entry(found, reply);
        });
    }

    /// Whether the requester may see `name`, if it exists.
    fn shows(&self, requester: Requester, dir: &FoundFile, parent: u64, name: &OsStr) -> OsResult<bool> {
        let (caller, path) = (self.caller(requester), dir.path().join(name));
        if !self.sees(&caller, &dir.view, &path, true) {
            return Ok(false);
        }
        if self.0.tree.sees_all(&caller) || self.is_overlaid(&dir.view, parent, name) {
            return Ok(true);
        }
        let is_dir = look(dir.fd()?, name)?.kind == rustix::fs::FileType::Directory;
        Ok(self.sees(&caller, &dir.view, &path, is_dir))
    }

    /// Looks `name` up and records that the kernel is told of it.
    pub(super) fn find(&self, dir: &FoundFile, parent: u64, name: &OsStr) -> OsResult<(FileAttr, Generation)> {
        if let Some(overlay) = self.overlay(&dir.view, parent, name) {
            return Ok((overlay, Generation(0)));
        }
        let info = look(dir.fd()?, name)?;
        let ino = self.inodes().remember(&dir.view, parent, name, &info);
        Ok((attributes(ino, &info), generation(&info)))
    }

    /// The node that replaces a name of the root of a view.
    fn overlay(&self, view: &View, parent: u64, name: &OsStr) -> Option<FileAttr> {
        if parent != view.root {
            return None;
        }
        let name = name.to_str()?;
        let node = view.overlay.lookup(name)?;
        Some(self.0.remember(&join(&view.path, name), &node))
    }

    /// Whether a name belongs to the tree, and so can be neither made nor removed.
    pub(super) fn is_overlaid(&self, view: &View, parent: u64, name: &OsStr) -> bool {
        parent == view.root && name.to_str().is_some_and(|name| view.overlay.lookup(name).is_some())
    }

    pub fn readlink(&self, requester: Requester, ino: u64, reply: ReplyData) {
        self.in_pool(move |mirror| {
            let target = mirror
                .find_visible(requester, ino)
                .and_then(|held| rustix::fs::readlinkat(held.fd()?, c"", Vec::new()));
            match target {
                Ok(target) => reply.data(target.as_bytes()),
                Err(Errno::NOENT) => reply.error(fuser::Errno::EINVAL), // what the kernel says of a file that is no link
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn opendir(&self, requester: Requester, ino: u64, reply: ReplyOpen) {
        self.in_pool(move |mirror| match mirror.open_dir(requester, ino) {
            Ok(open_dir) => reply.opened(FileHandle(mirror.0.mirrors.directories.add(open_dir)), FopenFlags::empty()),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn open_dir(&self, requester: Requester, ino: u64) -> OsResult<OpenMirrorDir> {
        let held = self.find_file(ino)?;
        self.may(requester, Access::Read, &held.view, held.path())?;
        self.check_mode(requester, &held.info, Mode::READ_OK)?;
        let fd = held.fd.as_ref().map(|fd| reopen(fd, OFlags::RDONLY | OFlags::DIRECTORY)).transpose()?;
        let path = held.path().to_owned();
        Ok(OpenMirrorDir { ino, view: held.view, path, fd, device: held.info.id.device, turn: Mutex::default() })
    }

    pub fn readdir(&self, requester: Requester, fh: u64, offset: u64, mut reply: ReplyDirectory) {
        self.in_pool(move |mirror| {
            let listed = mirror.page(requester, fh, offset, |open_dir, entry| {
                reply.add(INodeNo(open_dir.number(entry)), entry.next, entry.kind, entry.name)
            });
            match listed {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn readdirplus(&self, requester: Requester, fh: u64, offset: u64, mut reply: ReplyDirectoryPlus) {
        self.in_pool(move |mirror| {
            let listed = mirror.page(requester, fh, offset, |open_dir, entry| {
                let dots = matches!(entry.name.as_bytes(), b"." | b"..");
                let Ok((attributes, generation)) = mirror.plus(open_dir, entry) else { return false };
                let ino = attributes.ino;
                let full = reply.add(ino, entry.next, entry.name, &UNCACHED, &attributes, generation);
                if full && !dots {
                    mirror.0.forget(ino.0, 1);
                }
                full
            });
            match listed {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn plus(&self, open_dir: &OpenMirrorDir, entry: &RawEntry<'_>) -> OsResult<(FileAttr, Generation)> {
        let held =
            FoundFile { view: open_dir.view.clone(), path: None, fd: None, info: *open_dir.view.host_dir.info() };
        match entry.name.as_bytes() {
            // The kernel uses only the number.
            b"." | b".." => Ok((attributes(open_dir.number(entry), &held.info), Generation(0))),
            _ => {
                if let Some(overlay) = self.overlay(&open_dir.view, open_dir.ino, entry.name) {
                    return Ok((overlay, Generation(0)));
                }
                let info = look(open_dir.fd.as_ref().ok_or(Errno::NOENT)?, entry.name)?;
                let ino = self.inodes().remember(&open_dir.view, open_dir.ino, entry.name, &info);
                Ok((attributes(ino, &info), generation(&info)))
            }
        }
    }

    /// Calls `full` for the entries that the requester sees, from `offset`, until it returns true.
    fn page(
        &self,
        requester: Requester,
        fh: u64,
        offset: u64,
        mut full: impl FnMut(&OpenMirrorDir, &RawEntry<'_>) -> bool,
    ) -> OsResult<()> {
        let open_dir = self.0.mirrors.directories.get(fh).map_err(|_| Errno::BADF)?;
        let caller = self.caller(requester);
        let hidden = |name: &OsStr, dir: bool| {
            let dots = matches!(name.as_bytes(), b"." | b"..");
            !dots && !self.sees(&caller, &open_dir.view, &open_dir.path.join(name), dir)
        };
        let Some(fd) = &open_dir.fd else { return open_dir.empty(offset, &mut full) };
        let _turn = open_dir.turn.lock();
        let (overlay, begin) = open_dir.overlay(offset);
        for (name, next) in overlay.into_iter().filter(|(name, _)| !hidden(OsStr::new(name), true)) {
            let entry = RawEntry { name: OsStr::new(&name), inode: next, kind: FileType::Directory, next };
            if full(&open_dir, &entry) {
                return Ok(());
            }
        }
        rustix::fs::seek(fd, SeekFrom::Start(begin))?;
        let mut buffer = [MaybeUninit::uninit(); PAGE];
        let mut entries = RawDir::new(fd, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let dir = entry.file_type() == rustix::fs::FileType::Directory;
            if self.is_overlaid(&open_dir.view, open_dir.ino, name) || hidden(name, dir) {
                continue;
            }
            let next = entry.next_entry_cookie();
            let entry = RawEntry { name, inode: entry.ino(), kind: kind(entry.file_type()), next };
            if full(&open_dir, &entry) {
                break;
            }
        }
        Ok(())
    }

    pub fn releasedir(&self, fh: u64, reply: ReplyEmpty) {
        let open_dir = self.0.mirrors.directories.remove(fh);
        self.in_pool(move |_| {
            drop(open_dir);
            reply.ok();
        });
    }
}

impl OpenMirrorDir {
    fn number(&self, entry: &RawEntry<'_>) -> u64 {
        number(&self.view.path, Id { device: self.device, inode: entry.inode })
    }

    /// Names of the tree come before those of the directory, at the highest offsets, which no disk uses. Returns the
    /// names that are still to be listed, and the offset at which the directory itself continues.
    fn overlay(&self, offset: u64) -> (Vec<(String, u64)>, u64) {
        const LAST: u64 = i64::MAX as u64 - 1;
        let names = if self.ino == self.view.root { self.view.overlay.names() } else { Vec::new() };
        let count = names.len() as u64;
        let remember = match offset {
            0 => 0,
            offset if offset > LAST - count && offset <= LAST => LAST - offset + 1,
            offset => return (Vec::new(), offset),
        };
        let rest = names.into_iter().enumerate().skip(remember as usize);
        (rest.map(|(at, name)| (name, LAST - at as u64)).collect(), 0)
    }

    fn empty(&self, offset: u64, full: &mut impl FnMut(&OpenMirrorDir, &RawEntry<'_>) -> bool) -> OsResult<()> {
        for (at, name) in (1..).zip([".", ".."]).skip(usize::try_from(offset).unwrap_or(2)) {
            let entry = RawEntry { name: OsStr::new(name), inode: self.ino, kind: FileType::Directory, next: at };
            if full(self, &entry) {
                break;
            }
        }
        Ok(())
    }
}

pub(super) fn reply_entry(found: OsResult<(FileAttr, Generation)>, reply: ReplyEntry) {
    match found {
        Ok((attributes, generation)) => reply.entry(&UNCACHED, &attributes, generation),
        Err(error) => reply.error(errno(error)),
    }
}

/// Records that the kernel is told of a new file.
pub(super) fn made(
    mirror: &Passthrough,
    dir: &FoundFile,
    parent: u64,
    name: &OsStr,
    info: &FileInfo,
) -> (FileAttr, Generation) {
    let ino = mirror.inodes().remember(&dir.view, parent, name, info);
    (attributes(ino, info), generation(info))
}
