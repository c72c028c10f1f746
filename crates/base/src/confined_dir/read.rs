//! Reading, listing, walking. Never waits for a pipe, never opens a device for long, never follows a link out.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{ConfinedDir, DEPTH_LIMIT, Entry, Kind, READ_LIMIT, UNFINISHED, WALK_LIMIT, beneath, plain, split};
use crate::error::{Code, Error, Result, if_exists};

impl ConfinedDir {
    /// The bytes of a file, at most [`READ_LIMIT`] of them.
    pub fn read(&self, rel: &str) -> Result<Vec<u8>> {
        self.read_up_to(rel, READ_LIMIT)
    }

    /// The bytes of a file; one larger than `max` is refused, not cut.
    pub fn read_up_to(&self, rel: &str, max: u64) -> Result<Vec<u8>> {
        let file = self.open_file(rel, OFlags::RDONLY)?;
        let mut bytes = Vec::new();
        let read = File::from(file).take(max.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|err| Error::from(err).about(rel))?;
        if bytes.len() as u64 > max {
            return Err(Error::too_large(format!("{rel} is larger than {max} bytes")));
        }
        Ok(bytes)
    }

    /// The bytes of a file, or `None` if there is none.
    pub fn read_if_exists(&self, rel: &str) -> Result<Option<Vec<u8>>> {
        if_exists(self.read(rel))
    }

    /// The text of a file.
    pub fn read_text(&self, rel: &str) -> Result<String> {
        String::from_utf8(self.read(rel)?).map_err(|_| Error::invalid(format!("{rel} is not UTF-8 text")))
    }

    /// Whether the directory that was opened is still what its path names: it may have been moved, removed or replaced.
    pub fn is_at_its_path(&self) -> bool {
        let (Ok(own), Ok(there)) = (rustix::fs::fstat(&self.root), rustix::fs::stat(&self.path)) else { return false };
        (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)
    }

    /// Whether the path exists and leads to something inside.
    pub fn exists(&self, rel: &str) -> Result<bool> {
        match self.stat(rel) {
            Ok(_) => Ok(true),
            Err(err) if matches!(err.code, Code::NotFound | Code::Os(libc::ENOTDIR)) => Ok(false),
            Err(err) => Err(err),
        }
    }

    /// The entry at a path, after following links inside.
    pub fn stat(&self, rel: &str) -> Result<Entry> {
        let rel = plain(rel)?;
        let fd = self.beneath(rel, OFlags::PATH, Mode::empty()).map_err(|errno| self.refused(rel, errno))?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| self.refused(rel, errno))?;
        Ok(entry(rel.rsplit('/').next().unwrap_or(rel), &stat))
    }

    /// The names in a directory, sorted. A name that is not UTF-8 cannot be asked for and is left out.
    pub fn list(&self, rel: &str) -> Result<Vec<Entry>> {
        let dir = self.open_dir(rel)?;
        entries(&dir, WALK_LIMIT).map_err(|err| err.about(rel))
    }

    /// The names in a directory and what they are, sorted; cheaper than [`ConfinedDir::list`], which also asks for sizes.
    pub fn names(&self, rel: &str) -> Result<Vec<(String, Kind)>> {
        self.names_and_rest(rel).map(|(named, _)| named)
    }

    /// Like [`ConfinedDir::names`], with the number of names that are not UTF-8.
    pub fn names_and_rest(&self, rel: &str) -> Result<(Vec<(String, Kind)>, u64)> {
        let dir = self.open_dir(rel)?;
        let mut named = Vec::new();
        let DirNames { text, rest } = names(&dir, WALK_LIMIT).map_err(|err| err.about(rel))?;
        for (name, kind) in text {
            // Some file systems do not report the kind with the name.
            match kind.map_or_else(|| kind_at(&dir, &name), Ok) {
                Ok(_) if name.starts_with(UNFINISHED) => {}
                Ok(kind) => named.push((name, kind)),
                Err(_) => {} // gone meanwhile, or something else is mounted there
            }
        }
        named.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok((named, rest))
    }

    /// A regular file, open for reading.
    pub fn file(&self, rel: &str) -> Result<File> {
        self.open_file(rel, OFlags::RDONLY).map(File::from)
    }

    /// Everything below a directory, sorted by path, parents before children; links are named, not followed.
    pub fn walk(&self, rel: &str) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        gather(&self.open_dir(rel)?, "", 0, &mut found)?;
        found.sort_by(|a: &Entry, b| a.name.split('/').cmp(b.name.split('/')));
        Ok(found)
    }

    /// Opens a regular file. `O_NONBLOCK`, so that a pipe in its place cannot block us.
    pub(super) fn open_file(&self, rel: &str, flags: OFlags) -> Result<OwnedFd> {
        split(rel)?;
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
        let fd = self.beneath(rel, flags, mode).map_err(|errno| match errno {
            Errno::NXIO => Error::invalid(format!("{rel} is not a regular file")),
            errno => self.refused(rel, errno),
        })?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| self.refused(rel, errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(fd),
            FileType::Directory => Err(Error::new(Code::Os(libc::EISDIR), format!("{rel} is a directory"))),
            _ => Err(Error::invalid(format!("{rel} is not a regular file"))),
        }
    }
}

/// The entries of a directory, without entering what is mounted on them.
pub(super) fn entries(dir: &OwnedFd, limit: usize) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    for (name, _) in names(dir, limit)?.text {
        if name.starts_with(UNFINISHED) {
            continue;
        }
        match look(dir, &name) {
            Ok(stat) => found.push(entry(&name, &stat)),
            Err(Errno::XDEV) => found.push(Entry { name, kind: Kind::Dir, size: 0, modified_ms: 0 }),
            Err(Errno::NOENT) => {} // gone meanwhile
            Err(errno) => return Err(std::io::Error::from(errno).into()),
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The names of a directory.
#[derive(Default)]
struct DirNames {
    text: Vec<(String, Option<Kind>)>,
    /// The number of names that are not UTF-8.
    rest: u64,
}

fn names(dir: &OwnedFd, limit: usize) -> Result<DirNames> {
    let mut names = DirNames::default();
    for item in rustix::fs::Dir::read_from(dir).map_err(std::io::Error::from)? {
        let item = item.map_err(std::io::Error::from)?;
        match item.file_name().to_str() {
            Ok("." | "..") => {}
            Err(_) => names.rest += 1,
            Ok(name) => names.text.push((name.to_owned(), kind_of(item.file_type()))),
        }
        if names.text.len() > limit {
            return Err(Error::too_large(format!("more than {limit} names")));
        }
    }
    Ok(names)
}

fn gather(dir: &OwnedFd, above: &str, depth: usize, found: &mut Vec<Entry>) -> Result<()> {
    if depth > DEPTH_LIMIT {
        return Err(Error::too_large(format!("{above} lies more than {DEPTH_LIMIT} directories deep")));
    }
    for mut entry in entries(dir, WALK_LIMIT - found.len())? {
        let below = if entry.kind == Kind::Dir { child(dir, &entry.name) } else { None };
        entry.name = if above.is_empty() { entry.name } else { format!("{above}/{}", entry.name) };
        let path = entry.name.clone();
        found.push(entry);
        if let Some(below) = below {
            gather(&below, &path, depth + 1, found)?;
        }
    }
    Ok(())
}

/// A subdirectory, but not one behind a link; `None` if it cannot be opened.
pub(super) fn child(dir: &OwnedFd, name: &str) -> Option<OwnedFd> {
    beneath(dir, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).ok()
}

fn entry(name: &str, stat: &Stat) -> Entry {
    let kind = kind_of(FileType::from_raw_mode(stat.st_mode)).unwrap_or(Kind::Other);
    let (seconds, nanos) = (stat.st_mtime.max(0) as u64, stat.st_mtime_nsec);
    Entry {
        name: name.to_owned(),
        kind,
        size: stat.st_size.max(0) as u64,
        modified_ms: seconds * 1000 + nanos / 1_000_000,
    }
}

fn kind_of(kind: FileType) -> Option<Kind> {
    match kind {
        FileType::RegularFile => Some(Kind::File),
        FileType::Directory => Some(Kind::Dir),
        FileType::Symlink => Some(Kind::Link),
        FileType::Unknown => None,
        _ => Some(Kind::Other),
    }
}

/// The kind of a name, of the link itself if it is one; a mount is not entered.
pub(super) fn kind_at(dir: &OwnedFd, name: &str) -> Result<Kind, Errno> {
    look(dir, name).map(|stat| entry(name, &stat).kind)
}

pub(super) fn look(dir: &OwnedFd, name: &str) -> Result<Stat, Errno> {
    rustix::fs::fstat(beneath(dir, name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?)
}
