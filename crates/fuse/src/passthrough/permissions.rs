//! Modes and owners of mirrored files, checked for the process that asks. The host may be root and opens everything;
//! the kernel would not have let an agent. Part of the passthrough.

use fuser::TimeOrNow;
use rustix::fs::{Access, FileType};
use rustix::io::Errno;

use super::attributes::AttributeChange;
use super::{Passthrough, Requester};
use acheron_base::host_dir::{FileInfo, OsResult};

const STICKY: u16 = 0o1000;

impl Passthrough {
    /// Whether the rights of the host count: the user who started it asks.
    fn is_host(&self, requester: Requester) -> bool {
        self.0.tree.sees_all(&self.caller(requester))
    }

    /// Refuses unless the mode of the file lets the requester do `access`.
    pub(super) fn check_mode(&self, requester: Requester, info: &FileInfo, access: Access) -> OsResult<()> {
        match self.is_host(requester) || permits(info, requester, access) {
            true => Ok(()),
            false => Err(Errno::ACCESS),
        }
    }

    /// Refuses unless the requester owns the file.
    pub(super) fn check_owner(&self, requester: Requester, info: &FileInfo) -> OsResult<()> {
        match self.is_host(requester) || requester.uid == info.uid {
            true => Ok(()),
            false => Err(Errno::PERM),
        }
    }

    /// Refuses to take a name out of a directory in which each may remove only what is its own.
    pub(super) fn check_sticky(&self, requester: Requester, dir: &FileInfo, held: &FileInfo) -> OsResult<()> {
        match dir.mode & STICKY != 0 && requester.uid != dir.uid {
            true => self.check_owner(requester, held),
            false => Ok(()),
        }
    }

    /// Refuses a second name for a file that the requester neither owns nor may read and write, as the kernel does
    /// with `fs.protected_hardlinks`.
    pub(super) fn check_link(&self, requester: Requester, info: &FileInfo) -> OsResult<()> {
        let both = Access::READ_OK | Access::WRITE_OK;
        match info.kind == FileType::RegularFile && permits(info, requester, both) {
            true => Ok(()),
            false => self.check_owner(requester, info),
        }
    }

    /// Refuses a change of attributes that only the owner may make. `by_handle`: the file is open for writing.
    pub(super) fn check_change(
        &self,
        requester: Requester,
        info: &FileInfo,
        change: &AttributeChange,
        by_handle: bool,
    ) -> OsResult<()> {
        if self.is_host(requester) {
            return Ok(());
        }
        let given_away = change.uid.is_some_and(|uid| uid != info.uid);
        let other_group = change.gid.is_some_and(|gid| gid != info.gid && gid != requester.gid);
        if given_away || other_group {
            return Err(Errno::PERM);
        }
        if change.mode.is_some() || change.uid.is_some() || change.gid.is_some() {
            self.check_owner(requester, info)?;
        }
        if change.size.is_some() && !by_handle {
            self.check_mode(requester, info, Access::WRITE_OK)?;
        }
        let set = |time: &Option<TimeOrNow>| matches!(time, Some(TimeOrNow::SpecificTime(_)));
        let now = |time: &Option<TimeOrNow>| matches!(time, Some(TimeOrNow::Now));
        if by_handle {
            return Ok(());
        }
        if set(&change.accessed) || set(&change.modified) {
            self.check_owner(requester, info)?;
        }
        match (now(&change.accessed) || now(&change.modified)) && requester.uid != info.uid {
            true => self.check_mode(requester, info, Access::WRITE_OK),
            false => Ok(()),
        }
    }
}

/// Whether a process without privileges may do `access`, by the mode. Only its own group is known, so a file that it may
/// use through another one is refused.
fn permits(info: &FileInfo, requester: Requester, access: Access) -> bool {
    let bits = match () {
        () if requester.uid == info.uid => info.mode >> 6,
        () if requester.gid == info.gid => info.mode >> 3,
        () => info.mode,
    };
    let wanted = [(Access::READ_OK, 4), (Access::WRITE_OK, 2), (Access::EXEC_OK, 1)];
    wanted.iter().all(|(right, bit)| !access.contains(*right) || bits & bit != 0)
}
