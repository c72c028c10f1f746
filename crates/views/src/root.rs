//! An open directory, below which everything is read: through no link, across no mount, so that a name that changes under us
//! leads nowhere else. Used by the whole crate; uses `acheron_base::host_dir`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, StatxFlags, statx};
use rustix::io::Errno;

use super::change::EntryType;
use acheron_base::host_dir::{OsResult, beneath};
use acheron_base::{Error, Result};

/// What is known of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryFacts {
    pub kind: EntryType,
    /// The permission bits, those for set-user-id and the like included.
    pub mode: u32,
    pub size: u64,
    pub modified_ns: i64,
    pub changed_ns: i64,
    pub inode: u64,
    /// The number of the mount that it lies on.
    pub mount: u64,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    /// A device with the numbers 0 and 0, which overlayfs takes for "removed".
    pub whiteout: bool,
}

impl EntryFacts {
    pub fn is_dir(&self) -> bool {
        self.kind == EntryType::Dir
    }
}

/// The open directory.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    path: PathBuf,
    mount: u64,
}

impl Root {
    pub fn open(path: &Path) -> Result<Root> {
        let told = |errno: Errno| Error::from(std::io::Error::from(errno)).about(path.display());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(told)?;
        let mount = facts_at(fd.as_fd(), OsStr::new("")).map_err(told)?.mount;
        Ok(Root { fd, path: path.to_owned(), mount })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn told(&self, rel: &Path, errno: Errno) -> Error {
        Error::from(std::io::Error::from(errno)).about(self.path.join(rel).display())
    }

    /// Opens what is at `rel` below the root. A path that leads up or begins at `/` is a mistake of the caller.
    pub fn at(&self, rel: &Path, flags: OFlags) -> OsResult<OwnedFd> {
        if rel.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(Errno::INVAL);
        }
        let rel = if rel.as_os_str().is_empty() { Path::new(".") } else { rel };
        beneath(&self.fd, rel, flags | OFlags::NOFOLLOW, Mode::empty())
    }

    /// The open directory that holds `rel`, and the last name of it.
    pub fn parent<'a>(&self, rel: &'a Path) -> OsResult<(OwnedFd, &'a OsStr)> {
        let name = rel.file_name().ok_or(Errno::INVAL)?;
        let above = rel.parent().unwrap_or(Path::new(""));
        Ok((self.at(above, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }

    /// What is at `rel`; nothing if there is no such name, also if something on the way is no directory. What is mounted
    /// there counts as nothing.
    pub fn facts(&self, rel: &Path) -> Result<Option<EntryFacts>> {
        if rel.as_os_str().is_empty() {
            return facts_at(self.fd.as_fd(), OsStr::new("")).map(Some).map_err(|errno| self.told(rel, errno));
        }
        let found = self.parent(rel).and_then(|(dir, name)| facts_at(dir.as_fd(), name));
        match found {
            Ok(facts) if facts.mount == self.mount => Ok(Some(facts)),
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
            Err(errno) => Err(self.told(rel, errno)),
        }
    }

    /// The names in a directory with what is known of them, sorted; nothing of what is mounted there.
    pub fn list(&self, rel: &Path) -> Result<Vec<(OsString, EntryFacts)>> {
        let held = match self.at(rel, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(held) => held,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Vec::new()),
            Err(errno) => return Err(self.told(rel, errno)),
        };
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut entries = RawDir::new(&held, buffer.spare_capacity_mut());
        let mut found = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|errno| self.told(rel, errno))?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            match facts_at(held.as_fd(), &name) {
                Ok(facts) if facts.mount == self.mount => found.push((name, facts)),
                Ok(_) | Err(Errno::NOENT) => (),
                Err(errno) => return Err(self.told(&rel.join(&name), errno)),
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Opens a regular file for reading; anything else is refused and not even opened.
    pub fn open_file(&self, rel: &Path) -> Result<File> {
        let told = |errno| self.told(rel, errno);
        let held = self.at(rel, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map_err(told)?;
        match facts_at(held.as_fd(), OsStr::new("")).map_err(told)?.kind {
            EntryType::File => Ok(held.into()),
            _ => Err(Error::conflict(format!("{} is no file any more", self.path.join(rel).display()))),
        }
    }

    /// The bytes of a file, or the target of a link; refused if there are more than `most`.
    pub fn read(&self, rel: &Path, kind: EntryType, most: u64) -> Result<Vec<u8>> {
        if kind == EntryType::Link {
            return self.read_link(rel).map(|target| target.into_os_string().into_vec());
        }
        let mut bytes = Vec::new();
        let read = self.open_file(rel)?.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|err| Error::from(err).about(self.path.join(rel).display()))?;
        if bytes.len() as u64 > most {
            return Err(Error::too_large(format!("{} has more than {most} bytes", rel.display())));
        }
        Ok(bytes)
    }

    pub fn read_link(&self, rel: &Path) -> Result<PathBuf> {
        let told = |errno| self.told(rel, errno);
        let (dir, name) = self.parent(rel).map_err(told)?;
        let target = rustix::fs::readlinkat(&dir, name, Vec::new()).map_err(told)?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// An extended attribute of a directory or a file; nothing if it has none of this name.
    pub fn attribute(&self, rel: &Path, name: &str) -> Result<Option<Vec<u8>>> {
        let held = match self.at(rel, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
            Ok(held) => held,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(self.told(rel, errno)),
        };
        let mut value = vec![0; 4096];
        match rustix::fs::fgetxattr(&held, name, &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                Ok(Some(value))
            }
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(self.told(rel, errno)),
        }
    }
}

impl Root {
    /// Removes a file, or a directory with all that is in it.
    pub fn remove_all(&self, rel: &Path) -> Result<()> {
        let told = |errno| self.told(rel, errno);
        let Some(facts) = self.facts(rel)? else { return Ok(()) };
        if facts.is_dir() {
            for (name, _) in self.list(rel)? {
                self.remove_all(&rel.join(name))?;
            }
        }
        let flags = if facts.is_dir() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let (dir, name) = self.parent(rel).map_err(told)?;
        rustix::fs::unlinkat(&dir, name, flags).map_err(told)
    }

    /// Sets the owner of what is at a path to what it is: through a view this makes it the view's own.
    pub fn own_again(&self, rel: &Path) -> Result<()> {
        let told = |errno| self.told(rel, errno);
        let Some(facts) = self.facts(rel)? else { return Ok(()) };
        let (dir, name) = self.parent(rel).map_err(told)?;
        let (uid, gid) = (rustix::fs::Uid::from_raw(facts.uid), rustix::fs::Gid::from_raw(facts.gid));
        rustix::fs::chownat(&dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).map_err(told)
    }
}

/// What is known of `name` in an open directory, without following a link or asking a server.
pub(crate) fn facts_at(dir: BorrowedFd<'_>, name: &OsStr) -> OsResult<EntryFacts> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let said = statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
    let kind = match FileType::from_raw_mode(u32::from(said.stx_mode)) {
        FileType::RegularFile => EntryType::File,
        FileType::Directory => EntryType::Dir,
        FileType::Symlink => EntryType::Link,
        _ => EntryType::Special,
    };
    let whiteout = FileType::from_raw_mode(u32::from(said.stx_mode)) == FileType::CharacterDevice
        && (said.stx_rdev_major, said.stx_rdev_minor) == (0, 0);
    let ns = |time: rustix::fs::StatxTimestamp| time.tv_sec.saturating_mul(1_000_000_000) + i64::from(time.tv_nsec);
    Ok(EntryFacts {
        kind,
        mode: u32::from(said.stx_mode) & 0o7777,
        size: said.stx_size,
        modified_ns: ns(said.stx_mtime),
        changed_ns: ns(said.stx_ctime),
        inode: said.stx_ino,
        mount: said.stx_mnt_id,
        links: said.stx_nlink,
        uid: said.stx_uid,
        gid: said.stx_gid,
        whiteout,
    })
}

/// Whether two files have the same bytes. One that is changed meanwhile counts as different.
pub fn same_bytes(mut one: File, mut other: File) -> Result<bool> {
    let (mut a, mut b) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let (read, also) = (fill(&mut one, &mut a)?, fill(&mut other, &mut b)?);
        if a[..read] != b[..also] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

fn fill(file: &mut File, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(err) if err.kind() == ErrorKind::Interrupted => (),
            Err(err) => return Err(err.into()),
        }
    }
    Ok(filled)
}

/// The SHA-256 of a file, in hexadecimal.
pub fn hash_of(mut file: File) -> Result<String> {
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match fill(&mut file, &mut buffer)? {
            0 => break,
            count => digest.update(&buffer[..count]),
        }
    }
    Ok(hex(digest.finish().as_ref()))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
