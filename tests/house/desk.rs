//! The operator's desk: what runs, listed, completed at a shell and on one screen.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::{Value, json};

use crate::common::until;
use crate::test_host::TestHost;

/// An agent that waits for a signal in its turn.
fn house() -> TestHost {
    let wait = json!({"when": ".", "repeat": true, "answer": {"tool_calls": [
        {"name": "file_read", "arguments": {"path": "agents/self/events/sources/user/go.json"}}]}});
    let spec = r#"{"agents": {"charon": {"about": "The ferryman"}, "styx": {}}, "model": {"kind": "script", "name": "script.ndjson"}}"#;
    TestHost::prepared(spec, |here| std::fs::write(here.join("script.ndjson"), wait.to_string()).unwrap())
}

fn acheron(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acheron"));
    command.args(words).stdin(Stdio::null());
    command
}

fn said(host: &TestHost, words: &[&str]) -> String {
    let root = host.root();
    let mut all = words.to_vec();
    all.extend(["--root", root.to_str().unwrap()]);
    let ran = acheron(&all).output().unwrap();
    String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Begins a turn that waits, and returns when it does.
fn begin_turn(host: &TestHost) {
    assert_eq!(host.says("echo hello > agents/charon/chat/control/input"), "");
    assert_eq!(
        host.says(r#"until [ "$(jq .progress.waiting agents/charon/jobs/last/progress.json)" = true ]; do :; done"#),
        ""
    );
}

#[test]
fn agents_and_jobs_are_listed_for_people_and_for_programs() {
    let host = house();
    assert_eq!(said(&host, &["jobs"]), "no job is under way\n");
    begin_turn(&host);
    let agents = said(&host, &["agents"]);
    let rows: Vec<Vec<&str>> = agents.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["AGENT", "STATE", "MODEL", "TOKENS", "MONEY", "JOBS", "ABOUT"]);
    assert_eq!((rows[1][0], rows[1][1], rows[1].last()), ("charon", "running", Some(&"ferryman")));
    assert_eq!((rows[2][0], rows[2][1]), ("styx", "idle"));
    let agents = lines(&said(&host, &["agents", "--json"]));
    assert_eq!((&agents[0]["running"], &agents[1]["running"]), (&json!(1), &json!(0)));
    assert_eq!(
        host.says(r#"echo '{"kind":"note","name":"n","content":"x"}' > agents/styx/memory/control/create.json"#),
        ""
    );
    let running = lines(&said(&host, &["jobs", "--json"]));
    assert_eq!(running.len(), 1);
    assert_eq!((&running[0]["service"], &running[0]["state"]), (&json!("chat"), &json!("running")));
    let all = lines(&said(&host, &["jobs", "--json", "--all"]));
    let operations: Vec<&str> = all.iter().filter_map(|job| job["operation"].as_str()).collect();
    assert_eq!(operations, ["create", running[0]["operation"].as_str().unwrap()], "those that have ended come first");
    assert_eq!(lines(&said(&host, &["jobs", "--json", "--all", "--operation", "memory.create"])).len(), 1);
    assert_eq!(lines(&said(&host, &["jobs", "--json", "--all", "--agent", "styx"])).len(), 1);
    assert!(said(&host, &["jobs", "--all"]).contains("memory.create"));
    // Where nothing runs, what was left is shown and said to be that.
    let state = tempfile::tempdir().unwrap();
    let ran = acheron(&["jobs", "--state", state.path().to_str().unwrap()]).output().unwrap();
    assert!(!ran.status.success() && String::from_utf8_lossy(&ran.stderr).contains("no host runs on"), "{ran:?}");
    let ran = acheron(&["agents", "--state", state.path().to_str().unwrap()]).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(!ran.status.success() && told.contains("no host runs on") && told.contains("mount DIR --daemon"), "{told}");
}

/// What bash is offered for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let mut command = acheron(&["--"]);
    command.args(words).env("ACHERON_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    let ran = command.output().unwrap();
    String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_is_offered_agents_mounts_models_and_operations() {
    let host = house();
    let root = host.root().display().to_string();
    let has = |words: &[&str], word: &str| {
        let all = offered(words);
        assert!(all.iter().any(|one| one == word), "{words:?}: {all:?}");
    };
    has(&["acheron", "chat", "--agent", ""], "styx");
    has(&["acheron", "jobs", "--agent", "ch"], "charon");
    has(&["acheron", "unmount", ""], &root);
    has(&["acheron", "agents", "--root", ""], &root);
    has(&["acheron", "mount", "x", "--model", ""], "anthropic:");
    has(&["acheron", "run", "--model", "scr"], "script:script.ndjson");
    has(&["acheron", "jobs", "--operation", "memory.c"], "memory.create");
    has(&["acheron", "lo"], "log");
    has(&["acheron", "log", "--fo"], "--follow");
}

/// `acheron top` on a terminal.
struct Terminal {
    near: std::fs::File,
    far: std::fs::File,
    shown: Arc<Mutex<String>>,
    program: Child,
}

impl Terminal {
    fn top(host: &TestHost) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&near).unwrap();
        rustix::pty::unlockpt(&near).unwrap();
        let far = std::fs::File::from(rustix::pty::ioctl_tiocgptpeer(&near, flags).unwrap());
        tcsetwinsize(&far, Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_acheron"), "top", "--root"]).arg(host.root());
        command.env("TERM", "xterm");
        command.stdin(far.try_clone().unwrap()).stdout(far.try_clone().unwrap()).stderr(far.try_clone().unwrap());
        let program = command.spawn().unwrap();
        let (near, shown) = (std::fs::File::from(near), Arc::<Mutex<String>>::default());
        let (mut reading, kept) = (near.try_clone().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reading.read(&mut bytes) {
                kept.lock().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Terminal { near, far, shown, program }
    }

    fn waits_for(&self, text: &str) {
        until(text, || self.shown.lock().contains(text));
    }

    fn types(&mut self, keys: &str) {
        self.near.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether the terminal echoes, and shows the screen and the cursor that it had.
    fn is_as_before(&self) -> bool {
        let modes = tcgetattr(&self.far).unwrap().local_modes;
        let shown = self.shown.lock();
        let last = |text: &str| shown.rfind(text);
        modes.contains(LocalModes::ICANON | LocalModes::ECHO) && last("\x1b[?1049l") > last("\x1b[?1049h")
    }

    /// Its exit code, after everything that it wrote was read: what is written behind that comes last.
    fn ends(&mut self) -> Option<i32> {
        until("top ends", || self.program.try_wait().unwrap().is_some());
        self.far.write_all(b"(over)").unwrap();
        self.waits_for("(over)");
        self.program.try_wait().unwrap().unwrap().code()
    }

    /// The process that draws, a child of the one that waits.
    fn drawing(&self) -> u32 {
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.program.id())).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        _ = self.program.kill();
        _ = self.program.wait();
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal)
        .unwrap();
}

#[test]
fn top_shows_a_host_cancels_a_job_by_keys_and_leaves_the_terminal_as_it_was() {
    let host = house();
    begin_turn(&host);
    let mut top = Terminal::top(&host);
    top.waits_for("calls/s");
    top.waits_for("charon");
    top.waits_for("begins"); // the log
    assert!(!tcgetattr(&top.far).unwrap().local_modes.contains(LocalModes::ICANON));
    top.types("c");
    top.waits_for("(y/n)");
    top.types("y");
    assert_eq!(host.says("jq -r .state agents/charon/jobs/last/status.json"), "cancelled\n");
    top.types("q");
    assert_eq!(top.ends(), Some(0));
    assert!(top.is_as_before());
}

#[test]
fn top_leaves_the_terminal_as_it_was_however_it_is_killed() {
    let host = house();
    for (drawing, how, code) in [
        (false, rustix::process::Signal::TERM, 143),
        (false, rustix::process::Signal::HUP, 143),
        (true, rustix::process::Signal::TERM, 143),
        (true, rustix::process::Signal::KILL, 137),
    ] {
        let mut top = Terminal::top(&host);
        top.waits_for("calls/s");
        signal(if drawing { top.drawing() } else { top.program.id() }, how);
        assert_eq!(top.ends(), Some(code), "{how:?}");
        assert!(top.is_as_before(), "{how:?}: {:?}", top.shown.lock());
    }
    // The host ends.
    let mut top = Terminal::top(&host);
    top.waits_for("calls/s");
    drop(host);
    assert_eq!(top.ends(), Some(1));
    assert!(top.is_as_before());
}

#[test]
fn top_without_a_terminal_says_what_prints_the_same() {
    let host = house();
    let told = said(&host, &["top"]);
    assert_eq!(
        told,
        "error: top needs a terminal\nhint: `acheron agents`, `acheron jobs` and `acheron log` print the same\n"
    );
}
