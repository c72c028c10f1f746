//! The processes of a sandbox, seen from outside, and which of them were started since.

use std::collections::BTreeMap;
use std::fs;

/// More are looked for in vain: a sandbox may not have as many.
const MOST: usize = 65_536;

/// One process. A number is used again, but not with the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub pid: i32,
    pub parent: i32,
    /// In the kernel's own count.
    started: u64,
}

/// Everything alive below `init`.
pub fn family(init: i32) -> Vec<Member> {
    let mut found: Vec<Member> = Vec::new();
    let mut open = vec![init];
    while let Some(parent) = open.pop() {
        let children = children(parent).into_iter().filter_map(|pid| member(pid, &stat(pid)?));
        let children: Vec<Member> = children.collect();
        open.extend(children.iter().map(|child| child.pid));
        found.extend(children);
        if found.len() > MOST {
            break;
        }
    }
    found
}

/// Those of `now` that were not there `before`, and that nobody started who was: his children are his. The `shell` is asked
/// to start everything, so what it started counts.
pub fn since(before: &[Member], now: &[Member], shell: i32) -> Vec<Member> {
    let by: BTreeMap<i32, &Member> = now.iter().map(|member| (member.pid, member)).collect();
    let old = |member: &Member| before.iter().any(|it| (it.pid, it.started) == (member.pid, member.started));
    let started_by_old = |member: &Member| {
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

/// Ends one process, if it is still the one that was seen.
pub fn end(member: Member) {
    let Some(pid) = rustix::process::Pid::from_raw(member.pid) else { return };
    let Ok(door) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { return };
    // Held by now, so that the number cannot become another's between looking and ending.
    if stat(member.pid).and_then(|stat| self::member(member.pid, &stat)).is_some_and(|it| it.started == member.started)
    {
        _ = rustix::process::pidfd_send_signal(&door, rustix::process::Signal::KILL);
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

/// A process from its `stat`; none if it has ended and only waits to be buried.
fn member(pid: i32, stat: &str) -> Option<Member> {
    // The name may hold anything, brackets too.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    match fields.first()? {
        &"Z" | &"X" => None,
        _ => Some(Member { pid, parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes, written as `pid parent started`.
    fn all(text: &str) -> Vec<Member> {
        let number = |word: Option<&str>| word.unwrap().parse::<i32>().unwrap();
        let one = |line: &str| {
            let mut words = line.split_whitespace();
            let (pid, parent, started) = (number(words.next()), number(words.next()), number(words.next()));
            Member { pid, parent, started: started as u64 }
        };
        text.split(',').map(one).collect()
    }

    #[test]
    fn what_a_command_started_is_told_from_what_was_there() {
        // 2 is the shell, 3 a server in the background.
        let before = all("2 1 10, 3 1 20, 4 3 21");
        for (now, expected) in [
            ("2 1 10, 3 1 20, 4 3 21", ""),
            ("2 1 10, 3 1 20, 5 2 30, 6 5 31", "5 6"),
            ("2 1 10, 3 1 20, 7 3 30, 8 7 31", ""), // a new child of the server is the server's
            ("2 1 10, 3 1 20, 9 1 30", "9"),        // it left its family
            ("2 1 10, 3 2 40", "3"),                // another with the server's number
        ] {
            let found = since(&before, &all(now), 2);
            let said: Vec<String> = found.iter().map(|it| it.pid.to_string()).collect();
            assert_eq!(said.join(" "), expected, "{now}");
        }
    }

    #[test]
    fn a_process_is_read_whatever_its_name_and_a_dead_one_is_none() {
        let rest = "1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 777 0";
        assert_eq!(member(5, &format!("5 (a) S 9 (x) S {rest}")), Some(Member { pid: 5, parent: 1, started: 777 }));
        assert_eq!(member(5, &format!("5 (sh) Z {rest}")), None);
        assert_eq!(member(5, "nothing"), None);
    }
}
