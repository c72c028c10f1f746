//! Where to mount: what is there already, and whether that is dead.
//!
//! The kernel's list is read, never `stat`: a mount whose server hangs would hang us too.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::attach;
use acheron_base::mountinfo;
use acheron_base::{Error, Result};

/// A mount, as the kernel lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    pub path: PathBuf,
    pub kind: String,
    /// For one of ours, the name of the instance.
    pub source: String,
}

/// All mounts, the newest last.
pub fn mounted() -> Result<Vec<Mounted>> {
    let mounts = mountinfo::read()?.into_iter();
    Ok(mounts.map(|it| Mounted { path: it.point, kind: it.kind, source: it.source }).collect())
}

/// The mounts of this program, of all its instances.
pub fn ours() -> Result<Vec<Mounted>> {
    Ok(mounted()?.into_iter().filter(|it| it.kind == "fuse.acheron").collect())
}

/// Makes sure that `path` is an empty directory that nothing lives on, and says its full name. A dead mount is taken
/// away first.
pub fn prepare(path: &Path) -> Result<PathBuf> {
    let path = absolute(path)?;
    while let Some(there) = mounted()?.into_iter().rev().find(|it| it.path == path && it.kind.starts_with("fuse")) {
        match condition(&path) {
            Condition::Dead => attach::detach(&there.source, &path)?,
            Condition::Lives => {
                let who = if there.kind == "fuse.acheron" { "an acheron" } else { "a file system" };
                return Err(Error::already_exists(format!(
                    "{who} is mounted on {} already: unmount it first, with `acheron unmount {0}`",
                    path.display()
                )));
            }
            Condition::Hangs => {
                return Err(Error::unavailable(format!(
                    "what is mounted on {} does not answer: take it away with `acheron unmount {0}`",
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
            "{} is not empty: what is in it would be hidden, so choose an empty directory",
            path.display()
        ))),
    }
}

/// The full name of `path` without looking at `path` itself, which may be dead.
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
    // A link is followed by hand, for `canonicalize` would look at what is mounted there.
    match std::fs::read_link(&path) {
        Ok(target) => absolute(&parent.join(target)),
        Err(_) => Ok(path),
    }
}

enum Condition {
    Lives,
    Dead,
    Hangs,
}

/// How long a living mount takes at most to say that it lives.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asked by a process of its own: who waits for a server that hangs cannot even be killed.
fn condition(path: &Path) -> Condition {
    let mut asker = Command::new("stat");
    asker.arg("-f").arg("--").arg(path).env("LC_ALL", "C");
    asker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let Ok(mut asker) = asker.spawn() else { return Condition::Lives };
    let began = Instant::now();
    loop {
        match asker.try_wait() {
            Ok(Some(status)) if status.success() => return Condition::Lives,
            Ok(Some(_)) => {
                let mut said = String::new();
                if let Some(mut stderr) = asker.stderr.take() {
                    let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
                }
                // "Transport endpoint is not connected", or "Software caused connection abort".
                let dead = said.contains("not connected") || said.contains("connection abort");
                return if dead { Condition::Dead } else { Condition::Lives };
            }
            _ if began.elapsed() > PATIENCE => {
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
    fn only_an_empty_directory_will_do() {
        let scratch = tempfile::tempdir().unwrap();
        let empty = scratch.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        assert_eq!(prepare(&empty).unwrap(), empty.canonicalize().unwrap());
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink("empty", &link).unwrap();
        assert_eq!(prepare(&link).unwrap(), empty.canonicalize().unwrap());
        for (path, word) in [("missing", "mkdir -p"), ("missing/deeper", "to mount in"), (".", "not empty")] {
            let error = prepare(&scratch.path().join(path)).unwrap_err();
            assert!(error.message.contains(word), "{error}");
        }
        std::fs::write(empty.join("file"), "").unwrap();
        assert!(prepare(&empty.join("file")).unwrap_err().message.contains("not a directory"));
    }
}
