//! The place for a mount: whether the directory is empty, and whether a dead mount is in the way.
//!
//! This module reads the list of the kernel and never calls `stat`, which would hang with a server that hangs. The crate
//! root uses it; it uses [`attach`].

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Options, attach};
use acheron_base::{Error, Result, mountinfo};

/// A mount in the list of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// The mount point.
    pub path: PathBuf,
    /// The type of the file system, such as `fuse.acheron`.
    pub kind: String,
    /// The mounted device; for a mount of this crate, its [name](super::Mount::name).
    pub source: String,
}

/// All mounts, the newest last.
pub fn mounted() -> Result<Vec<MountEntry>> {
    let mounts = mountinfo::read()?.into_iter();
    Ok(mounts.map(|it| MountEntry { path: it.point, kind: it.kind, source: it.source }).collect())
}

/// All mounts of type `fuse.<subtype>`, of every process, the newest last.
pub fn mounts_of(subtype: &str) -> Result<Vec<MountEntry>> {
    let fstype = attach::fstype(subtype);
    Ok(mounted()?.into_iter().filter(|it| it.kind == fstype).collect())
}

/// Checks that `path` is an empty directory without a mount, and returns its absolute path. A mount whose server is gone
/// is detached first.
pub fn prepare_mountpoint(path: &Path, options: &Options) -> Result<PathBuf> {
    let unmount = &options.unmount_command;
    let path = absolute(path)?;
    while let Some(there) = mounted()?.into_iter().rev().find(|it| it.path == path && it.kind.starts_with("fuse")) {
        match condition(&path) {
            Condition::Dead => attach::detach(&there.source, &path)?,
            Condition::Served => {
                return Err(Error::already_exists(format!(
                    "a file system ({}) is already mounted on {}: unmount it first with `{unmount} {1}`",
                    there.kind,
                    path.display()
                )));
            }
            Condition::Hangs => {
                return Err(Error::unavailable(format!(
                    "the file system on {} does not answer: unmount it with `{unmount} {0}`",
                    path.display()
                )));
            }
        }
    }
    let mut names = std::fs::read_dir(&path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => {
            Error::not_found(format!("there is no directory {}: make it with `mkdir -p {0}`", path.display()))
        }
        _ => Error::new(Error::from(error).code, format!("{} is not a directory that can be read", path.display())),
    })?;
    match names.next() {
        None => Ok(path),
        Some(_) => Err(Error::invalid(format!(
            "{} is not empty, and a mount would hide its files: choose an empty directory",
            path.display()
        ))),
    }
}

/// The absolute path, without a system call on `path` itself, whose server may hang.
fn absolute(path: &Path) -> Result<PathBuf> {
    let (parent, name) = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => (parent, name),
        _ => return Ok(path.canonicalize()?),
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = parent.canonicalize().map_err(|error| {
        Error::new(Error::from(error).code, format!("there is no directory {} to mount in", parent.display()))
    })?;
    let path = parent.join(name);
    // The link is followed here because `canonicalize` would call the server of the mount.
    match std::fs::read_link(&path) {
        Ok(target) => absolute(&parent.join(target)),
        Err(_) => Ok(path),
    }
}

enum Condition {
    Served,
    Dead,
    Hangs,
}

/// The time limit for a server to answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Asks with a separate process: one that waits for a hanging server cannot be killed.
fn condition(path: &Path) -> Condition {
    let mut asker = Command::new("stat");
    asker.arg("-f").arg("--").arg(path).env("LC_ALL", "C");
    asker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let Ok(mut asker) = asker.spawn() else { return Condition::Served };
    let began = Instant::now();
    loop {
        match asker.try_wait() {
            Ok(Some(status)) if status.success() => return Condition::Served,
            Ok(Some(_)) => {
                let mut said = String::new();
                if let Some(mut stderr) = asker.stderr.take() {
                    let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
                }
                // "Transport endpoint is not connected", or "Software caused connection abort".
                let dead = said.contains("not connected") || said.contains("connection abort");
                return if dead { Condition::Dead } else { Condition::Served };
            }
            _ if began.elapsed() > ANSWER_TIME => {
                let _ = asker.kill();
                return Condition::Hangs;
            }
            _ => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_directory_is_accepted() {
        let scratch = tempfile::tempdir().unwrap();
        let empty = scratch.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        assert_eq!(prepare_mountpoint(&empty, &Options::default()).unwrap(), empty.canonicalize().unwrap());
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink("empty", &link).unwrap();
        assert_eq!(prepare_mountpoint(&link, &Options::default()).unwrap(), empty.canonicalize().unwrap());
        for (path, word) in [("missing", "mkdir -p"), ("missing/deeper", "to mount in"), (".", "not empty")] {
            let error = prepare_mountpoint(&scratch.path().join(path), &Options::default()).unwrap_err();
            assert!(error.message.contains(word), "{error}");
        }
        std::fs::write(empty.join("file"), "").unwrap();
        assert!(
            prepare_mountpoint(&empty.join("file"), &Options::default())
                .unwrap_err()
                .message
                .contains("not a directory")
        );
    }
}
