//! Resolves a path: follows links itself, each step by the descriptor of the one before. Rules are about the names of
//! the tree, and a link gives a file another name. So the real name is found first, and that name is opened in a
//! directory [without links](super::ConfinedDir::without_links): if something was swapped meanwhile, that fails. A hard
//! link is a name like any other and cannot be distinguished from the first.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{ConfinedDir, plain, resolved};
use crate::error::Result;

/// The limit of links in one path, as in the kernel.
const LINKS: usize = 40;

/// The end of a path, existing or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// The path below the directory, without links and `..`; empty for the directory itself.
    pub path: String,
    /// Whether something is there that may be seen.
    pub there: bool,
}

impl ConfinedDir {
    /// Whether `rel` or a directory above it is a link.
    pub fn has_link(&self, rel: &str) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let Ok(rel) = plain(rel) else { return false };
        match resolved(&self.root, rel, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(held) => {
                rustix::fs::fstat(&held).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
            }
            Err(errno) => errno == Errno::LOOP,
        }
    }

    /// Follows `rel` through links to its end. A step for which `seen` is false is treated like a missing one, so that
    /// the answer does not reveal it; the second argument of `seen` says whether the step is a directory. A path that
    /// leads out is refused.
    pub fn resolve(&self, rel: &str, seen: &dyn Fn(&str, bool) -> bool) -> Result<ResolvedPath> {
        let refused = |errno| self.refused(rel, errno);
        let mut wanted = steps(plain(rel)?);
        let mut held: Vec<OwnedFd> = Vec::new();
        let mut path: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(name) = wanted.pop() {
            if name == ".." {
                held.pop();
                path.pop().ok_or(Errno::XDEV).map_err(refused)?;
                continue;
            }
            let above = held.last().unwrap_or(&self.root);
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            path.push(name);
            let step = resolved(above, &path[path.len() - 1], flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
            let kind = match &step {
                Ok(step) => FileType::from_raw_mode(rustix::fs::fstat(step).map_err(refused)?.st_mode),
                Err(_) => FileType::Directory,
            };
            let step = match step {
                _ if !seen(&path.join("/"), kind == FileType::Directory) => Err(Errno::NOENT),
                step => step,
            };
            let step = match step {
                Err(Errno::NOENT | Errno::NOTDIR) => {
                    return Ok(ResolvedPath { path: ended(path, wanted), there: false });
                }
                step => step.map_err(refused)?,
            };
            if kind != FileType::Symlink {
                held.push(step);
                continue;
            }
            links += 1;
            if links > LINKS {
                return Err(refused(Errno::LOOP));
            }
            let target = rustix::fs::readlinkat(&step, c"", Vec::new()).map_err(refused)?;
            path.pop();
            match target.to_str() {
                Ok(target) if !target.starts_with('/') => wanted.extend(steps(target)),
                _ => return Err(refused(Errno::XDEV)),
            }
        }
        Ok(ResolvedPath { path: path.join("/"), there: true })
    }
}

/// The names of a path, the first one last.
fn steps(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect()
}

/// The path with the remaining names appended: nothing there can be asked.
fn ended(mut path: Vec<String>, wanted: Vec<String>) -> String {
    for name in wanted.into_iter().rev() {
        match name.as_str() {
            // A name below a missing one is missing too, and is named by it.
            ".." => break,
            _ => path.push(name),
        }
    }
    path.join("/")
}

#[cfg(test)]
mod tests;
