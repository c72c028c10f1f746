//! `acheron chat` as a person meets it: on a real terminal, key by key.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::pty::OpenptFlags;
use serde_json::{Value, json};

use crate::common::{GUARD, until};
use crate::test_host::TestHost;

const LEFT: &str = "\x1b[D";
const UP: &str = "\x1b[A";
const INTERRUPT: &str = "\x03";
const END: &str = "\x04";
/// What the line editor says when it begins to read a line.
const PROMPT: &str = "\x1b[?2004h";
const DIM: &str = "\x1b[2m";

/// A terminal with the program on its far end.
struct Terminal {
    near: std::fs::File,
    shown: Arc<Mutex<String>>,
    /// How many prompts were waited for.
    prompts: usize,
    program: Child,
}

impl Terminal {
    fn chat(root: &Path, home: &Path, env: &[(&str, &str)]) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&near).unwrap();
        rustix::pty::unlockpt(&near).unwrap();
        let far = std::fs::File::from(rustix::pty::ioctl_tiocgptpeer(&near, flags).unwrap());
        // The terminal must be its own, so that Ctrl-C is a signal to it.
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_acheron"), "chat", "--root"]).arg(root);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", home).env("TERM", "xterm").envs(env.iter().copied());
        command.stdin(far.try_clone().unwrap()).stdout(far.try_clone().unwrap()).stderr(far);
        let program = command.spawn().unwrap();
        drop(command); // the far end is the program's alone
        let (near, shown) = (std::fs::File::from(near), Arc::<Mutex<String>>::default());
        let (mut reading, kept) = (near.try_clone().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // EIO: the program is gone.
            while let Ok(count @ 1..) = reading.read(&mut bytes) {
                kept.lock().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Terminal { near, shown, prompts: 0, program }
    }

    fn shown(&self) -> String {
        self.shown.lock().clone()
    }

    /// Types at the next prompt. What is typed before it stands there may be dropped with the line before.
    fn at_prompt(&mut self, keys: &str) {
        self.prompts += 1;
        self.shows(PROMPT, self.prompts);
        self.type_keys(keys);
    }

    fn type_keys(&mut self, keys: &str) {
        self.near.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen has shown this so many times.
    #[track_caller]
    fn shows(&self, wanted: &str, times: usize) {
        let began = Instant::now();
        while self.shown().matches(wanted).count() < times {
            assert!(began.elapsed() < GUARD, "{wanted:?} not {times} times in {:?}", self.shown());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn ends(mut self) -> bool {
        until("the program ends", || self.program.try_wait().unwrap().is_some());
        self.program.wait().unwrap().success()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        _ = self.program.kill(); // it may have ended
        _ = self.program.wait();
    }
}

fn scripted() -> TestHost {
    let say = |text: &str| json!({"tool_calls": [{"name": "file_write", "arguments": {"path": "agents/self/chat/control/reply", "content": text}}]});
    let list = json!({"tool_calls": [{"name": "file_list", "arguments": {"path": "agents/self/thoughts"}}]});
    let wait = json!({"tool_calls": [{"name": "file_read", "arguments": {"path": "agents/self/events/sources/user/never.json"}}]});
    let lines = [
        json!({"when": "^.*hello$", "repeat": true, "answer": format!("<think>let me look around</think>{list}")}),
        json!({"when": "\"files\":", "repeat": true, "answer": say("I have looked around")}),
        json!({"when": "wait", "repeat": true, "answer": wait}),
    ];
    let spec =
        json!({"layout": "acheron-1", "model": {"kind": "script", "name": "script.ndjson"}, "agents": {"charon": {}}});
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    TestHost::prepared(&spec.to_string(), |here| std::fs::write(here.join("script.ndjson"), text).unwrap())
}

fn inputs(house: &TestHost) -> Vec<String> {
    let history = std::fs::read_to_string(house.root().join("agents/self/chat/history.ndjson")).unwrap();
    let entries = history.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.map(|entry| entry["input"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_conversation_is_edited_followed_interrupted_and_remembered() {
    let (house, home) = (scripted(), tempfile::tempdir().unwrap());
    let mut terminal = Terminal::chat(&house.root(), home.path(), &[]);
    // Line editing: the missing letter is put in where it belongs.
    terminal.at_prompt(&format!("hllo{LEFT}{LEFT}{LEFT}e\r"));
    terminal.shows("I have looked around", 1);
    terminal.shows(&format!("{DIM}let me look around"), 1);
    terminal.shows(&format!("{DIM}round 1: file_list"), 1);
    assert_eq!(inputs(&house), ["hello"]);
    terminal.at_prompt("/help\r");
    terminal.shows("cancel every turn that is queued or running", 1);
    terminal.at_prompt("/jobs\r");
    terminal.shows("chat.turn", 1);
    terminal.at_prompt("/fly\r");
    terminal.shows("unknown command /fly; /help lists the commands", 1);
    // Ctrl-C ends the turn, not the program.
    terminal.at_prompt("wait\r");
    terminal.shows("round 1: file_read", 1);
    terminal.type_keys(INTERRUPT);
    terminal.shows("! the call was cancelled", 1);
    terminal.at_prompt("/cancel\r");
    terminal.shows("0 cancelled", 1);
    // At the prompt it only drops the line; the history goes back past all that was typed.
    terminal.at_prompt(&format!("nonsense{INTERRUPT}"));
    terminal.at_prompt(&format!("{}\r", UP.repeat(6)));
    terminal.shows("I have looked around", 2);
    assert_eq!(inputs(&house), ["hello", "wait", "hello"]);
    terminal.at_prompt(END);
    assert!(terminal.ends());

    // Another day, without colour: the history is there, and nothing is dimmed.
    let mut terminal = Terminal::chat(&house.root(), home.path(), &[("NO_COLOR", "1")]);
    terminal.at_prompt(&format!("{UP}\r"));
    terminal.shows("I have looked around", 1);
    terminal.shows("let me look around", 1);
    terminal.at_prompt("/quit\r");
    assert!(!terminal.shown().contains(DIM));
    assert!(terminal.ends());
}
