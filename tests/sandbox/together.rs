//! All sandboxes of an agent have one bound together, and another agent has its own.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{block, program, python, run, shell};
use acheron_base::Code;
use acheron_sandbox::{AgentLimits, Plan, Running, SharedLimits, Streams, read_process, start};

/// Forks until it may not, says how often it could, and holds on to all of it.
const BOMB: &str = "
import os, sys, time
n = 0
try:
    while n < 5000:
        if os.fork() == 0: time.sleep(600)
        n += 1
except OSError: pass
print(n, flush=True)
sys.stdin.read()";

fn of(host: &str, agent: &str, mut plan: Plan) -> Plan {
    plan.agent = agent.to_owned();
    plan.limits.processes = 60;
    let limits = AgentLimits { processes: 100, memory_bytes: 256 << 20, ..AgentLimits::default() };
    plan.together = Some(SharedLimits { host: host.to_owned(), owner: agent.to_owned(), limits });
    plan
}

#[test]
fn a_helper_counts_with_the_agent_that_it_works_for() {
    let host = acheron_sandbox::host_id();
    block(async {
        let mut bomb = start(program(), &of(&host, "charon", python(BOMB)), Streams::Piped).await.unwrap();
        let first: usize = first_line(&mut bomb).await.parse().unwrap();
        let mut helper = of(&host, "charon-1-2", python(BOMB));
        helper.together.as_mut().unwrap().owner = "charon".to_owned();
        let mut helper = start(program(), &helper, Streams::Piped).await.unwrap();
        let second: usize = first_line(&mut helper).await.parse().unwrap();
        assert!(first + second < 100, "{first} and {second} are more than the limit of one agent");
        assert_eq!(groups(&host).iter().filter(|path| path.ends_with(format!("acheron-{host}-charon-1-2"))).count(), 0);
        bomb.kill().await.unwrap();
        helper.kill().await.unwrap();
    });
}

/// Every control group of ours that is kept for this host.
fn groups(host: &str) -> Vec<PathBuf> {
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.is_dir()) {
            let ours =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("acheron-{host}-")));
            if ours { found.push(path) } else { open.push(path) }
        }
    }
    found
}

/// The first line that it says; it runs on.
async fn first_line(running: &mut Running) -> String {
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().unwrap_or_default()
}

#[test]
fn many_fork_bombs_of_one_agent_stay_below_its_limit_and_another_agent_goes_on() {
    let host = acheron_sandbox::host_id();
    block(async {
        let (mut bombs, mut processes, mut refused) = (Vec::new(), 0, 0);
        for _ in 0..12 {
            match start(program(), &of(&host, "charon", python(BOMB)), Streams::Piped).await {
                Ok(mut bomb) => {
                    // Itself, and its init.
                    processes += first_line(&mut bomb).await.parse::<u64>().unwrap() + 2;
                    bombs.push(bomb);
                }
                Err(error) => {
                    assert_eq!(error.code, Code::Busy, "{error}");
                    refused += 1;
                }
            }
        }
        assert!((60..=100).contains(&processes), "{processes} processes in {} sandboxes", bombs.len());
        assert!(bombs.len() >= 2 && bombs.len() + refused == 12);
        let other = of(&host, "styx", shell("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 600 & done; echo unharmed"));
        assert_eq!(run(&other).await.unwrap().out, "unharmed\n");
        assert!(!groups(&host).is_empty() && groups(&host).iter().all(|group| counts(group)));
        for mut bomb in bombs {
            bomb.kill().await.unwrap();
        }
    });
    assert_eq!(groups(&host), Vec::<PathBuf>::new(), "what nobody is in any more is gone");
}

#[test]
fn the_memory_of_an_agent_is_counted_over_its_sandboxes() {
    let host = acheron_sandbox::host_id();
    let eat = "import sys; x = bytearray(140 << 20); print('full', flush=True); sys.stdin.read()";
    block(async {
        let mut first = start(program(), &of(&host, "charon", python(eat)), Streams::Piped).await.unwrap();
        assert_eq!(first_line(&mut first).await, "full");
        // Whichever of the two the kernel ends: both together are too much.
        let mut second = start(program(), &of(&host, "charon", python(eat)), Streams::Piped).await.unwrap();
        tokio::select! {
            ended = first.wait() => assert_eq!(ended.unwrap().signal, Some(libc::SIGKILL)),
            ended = second.wait() => assert_eq!(ended.unwrap().signal, Some(libc::SIGKILL)),
        }
        let mut other = start(program(), &of(&host, "styx", python(eat)), Streams::Piped).await.unwrap();
        assert_eq!(first_line(&mut other).await, "full");
    });
}

#[test]
fn what_a_killed_keeper_left_is_removed_by_the_next() {
    let host = acheron_sandbox::host_id();
    let plan = of(&host, "charon", shell("echo up; sleep 600"));
    block(async {
        let mut running = start(program(), &plan, Streams::Piped).await.unwrap();
        assert_eq!(first_line(&mut running).await, "up");
        let keeper = read_process(running.init).expect("init lives").parent;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(keeper), nix::sys::signal::Signal::SIGKILL).unwrap();
        running.wait().await.unwrap();
        assert!(groups(&host).iter().any(|group| has_child(group)), "nobody was left to remove it");
        // The kernel ends who is in there after its keeper.
        while !groups(&host).is_empty() {
            run(&of(&host, "charon", shell("true"))).await.unwrap();
        }
    });
}

/// Whether a group is one that counts something: in the second version of the interface it says what.
fn counts(group: &Path) -> bool {
    std::fs::read_to_string(group.join("cgroup.controllers")).is_ok_and(|names| !names.trim().is_empty())
        || ["pids.max", "memory.limit_in_bytes", "cpu.shares"].iter().any(|file| group.join(file).exists())
}

fn has_child(group: &Path) -> bool {
    std::fs::read_dir(group).unwrap().flatten().any(|entry| entry.path().is_dir())
}

#[test]
fn a_share_of_the_processors_is_kept_where_it_can_be() {
    let host = acheron_sandbox::host_id();
    let mut plan = of(&host, "charon", shell("echo up; sleep 600"));
    plan.together.as_mut().unwrap().limits.cpu_percent = Some(50);
    block(async {
        let mut running = start(program(), &plan, Streams::Piped).await.unwrap();
        assert_eq!(first_line(&mut running).await, "up");
        let read = |name: &str| groups(&host).iter().find_map(|group| std::fs::read_to_string(group.join(name)).ok());
        let said = read("cpu.cfs_quota_us").or_else(|| read("cpu.max"));
        assert!(said.as_deref().is_some_and(|said| said.starts_with("50000")), "{said:?}");
    });
}
