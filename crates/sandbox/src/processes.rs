//! The processes of a sandbox, seen from outside, and those that were started after a point in time. The terminal
//! service uses it; it uses only `/proc`.

use std::collections::BTreeMap;
use std::fs;

/// The limit: no sandbox may have as many.
const MOST: usize = 65_536;

/// One process. A pid is reused, but not with the same start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxProcess {
    /// Its pid.
    pub pid: i32,
    /// The pid of its parent.
    pub parent: i32,
    /// Its start time, in clock ticks.
    started: u64,
}

/// All living processes below `init`.
pub fn descendants(init: i32) -> Vec<SandboxProcess> {
    let mut found: Vec<SandboxProcess> = Vec::new();
    let mut open = vec![init];
    while let Some(parent) = open.pop() {
        let children = children(parent).into_iter().filter_map(|pid| member(pid, &stat(pid)?));
        let children: Vec<SandboxProcess> = children.collect();
        open.extend(children.iter().map(|child| child.pid));
        found.extend(children);
        if found.len() > MOST {
            break;
        }
    }
    found
}

/// The processes of `now` that were not there `before` and descend from none that was: children of an earlier process
/// belong to it. The `shell` starts everything, so its children count.
pub fn started_since(before: &[SandboxProcess], now: &[SandboxProcess], shell: i32) -> Vec<SandboxProcess> {
    let by: BTreeMap<i32, &SandboxProcess> = now.iter().map(|member| (member.pid, member)).collect();
    let old = |member: &SandboxProcess| before.iter().any(|it| (it.pid, it.started) == (member.pid, member.started));
    let started_by_old = |member: &SandboxProcess| {
        let mut above = by.get(&member.parent);
        while let Some(parent) = above.filter(|parent| parent.pid != shell) {
            if old(parent) {
                return true;
            }
            above = by.get(&parent.parent);
        }
        false
    };
    now.iter().filter(|member| member.pid != shell && !old(member) && !started_by_old(member)).copied().collect()
}

/// Kills one process, if it is still the one that was seen.
pub fn kill_process(member: SandboxProcess) {
    let Some(pid) = rustix::process::Pid::from_raw(member.pid) else { return };
    let Ok(pidfd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { return };
    // The descriptor is held now, so the pid cannot be reused between the check and the signal.
    if stat(member.pid).and_then(|stat| self::member(member.pid, &stat)).is_some_and(|it| it.started == member.started)
    {
        _ = rustix::process::pidfd_send_signal(&pidfd, rustix::process::Signal::KILL);
    }
}

fn children(pid: i32) -> Vec<i32> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let listed = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        all.extend(listed.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    all
}

fn stat(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// A process from its `stat`; `None` for a zombie.
fn member(pid: i32, stat: &str) -> Option<SandboxProcess> {
    // The name may contain anything, brackets too.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    match fields.first()? {
        &"Z" | &"X" => None,
        _ => Some(SandboxProcess { pid, parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? }),
    }
}

#[cfg(test)]
mod tests;
