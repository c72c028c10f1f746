//! Parts of a bind that are shown differently from the rest: hidden, read-only, or writable again. Every directory
//! between a bind and such a part becomes a mount of its own, which no program inside can rename: otherwise the part
//! would appear under another name. [`root`](super::root) uses it; it uses the masks.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::masks::Masks;
use super::mount_attributes::{MountAttributes, set_mount_attributes};
use super::plan::inside;
use super::root::{copy, find, put};
use acheron_base::{Error, Result};

/// A rule for one part of a bind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRule {
    /// Its path inside: `/projects/here/fs/secret`.
    pub path: PathBuf,
    /// The target of the bind that contains it.
    pub bind: PathBuf,
    pub show: Visibility,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Shown as an empty directory or file, which cannot be changed.
    Hidden,
    /// Readable, not writable.
    ReadOnly,
    /// Writable inside a read-only bind.
    Open,
}

/// With everything that is mounted below.
const READ_ONLY: MountAttributes =
    MountAttributes { set: libc::MOUNT_ATTR_RDONLY, clear: 0, private: false, recursive: true };

/// The mount alone: what is mounted below it keeps its own attributes.
const WRITABLE: MountAttributes =
    MountAttributes { set: 0, clear: libc::MOUNT_ATTR_RDONLY, private: false, recursive: false };

/// Applies every rule. One whose path does not exist, or is a link, is kept by
/// [`write_grants`](super::write_grants) alone.
pub(super) fn apply(top: BorrowedFd<'_>, path_rules: &[PathRule], masks: &Masks) -> Result<()> {
    cover(top, path_rules, masks, |_, _| true)
}

/// Applies the rules once more that a change outside has taken away: a mount on a file is gone when the file is replaced.
pub(super) fn renew(top: BorrowedFd<'_>, path_rules: &[PathRule], masks: &Masks) -> Result<()> {
    cover(top, path_rules, masks, |found, show| show.is_some() && !is_mount(found))
}

/// Whether a descriptor refers to the top of a mount.
fn is_mount(found: &OwnedFd) -> bool {
    let stat = rustix::fs::statx(found, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS);
    stat.is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn cover(
    top: BorrowedFd<'_>,
    path_rules: &[PathRule],
    masks: &Masks,
    wanted: impl Fn(&OwnedFd, Option<Visibility>) -> bool,
) -> Result<()> {
    // The way to what is not there stays as it is.
    let there = |rule: &&PathRule| inside(&rule.path).is_ok_and(|path| find(top, path).is_ok());
    let path_rules: Vec<&PathRule> = path_rules.iter().filter(there).collect();
    for (place, show) in places(&path_rules) {
        let place = inside(&place)?;
        let named = |err: Errno| {
            let why = std::io::Error::from(err);
            Error::unavailable(format!("the rules for '/{}' cannot be applied: {why}", place.display()))
        };
        let found = match find(top, place) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            found => found.map_err(named)?,
        };
        if !wanted(&found, show) {
            continue;
        }
        if show == Some(Visibility::Hidden) {
            masks.mask(top, place)?;
            continue;
        }
        let tree = copy(found.as_fd()).map_err(named)?;
        match show {
            Some(Visibility::ReadOnly) => set_mount_attributes(tree.as_fd(), READ_ONLY).map_err(named)?,
            Some(Visibility::Open) => set_mount_attributes(tree.as_fd(), WRITABLE).map_err(named)?,
            _ => (),
        }
        put(&tree, &found).map_err(named)?;
    }
    Ok(())
}

/// The rules and the directories on the way to them, the deeper ones last.
fn places(path_rules: &[&PathRule]) -> Vec<(PathBuf, Option<Visibility>)> {
    let mut all: BTreeMap<&Path, Option<Visibility>> = BTreeMap::new();
    for rule in path_rules {
        for above in rule.path.ancestors().skip(1).take_while(|above| *above != rule.bind) {
            all.entry(above).or_default();
        }
        all.insert(&rule.path, Some(rule.show));
    }
    let mut all: Vec<_> = all.into_iter().map(|(path, show)| (path.to_owned(), show)).collect();
    all.sort_by_key(|(path, _)| path.components().count());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directories_above_a_rule_become_mounts_too() {
        let rule = |path: &str, show| PathRule { path: path.into(), bind: "/projects/p/fs".into(), show };
        let all = places(&[
            &rule("/projects/p/fs/a/b/c", Visibility::Hidden),
            &rule("/projects/p/fs/a", Visibility::ReadOnly),
        ]);
        let said: Vec<_> = all.iter().map(|(path, show)| format!("{} {show:?}", path.display())).collect();
        assert_eq!(
            said,
            ["/projects/p/fs/a Some(ReadOnly)", "/projects/p/fs/a/b None", "/projects/p/fs/a/b/c Some(Hidden)"]
        );
    }
}
