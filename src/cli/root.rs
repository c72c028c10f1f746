//! Which mount is meant.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use super::Failure;
use acheron_base::Error;
use acheron_fuse::{MountEntry, mounts_of};

/// How long a mount has to answer before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(3);

/// The mount at `named`, or the one there is.
pub fn choose(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(find(named)?.path);
    }
    let mut mounts = mounts_of("acheron")?;
    let names = || mounts.iter().map(|mount| mount.path.display().to_string()).collect::<Vec<_>>().join(", ");
    match mounts.len() {
        0 => Err(Failure::hint(Error::not_found("nothing is mounted"), "acheron mount DIR --daemon")),
        1 => Ok(mounts.remove(0).path),
        _ => Err(Failure::hint(
            Error::invalid(format!("there are several mounts: {}", names())),
            "say which one with --root DIR",
        )),
    }
}

/// The mount at `path`. It is never touched to find out: a mount that hangs would hang us.
pub fn find(path: &Path) -> Result<MountEntry, Failure> {
    let path = std::path::absolute(path)?;
    let mounts = mounts_of("acheron")?;
    let found = mounts.iter().rfind(|mount| mount.path == path).or_else(|| {
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok())?;
        let real = parent.join(path.file_name()?);
        mounts.iter().rfind(|mount| mount.path == real)
    });
    found.cloned().ok_or_else(|| {
        Failure::hint(
            Error::not_found(format!("no namespace is mounted on {}", path.display())),
            "`acheron status` shows what is mounted",
        )
    })
}

/// What the mount says of itself; nothing if it does not answer.
pub fn health(mountpoint: &Path) -> Option<Value> {
    let (said, heard) = mpsc::channel();
    let file = mountpoint.join("meta/health.json");
    // In a thread of its own, which is left behind if the mount hangs.
    std::thread::spawn(move || said.send(std::fs::read(file)));
    let text = heard.recv_timeout(PATIENCE).ok()?.ok()?;
    serde_json::from_slice(&text).ok()
}
