//! What a daemon does while nobody asks it anything.

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
    let (switches, ticks) = (switches(pid), self::ticks(pid));
    std::thread::sleep(over);
    Quiet { switches: self::switches(pid) - switches, ticks: self::ticks(pid) - ticks, over }
}

/// Context switches of all threads of a process.
fn switches(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let of = |status: String| -> u64 {
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        counts.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok()).map(of).sum()
}

fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [11, 12].into_iter().filter_map(|at| fields.get(at)?.parse::<u64>().ok()).sum()
}

pub fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process").count()
}
