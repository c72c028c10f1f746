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
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_stands_where_its_links_lead() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("in/a/b")).unwrap();
        std::fs::write(root.join("in/a/file"), "").unwrap();
        std::fs::write(root.join("secret"), "").unwrap();
        for (name, to) in [
            ("in/to-a", "a"),
            ("in/chain", "to-a/b"),
            ("in/a/up", "../a/./file"),
            ("in/self", "self"),
            ("in/abs", "/etc"),
            ("in/out", "../secret"),
            ("in/far", "a/../../secret"),
            ("in/away", "../in/a"),
            ("in/dangling", "a/none"),
            ("in/through", "a/b/../file"),
        ] {
            symlink(to, root.join(name)).unwrap();
        }
        let place = ConfinedDir::open(root.join("in")).unwrap();
        let said = |path: &str, hidden: &str| match place.resolve(path, &|path, _| path != hidden) {
            Ok(ResolvedPath { path, there: true }) => path,
            Ok(ResolvedPath { path, there: false }) => format!("- {path}"),
            Err(error) => format!("! {}", error.code.name()),
        };
        for (path, expected) in [
            ("", ""),
            (".", ""),
            ("a//b/", "a/b"),
            ("to-a/file", "a/file"),
            ("chain", "a/b"),
            ("a/up", "a/file"),
            ("to-a/up", "a/file"),
            ("through", "a/file"),
            ("dangling", "- a/none"),
            ("dangling/x", "- a/none/x"),
            ("none/x", "- none/x"),
            ("a/file/x", "- a/file/x"),
            ("abs/passwd", "! forbidden"),
            ("out", "! forbidden"),
            ("far", "! forbidden"),
            ("away", "! forbidden"),
        ] {
            assert_eq!(said(path, "nothing"), expected, "{path}");
        }
        assert_eq!(place.resolve("self", &|_, _| true).unwrap_err().errno(), libc::ELOOP);
        // What is hidden is as what is not there, also as a step on the way.
        for (path, hidden, expected) in [
            ("a/file", "a", "- a/file"),
            ("to-a/file", "a", "- a/file"),
            ("to-a/file", "to-a", "- to-a/file"),
            ("through", "a/b", "- a/b"),
            ("through", "a/file", "- a/file"),
        ] {
            assert_eq!(said(path, hidden), expected, "{path} without {hidden}");
        }
    }

    #[test]
    fn a_place_without_links_follows_none() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir(root.join("a")).unwrap();
        std::fs::write(root.join("a/file"), "text").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("a/file", root.join("alias")).unwrap();
        let place = ConfinedDir::open(root).unwrap().without_links();
        assert_eq!(place.read("a/file").unwrap(), b"text");
        let errors = [
            place.read("link/file").unwrap_err(),
            place.read("alias").unwrap_err(),
            place.names("link").unwrap_err(),
            place.stat("alias").unwrap_err(),
            place.write("link/new", b"x").unwrap_err(),
            place.append("alias", b"x").unwrap_err(),
            place.make_dir("link/new").unwrap_err(),
            place.rename("a/file", "link/new").unwrap_err(),
            place.remove("link/file").unwrap_err(),
            place.within("link").unwrap_err(),
        ];
        for (path, expected) in
            [("a/file", false), ("link", true), ("link/file", true), ("link/none", true), ("none", false)]
        {
            assert_eq!(place.has_link(path), expected, "{path}");
        }
        for error in errors {
            assert!(error.message.ends_with("is a link, and links are not followed"), "{error}");
        }
        assert_eq!(std::fs::read(root.join("a/file")).unwrap(), b"text");
    }
}
