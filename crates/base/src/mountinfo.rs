//! The list of mounts of the kernel, `/proc/self/mountinfo`. A dead or hanging mount is found here and never by `stat`,
//! which would hang with it. Any crate may use it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

mod list;

pub use list::current;

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub id: u64,
    pub parent: u64,
    /// `major:minor`
    pub device: String,
    /// The root of the mount within its file system.
    pub root: PathBuf,
    pub point: PathBuf,
    /// The type of the file system, such as `fuse.acheron`.
    pub kind: String,
    /// The mounted device; for FUSE its FSName.
    pub source: String,
    pub read_only: bool,
}

/// All mounts that this process sees, the oldest first.
pub fn read() -> std::io::Result<Vec<Mount>> {
    std::fs::read("/proc/self/mountinfo").map(|text| parse(&text))
}

/// The mounts in a mountinfo; lines that cannot be parsed are skipped.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut next = || fields.next();
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse().ok();
    let (id, parent) = (number(next()?)?, number(next()?)?);
    let device = text(next()?);
    let mut path = || Some(PathBuf::from(OsString::from_vec(unescaped(next()?))));
    let (root, point) = (path()?, path()?);
    let read_only = text(next()?).split(',').any(|option| option == "ro");
    while next()? != b"-" {} // optional fields, any number of them
    let (kind, source) = (text(next()?), text(&unescaped(next()?)));
    Some(Mount { id, parent, device, root, point, kind, source, read_only })
}

/// The mount of a path without links, found as the kernel finds it: from the root, mount by mount.
fn holding<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let top = |mount: &&Mount| mount.point == Path::new("/") && !mounts.iter().any(|above| above.id == mount.parent);
    let mut at = mounts.iter().find(top)?;
    // No more steps than mounts, should the kernel list a ring.
    for _ in mounts {
        let below = mounts.iter().filter(|mount| mount.parent == at.id && path.starts_with(&mount.point));
        match below.min_by_key(|mount| mount.point.components().count()) {
            Some(next) => at = next,
            None => break,
        }
    }
    Some(at)
}

/// Every path where the directory at `path`, or a part of it, is visible: the path itself, and other mounts of the same
/// part of the file system. Asks the file system nothing.
pub fn also_at(mounts: &[Mount], path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    let Some(mount) = holding(mounts, path) else { return all };
    let Ok(below) = path.strip_prefix(&mount.point) else { return all };
    let within = joined(&mount.root, below);
    for other in mounts.iter().filter(|other| other.device == mount.device && other.id != mount.id) {
        if let Ok(below) = within.strip_prefix(&other.root) {
            all.push(joined(&other.point, below));
        } else if other.root.starts_with(&within) {
            all.push(other.point.clone());
        }
    }
    all
}

/// Joins without the slash that an empty path would leave at the end.
fn joined(path: &Path, below: &Path) -> PathBuf {
    path.join(below).components().collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The kernel writes space, tab, newline and backslash as `\` and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            _ => {
                plain.push(byte);
                after
            }
        };
    }
    plain
}

#[cfg(test)]
mod tests;
