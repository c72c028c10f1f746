//! A backup of a state directory: one tar file with a snapshot of the database, every plain file beside it, and their checksums.
//!
//! It may be taken while a host uses the directory. The snapshot comes first, so that a file is never older than the row
//! that counts on it. The host replaces files by rename or appends to them: each is copied as it was at one moment.
//! Programs of agents write in their homes meanwhile: no link is followed there, and no hole is filled.
//! [`choice`] decides what is left out on purpose. Used by `acheron backup`; `restore` reads what this writes.

mod choice;
pub(super) mod sums;

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

use super::audit::read;
use acheron_base::{Code, Error, Result};
use acheron_store::FILE as DATABASE;
pub use choice::{BackupChoice, Omitted};
use sums::{EntrySum, SUMS, SummedReader};

/// The first entry: what the archive is.
pub(super) const MANIFEST: &str = "acheron-backup.json";
/// The version of the archive's form.
pub(super) const FORMAT: u64 = 2;
/// A mountspec that was named, in the archive and in the restored directory.
pub const MOUNTSPEC: &str = "mountspec.json";

/// Files at the top of the state directory that belong to a running process.
const OF_A_PROCESS: [&str; 8] = [
    "acheron.db-wal",
    "acheron.db-shm",
    "acheron.db-journal",
    "acheron.lock",
    "acheron.log",
    "acheron.log.1",
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

/// What a backup has.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    pub files: u64,
    pub bytes: u64,
    /// What could not be copied.
    pub left_out: Vec<LeftOut>,
    /// How many keys and caches were left out on purpose; a cache counts once.
    pub keys: usize,
    pub caches: usize,
}

/// How a backup is made.
pub struct BackupPlan<'a> {
    pub choice: BackupChoice,
    /// The mountspec that goes with it.
    pub mountspec: Option<&'a Path>,
    /// Called after each file with what has been copied so far.
    pub progress: &'a mut dyn FnMut(&BackupReport),
}

/// Writes a backup of the state directory `state` to `file`, which appears whole or not at all.
pub fn backup(state: &Path, file: &Path, plan: BackupPlan<'_>) -> Result<BackupReport> {
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
    let head = head_of(&snapshot)?;
    let manifest = json!({
        "format": FORMAT, "version": env!("CARGO_PKG_VERSION"), "schema": super::SCHEMA, "audit": head,
        "keys": plan.choice.keys, "caches": plan.choice.caches,
    });
    let manifest = manifest.to_string();
    let mut files = StateFiles { root: open_root(state)?, plan, report: BackupReport::default(), sums: String::new() };
    files.add(&mut builder, Path::new(MANIFEST), manifest.len() as u64, 0, manifest.as_bytes())?;
    if let Some(mountspec) = files.plan.mountspec {
        let opened = File::open(mountspec).map_err(|err| Error::from(err).about(mountspec.display()))?;
        let meta = opened.metadata()?;
        files.add(&mut builder, Path::new(MOUNTSPEC), meta.len(), meta.mtime(), opened.take(meta.len()))?;
    }
    // By its path: the copy has replaced the file that was made above.
    let database = File::open(snapshot.path())?;
    let meta = database.metadata()?;
    files.add(&mut builder, Path::new(DATABASE), meta.len(), meta.mtime(), database)?;
    files.folder(&mut builder, Path::new(""), 0)?;
    let sums = std::mem::take(&mut files.sums);
    files.add(&mut builder, Path::new(SUMS), sums.len() as u64, 0, sums.as_bytes())?;
    let mut written = builder.into_inner()?;
    written.flush()?;
    drop(written);
    archive.as_file().sync_all()?;
    vacant(file)?;
    archive.persist(file).map_err(|err| err.error)?;
    File::open(parent)?.sync_all()?;
    Ok(files.report)
}

/// The last line of the audit in the copy: what comes later can be held against it.
fn head_of(snapshot: &tempfile::NamedTempFile) -> Result<serde_json::Value> {
    let has_audit = "SELECT count(*) FROM sqlite_schema WHERE name = 'audit_head'";
    let found = acheron_store::look_file(snapshot.path(), |conn| {
        match conn.query_row(has_audit, [], |row| row.get::<_, usize>(0))? {
            0 => Ok(None), // of an earlier schema
            _ => read::head(conn),
        }
    });
    Ok(found?.map_or(serde_json::Value::Null, |(head, _)| json!({"seq": head.seq, "hash": head.hash.to_string()})))
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
struct StateFiles<'a> {
    root: OwnedFd,
    plan: BackupPlan<'a>,
    report: BackupReport,
    /// The lines of the checksums so far.
    sums: String,
}

impl StateFiles<'_> {
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
        self.report.left_out.push(LeftOut { path: path.to_owned(), why });
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
            let is_copy = name.to_str().is_some_and(|name| name.starts_with(acheron_store::BEFORE));
            if depth == 0 && (is_copy || OF_A_PROCESS.iter().chain([&DATABASE]).any(of_the_host)) {
                continue;
            }
            match self.plan.choice.omits(&name) {
                Some(Omitted::Key) => {
                    self.report.keys += 1;
                    continue;
                }
                Some(Omitted::Cache) => {
                    self.report.caches += 1;
                    continue;
                }
                None => (),
            }
            // It comes with the archive if it was named.
            if depth == 0 && name == Path::new(MOUNTSPEC) && self.plan.mountspec.is_some() {
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
                self.sums.push_str(&EntrySum::of(&name).line());
                self.folder(builder, &name, depth + 1)?;
            } else if meta.is_dir() {
                self.leave_out(&name, "too deep");
            } else if !meta.is_file() {
                self.leave_out(&name, "no plain file");
            } else if holes(&file, meta.len())? > HOLES {
                self.leave_out(&name, "mostly holes");
            } else {
                self.add(builder, &name, meta.len(), meta.mtime(), file.take(meta.len()))
                    .map_err(|error| error.about(name.display()))?;
            }
        }
        Ok(())
    }

    /// Adds a file, counts it and notes its checksum.
    fn add<W: Write>(
        &mut self,
        builder: &mut Builder<W>,
        name: &Path,
        size: u64,
        mtime: i64,
        content: impl Read,
    ) -> Result<()> {
        let mut header = header(EntryType::Regular, 0o600, size, mtime);
        let mut sum = EntrySum::of(name);
        let mut content = SummedReader { content, read: 0, sum: &mut sum };
        builder.append_data(&mut header, name, &mut content)?;
        if content.read != size {
            return Err(Error::busy("became shorter while it was copied; try again"));
        }
        self.sums.push_str(&sum.line());
        self.report.files += 1;
        self.report.bytes += size;
        (self.plan.progress)(&self.report);
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

fn header(kind: EntryType, mode: u32, size: u64, mtime: i64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(mtime.max(0) as u64);
    header
}

#[cfg(test)]
mod tests;
