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
mod tests;
