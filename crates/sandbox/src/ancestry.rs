//! Whose process is this? Told by the sandbox that it descends from.
//!
//! A sandbox's keeper and init carry the agent's name in their command line. Going up from any process, the *outermost*
//! of them decides: what runs inside can put on another's name below itself, never above.

use std::fs;

/// What must be known of a process to find whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub parent: i32,
    /// How many pid namespaces deep it lives, seen from ours.
    pub depth: usize,
    /// The agent named in the command line of a sandbox.
    pub sandbox: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Of no sandbox: whoever started it.
    Own,
    Agent(String),
    /// Gone, or in a namespace that no sandbox of ours accounts for. Never trusted.
    Nobody,
}

/// Longer lines of ancestors are no accident.
const GENERATIONS: usize = 4096;

/// Finds the owner of `pid` (a thread's number will do), asking `look` for each ancestor.
pub fn whose(pid: i32, look: impl Fn(i32) -> Option<Process>) -> Whose {
    let Some(mut at) = look(pid) else { return Whose::Nobody };
    let deep = at.depth > 1;
    let mut outermost = None;
    for _ in 0..GENERATIONS {
        outermost = at.sandbox.take().or(outermost);
        if at.parent <= 0 {
            return match outermost {
                Some(agent) => Whose::Agent(agent),
                None if deep => Whose::Nobody,
                None => Whose::Own,
            };
        }
        match look(at.parent) {
            Some(parent) => at = parent,
            None => return Whose::Nobody,
        }
    }
    Whose::Nobody
}

/// Looks at the live system.
pub fn look(pid: i32) -> Option<Process> {
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
    let sandbox = (words.nth(1) == Some(super::WORD.as_bytes())).then(|| words.nth(1).unwrap_or_default().to_vec());
    Some(Process { parent, depth, sandbox: sandbox.and_then(|name| String::from_utf8(name).ok()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A family, written as `pid parent depth agent-or-dash`.
    fn check(family: &str, pid: i32, expected: Whose) {
        let look = |wanted: i32| {
            family.lines().find_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                (words[0].parse() == Ok(wanted)).then(|| Process {
                    parent: words[1].parse().unwrap(),
                    depth: words[2].parse().unwrap(),
                    sandbox: (words[3] != "-").then(|| words[3].to_owned()),
                })
            })
        };
        assert_eq!(whose(pid, look), expected, "{pid}");
    }

    const FAMILY: &str = "1 0 1 -
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
        check(FAMILY, 50, Whose::Own);
        check(FAMILY, 62, Whose::Agent("charon".into()));
        check(FAMILY, 64, Whose::Agent("charon".into()));
    }

    #[test]
    fn who_is_gone_or_lost_its_init_or_hides_is_nobody() {
        check(FAMILY, 99, Whose::Nobody);
        check(FAMILY, 70, Whose::Nobody);
        check(FAMILY, 80, Whose::Nobody);
        check(FAMILY, 90, Whose::Nobody);
    }

    #[test]
    fn a_sandbox_is_known_by_its_second_word() {
        let status = "Name:\tacheron\nPPid:\t12\nNSpid:\t40\t1\n";
        let keeper = read(status, b"/proc/self/exe\0__sandbox\x005\0charon\0").unwrap();
        assert_eq!(keeper, Process { parent: 12, depth: 2, sandbox: Some("charon".into()) });
        assert_eq!(read(status, b"echo\0charon\0__sandbox\0").unwrap().sandbox, None);
        assert_eq!(read("nothing", b""), None);
    }

    #[test]
    fn this_test_is_its_own() {
        assert_ne!(look(std::process::id() as i32), None);
        assert_eq!(look(-1), None);
    }
}
