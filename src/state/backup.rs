//! A backup of a state directory: one tar file with a snapshot of the database and every plain file beside it.
//!
//! It may be taken while a host uses the directory. The snapshot comes first, so that a file is never older than the row
//! that counts on it. The host replaces files by rename or appends to them: each is copied as it was at one moment.
//! Programs of agents write in their homes meanwhile: no link is followed there, and no hole is filled.
//! Used by `acheron backup`; `restore` reads what this writes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, SeekFrom};
use rustix::io::Errno;
use serde_json::json;
use tar::{Builder, EntryType, Header};

use acheron_base::{Code, Error, Result};
use acheron_store::FILE as DATABASE;

/// The first entry: what the archive is.
pub(super) const MANIFEST: &str = "acheron-backup.json";
/// The version of the archive's form.
pub(super) const FORMAT: u64 = 1;

/// Files at the top of the state directory that belong to a running process.
const OF_A_PROCESS: [&str; 7] = [
    "acheron.db-wal",
    "acheron.db-shm",
    "acheron.db-journal",
    "acheron.lock",
    "acheron.log",
    "acheron.pid",
    "host.sock",
];

/// The working copies of projects: what the kernel keeps of them means nothing without the project, and on no other machine.
const VIEWS: &str = "views";

/// How deep directories are copied; those of the host are far from it.
const DEEPEST: usize = 200;
/// As many bytes of a file may be holes, which take no room on the disk, but would in the archive.
const HOLES: u64 = 64 << 20;

/// Something that is not in the archive.
#[derive(Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub path: PathBuf,
    pub why: &'static str,
}

/// Writes a backup of the state directory `state` to `file`, which appears whole or not at all. Returns what was left out.
pub fn backup(state: &Path, file: &Path) -> Result<Vec<LeftOut>> {
    let parent = parent(file);
    parent.metadata().map_err(|err| Error::from(err).about(parent.display()))?;
    vacant(file)?;
    if parent.canonicalize()?.starts_with(state.canonicalize().unwrap_or_else(|_| state.to_owned())) {
        let message = format!("{} lies in the state directory itself; name a file elsewhere", file.display());
        return Err(Error::invalid(message));
    }
    // Only their owner may read them; they are removed if this fails.
    let aside = |suffix: &str| tempfile::Builder::new().prefix(".acheron-backup-").suffix(suffix).tempfile_in(parent);
    let snapshot = aside(".db")?;
    acheron_store::backup(state, snapshot.path())?;
    let archive = aside(".tar")?;
    let mut builder = Builder::new(std::io::BufWriter::new(archive.as_file()));
    let manifest = json!({"format": FORMAT, "version": env!("CARGO_PKG_VERSION")}).to_string();
    add(&mut builder, Path::new(MANIFEST), manifest.len() as u64, 0, manifest.as_bytes())?;
    // By its path: the copy has replaced the file that was made above.
    let database = File::open(snapshot.path())?;
    let meta = database.metadata()?;
    add(&mut builder, Path::new(DATABASE), meta.len(), meta.mtime(), database)?;
    let mut files = StateFiles { root: open_root(state)?, left_out: Vec::new() };
    files.folder(&mut builder, Path::new(""), 0)?;
    let mut written = builder.into_inner()?;
    written.flush()?;
    drop(written);
    archive.as_file().sync_all()?;
    vacant(file)?;
    archive.persist(file).map_err(|err| err.error)?;
    File::open(parent)?.sync_all()?;
    Ok(files.left_out)
}

/// The directory that a file lies in.
pub(super) fn parent(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Refuses a name that is taken, unless by an empty file.
fn vacant(file: &Path) -> Result<()> {
    let shown = file.display();
    match file.symlink_metadata() {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(Error::from(err).about(shown)),
        Ok(meta) if meta.is_dir() => {
            Err(Error::new(Code::Os(libc::EISDIR), format!("{shown} is a directory; name a file")))
        }
        Ok(meta) if meta.is_file() && meta.len() == 0 => Ok(()),
        Ok(_) => Err(Error::already_exists(format!("{shown} exists; name another file"))),
    }
}

fn open_root(state: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(state, flags, Mode::empty())
        .map_err(|err| Error::from(std::io::Error::from(err)).about(state.display()))
}

/// The files of a state directory.
struct StateFiles {
    root: OwnedFd,
    left_out: Vec<LeftOut>,
}

impl StateFiles {
    /// Opens what is at a path, whatever it is, without following a link and without waiting. Nothing if it is gone.
    fn open(&mut self, path: &Path) -> Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        loop {
            return match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
                Ok(file) => Ok(Some(file.into())),
                // Something was renamed meanwhile.
                Err(Errno::AGAIN | Errno::INTR) => continue,
                Err(Errno::NOENT) => Ok(None),
                Err(Errno::LOOP) => Ok(self.leave_out(path, "a link")),
                Err(Errno::NXIO) => Ok(self.leave_out(path, "a socket")),
                Err(Errno::NAMETOOLONG) => Ok(self.leave_out(path, "its path is too long")),
                Err(err) => Err(Error::from(std::io::Error::from(err)).about(path.display())),
            };
        }
    }

    fn leave_out(&mut self, path: &Path, why: &'static str) -> Option<File> {
        self.left_out.push(LeftOut { path: path.to_owned(), why });
        None
    }

    /// Adds every directory and plain file below, sorted. What vanishes meanwhile was not part of the state.
    fn folder<W: Write>(&mut self, builder: &mut Builder<W>, below: &Path, depth: usize) -> Result<()> {
        let Some(folder) = self.open(below)? else { return Ok(()) };
        let mut names = Vec::new();
        for entry in Dir::new(folder).map_err(std::io::Error::from)? {
            let entry = entry.map_err(std::io::Error::from)?;
            let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(below.join(name));
            }
        }
        names.sort();
        for name in names {
            let of_the_host = |other: &&str| name == Path::new(other);
            if depth == 0 && OF_A_PROCESS.iter().chain([&DATABASE]).any(of_the_host) {
                continue;
            }
            if depth == 1 && below == Path::new(VIEWS) {
                self.leave_out(&name, "a view; promote or discard it");
                continue;
            }
            let Some(file) = self.open(&name)? else { continue };
            // Of what was opened: another file may have the name by now, and this one may grow.
            let meta = file.metadata()?;
            if meta.is_dir() && depth < DEEPEST {
                let mut header = header(EntryType::Directory, 0o700, 0, meta.mtime());
                builder.append_data(&mut header, &name, std::io::empty())?;
                self.folder(builder, &name, depth + 1)?;
            } else if meta.is_dir() {
                self.leave_out(&name, "too deep");
            } else if !meta.is_file() {
                self.leave_out(&name, "no plain file");
            } else if holes(&file, meta.len())? > HOLES {
                self.leave_out(&name, "mostly holes");
            } else {
                add(builder, &name, meta.len(), meta.mtime(), file.take(meta.len()))
                    .map_err(|error| error.about(name.display()))?;
            }
        }
        Ok(())
    }
}

/// The bytes of a file that are not on the disk.
fn holes(file: &File, size: u64) -> Result<u64> {
    let seek = |to| match rustix::fs::seek(file, to) {
        Ok(at) => Ok(at),
        // Nothing but a hole follows.
        Err(Errno::NXIO) => Ok(size),
        Err(err) => Err(Error::from(std::io::Error::from(err))),
    };
    let (mut at, mut sum) = (0, 0);
    while at < size && sum <= HOLES {
        let data = seek(SeekFrom::Data(at))?;
        sum += data.saturating_sub(at);
        at = if data < size { seek(SeekFrom::Hole(data))? } else { size };
    }
    seek(SeekFrom::Start(0))?;
    Ok(sum)
}

fn add<W: Write>(builder: &mut Builder<W>, name: &Path, size: u64, mtime: i64, content: impl Read) -> Result<()> {
    let mut header = header(EntryType::Regular, 0o600, size, mtime);
    let mut content = Counted { content, read: 0 };
    builder.append_data(&mut header, name, &mut content)?;
    match content.read == size {
        true => Ok(()),
        false => Err(Error::busy("became shorter while it was copied; try again")),
    }
}

fn header(kind: EntryType, mode: u32, size: u64, mtime: i64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(mtime.max(0) as u64);
    header
}

/// Counts the bytes that are read.
struct Counted<R> {
    content: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.content.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
