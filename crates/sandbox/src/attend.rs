//! What the init does while the program runs: it reaps what ends, answers the calls that the broker serves, and covers
//! again what a change outside has uncovered. The [`init`](super::init) uses it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::broker::Broker;
use super::plan::Plan;
use super::protocol::ExitStatus;
use super::root::Covers;
use super::watched_paths::WatchedPaths;
use acheron_base::{Error, Result};

/// As often a cover is tried again, a millisecond apart, before the sandbox is ended.
const MOST_FAILURES: u32 = 1000;

/// The init beside its program.
pub(super) struct Attendant<'a> {
    pub program: Pid,
    pub plan: &'a Plan,
    pub broker: Option<Broker>,
    pub covers: Option<Covers>,
}

impl Attendant<'_> {
    /// Returns when the program has ended.
    pub fn until_the_end(&self) -> Result<ExitStatus> {
        let covers = self.covers.as_ref().filter(|_| !self.plan.path_rules.is_empty());
        if self.broker.is_none() && covers.is_none() {
            return self.wait();
        }
        let ends = SignalFd::with_flags(&child_signal(), SfdFlags::SFD_CLOEXEC).map_err(errno)?;
        // Readable as an exception whenever a mount of this namespace comes or goes.
        let mounts = covers.and_then(|_| File::open("/proc/self/mountinfo").ok());
        let mut watched = covers.and_then(|_| WatchedPaths::new(&self.plan.path_rules));
        few_capabilities()?;
        // A mode that the broker uses is final.
        rustix::process::umask(rustix::fs::Mode::empty());
        let mut failures = 0;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            let ready = Ready::wait(
                [
                    Some((ends.as_fd(), PollFlags::IN)),
                    self.broker.as_ref().map(|broker| (broker.waiting(), PollFlags::IN)),
                    mounts.as_ref().map(|mounts| (mounts.as_fd(), PollFlags::PRI)),
                    watched.as_ref().map(|watched| (watched.as_fd(), PollFlags::IN)),
                ],
                failures > 0,
            )?;
            let Ready([child, call, mount, path]) = ready;
            let appeared = path.is_some() && watched.as_ref().is_some_and(WatchedPaths::appeared);
            if let Some(covers) = covers.filter(|_| failures > 0 || mount.is_some() || appeared) {
                failures = self.renewed(covers, failures)?;
                watched.iter_mut().for_each(WatchedPaths::watch);
            }
            if child.is_some() {
                _ = ends.read_signal();
            }
            match (call, &self.broker) {
                (Some(flags), Some(broker)) if flags.contains(PollFlags::IN) => broker.answer(),
                // No process is left that could ask; its end is waited for.
                (Some(flags), _) if flags.contains(PollFlags::HUP) => return self.wait(),
                _ => (),
            }
        }
    }

    /// Covers again what is uncovered; returns how often in a row it has failed. The mount on a file is gone a moment before
    /// the file is replaced, and in between nothing can be mounted there.
    fn renewed(&self, covers: &Covers, failures: u32) -> Result<u32> {
        match covers.renew(self.plan) {
            Ok(()) => Ok(0),
            Err(error) if failures >= MOST_FAILURES => Err(error),
            Err(_) => Ok(failures + 1),
        }
    }

    fn wait(&self) -> Result<ExitStatus> {
        loop {
            match waitpid(None::<Pid>, None) {
                Ok(ended) => {
                    if let Some(status) = self.status(ended) {
                        return Ok(status);
                    }
                }
                Err(nix::Error::EINTR) => (),
                Err(err) => return Err(errno(err)),
            }
        }
    }

    /// Reaps everything that has ended; returns how the program ended, if it has.
    fn ended(&self) -> Result<Option<ExitStatus>> {
        loop {
            match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return Ok(None),
                Ok(ended) => {
                    if let Some(status) = self.status(ended) {
                        return Ok(Some(status));
                    }
                }
                Err(nix::Error::EINTR) => (),
                Err(err) => return Err(errno(err)),
            }
        }
    }

    fn status(&self, ended: WaitStatus) -> Option<ExitStatus> {
        match ended {
            WaitStatus::Exited(pid, code) if pid == self.program => Some(ExitStatus { code: Some(code), signal: None }),
            WaitStatus::Signaled(pid, signal, _) if pid == self.program => {
                Some(ExitStatus { code: None, signal: Some(signal as i32) })
            }
            _ => None,
        }
    }
}

/// What each of some descriptors is ready for.
struct Ready([Option<PollFlags>; 4]);

impl Ready {
    fn wait(all: [Option<(BorrowedFd<'_>, PollFlags)>; 4], soon: bool) -> Result<Ready> {
        let mut waiting: Vec<PollFd<'_>> =
            all.iter().flatten().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let limit = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        match poll(&mut waiting, soon.then_some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(err) => return Err(Error::from(std::io::Error::from(err))),
        }
        let mut ready = waiting.iter().map(|fd| Some(fd.revents()).filter(|flags| !flags.is_empty()));
        Ok(Ready(all.map(|one| one.and_then(|_| ready.next().flatten()))))
    }
}

fn child_signal() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set
}

/// Blocks the signal that says that a child has ended: it is read from a descriptor. Before the program is started.
pub(super) fn block_child_signal() -> Result<()> {
    child_signal().thread_block().map_err(errno)
}

/// What the broker does for a program must be refused where it would be refused to the program. Left are the right to
/// mount, for covers, and to read the words of a call.
fn few_capabilities() -> Result<()> {
    use caps::{CapSet, Capability};
    let kept = [Capability::CAP_SYS_ADMIN, Capability::CAP_SYS_PTRACE].into();
    let set = |which| caps::set(None, which, &kept).map_err(|err| Error::unavailable(format!("capabilities: {err}")));
    set(CapSet::Effective)?;
    set(CapSet::Permitted)
}

fn errno(err: nix::Error) -> Error {
    Error::from(std::io::Error::from(err))
}
