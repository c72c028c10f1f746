//! Bounds the bytes that the programs of a sandbox write to disks. The kernel counts them per process, with those of the
//! children that a process has waited for; the init asks now and then, more often while they grow. Above the limit no
//! file is opened for writing any more (`EDQUOT`), and no open one grows (`EFBIG`). The init uses it.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::attend::written_by_children;
use super::processes::descendants;

/// The times between two looks: while bytes are written, and otherwise.
pub(super) const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(1);

/// What was written so far, against a limit.
pub(super) struct DiskUse {
    limit: u64,
    pub written: u64,
    pub pause: Duration,
    /// Whether only what descends from this process counts; otherwise all that it sees is the sandbox.
    below: bool,
}

impl DiskUse {
    pub fn new(limit: u64, below: bool) -> DiskUse {
        DiskUse { limit, written: 0, pause: OFTEN, below }
    }

    /// Whether more was written than may be.
    pub fn full(&self) -> bool {
        self.written > self.limit
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
            processes.iter().filter(|pid| **pid != own).for_each(|pid| stop_growth(*pid));
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
fn stop_growth(pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    _ = prlimit(Some(pid), Resource::Fsize, Rlimit { current: Some(0), maximum: Some(0) });
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
        assert!(disk.full());
    }
}
