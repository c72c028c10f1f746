//! The identity of a calling process.
//!
//! Finding out means reading `/proc` up to the first process, many times what opening a file costs. So it is done once
//! in the life of a thread: a descriptor of the thread itself tells whether its number still means the same one. What
//! was found stays right as long, because a process cannot change its ancestors to get more rights.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::process::{Pid, PidfdFlags, Resource, getrlimit, pidfd_open};

use crate::policy::{Principal, identity};
use acheron_base::{Error, Result};
use acheron_fuse::Identify;
use acheron_sandbox::{Level, ProcessOwner, known_level, owner_of, read_process};
use acheron_vfs::{Caller, Identity};

/// The most threads that are remembered; each costs a descriptor. A principal with more threads than this is slowed down
/// alone: room is made at the expense of the one that has most.
const KNOWN: usize = 1024;
/// The part of the descriptors of this process that they may take.
const SHARE: u64 = 8;

/// `PIDFD_THREAD`, since Linux 6.9; before, only the first thread of a process is remembered.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(rustix::fs::OFlags::EXCL.bits());

/// Distinguishes agents from the operator by the sandbox from which a process descends.
pub struct CallerIdentity {
    threads: Mutex<HashMap<u32, KnownThread>>,
    /// Tells which of them have ended; without it they are found when room is made.
    ends: Option<OwnedFd>,
}

impl Default for CallerIdentity {
    fn default() -> Self {
        CallerIdentity { threads: Mutex::default(), ends: epoll::create(epoll::CreateFlags::CLOEXEC).ok() }
    }
}

/// A thread that was seen before.
struct KnownThread {
    /// Readable when the thread has ended.
    ended: OwnedFd,
    pid: u32,
    identity: Identity,
}

impl KnownThread {
    fn lives(&self) -> bool {
        let mut asked = [PollFd::new(&self.ended, PollFlags::IN)];
        poll(&mut asked, Some(&Timespec::default())) == Ok(0)
    }
}

impl Identify for CallerIdentity {
    fn caller(&self, uid: u32, gid: u32, tid: u32) -> Caller {
        if let Some((pid, identity)) = self.recognised(tid) {
            return Caller { uid, gid, pid, identity };
        }
        // Before anything is read: if the number changes hands meanwhile, this one has ended.
        let ended = descriptor(tid);
        match identify(tid) {
            Some((pid, principal)) => {
                let identity = identity(principal);
                if let Some(ended) = ended {
                    self.remember(tid, KnownThread { ended, pid, identity: identity.clone() });
                }
                Caller { uid, gid, pid, identity }
            }
            None => Caller { uid, gid, pid: 0, identity: identity(Principal::Nobody) },
        }
    }

    fn known(&self, tid: u32) -> Option<Identity> {
        self.recognised(tid).map(|(_, identity)| identity)
    }
}

/// Whether `/proc` tells of the same processes as the kernel does in its requests; of others, it would tell lies.
pub fn sees_clearly() -> Result<()> {
    let own = std::fs::read_link("/proc/self").ok();
    if own.as_deref().and_then(|link| link.to_str()?.parse().ok()) == Some(std::process::id()) {
        return Ok(());
    }
    Err(Error::unavailable(
        "/proc belongs to another pid namespace, so callers cannot be identified: mount one of this namespace, as \
         `unshare --pid --fork --mount-proc` does",
    ))
}

impl CallerIdentity {
    fn threads(&self) -> MutexGuard<'_, HashMap<u32, KnownThread>> {
        self.threads.lock()
    }

    fn recognised(&self, tid: u32) -> Option<(u32, Identity)> {
        let known = self.threads();
        known.get(&tid).filter(|it| it.lives()).map(|it| (it.pid, it.identity.clone()))
    }

    fn remember(&self, tid: u32, new: KnownThread) {
        let mut known = self.threads();
        self.forget_ended(&mut known);
        if known.len() >= most() {
            make_room(&mut known);
        }
        if let Some(ends) = &self.ends {
            // One that cannot be watched is found when room is made.
            _ = epoll::add(ends, &new.ended, epoll::EventData::new_u64(tid.into()), epoll::EventFlags::IN);
        }
        known.insert(tid, new);
    }

    /// Closes the descriptors of threads that have ended.
    fn forget_ended(&self, known: &mut HashMap<u32, KnownThread>) {
        let Some(ends) = &self.ends else { return };
        loop {
            let mut ended =
                [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 64];
            let count = epoll::wait(ends, &mut ended, Some(&Timespec::default())).unwrap_or(0);
            let ended = ended.iter().take(count).filter_map(|event| u32::try_from(event.data.u64()).ok());
            let before = known.len();
            ended.for_each(|tid| _ = known.remove(&tid));
            if known.len() == before {
                return;
            }
        }
    }
}

/// The number of threads that may be remembered.
fn most() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / SHARE).map_or(KNOWN, |share| share.min(KNOWN))
}

/// Forgets the threads that have ended; if that is not enough, half of those of the principal that has most.
fn make_room(known: &mut HashMap<u32, KnownThread>) {
    let before = known.len();
    known.retain(|_, it| it.lives());
    if known.len() <= before - before / 4 {
        return;
    }
    let mut counts: HashMap<&Identity, usize> = HashMap::new();
    known.values().for_each(|it| *counts.entry(&it.identity).or_default() += 1);
    let Some((identity, count)) = counts.into_iter().max_by_key(|(_, count)| *count) else { return };
    let (identity, mut kept) = (identity.clone(), count / 2);
    known.retain(|_, it| {
        let keep = it.identity != identity || kept > 0;
        kept -= usize::from(it.identity == identity && kept > 0);
        keep
    });
}

fn descriptor(tid: u32) -> Option<OwnedFd> {
    let thread = Pid::from_raw(i32::try_from(tid).ok()?)?;
    pidfd_open(thread, THREAD).or_else(|_| pidfd_open(thread, PidfdFlags::empty())).ok()
}

/// The process of a thread, and whose it is; nothing for one that is gone or hides.
fn identify(tid: u32) -> Option<(u32, Principal)> {
    let principal = match owner_of(i32::try_from(tid).ok()?, read_process) {
        // At the second level no namespace tells an orphan of a sandbox from a process of the operator; its filters do.
        ProcessOwner::Host if known_level() == Some(Level::Landlock) && is_filtered(tid) => return None,
        ProcessOwner::Host => Principal::Operator,
        ProcessOwner::Agent(id) => Principal::Agent(id),
        ProcessOwner::Unknown => return None,
    };
    Some((process_of(tid)?, principal))
}

/// Whether a process has more filters of system calls than this one: then it has them of a sandbox, or made them itself. A
/// process cannot lose one.
fn is_filtered(tid: u32) -> bool {
    let filters = |process: &str| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:")?.trim().parse().ok())
    };
    // One that cannot be asked is not trusted.
    filters(&tid.to_string()).zip(filters("self")).is_none_or(|(its, own)| its > own)
}

/// The process that the thread `tid` belongs to, while it is there.
fn process_of(tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests;
