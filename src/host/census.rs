//! Who a process is.

use crate::error::{Error, Result};
use crate::fuse::Identify;
use crate::policy::Principal;
use crate::sandbox::{Whose, look, whose};
use crate::vfs::Caller;

/// Tells agents from the operator by the sandbox that a process descends from.
pub struct Census;

impl Identify for Census {
    fn caller(&self, uid: u32, gid: u32, tid: u32) -> Caller {
        let nobody = Caller { uid, gid, pid: 0, principal: Principal::Nobody };
        let Ok(thread) = i32::try_from(tid) else { return nobody };
        let principal = match whose(thread, look) {
            Whose::Own => Principal::Operator,
            Whose::Agent(id) => Principal::Agent(id),
            Whose::Nobody => return nobody,
        };
        match process_of(tid) {
            Some(pid) => Caller { uid, gid, pid, principal },
            None => nobody,
        }
    }
}

/// Whether `/proc` tells of the same processes as the kernel does in its requests; of others, it would tell lies.
pub fn sees_clearly() -> Result<()> {
    let own = std::fs::read_link("/proc/self").ok();
    if own.as_deref().and_then(|link| link.to_str()?.parse().ok()) == Some(std::process::id()) {
        return Ok(());
    }
    Err(Error::unavailable(
        "/proc belongs to another pid namespace, so nobody could be told from anybody: mount one of this namespace, as \
         `unshare --pid --fork --mount-proc` does",
    ))
}

/// The process that the thread `tid` belongs to, while it is there.
fn process_of(tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_gone_is_nobody() {
        let gone = Census.caller(0, 0, 0);
        assert_eq!(gone.principal, Principal::Nobody);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(Census.caller(0, 0, pid).principal, Principal::Nobody);
    }

    #[test]
    fn a_thread_leads_to_its_process() {
        let tid = std::thread::spawn(|| {
            let tid = nix::unistd::gettid().as_raw() as u32;
            Census.caller(0, 0, tid)
        });
        let caller = tid.join().unwrap();
        assert_eq!((caller.pid, caller.principal), (std::process::id(), Principal::Operator));
    }
}
