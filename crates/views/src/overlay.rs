//! Mounts views. A privileged host mounts them in its own mount namespace, with directory renames and hard links as on an
//! ordinary file system; no set-user-id program and no device works in one.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_remount, move_mount, unmount,
};

use super::marks::MarkNames;
use acheron_base::{Error, Result};

/// The directories of one view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayDirs {
    pub base: PathBuf,
    pub upper: PathBuf,
    /// An empty directory beside the upper, for the kernel.
    pub work: PathBuf,
    /// Where it is mounted.
    pub at: PathBuf,
}

/// Mounts a view at its place. The directories are given by descriptors: the kernel takes no long value here, and separates by
/// colons.
pub fn mount(dirs: &OverlayDirs, marks: MarkNames) -> Result<()> {
    let held = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).map_err(|errno| refused(dirs, errno))?;
    let open = |path: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty())
    };
    let settings = || {
        let layers =
            [("lowerdir", open(&dirs.base)?), ("upperdir", open(&dirs.upper)?), ("workdir", open(&dirs.work)?)];
        for (key, dir) in &layers {
            fsconfig_set_string(&held, *key, acheron_base::host_dir::by_number(dir))?;
        }
        match marks {
            MarkNames::Trusted => {
                for (key, value) in [("redirect_dir", "on"), ("index", "on"), ("metacopy", "off")] {
                    fsconfig_set_string(&held, key, value)?;
                }
            }
            MarkNames::User => fsconfig_set_flag(&held, "userxattr")?,
        }
        fsconfig_create(&held)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let tree = fsmount(&held, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        move_mount(&tree, "", rustix::fs::CWD, &dirs.at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
    };
    settings().map_err(|errno| refused(dirs, errno))
}

fn refused(dirs: &OverlayDirs, errno: Errno) -> Error {
    let base = dirs.base.display();
    match errno {
        Errno::STALE => Error::conflict(format!(
            "{base} is not the directory that the view was made of: another one has its name; discard the view"
        )),
        Errno::BUSY => Error::busy(format!("the view of {base} is mounted already, and something still uses it")),
        Errno::PERM | Errno::ACCESS => {
            Error::unavailable(format!("a view of {base} needs the right to mount: run acheron as root"))
        }
        Errno::NODEV => Error::unavailable(format!("a view of {base} needs overlayfs, which this kernel lacks")),
        errno => Error::unavailable(format!(
            "a view of {base} cannot be mounted: {}; the state directory must lie on a file system that overlayfs can write \
             (no overlay itself, no network), and not inside {base}",
            std::io::Error::from(errno)
        )),
    }
}

/// Makes the kernel forget what it remembers of the base: one that was changed underneath is shown as it is now. Open files
/// stay open.
pub fn refresh(at: &Path) -> Result<()> {
    mount_remount(at, MountFlags::NOSUID | MountFlags::NODEV, "")
        .map_err(|errno| Error::from(std::io::Error::from(errno)).about(at.display()))
}

/// Takes a view away. What still has files open in it goes on with them.
pub fn take_away(at: &Path) -> Result<()> {
    match unmount(at, UnmountFlags::DETACH) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(errno) => Err(Error::from(std::io::Error::from(errno)).about(at.display())),
    }
}

/// Whether something is mounted at a path.
pub fn is_mounted(at: &Path) -> Result<bool> {
    Ok(acheron_base::mountinfo::read()?.iter().any(|mount| mount.point == at))
}

/// Makes the directories of a view. The top of the upper is the top of the view, so it has the owner and mode of the base.
pub fn make_dirs(dirs: &OverlayDirs) -> Result<()> {
    let meta = super::root::Root::open(&dirs.base)?.facts(Path::new(""))?;
    let meta = meta.ok_or_else(|| Error::not_found(format!("{} is gone", dirs.base.display())))?;
    for dir in [&dirs.upper, &dirs.work, &dirs.at] {
        std::fs::create_dir_all(dir).map_err(|err| Error::from(err).about(dir.display()))?;
    }
    let told = |errno: Errno| Error::from(std::io::Error::from(errno)).about(dirs.upper.display());
    rustix::fs::chmod(&dirs.upper, Mode::from_raw_mode(meta.mode)).map_err(told)?;
    let owner = (rustix::fs::Uid::from_raw(meta.uid), rustix::fs::Gid::from_raw(meta.gid));
    match rustix::fs::chown(&dirs.upper, Some(owner.0), Some(owner.1)) {
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(told(errno)),
    }
}

#[cfg(test)]
mod tests;
