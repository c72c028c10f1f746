//! What a daemon does while nobody asks it anything.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::time::Duration;

pub struct Quiet {
    /// Times that any of its threads ran, however shortly.
    pub switches: u64,
    /// Processor time, in hundredths of a second.
    pub ticks: u64,
    pub over: Duration,
}

/// Looks away for a while, and tells what happened meanwhile.
pub fn watched(pid: u32, over: Duration) -> Quiet {
    let (before, ticks) = (switches(pid), self::ticks(pid));
    std::thread::sleep(over);
    let ran = switches(pid).into_iter().map(|(thread, count)| count - before.get(&thread).unwrap_or(&0));
    Quiet { switches: ran.sum(), ticks: self::ticks(pid) - ticks, over }
}

/// Context switches of each thread of a process.
fn switches(pid: u32) -> HashMap<OsString, u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let of = |status: String| -> u64 {
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        counts.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    let read = |task: &DirEntry| std::fs::read_to_string(task.path().join("status")).ok();
    tasks.flatten().filter_map(|task| Some((task.file_name(), of(read(&task)?)))).collect()
}

fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [11, 12].into_iter().filter_map(|at| fields.get(at)?.parse::<u64>().ok()).sum()
}

pub fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process").count()
}
