//! How a sandbox begins and ends: what the host hears, and that nobody outlives it.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::{block, check, finish, program, run, shell};
use acheron_base::Code;
use acheron_sandbox::{ExitStatus, Plan, ProcessOwner, Streams, owner_of, probe, read_process, start};

#[test]
fn the_host_hears_how_it_ended() {
    let ended = |script: &str| block(run(&shell(script))).unwrap().ended;
    assert_eq!(ended("exit 7"), ExitStatus { code: Some(7), signal: None });
    assert_eq!(ended("kill -TERM $$"), ExitStatus { code: None, signal: Some(15) });
}

#[test]
fn what_cannot_begin_says_why() {
    let refused = |plan: Plan| block(run(&plan)).unwrap_err();
    let missing = refused(Plan::new("charon", ["no-such-program"]));
    assert_eq!(
        (missing.code, missing.message.as_str()),
        (Code::NotFound, "cannot run `no-such-program`: No such file or directory")
    );
    let mut plan = shell("true");
    plan.cwd = "/nowhere".into();
    assert_eq!(refused(plan).message, "the working directory `/nowhere`: No such file or directory (os error 2)");
    let gone = refused(shell("true").bind("/no/such/source", "/x", true));
    assert_eq!(gone.message, "`/no/such/source` cannot be bound: No such file or directory (os error 2)");
}

#[test]
fn all_mechanisms_are_active_on_a_machine_that_has_them() {
    let confinement = block(probe(program())).unwrap();
    let names: Vec<&str> = confinement.0.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(
        names.join(" "),
        "user pids mounts ipc uts network root processes memory cpu agent_limits privileges landlock system_calls"
    );
    assert_eq!(confinement.missing().count(), 0, "{confinement:?}");
}

#[test]
fn streams_are_the_programs_own() {
    block(async {
        let mut running = start(program(), &shell("cat; exec >&-; sleep 600"), Streams::Piped).await.unwrap();
        let mut stdin = running.stdin.take().unwrap();
        stdin.write_all(b"over the river\n").await.unwrap();
        drop(stdin);
        // Ends although the program lives: nobody else holds its output open.
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(running.stdout.as_mut().unwrap(), &mut text).await.unwrap();
        assert_eq!(text, "over the river\n");
        assert_eq!(running.kill().await.unwrap(), ExitStatus::KILLED);
    });
}

/// A child that leaves its family, ignores what it can, and holds a lock for as long as it lives.
const SURVIVOR: &str = "(trap '' HUP TERM INT; setsid flock /shared/lock sh -c 'echo up > /shared/up; sleep 600' &) & \
     while ! grep -q up /shared/up; do :; done; echo started; ";

struct Shared(tempfile::TempDir);

impl Shared {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["lock", "up"] {
            File::create(directory.path().join(name)).unwrap();
        }
        Shared(directory)
    }

    fn plan(&self, then: &str) -> Plan {
        shell(&format!("{SURVIVOR}{then}")).bind(self.0.path(), "/shared", false)
    }

    /// Waits until nobody holds the lock. A survivor would hold it for ten minutes.
    fn nobody_left(&self, wait: bool) {
        let lock = File::open(self.0.path().join("lock")).unwrap();
        if wait { lock.lock().unwrap() } else { lock.try_lock().expect("someone outlived the sandbox") }
    }
}

#[test]
fn who_left_the_family_ends_with_the_program() {
    let shared = Shared::new();
    check(&shared.plan("exit 0"), "started");
    shared.nobody_left(false);
}

#[test]
fn nobody_outlives_the_kill() {
    let shared = Shared::new();
    block(async {
        let mut running = start(program(), &shared.plan("sleep 600"), Streams::Piped).await.unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("started"));
        assert_eq!(running.kill().await.unwrap(), ExitStatus::KILLED);
        shared.nobody_left(false);
    });
}

#[test]
fn nobody_outlives_a_host_that_forgot_them() {
    let shared = Shared::new();
    block(async {
        let mut running = start(program(), &shared.plan("sleep 600"), Streams::Piped).await.unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("started"));
        drop(running);
    });
    shared.nobody_left(true);
}

#[test]
fn nobody_outlives_a_keeper_that_was_killed() {
    let shared = Shared::new();
    block(async {
        let mut running = start(program(), &shared.plan("sleep 600"), Streams::Piped).await.unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("started"));
        let keeper = read_process(running.init).expect("init lives").parent;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(keeper), nix::sys::signal::Signal::SIGKILL).unwrap();
        assert_eq!(running.wait().await.unwrap(), ExitStatus::KILLED);
    });
    shared.nobody_left(true);
}

#[test]
fn a_process_inside_is_its_agent_and_a_process_that_is_gone_is_nobody() {
    block(async {
        let mut running = start(program(), &shell("echo up; cat; exit 0"), Streams::Piped).await.unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("up"));
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.init)).unwrap();
        let inside: i32 = children.split_whitespace().next().unwrap().parse().unwrap();
        for pid in [inside, running.init] {
            assert_eq!(owner_of(pid, read_process), ProcessOwner::Agent("charon".into()));
        }
        assert_eq!(owner_of(std::process::id() as i32, read_process), ProcessOwner::Host);
        running.stdout = Some(lines.into_inner().into_inner());
        finish(&mut running).await.unwrap();
        assert_eq!(owner_of(inside, read_process), ProcessOwner::Unknown);
    });
}

#[test]
fn the_hidden_word_is_not_for_people() {
    let output = std::process::Command::new(program()).arg("__sandbox").arg("7").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{:?}", output.status.signal());
    std::io::stderr().write_all(&output.stderr).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "acheron: __sandbox is an internal command\n");
}
