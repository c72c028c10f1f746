//! Names in mirrored directories: found one by one, and listed page by page.

use parking_lot::Mutex;
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
use rustix::fs::{OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::attributes::{NOT_AT_ALL, attributes, generation, kind};
use super::table::{View, number};
use super::{Hold, Passthrough, Who, errno};
use crate::inodes::join;
use acheron_base::host_dir::{Facts, Id, Outcome, look, reopen};
use acheron_vfs::{Access, Dir};

/// How much of a directory is asked for at once.
const PAGE: usize = 32 << 10;

/// A mirrored directory that is open.
pub struct Paged {
    ino: u64,
    view: Arc<View>,
    /// Below the view.
    path: PathBuf,
    /// None for a place that is covered by another mount.
    fd: Option<OwnedFd>,
    device: u64,
    /// One reader at a time: the place in it is the descriptor's.
    turn: Mutex<()>,
}

/// One line of a listing, and where the next one is.
struct Line<'a> {
    name: &'a OsStr,
    inode: u64,
    kind: FileType,
    next: u64,
}

impl Passthrough {
    pub fn lookup(&self, who: Who, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.away(move |real| {
            let found = real.hold(parent).and_then(|dir| match real.shows(who, &dir, parent, &name)? {
                true => real.find(&dir, parent, &name),
                false => Err(Errno::NOENT),
            });
            tell(found, reply);
        });
    }

    /// Whether `name` is there for who asks, if it is there at all.
    fn shows(&self, who: Who, dir: &Hold, parent: u64, name: &OsStr) -> Outcome<bool> {
        let (caller, path) = (self.caller(who), dir.path().join(name));
        if !self.sees(&caller, &dir.view, &path, true) {
            return Ok(false);
        }
        if self.0.tree.sees_all(&caller) || self.is_over(&dir.view, parent, name) {
            return Ok(true);
        }
        let is_dir = look(dir.fd()?, name)?.kind == rustix::fs::FileType::Directory;
        Ok(self.sees(&caller, &dir.view, &path, is_dir))
    }

    /// What stands under `name`, as the kernel is told of it.
    pub(super) fn find(&self, dir: &Hold, parent: u64, name: &OsStr) -> Outcome<(FileAttr, Generation)> {
        if let Some(over) = self.over(&dir.view, parent, name) {
            return Ok((over, Generation(0)));
        }
        let facts = look(dir.fd()?, name)?;
        let ino = self.table().told(&dir.view, parent, name, &facts);
        Ok((attributes(ino, &facts), generation(&facts)))
    }

    /// What stands over a name of the root of a view.
    fn over(&self, view: &View, parent: u64, name: &OsStr) -> Option<FileAttr> {
        if parent != view.root {
            return None;
        }
        let name = name.to_str()?;
        let node = view.over.lookup(name)?;
        Some(self.0.remember(&join(&view.path, name), &node))
    }

    /// Whether a name belongs to the tree, and so can be neither made nor taken away.
    pub(super) fn is_over(&self, view: &View, parent: u64, name: &OsStr) -> bool {
        parent == view.root && name.to_str().is_some_and(|name| view.over.lookup(name).is_some())
    }

    pub fn readlink(&self, who: Who, ino: u64, reply: ReplyData) {
        self.away(move |real| {
            let target = real.hold_for(who, ino).and_then(|held| rustix::fs::readlinkat(held.fd()?, c"", Vec::new()));
            match target {
                Ok(target) => reply.data(target.as_bytes()),
                Err(Errno::NOENT) => reply.error(fuser::Errno::EINVAL), // what the kernel says of a file that is no link
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn opendir(&self, who: Who, ino: u64, reply: ReplyOpen) {
        self.away(move |real| match real.paged(who, ino) {
            Ok(paged) => reply.opened(FileHandle(real.0.mirrors.directories.add(paged)), FopenFlags::empty()),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn paged(&self, who: Who, ino: u64) -> Outcome<Paged> {
        let held = self.hold(ino)?;
        self.may(who, Access::Read, &held.view, held.path())?;
        let fd = held.fd.as_ref().map(|fd| reopen(fd, OFlags::RDONLY | OFlags::DIRECTORY)).transpose()?;
        let path = held.path().to_owned();
        Ok(Paged { ino, view: held.view, path, fd, device: held.facts.id.device, turn: Mutex::default() })
    }

    pub fn readdir(&self, who: Who, fh: u64, offset: u64, mut reply: ReplyDirectory) {
        self.away(move |real| {
            let listed = real.page(who, fh, offset, |paged, line| {
                reply.add(INodeNo(paged.number(line)), line.next, line.kind, line.name)
            });
            match listed {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub fn readdirplus(&self, who: Who, fh: u64, offset: u64, mut reply: ReplyDirectoryPlus) {
        self.away(move |real| {
            let listed = real.page(who, fh, offset, |paged, line| {
                let dots = matches!(line.name.as_bytes(), b"." | b"..");
                let Ok((attributes, generation)) = real.plus(paged, line) else { return false };
                let ino = attributes.ino;
                let full = reply.add(ino, line.next, line.name, &NOT_AT_ALL, &attributes, generation);
                if full && !dots {
                    real.0.forget(ino.0, 1);
                }
                full
            });
            match listed {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn plus(&self, paged: &Paged, line: &Line<'_>) -> Outcome<(FileAttr, Generation)> {
        let held = Hold { view: paged.view.clone(), path: None, fd: None, facts: *paged.view.ground.facts() };
        match line.name.as_bytes() {
            // The kernel looks at the number alone.
            b"." | b".." => Ok((attributes(paged.number(line), &held.facts), Generation(0))),
            _ => {
                if let Some(over) = self.over(&paged.view, paged.ino, line.name) {
                    return Ok((over, Generation(0)));
                }
                let facts = look(paged.fd.as_ref().ok_or(Errno::NOENT)?, line.name)?;
                let ino = self.table().told(&paged.view, paged.ino, line.name, &facts);
                Ok((attributes(ino, &facts), generation(&facts)))
            }
        }
    }

    /// Goes through the lines of a directory that `who` sees, from `offset` on, until `full` says so.
    fn page(&self, who: Who, fh: u64, offset: u64, mut full: impl FnMut(&Paged, &Line<'_>) -> bool) -> Outcome<()> {
        let paged = self.0.mirrors.directories.get(fh).map_err(|_| Errno::BADF)?;
        let caller = self.caller(who);
        let hidden = |name: &OsStr, dir: bool| {
            let dots = matches!(name.as_bytes(), b"." | b"..");
            !dots && !self.sees(&caller, &paged.view, &paged.path.join(name), dir)
        };
        let Some(fd) = &paged.fd else { return paged.empty(offset, &mut full) };
        let _turn = paged.turn.lock();
        let (over, begin) = paged.over(offset);
        for (name, next) in over.into_iter().filter(|(name, _)| !hidden(OsStr::new(name), true)) {
            let line = Line { name: OsStr::new(&name), inode: next, kind: FileType::Directory, next };
            if full(&paged, &line) {
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
            if self.is_over(&paged.view, paged.ino, name) || hidden(name, dir) {
                continue;
            }
            let next = entry.next_entry_cookie();
            let line = Line { name, inode: entry.ino(), kind: kind(entry.file_type()), next };
            if full(&paged, &line) {
                break;
            }
        }
        Ok(())
    }

    pub fn releasedir(&self, fh: u64, reply: ReplyEmpty) {
        let paged = self.0.mirrors.directories.remove(fh);
        self.away(move |_| {
            drop(paged);
            reply.ok();
        });
    }
}

impl Paged {
    fn number(&self, line: &Line<'_>) -> u64 {
        number(&self.view.path, Id { device: self.device, inode: line.inode })
    }

    /// The names that stand over the directory come before its own, at offsets from the end of all numbers: no disk uses
    /// those. Returns the ones that are still to be told, and where the directory itself goes on.
    fn over(&self, offset: u64) -> (Vec<(String, u64)>, u64) {
        const LAST: u64 = i64::MAX as u64 - 1;
        let names = if self.ino == self.view.root { self.view.over.names() } else { Vec::new() };
        let count = names.len() as u64;
        let told = match offset {
            0 => 0,
            offset if offset > LAST - count && offset <= LAST => LAST - offset + 1,
            offset => return (Vec::new(), offset),
        };
        let rest = names.into_iter().enumerate().skip(told as usize);
        (rest.map(|(at, name)| (name, LAST - at as u64)).collect(), 0)
    }

    fn empty(&self, offset: u64, full: &mut impl FnMut(&Paged, &Line<'_>) -> bool) -> Outcome<()> {
        for (at, name) in (1..).zip([".", ".."]).skip(usize::try_from(offset).unwrap_or(2)) {
            let line = Line { name: OsStr::new(name), inode: self.ino, kind: FileType::Directory, next: at };
            if full(self, &line) {
                break;
            }
        }
        Ok(())
    }
}

pub(super) fn tell(found: Outcome<(FileAttr, Generation)>, reply: ReplyEntry) {
    match found {
        Ok((attributes, generation)) => reply.entry(&NOT_AT_ALL, &attributes, generation),
        Err(error) => reply.error(errno(error)),
    }
}

/// What is told of a file that has just been made.
pub(super) fn made(real: &Passthrough, dir: &Hold, parent: u64, name: &OsStr, facts: &Facts) -> (FileAttr, Generation) {
    let ino = real.table().told(&dir.view, parent, name, facts);
    (attributes(ino, facts), generation(facts))
}
