//! Directories of this machine under `projects/<id>/fs`, as the kernel's own mounts over ours.
//!
//! Native speed, and every operation is the real one. Only root may do it; elsewhere they are mirrored, and `doctor` says
//! so. Detaching the mount that they stand on detaches them too.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::mount::{MoveMountFlags, OpenTreeFlags};

use crate::spec::{ProjectDir, ProjectSpec, ServedBy, Spec};
use acheron_base::{Error, Result};
use acheron_fuse::Mount;
use acheron_sandbox::{MountAttributes, set_mount_attributes};

/// Every bind of the spec, what lies deeper last.
pub fn all(spec: &Spec, here: &Path) -> Vec<ProjectDir> {
    let mut all = Vec::new();
    for (id, project) in &spec.projects {
        let served_by = Some(if mirrored(project, here) { ServedBy::Mirror } else { ServedBy::Kernel });
        for (at, bind) in &project.binds {
            all.push(ProjectDir {
                project: id.clone(),
                at: at.clone(),
                source: here.join(&bind.path).components().collect(),
                id: None,
                read_only: bind.read_only,
                served_by,
            });
        }
    }
    all.sort_by_key(|bound| bound.path().components().count());
    all
}

/// Whether this process may mount.
pub fn may_mount() -> bool {
    caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SYS_ADMIN).unwrap_or(false)
}

/// Whether a project is mirrored through the mount: as a whole, for what the kernel binds hides what lies below it.
pub fn mirrored(project: &ProjectSpec, here: &Path) -> bool {
    !may_mount() || hides(project, here) || project.binds.values().any(|bind| bind.mirror)
}

/// Whether a bind stands over a directory that is not there: nothing can be mounted on it.
pub fn hides(project: &ProjectSpec, here: &Path) -> bool {
    let base = project.binds.get("/").map(|bind| here.join(&bind.path));
    base.is_some_and(|base| project.binds.keys().any(|at| !base.join(at.trim_matches('/')).is_dir()))
}

/// Refuses a directory that is the mount itself or lies in it: the host would wait for itself.
pub fn outside(source: &Path, mountpoint: &Path) -> Result<PathBuf> {
    let real = source.canonicalize().map_err(|err| Error::unavailable(format!("{}: {err}", source.display())))?;
    match real.starts_with(mountpoint.canonicalize().as_deref().unwrap_or(mountpoint)) {
        true => Err(Error::unavailable(format!("{}: it lies in the mount itself", source.display()))),
        false => Ok(real),
    }
}

/// Mounts every directory over the tree. One that fails is logged, and the others are mounted nevertheless.
pub fn make(mount: &Mount, all: &[ProjectDir]) -> Vec<(ProjectDir, Error)> {
    let mut failed = Vec::new();
    // A protected path is no longer invalidated, so the kernel must know of it before.
    mount.flush_notices();
    for bound in all.iter().filter(|bound| bound.served_by == Some(ServedBy::Kernel)) {
        let path = bound.path_of("");
        mount.protect(&path);
        if let Err(error) = one(mount.mountpoint(), bound) {
            mount.unprotect(&path);
            failed.push((bound.clone(), error));
        }
    }
    failed
}

/// Takes everything away that was mounted below a project, what lies deeper first.
pub fn undo(mount: &Mount, project: &str) {
    undo_at(mount, &format!("projects/{project}"));
}

/// Takes everything away that was mounted at or below a path of the tree, what lies deeper first.
pub fn undo_at(mount: &Mount, path: &str) {
    let fs = mount.mountpoint().join(path);
    let mut found: Vec<PathBuf> = acheron_base::mountinfo::read()
        .unwrap_or_default()
        .into_iter()
        .map(|mount| mount.point)
        .filter(|at| at.starts_with(&fs))
        .collect();
    found.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
    for at in found {
        if let Err(error) = rustix::mount::unmount(&at, rustix::mount::UnmountFlags::DETACH) {
            tracing::warn!(%error, at = %at.display(), "could not be unmounted");
        }
        if let Ok(below) = at.strip_prefix(mount.mountpoint()) {
            mount.unprotect(&format!("/{}", below.display()));
        }
    }
}

fn one(mountpoint: &Path, bound: &ProjectDir) -> Result<()> {
    let source = outside(&bound.source, mountpoint)?;
    mount_over(mountpoint, &source, &bound.path(), bound.read_only)
}

/// Mounts a directory of this machine over a path of the tree.
pub fn mount_over(mountpoint: &Path, source: &Path, path: &Path, read_only: bool) -> Result<()> {
    let io = |err: rustix::io::Errno| {
        let why = std::io::Error::from(err);
        Error::unavailable(format!("`{}` cannot be shown as {}: {why}", source.display(), path.display()))
    };
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let source = rustix::fs::open(source, directory, Mode::empty()).map_err(io)?;
    // Without what is mounted below it: a directory that contains the mountpoint shows an empty one there.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = rustix::mount::open_tree(&source, c"", flags).map_err(io)?;
    attributes(tree.as_fd(), read_only).map_err(io)?;
    let root = rustix::fs::open(mountpoint, directory, Mode::empty()).map_err(io)?;
    let target = below(&root, path).map_err(io)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(&tree, c"", &target, c"", flags).map_err(io)
}

fn below(root: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let path = path.strip_prefix("/").unwrap_or(path);
    rustix::fs::openat2(root, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Read-only or not; never devices or set-user-id programs. Private, so that mounts made there do not propagate.
fn attributes(tree: BorrowedFd<'_>, read_only: bool) -> rustix::io::Result<()> {
    let more = if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let set = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | more;
    set_mount_attributes(tree, MountAttributes { set, private: true, ..MountAttributes::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bind_has_its_place() {
        let spec = Spec::check(
            r#"{"layout":"acheron-1","agents":{"a":{}},"projects":{
                "p":{"binds":{"/docs":{"path":"/srv/docs"},"/":{"path":"src","read_only":false}}}}}"#,
        )
        .unwrap();
        let shown: Vec<String> = all(&spec, Path::new("/here"))
            .iter()
            .map(|bound| format!("{} {} {}", bound.path_of(""), bound.source.display(), bound.read_only))
            .collect();
        assert_eq!(shown, ["/projects/p/fs /here/src false", "/projects/p/fs/docs /srv/docs true"]);
    }
}
