//! Finds the agent that owns a process, by the sandbox that it descends from.
//!
//! The supervisor and the init of a sandbox carry the agent's name in their command line. Of all sandboxes above a
//! process the *outermost* decides: a program inside can use another name below itself, but never above. The host uses
//! it; it uses only `/proc`.

use std::fs;

/// The facts that determine the owner of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its parent.
    pub parent: i32,
    /// The depth of its pid namespace, seen from this one.
    pub depth: usize,
    /// The agent in the command line of a sandbox.
    pub sandbox: Option<String>,
}

/// The owner of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessOwner {
    /// No sandbox: it belongs to the user that started it.
    Host,
    /// A sandbox of this agent.
    Agent(String),
    /// It has ended, or is in a namespace that belongs to no sandbox. Never trusted.
    Unknown,
}

/// The limit of ancestors; a longer chain is no accident.
const MOST_ANCESTORS: usize = 4096;

/// The owner of `pid` (a thread id works too); `look` is asked for each ancestor.
pub fn owner_of(pid: i32, look: impl Fn(i32) -> Option<Process>) -> ProcessOwner {
    let Some(mut at) = look(pid) else { return ProcessOwner::Unknown };
    let deep = at.depth > 1;
    let mut outermost = None;
    for _ in 0..MOST_ANCESTORS {
        outermost = at.sandbox.take().or(outermost);
        if at.parent <= 0 {
            return match outermost {
                Some(agent) => ProcessOwner::Agent(agent),
                None if deep => ProcessOwner::Unknown,
                None => ProcessOwner::Host,
            };
        }
        match look(at.parent) {
            Some(parent) => at = parent,
            None => return ProcessOwner::Unknown,
        }
    }
    ProcessOwner::Unknown
}

/// Reads a process of this machine.
pub fn read_process(pid: i32) -> Option<Process> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let cmdline = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    read(&status, &cmdline)
}

/// A process from its `status` and `cmdline`.
fn read(status: &str, cmdline: &[u8]) -> Option<Process> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim));
    let parent = field("PPid")?.parse().ok()?;
    let depth = field("NSpid").map_or(1, |numbers| numbers.split_whitespace().count());
    let mut words = cmdline.split(|byte| *byte == 0);
    let sandbox = (words.nth(1) == Some(super::INIT_ARG.as_bytes())).then(|| words.nth(1).unwrap_or_default().to_vec());
    Some(Process { parent, depth, sandbox: sandbox.and_then(|name| String::from_utf8(name).ok()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes, written as `pid parent depth agent-or-dash`.
    fn check(processes: &str, pid: i32, expected: ProcessOwner) {
        let look = |wanted: i32| {
            processes.lines().find_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                (words[0].parse() == Ok(wanted)).then(|| Process {
                    parent: words[1].parse().unwrap(),
                    depth: words[2].parse().unwrap(),
                    sandbox: (words[3] != "-").then(|| words[3].to_owned()),
                })
            })
        };
        assert_eq!(owner_of(pid, look), expected, "{pid}");
    }

    const PROCESSES: &str = "1 0 1 -
        50 1 1 -
        60 50 1 charon
        61 60 2 charon
        62 61 2 -
        63 62 2 styx
        64 63 2 -
        70 1 2 -
        80 81 1 -
        90 91 1 -
        91 90 1 -";

    #[test]
    fn a_process_belongs_to_the_outermost_sandbox_above_it() {
        check(PROCESSES, 50, ProcessOwner::Host);
        check(PROCESSES, 62, ProcessOwner::Agent("charon".into()));
        check(PROCESSES, 64, ProcessOwner::Agent("charon".into()));
    }

    #[test]
    fn a_process_that_is_gone_or_has_no_visible_ancestor_is_unknown() {
        check(PROCESSES, 99, ProcessOwner::Unknown);
        check(PROCESSES, 70, ProcessOwner::Unknown);
        check(PROCESSES, 80, ProcessOwner::Unknown);
        check(PROCESSES, 90, ProcessOwner::Unknown);
    }

    #[test]
    fn a_sandbox_is_recognised_by_its_second_argument() {
        let status = "Name:\tacheron\nPPid:\t12\nNSpid:\t40\t1\n";
        let supervisor = read(status, b"/proc/self/exe\0__sandbox\x005\0charon\0").unwrap();
        assert_eq!(supervisor, Process { parent: 12, depth: 2, sandbox: Some("charon".into()) });
        assert_eq!(read(status, b"echo\0charon\0__sandbox\0").unwrap().sandbox, None);
        assert_eq!(read("nothing", b""), None);
    }

    #[test]
    fn this_test_is_a_process_without_a_sandbox() {
        assert_ne!(read_process(std::process::id() as i32), None);
        assert_eq!(read_process(-1), None);
    }
}
