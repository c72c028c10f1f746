//! Makes a state directory from a backup. Used by `acheron restore`.
//!
//! An archive may come from anywhere: only plain files and directories are taken, each below the new directory, and the
//! directory gets its name when it is whole.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use tar::{Archive, EntryType};

use super::backup::{FORMAT, MANIFEST, parent};
use acheron_base::{Error, Result};
use acheron_store::FILE as DATABASE;

/// The size limit of the manifest in bytes.
const LARGEST_MANIFEST: u64 = 64 << 10;

/// Unpacks the backup `file` into `state`, which is absent or empty.
pub fn restore(file: &Path, state: &Path) -> Result<()> {
    vacant(state)?;
    let archive = File::open(file).map_err(|err| Error::from(err).about(file.display()))?;
    let parent = parent(state);
    DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    // Only its owner may read it; it is removed if this fails.
    let private = Permissions::from_mode(0o700);
    let aside = tempfile::Builder::new().prefix(".acheron-restore-").permissions(private).tempdir_in(parent)?;
    unpack(archive, aside.path()).map_err(|error| error.about(file.display()))?;
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
    Ok(())
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

fn unpack(archive: File, root: &Path) -> Result<()> {
    let mut archive = Archive::new(std::io::BufReader::new(archive));
    let not_one = || Error::invalid("is not a backup of acheron");
    let mut entries = archive.entries()?;
    let mut manifest = String::new();
    let first =
        entries.next().and_then(Result::ok).filter(|entry| entry.path().is_ok_and(|it| *it == *Path::new(MANIFEST)));
    first.ok_or_else(not_one)?.take(LARGEST_MANIFEST).read_to_string(&mut manifest).map_err(|_| not_one())?;
    let manifest: Value = serde_json::from_str(&manifest).map_err(|_| not_one())?;
    match manifest["format"].as_u64() {
        Some(FORMAT) => (),
        Some(newer) => {
            return Err(Error::invalid(format!("is of format {newer}, and this acheron knows {FORMAT}")));
        }
        None => return Err(not_one()),
    }
    let mut directories = BTreeSet::new();
    let mut database = false;
    for entry in entries {
        let mut entry = entry.map_err(|err| Error::invalid(format!("is damaged: {err}")))?;
        let name = entry.path()?.into_owned();
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
