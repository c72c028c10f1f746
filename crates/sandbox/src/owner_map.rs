//! Projects that belong to another user. A host that runs as root shows such a directory as its own program's: what belongs
//! to the owner belongs to the program inside, and what the program makes belongs to the owner. The kernel does it for a mount
//! (`MOUNT_ATTR_IDMAP`), and only root may ask for it, so the supervisor does, before it gives up its rights.

use std::collections::{BTreeMap, BTreeSet};
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

/// A user namespace in which the first user is the second outside; groups as in [`group_lines`]. It has no process left.
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
    let groups = group_lines(groups, &fs::read_to_string("/proc/self/gid_map")?);
    for (file, lines) in [("uid_map", format!("{} {} 1", users.0, users.1)), ("gid_map", groups)] {
        fs::write(format!("/proc/{child}/{file}"), lines)?;
    }
    Ok(fs::File::open(format!("/proc/{child}/ns/user"))?.into())
}

/// A map of groups in which the two change places and all others of `known` (a gid_map) stay what they are. A file of the owner may
/// be in any group, and the kernel lets nobody write what has a group without a number. Only the first group becomes the program's.
fn group_lines((project, own): (u32, u32), known: &str) -> String {
    let mut lines = Vec::new();
    for line in known.lines() {
        let mut words = line.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (Some(first), Some(_), Some(count)) = (words.next(), words.next(), words.next()) else { continue };
        let (mut at, end) = (first, first + count);
        for cut in BTreeSet::from([u64::from(project), u64::from(own)]) {
            if (at..end).contains(&cut) {
                lines.push((at, at, cut - at));
                lines.push((cut, u64::from(if cut == u64::from(project) { own } else { project }), 1));
                at = cut + 1;
            }
        }
        lines.push((at, at, end - at));
    }
    // One that this machine does not know is for the kernel to refuse.
    if !lines.iter().any(|(inside, ..)| *inside == u64::from(project)) {
        lines.push((u64::from(project), u64::from(own), 1));
    }
    let lines = lines.into_iter().filter(|(_, _, count)| *count > 0);
    lines.map(|(inside, outside, count)| format!("{inside} {outside} {count}\n")).collect()
}

fn errno(err: nix::Error) -> Error {
    Error::from(std::io::Error::from(err))
}

#[cfg(test)]
mod tests {
    use super::group_lines;

    #[test]
    fn two_groups_change_places_and_the_others_stay() {
        let whole = "         0          0 4294967295\n";
        assert_eq!(group_lines((1000, 0), whole), "0 1000 1\n1 1 999\n1000 0 1\n1001 1001 4294966294\n");
        assert_eq!(group_lines((0, 0), whole), "0 0 1\n1 1 4294967294\n");
        assert_eq!(group_lines((5, 0), "0 100000 4\n5 7 1\n"), "0 5 1\n1 1 3\n5 0 1\n");
        assert_eq!(group_lines((9, 0), "0 100000 4\n"), "0 9 1\n1 1 3\n9 0 1\n");
    }
}
