//! Finds the mount that a command refers to. Used by the other commands.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use super::here::absolute;
use super::{Failure, pasted};
use acheron_base::{Code, Error};
use acheron_fuse::{MountEntry, mounts_of};

/// The time after which a mount counts as hanging.
const PATIENCE: Duration = Duration::from_secs(3);

/// The mount at `named`, or the only one.
pub fn choose(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(find(named)?.path);
    }
    let mut mounts = mounts_of("acheron")?;
    if let Some(around) = around(&mounts).filter(|_| mounts.len() > 1) {
        return Ok(around);
    }
    let names = || mounts.iter().map(|mount| mount.path.display().to_string()).collect::<Vec<_>>().join(", ");
    match mounts.len() {
        0 => Err(Failure::hint(Error::not_found("nothing is mounted"), "acheron mount DIR --daemon")),
        1 => Ok(mounts.remove(0).path),
        _ => Err(Failure::hint(
            Error::invalid(format!("there are several mounts: {}", names())),
            "choose one with --root DIR",
        )),
    }
}

/// The mount that the working directory lies in.
pub fn around(mounts: &[MountEntry]) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let mounts = mounts.iter().filter(|mount| here.starts_with(&mount.path));
    mounts.map(|mount| mount.path.clone()).max_by_key(|path| path.as_os_str().len())
}

/// Like [`choose`], but refuses a mount whose host has ended.
pub fn choose_living(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let root = choose(named)?;
    // The kernel may have cached the attributes, but it does not open a directory by itself.
    match std::fs::read_dir(&root).map_err(Error::from) {
        Err(error) if error.code == Code::Unavailable => Err(Failure::hint(
            Error::unavailable(format!("the mount on {} is dead: its host has ended", root.display())),
            format!("`acheron unmount {}` detaches it", pasted(&root)),
        )),
        _ => Ok(root),
    }
}

/// The mount at `path`, found without touching it: a hanging mount would hang this process.
pub fn find(path: &Path) -> Result<MountEntry, Failure> {
    let path = absolute(path)?;
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

/// The health report of a mount; `None` if it does not answer.
pub fn health(mountpoint: &Path) -> Option<Value> {
    let (said, heard) = mpsc::channel();
    let file = mountpoint.join("meta/health.json");
    // In a separate thread, which is left behind if the mount hangs.
    std::thread::spawn(move || said.send(std::fs::read(file)));
    let text = heard.recv_timeout(PATIENCE).ok()?.ok()?;
    serde_json::from_slice(&text).ok()
}
