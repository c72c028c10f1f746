//! Where a program may change files, as Landlock can hold it, and the names that nobody may make.
//!
//! A mount covers only what exists, and one that stands on a single file is gone when a process outside replaces the
//! file. Landlock knows only what is allowed, not what is forbidden. So a directory with a reserved path below it is not
//! granted as a whole: each thing in it is, apart from the way to the reserved path. What is made in such a directory
//! later is granted to nobody; the [`broker`](super::broker) changes it for the program, by name. What nothing is reserved in
//! is granted as a whole, and the broker only counts. The init uses it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};

use super::path_rules::Visibility;
use super::plan::Plan;

/// As many things are granted one by one; the broker serves the others.
const MOST: usize = 512;

/// The number of a file and of its file system.
pub(super) type FileId = (u64, u64);

/// A directory in which a program may change everything but some paths.
#[derive(Debug, Default)]
pub(super) struct WritableTree {
    top: PathBuf,
    /// If there is none, all of it is granted.
    reserved: Vec<PathBuf>,
    /// Whether it is on a disk of the host, where files are counted; otherwise it is the sandbox's own.
    on_disk: bool,
    /// Granted in a directory that is not granted itself.
    granted: BTreeMap<PathBuf, FileId>,
}

/// What Landlock grants.
#[derive(Debug)]
pub(super) struct Grant {
    pub file: OwnedFd,
    pub directory: bool,
}

/// How a path lies to the reserved ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// Nothing reserved in it.
    Free,
    /// A reserved path lies below it.
    Above,
    /// Reserved, or below what is.
    Within,
}

/// Everything that the plan allows to be written, with the trees that the broker must serve. `scratch` are the directories of
/// the sandbox itself in which programs write: what Landlock grants, it grants with all that is bound below.
pub(super) fn find(plan: &Plan, scratch: &[&str]) -> (Vec<Grant>, Vec<WritableTree>) {
    let scratch: Vec<PathBuf> = scratch.iter().map(PathBuf::from).collect();
    let binds = plan.binds.iter().filter(|bind| !bind.read_only).map(|bind| (&bind.target, bind.on_disk));
    let open = plan.path_rules.iter().filter(|rule| rule.show == Visibility::Open).map(|rule| (&rule.path, true));
    let closed: Vec<&PathBuf> =
        plan.path_rules.iter().filter(|rule| rule.show != Visibility::Open).map(|rule| &rule.path).collect();
    let (mut grants, mut trees) = (Vec::new(), Vec::new());
    for (top, on_disk) in binds.chain(open).chain(scratch.iter().map(|path| (path, false))) {
        let reserved: Vec<PathBuf> =
            closed.iter().filter(|path| path.starts_with(top) && *path != &top).map(|path| (*path).clone()).collect();
        let mut tree = WritableTree { top: top.clone(), reserved, on_disk, granted: BTreeMap::new() };
        if tree.reserved.is_empty() {
            grants.extend(held(top).map(|(file, directory, _)| Grant { file, directory }));
            trees.extend(Some(tree).filter(|tree| tree.on_disk));
            continue;
        }
        let same: Vec<FileId> = tree.reserved.iter().filter_map(|path| Some(held(path)?.2)).collect();
        tree.split(top, &same, &mut grants);
        trees.push(tree);
    }
    (grants, trees)
}

impl WritableTree {
    /// Grants what is in a directory, but nothing on the way to a reserved path. `same` are the reserved files: another
    /// name for one of them is not granted either.
    fn split(&mut self, directory: &Path, same: &[FileId], grants: &mut Vec<Grant>) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(listed) = rustix::fs::open(directory, flags, Mode::empty()).and_then(Dir::new) else { return };
        for entry in listed.flatten() {
            let name = OsStr::new(entry.file_name().to_str().unwrap_or("."));
            if name == "." || name == ".." || grants.len() >= MOST {
                continue;
            }
            let path = directory.join(name);
            match self.relation(&path) {
                Relation::Within => continue,
                Relation::Above => self.split(&path, same, grants),
                Relation::Free => {
                    let Some((file, is_directory, id)) = held(&path).filter(|(_, _, id)| !same.contains(id)) else {
                        continue;
                    };
                    self.granted.insert(path, id);
                    grants.push(Grant { file, directory: is_directory });
                }
            }
        }
    }

    /// Whether a path lies in this tree.
    pub fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.top) && path != self.top
    }

    /// Whether the whole tree lies in a directory, or is it.
    pub fn lies_in(&self, place: &Path) -> bool {
        self.top.starts_with(place)
    }

    /// The length of the path of its top.
    pub fn depth(&self) -> usize {
        self.top.components().count()
    }

    pub fn on_disk(&self) -> bool {
        self.on_disk
    }

    /// Names are compared without regard to case: on some file systems both name the same file.
    pub fn relation(&self, path: &Path) -> Relation {
        let of = |reserved: &PathBuf| {
            let mut both = reserved.components().zip(path.components());
            if !both.all(|(one, other)| one.as_os_str().eq_ignore_ascii_case(other.as_os_str())) {
                Relation::Free
            } else if path.components().count() < reserved.components().count() {
                Relation::Above
            } else {
                Relation::Within
            }
        };
        let all: Vec<Relation> = self.reserved.iter().map(of).collect();
        let has = |relation| all.contains(&relation);
        if has(Relation::Within) {
            Relation::Within
        } else if has(Relation::Above) {
            Relation::Above
        } else {
            Relation::Free
        }
    }

    /// Whether Landlock lets a program change what is in this directory, if it is still the same one.
    pub fn granted_in(&self, directory: &Path) -> bool {
        self.reserved.is_empty()
            || directory.ancestors().take_while(|above| self.holds(above)).any(|above| self.granted(above))
    }

    /// Whether a file is granted itself.
    pub fn granted(&self, path: &Path) -> bool {
        self.reserved.is_empty()
            || self.granted.get(path).is_some_and(|id| {
                rustix::fs::statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| (stat.st_dev, stat.st_ino) == *id)
            })
    }
}

/// Opens what is at a path; `None` for a link, which would lead elsewhere.
fn held(path: &Path) -> Option<(OwnedFd, bool, FileId)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(file.as_fd()).ok()?;
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFLNK => None,
        kind => Some((file, kind == libc::S_IFDIR, (stat.st_dev, stat.st_ino))),
    }
}

#[cfg(test)]
mod tests;
