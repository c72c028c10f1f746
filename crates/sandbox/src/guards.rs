//! Parts of what is bound that are shown otherwise than the rest: hidden, read-only, or writable again.
//!
//! What stands between a bind and such a part becomes a mount of its own, which no program inside can rename: otherwise a
//! part would come to light under another name.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::covers::Covers;
use super::mount_attributes::{MountAttributes, set_mount_attributes};
use super::plan::inside;
use super::root::{copy, find, put};
use acheron_base::{Error, Result};

/// One part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// Inside: `/projects/here/fs/secret`.
    pub path: PathBuf,
    /// The target of the bind that it is a part of.
    pub bind: PathBuf,
    pub show: Show,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Show {
    /// As an empty directory or an empty file, which cannot be changed.
    Hidden,
    ReadOnly,
    /// Writable in something that is not.
    Open,
}

/// With everything that is mounted below.
const READ_ONLY: MountAttributes =
    MountAttributes { set: libc::MOUNT_ATTR_RDONLY, clear: 0, private: false, recursive: true };

/// The mount alone: what is mounted below it keeps its own attributes.
const WRITABLE: MountAttributes =
    MountAttributes { set: 0, clear: libc::MOUNT_ATTR_RDONLY, private: false, recursive: false };

/// Puts every guard up. What is not there needs none.
pub(super) fn put_up(top: BorrowedFd<'_>, guards: &[Guard], covers: &Covers) -> Result<()> {
    for (place, show) in places(guards) {
        let place = inside(&place)?;
        let named = |err: Errno| {
            let why = std::io::Error::from(err);
            Error::unavailable(format!("the rules for '/{}' cannot be kept here: {why}", place.display()))
        };
        let found = match find(top, place) {
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            Err(Errno::LOOP) => {
                let place = place.display();
                let said = format!("the rules for '/{place}' cannot be kept: a link stands there");
                return Err(Error::forbidden(said));
            }
            found => found.map_err(named)?,
        };
        if show == Some(Show::Hidden) {
            covers.cover(top, place)?;
            continue;
        }
        let tree = copy(found.as_fd()).map_err(named)?;
        match show {
            Some(Show::ReadOnly) => set_mount_attributes(tree.as_fd(), READ_ONLY).map_err(named)?,
            Some(Show::Open) => set_mount_attributes(tree.as_fd(), WRITABLE).map_err(named)?,
            _ => (),
        }
        put(&tree, &found).map_err(named)?;
    }
    Ok(())
}

/// The guards and the directories on the way to them, what lies deeper last.
fn places(guards: &[Guard]) -> Vec<(PathBuf, Option<Show>)> {
    let mut all: BTreeMap<&Path, Option<Show>> = BTreeMap::new();
    for guard in guards {
        for above in guard.path.ancestors().skip(1).take_while(|above| *above != guard.bind) {
            all.entry(above).or_default();
        }
        all.insert(&guard.path, Some(guard.show));
    }
    let mut all: Vec<_> = all.into_iter().map(|(path, show)| (path.to_owned(), show)).collect();
    all.sort_by_key(|(path, _)| path.components().count());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_a_guard_is_held_too() {
        let guard = |path: &str, show| Guard { path: path.into(), bind: "/projects/p/fs".into(), show };
        let all = places(&[guard("/projects/p/fs/a/b/c", Show::Hidden), guard("/projects/p/fs/a", Show::ReadOnly)]);
        let said: Vec<_> = all.iter().map(|(path, show)| format!("{} {show:?}", path.display())).collect();
        assert_eq!(
            said,
            ["/projects/p/fs/a Some(ReadOnly)", "/projects/p/fs/a/b None", "/projects/p/fs/a/b/c Some(Hidden)"]
        );
    }
}
