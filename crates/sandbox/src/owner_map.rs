//! Projects that belong to another user. A host that runs as root shows such a directory as its own program's: what belongs
//! to the owner belongs to the program inside, and what the program makes belongs to the owner. The kernel does it for a mount
//! (`MOUNT_ATTR_IDMAP`), and only root may ask for it, so the supervisor does, before it gives up its rights.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use super::mount_attributes::map_owner;
use super::plan::{Bind, Plan};
use super::root::copy_alone_of;
use acheron_base::{Error, Result};

/// The mounts to use in place of binds, by their targets.
pub(super) type MappedMounts = BTreeMap<PathBuf, OwnedFd>;

/// A mount for each bind that may be written and belongs to another user.
pub(super) fn mounts(plan: &Plan) -> Result<MappedMounts> {
    let root = nix::unistd::getuid().is_root();
    let written = plan.binds.iter().filter(|bind| root && !bind.read_only);
    written.filter_map(|bind| Some(mapped(bind).transpose()?.map(|mount| (bind.target.clone(), mount)))).collect()
}

fn mapped(bind: &Bind) -> Result<Option<OwnedFd>> {
    // One that is not there, or may not be asked, is refused where it is bound.
    let Ok(meta) = fs::symlink_metadata(&bind.source) else { return Ok(None) };
    let own = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
    if meta.uid() == own.0 || !meta.is_dir() {
        return Ok(None);
    }
    let name = bind.source.display();
    let refused = |why: String| {
        let said =
            format!("`{name}` belongs to user {}, and it cannot be written for that user here: {why}", meta.uid());
        Error::unavailable(format!("{said}; run acheron as that user, or bind the directory read-only"))
    };
    let users = user_namespace((meta.uid(), own.0), (meta.gid(), own.1)).map_err(|error| refused(error.message))?;
    let copied = copy_alone_of(&bind.source, bind.id).map_err(|error| refused(error.message))?;
    map_owner(copied.as_fd(), users.as_fd()).map_err(|err| refused(std::io::Error::from(err).to_string()))?;
    Ok(Some(copied))
}

/// A user namespace in which the first number of each pair is the second outside. It has no process left.
fn user_namespace(users: (u32, u32), groups: (u32, u32)) -> Result<OwnedFd> {
    let (waiting, go) = nix::unistd::pipe().map_err(errno)?;
    // SAFETY: this process has one thread, and the child only waits to be killed.
    let child = match unsafe { fork() }.map_err(errno)? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            drop(waiting);
            if unshare(CloneFlags::CLONE_NEWUSER).is_ok() {
                _ = nix::unistd::write(&go, b"g");
                nix::unistd::pause();
            }
            std::process::exit(1);
        }
    };
    drop(go);
    let made = nix::unistd::read(&waiting, &mut [0]).map_err(errno).and_then(|count| match count {
        0 => Err(Error::unavailable("the kernel refuses a user namespace")),
        _ => map(child, users, groups),
    });
    _ = kill(child, Signal::SIGKILL);
    _ = waitpid(child, None);
    made
}

fn map(child: Pid, users: (u32, u32), groups: (u32, u32)) -> Result<OwnedFd> {
    for (file, (inside, outside)) in [("uid_map", users), ("gid_map", groups)] {
        fs::write(format!("/proc/{child}/{file}"), format!("{inside} {outside} 1"))?;
    }
    Ok(fs::File::open(format!("/proc/{child}/ns/user"))?.into())
}

fn errno(err: nix::Error) -> Error {
    Error::from(std::io::Error::from(err))
}
