//! A directory of the machine that was found once and must be the same whenever it is opened again. A path through a
//! directory that an agent can write may lead elsewhere a moment later. So it is resolved once, when the operator named
//! it, and later opened without following links, and compared.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::{FileInfo, Id};
use crate::error::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Without links.
    pub path: PathBuf,
    pub id: Id,
}

impl Source {
    pub fn resolve(path: &Path) -> Result<Source> {
        let told = |err: std::io::Error| Error::from(err).about(path.display());
        let real = path.canonicalize().map_err(told)?;
        let held = hold(&real).map_err(|errno| told(errno.into()))?;
        let info = FileInfo::of(&held).map_err(|errno| told(errno.into()))?;
        Ok(Source { path: real, id: info.id })
    }

    /// Opens the directory; refuses if another one is there now.
    pub fn open(&self) -> Result<OwnedFd> {
        same(&self.path, self.id)
    }
}

/// Opens a path without links, if it is still that directory.
pub fn same(path: &Path, id: Id) -> Result<OwnedFd> {
    let held = hold(path).ok().filter(|held| FileInfo::of(held).is_ok_and(|info| info.id == id));
    held.ok_or_else(|| {
        let path = path.display();
        Error::conflict(format!("`{path}` is not the directory that it was when it was bound: mount again"))
    })
}

fn hold(path: &Path) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_swapped_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["a", "other"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::os::unix::fs::symlink("a", at("link")).unwrap();
        let found = Source::resolve(&at("link")).unwrap();
        assert!(found.path.ends_with("a") && found.open().is_ok(), "the operator's links are followed once");
        std::fs::rename(at("a"), at("b")).unwrap();
        std::os::unix::fs::symlink("other", at("a")).unwrap();
        assert!(found.open().unwrap_err().message.ends_with("mount again"));
        std::fs::remove_file(at("a")).unwrap();
        std::fs::rename(at("other"), at("a")).unwrap();
        assert!(found.open().is_err(), "another directory of that name");
        std::fs::remove_dir(at("a")).unwrap();
        std::fs::rename(at("b"), at("a")).unwrap();
        assert!(found.open().is_ok());
    }
}
