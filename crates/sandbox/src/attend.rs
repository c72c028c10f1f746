//! What the init does while the program runs: it reaps what ends, answers the calls that the broker serves, and covers
//! again what a change outside has uncovered. The [`init`](super::init) uses it.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::broker::Broker;
use super::disk_use::{DiskUse, OFTEN};
use super::level::Level;
use super::plan::Plan;
use super::protocol::{ExitStatus, UsedDisk};
use super::root::Covers;
use super::watched_paths::WatchedPaths;
use acheron_base::{Error, Result};

/// As often covers are renewed where nothing tells of a path that appears.
const UNTOLD: Duration = Duration::from_millis(50);
/// As often a cover is tried again, this far apart, before the sandbox is ended.
const MOST_FAILURES: u32 = 1000;
const RETRY: Duration = Duration::from_millis(1);

/// The init beside its program.
pub(super) struct Attendant<'a> {
    program: Pid,
    plan: &'a Plan,
    broker: Option<Broker>,
    covers: Option<Covers>,
    /// Only where programs may write to a disk.
    disk: Option<DiskUse>,
}

impl Attendant<'_> {
    pub fn new(program: Pid, plan: &Plan, broker: Option<Broker>, covers: Option<Covers>) -> Attendant<'_> {
        let alone = plan.level == Level::Landlock;
        // Without a root of its own, its scratch directory is on a disk, too.
        let writes = alone || plan.binds.iter().any(|bind| !bind.read_only && bind.on_disk);
        let disk = (writes && (covers.is_some() || alone)).then(|| DiskUse::new(plan.limits.disk_bytes, alone));
        Attendant { program, plan, broker, covers, disk }
    }

    /// What was used of the disks, as far as it was counted.
    pub fn used(&self) -> UsedDisk {
        UsedDisk {
            bytes: self.disk.as_ref().map_or(0, |disk| disk.written),
            files: self.broker.as_ref().map_or(0, |broker| broker.made.count),
        }
    }

    /// The reason why the programs were killed, if they were.
    pub fn killed_because(&self) -> Option<Error> {
        self.disk.as_ref().and_then(DiskUse::killed_because)
    }

    /// Returns when the program has ended.
    pub fn until_the_end(&mut self) -> Result<ExitStatus> {
        let ended = self.attend();
        self.disk.iter_mut().for_each(DiskUse::look);
        ended
    }

    fn attend(&mut self) -> Result<ExitStatus> {
        let (covers, plan) = (self.covers.take().filter(|_| !self.plan.path_rules.is_empty()), self.plan);
        let covers = covers.as_ref();
        if self.broker.is_none() && covers.is_none() && self.disk.is_none() {
            return self.wait();
        }
        let ends = SignalFd::with_flags(&child_signal(), SfdFlags::SFD_CLOEXEC).map_err(errno)?;
        // Readable as an exception whenever a mount of this namespace comes or goes.
        let mounts = covers.and_then(|_| File::open("/proc/self/mountinfo").ok());
        let mut watched = covers.and_then(|_| WatchedPaths::new(&plan.path_rules));
        let untold = (covers.is_some() && watched.is_none()).then_some(UNTOLD);
        few_capabilities()?;
        // A mode that the broker uses is final.
        nix::sys::stat::umask(nix::sys::stat::Mode::empty());
        // What has changed between the covers and the first watch is told by nobody.
        let mut failures = covers.map_or(Ok(0), |covers| self.renewed(covers, 0))?;
        let mut looked = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            let ready = Ready::wait(
                [
                    Some((ends.as_fd(), PollFlags::POLLIN)),
                    self.broker.as_ref().map(|broker| (broker.waiting(), PollFlags::POLLIN)),
                    mounts.as_ref().map(|mounts| (mounts.as_fd(), PollFlags::POLLPRI)),
                    watched.as_ref().map(|watched| (watched.as_fd(), PollFlags::POLLIN)),
                ],
                match failures {
                    0 => untold.into_iter().chain(self.disk.as_ref().map(|disk| disk.pause)).min(),
                    _ => Some(RETRY),
                },
            )?;
            let Ready([child, call, mount, path]) = ready;
            if let Some(disk) = self.disk.as_mut().filter(|_| looked.elapsed() >= OFTEN) {
                disk.look();
                looked = Instant::now();
            }
            let full = self.disk.as_ref().is_some_and(DiskUse::full);
            let appeared = path.is_some() && watched.as_ref().is_some_and(WatchedPaths::appeared);
            if let Some(covers) = covers.filter(|_| failures > 0 || mount.is_some() || appeared || untold.is_some()) {
                // Watched first, so that what appears in between is covered now or told later.
                watched.iter_mut().for_each(WatchedPaths::watch);
                failures = self.renewed(covers, failures)?;
            }
            if child.is_some() {
                _ = ends.read_signal();
            }
            match (call, &mut self.broker) {
                (Some(flags), Some(broker)) if flags.contains(PollFlags::POLLIN) => broker.answer(full),
                // No process is left that could ask; its end is waited for.
                (Some(flags), _) if flags.contains(PollFlags::POLLHUP) => return self.wait(),
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
    fn wait(all: [Option<(BorrowedFd<'_>, PollFlags)>; 4], limit: Option<Duration>) -> Result<Ready> {
        let mut waiting: Vec<PollFd<'_>> = all.iter().flatten().map(|(fd, flags)| PollFd::new(*fd, *flags)).collect();
        match poll(
            &mut waiting,
            limit.map_or(PollTimeout::NONE, |limit| PollTimeout::try_from(limit).unwrap_or(PollTimeout::NONE)),
        ) {
            Ok(_) | Err(nix::Error::EINTR) => (),
            Err(err) => return Err(errno(err)),
        }
        let mut ready = waiting.iter().map(|fd| fd.revents().filter(|flags| !flags.is_empty()));
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
    let permitted = caps::read(None, CapSet::Permitted).unwrap_or_default();
    // A plain user without a namespace has none.
    let kept = [Capability::CAP_SYS_ADMIN, Capability::CAP_SYS_PTRACE].into_iter().filter(|it| permitted.contains(it));
    let kept = kept.collect();
    let set = |which| caps::set(None, which, &kept).map_err(|err| Error::unavailable(format!("capabilities: {err}")));
    set(CapSet::Effective)?;
    set(CapSet::Permitted)
}

fn errno(err: nix::Error) -> Error {
    Error::from(std::io::Error::from(err))
}

/// For the init of a plain user, which may not be traced and so may not read its own file: the same count, but with the
/// bytes that were taken back before they reached a disk.
pub(super) fn written_by_children() -> u64 {
    let blocks = getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.block_writes());
    u64::try_from(blocks).unwrap_or(0) * 512
}
