//! Bounds the bytes that the programs of a sandbox write to disks. The kernel counts them per process, with those of the
//! children that a process has waited for; the init asks now and then, more often while they grow. Above the limit no
//! file is opened for writing any more (`EDQUOT`), and no open one grows (`EFBIG`). What is written through a mapping cannot
//! be refused: programs that go on so are killed. The init uses it.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use super::attend::written_by_children;
use super::processes::descendants;
use acheron_base::Error;

/// The times between two looks: while bytes are written, and otherwise.
pub(super) const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(1);

/// The size to which an open file may still grow when the limit is passed: the writes to a control file of the tree, which
/// are not written to a disk, are smaller.
const STILL: u64 = 1 << 20;
/// As many bytes more than there were when the limit was passed first end the programs. To remove files writes a little, too.
const SLACK: u64 = 8 << 20;

/// What was written so far, against a limit.
pub(super) struct DiskUse {
    limit: u64,
    pub written: u64,
    pub pause: Duration,
    /// Whether only what descends from this process counts; otherwise all that it sees is the sandbox.
    below: bool,
    /// What was written when it was first found to be too much.
    passed_at: Option<u64>,
}

impl DiskUse {
    pub fn new(limit: u64, below: bool) -> DiskUse {
        DiskUse { limit, written: 0, pause: OFTEN, below, passed_at: None }
    }

    /// Whether more was written than may be.
    pub fn full(&self) -> bool {
        self.written > self.limit
    }

    /// The reason why the programs were killed, if they were.
    pub fn killed_because(&self) -> Option<Error> {
        self.goes_on().then(|| {
            Error::quota_exceeded(format!(
                "the programs were ended: they went on writing to the projects, through memory that is mapped to files, \
                 after the {} bytes that they may write (sandbox.limits.disk_bytes in the mountspec)",
                self.limit
            ))
        })
    }

    fn goes_on(&self) -> bool {
        self.passed_at.is_some_and(|at| self.written > at + SLACK)
    }

    /// Counts again, and stops all processes from writing more if they must not.
    pub fn look(&mut self) {
        let processes = if self.below { below() } else { processes() };
        let now: u64 = processes.iter().map(|pid| written_by(*pid)).sum();
        self.pause = if now > self.written { OFTEN } else { (self.pause * 2).min(SELDOM) };
        // A process that nobody waited for takes its count with it.
        self.written = self.written.max(now);
        if self.full() {
            let own = std::process::id() as i32;
            self.passed_at.get_or_insert(self.written);
            let stop = if self.goes_on() { kill } else { stop_growth };
            processes.iter().filter_map(|pid| Pid::from_raw(*pid).filter(|_| *pid != own)).for_each(stop);
            self.pause = OFTEN;
        }
    }
}

/// This process, which knows what was written by those that it has waited for, and all that descend from it.
fn below() -> Vec<i32> {
    let own = std::process::id() as i32;
    descendants(own).iter().map(|process| process.pid).chain([own]).collect()
}

fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn written_by(pid: i32) -> u64 {
    match fs::read_to_string(format!("/proc/{pid}/io")) {
        Ok(io) => read(&io),
        Err(_) if pid == std::process::id() as i32 => written_by_children(),
        Err(_) => 0,
    }
}

/// What was written and not taken back before it reached a disk.
fn read(io: &str) -> u64 {
    let field =
        |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or(0);
    field("write_bytes:").saturating_sub(field("cancelled_write_bytes:"))
}

/// One that has just ended, or may not be asked, is no matter: its children have their own turn.
fn stop_growth(pid: Pid) {
    _ = prlimit(Some(pid), Resource::Fsize, Rlimit { current: Some(STILL), maximum: Some(STILL) });
}

fn kill(pid: Pid) {
    _ = kill_process(pid, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_never_reached_a_disk_do_not_count() {
        assert_eq!(read("rchar: 9\nwchar: 99\nread_bytes: 1\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n"), 4096);
        assert_eq!(read(""), 0);
        let mut disk = DiskUse::new(10, false);
        assert!(!disk.full());
        disk.written = 11;
        assert!(disk.full() && disk.killed_because().is_none());
        disk.passed_at = Some(11);
        disk.written += SLACK;
        assert!(disk.killed_because().is_none(), "to remove files writes a little");
        disk.written += 1;
        assert_eq!(disk.killed_because().map(|error| error.errno()), Some(libc::EDQUOT));
    }
}
