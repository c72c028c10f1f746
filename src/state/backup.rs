//! A backup of a state directory: one tar file with a snapshot of the database and every plain file beside it.
//!
//! It may be taken while a host uses the directory. The snapshot comes first, so that a file is never older than the row
//! that counts on it. The host replaces files by rename or appends to them: each is copied as it was at one moment.
//! Used by `acheron backup`; `restore` reads what this writes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tar::{Builder, EntryType, Header};

use acheron_base::{Code, Error, Result, if_exists};
use acheron_store::FILE as DATABASE;

/// The first entry: what the archive is.
pub(super) const MANIFEST: &str = "acheron-backup.json";
/// The version of the archive's form.
pub(super) const FORMAT: u64 = 1;

/// Files at the top of the state directory that belong to a running process.
const OF_A_PROCESS: [&str; 6] =
    ["acheron.db-wal", "acheron.db-shm", "acheron.db-journal", "acheron.lock", "acheron.log", "acheron.pid"];

/// Writes a backup of the state directory `state` to `file`, which appears whole or not at all.
pub fn backup(state: &Path, file: &Path) -> Result<()> {
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
    folder(&mut builder, state, Path::new(""))?;
    let mut written = builder.into_inner()?;
    written.flush()?;
    drop(written);
    archive.as_file().sync_all()?;
    vacant(file)?;
    archive.persist(file).map_err(|err| err.error)?;
    File::open(parent)?.sync_all()?;
    Ok(())
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

/// Adds every directory and plain file below `state`/`below`, sorted. What vanishes meanwhile was not part of the state.
fn folder<W: Write>(builder: &mut Builder<W>, state: &Path, below: &Path) -> Result<()> {
    let Some(listed) = if_exists(std::fs::read_dir(state.join(below)).map_err(Error::from))? else { return Ok(()) };
    let mut names: Vec<PathBuf> = listed.map(|entry| Ok(below.join(entry?.file_name()))).collect::<Result<_>>()?;
    names.sort();
    for name in names {
        let at_top = below.as_os_str().is_empty();
        if at_top && (name == Path::new(DATABASE) || OF_A_PROCESS.iter().any(|other| name == Path::new(other))) {
            continue;
        }
        let path = state.join(&name);
        let Some(meta) = if_exists(path.symlink_metadata().map_err(Error::from))? else { continue };
        if meta.is_dir() {
            let mut header = header(EntryType::Directory, 0o700, 0, meta.mtime());
            builder.append_data(&mut header, &name, std::io::empty())?;
            folder(builder, state, &name)?;
        } else if meta.is_file() {
            let Some(file) = if_exists(File::open(&path).map_err(Error::from))? else { continue };
            // The length of what was opened: another file may have the name by now, and this one may grow.
            let meta = file.metadata()?;
            add(builder, &name, meta.len(), meta.mtime(), file.take(meta.len()))
                .map_err(|error| error.about(path.display()))?;
        } else {
            // A socket or a pipe has no content; a link would lead out of a restored directory.
            tracing::warn!(path = %path.display(), "not a plain file: left out");
        }
    }
    Ok(())
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
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grows_is_copied_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (path, archive) = (dir.path().join("log"), dir.path().join("a.tar"));
        std::fs::write(&path, "one\n").unwrap();
        let mut builder = Builder::new(File::create(&archive).unwrap());
        let file = File::open(&path).unwrap();
        let size = file.metadata().unwrap().len();
        std::fs::write(&path, "one\ntwo\n").unwrap();
        add(&mut builder, Path::new("log"), size, 0, file.take(size)).unwrap();
        // One that has become shorter is an error: half of it would look like all of it.
        let file = File::open(&path).unwrap();
        std::fs::write(&path, "o").unwrap();
        assert_eq!(add(&mut builder, Path::new("log"), 8, 0, file.take(8)).unwrap_err().code, Code::Busy);
        drop(builder);
        let mut archive = tar::Archive::new(File::open(&archive).unwrap());
        let mut text = String::new();
        archive.entries().unwrap().next().unwrap().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\n");
    }
}
