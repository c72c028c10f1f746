//! Makes a state directory from a backup. Used by `acheron restore`.
//!
//! Its checksums are verified before anything is written. An archive may come from anywhere: only plain files and directories
//! are taken, each below the new directory, and the directory gets its name when it is whole.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{Read, Seek as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use tar::{Archive, EntryType};

use super::backup::sums::{EntrySum, SUMS, SummedReader};
use super::backup::{FORMAT, MANIFEST, MOUNTSPEC, parent};
use acheron_base::{Error, Result};
use acheron_store::FILE as DATABASE;

/// The size limit of the manifest in bytes.
const LARGEST_MANIFEST: u64 = 64 << 10;

/// What was restored.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    pub files: u64,
    pub bytes: u64,
    /// Whether checksums told that it is what was written; backups of earlier versions have none.
    pub is_verified: bool,
    /// Whether a mountspec came with it.
    pub has_mountspec: bool,
    /// Whether it was made with its keys.
    pub has_keys: bool,
}

/// Unpacks the backup `file` into `state`, which is absent or empty.
pub fn restore(file: &Path, state: &Path) -> Result<RestoreReport> {
    vacant(state)?;
    let mut archive = File::open(file).map_err(|err| Error::from(err).about(file.display()))?;
    let parent = parent(state);
    DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    // Only its owner may read it; it is removed if this fails.
    let private = Permissions::from_mode(0o700);
    let aside = tempfile::Builder::new().prefix(".acheron-restore-").permissions(private).tempdir_in(parent)?;
    let checked = verify(&archive).and_then(|checked| archive.rewind().map(|()| checked).map_err(Error::from));
    let report = checked.and_then(|checked| unpack(archive, aside.path()).map(|()| checked));
    let report = report.map_err(|error| error.about(file.display()))?;
    if let Some(faults) = super::faults(aside.path())?.filter(|faults| !faults.is_empty()) {
        return Err(Error::invalid(format!("{}: its database is damaged: {}", file.display(), faults.join("; "))));
    }
    // Left by the look at it.
    for suffix in ["-wal", "-shm"] {
        _ = std::fs::remove_file(aside.path().join(format!("{DATABASE}{suffix}"))); // usually not there
    }
    File::open(aside.path())?.sync_all()?;
    // Replaces an empty directory, and nothing else.
    std::fs::rename(aside.path(), state).map_err(|err| Error::from(err).about(state.display()))?;
    _ = aside.keep(); // it has another name now
    File::open(parent)?.sync_all()?;
    Ok(report)
}

fn vacant(state: &Path) -> Result<()> {
    let shown = state.display();
    match std::fs::read_dir(state) {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(Error::from(err).about(shown)),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Error::already_exists(format!("{shown} is not empty; name another directory"))),
        },
    }
}

/// The first entry.
fn manifest(entries: &mut tar::Entries<'_, impl Read>) -> Result<(String, Value)> {
    let not_one = || Error::invalid("is not a backup of acheron");
    let first =
        entries.next().and_then(Result::ok).filter(|entry| entry.path().is_ok_and(|it| *it == *Path::new(MANIFEST)));
    let mut text = String::new();
    first.ok_or_else(not_one)?.take(LARGEST_MANIFEST).read_to_string(&mut text).map_err(|_| not_one())?;
    let manifest: Value = serde_json::from_str(&text).map_err(|_| not_one())?;
    match manifest["format"].as_u64() {
        Some(1..=FORMAT) => Ok((text, manifest)),
        Some(newer) => Err(Error::invalid(format!("is of format {newer}, and this acheron knows {FORMAT}"))),
        None => Err(not_one()),
    }
}

/// Reads all of it before anything is written, and holds every entry against its checksum.
fn verify(archive: &File) -> Result<RestoreReport> {
    let mut archive = Archive::new(std::io::BufReader::new(archive));
    let mut entries = archive.entries()?;
    let (text, manifest) = manifest(&mut entries)?;
    let mut report = RestoreReport { has_keys: manifest["keys"] != false, ..RestoreReport::default() };
    if manifest["format"] == 1 {
        return Ok(report);
    }
    let mut first = EntrySum::of(Path::new(MANIFEST));
    first.add(text.as_bytes());
    let (mut names, mut sums, mut wanted) = (vec![PathBuf::from(MANIFEST)], vec![first.line()], None);
    for entry in entries {
        let mut entry = entry.map_err(|err| Error::invalid(format!("is damaged: {err}")))?;
        let (name, size) = (entry.path()?.into_owned(), entry.header().size()?);
        if wanted.is_some() {
            return Err(Error::invalid(format!("is damaged: {} comes after the checksums", name.display())));
        }
        if name == Path::new(SUMS) {
            let mut text = String::new();
            entry.read_to_string(&mut text).map_err(|err| Error::invalid(format!("is damaged: {err}")))?;
            wanted = Some(text);
            continue;
        }
        let mut sum = EntrySum::of(&name);
        let mut content = SummedReader { content: &mut entry, read: 0, sum: &mut sum };
        std::io::copy(&mut content, &mut std::io::sink())
            .map_err(|err| Error::invalid(format!("is damaged: {}: {err}", name.display())))?;
        if content.read != size {
            return Err(Error::invalid(format!("is damaged: {} has no end", name.display())));
        }
        if entry.header().entry_type() == EntryType::Regular {
            (report.files, report.bytes) = (report.files + 1, report.bytes + size);
        }
        report.has_mountspec |= name == Path::new(MOUNTSPEC);
        sums.push(sum.line());
        names.push(name);
    }
    let wanted = wanted.ok_or_else(|| Error::invalid("is damaged: its end is missing"))?;
    let wanted: Vec<&str> = wanted.split_inclusive('\n').collect();
    if let Some(at) = sums.iter().zip(&wanted).position(|(found, wanted)| found != wanted) {
        return Err(Error::invalid(format!("is damaged: {} is not what was written", names[at].display())));
    }
    match sums.len() == wanted.len() {
        true => Ok(RestoreReport { is_verified: true, ..report }),
        false => Err(Error::invalid("is damaged: entries are missing or were added")),
    }
}

fn unpack(archive: File, root: &Path) -> Result<()> {
    let mut archive = Archive::new(std::io::BufReader::new(archive));
    let mut entries = archive.entries()?;
    manifest(&mut entries)?;
    let mut directories = BTreeSet::new();
    let mut database = false;
    for entry in entries {
        let mut entry = entry.map_err(|err| Error::invalid(format!("is damaged: {err}")))?;
        let name = entry.path()?.into_owned();
        if name == Path::new(SUMS) {
            continue;
        }
        let below = below(&name)?;
        let path = root.join(&below);
        match entry.header().entry_type() {
            EntryType::Directory => {
                DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
                directories.insert(path);
            }
            EntryType::Regular => {
                // Never another entry's file: the name must be free.
                let options = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
                let mut file = options.map_err(|err| Error::from(err).about(name.display()))?;
                let size = entry.header().size()?;
                let copied = std::io::copy(&mut entry, &mut file)
                    .map_err(|err| Error::invalid(format!("is damaged: {}: {err}", name.display())))?;
                if copied != size {
                    return Err(Error::invalid(format!("is damaged: {} has no end", name.display())));
                }
                file.sync_all()?;
                database |= below == Path::new(DATABASE);
            }
            _ => return Err(Error::invalid(format!("{} is neither a plain file nor a directory", name.display()))),
        }
    }
    for directory in &directories {
        File::open(directory)?.sync_all()?;
    }
    if database { Ok(()) } else { Err(Error::invalid("has no database")) }
}

/// A path of plain names only.
fn below(name: &Path) -> Result<PathBuf> {
    let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    match plain && name.components().next().is_some() {
        true => Ok(name.components().collect()),
        false => Err(Error::forbidden(format!("{} leads out of the directory", name.display()))),
    }
}
