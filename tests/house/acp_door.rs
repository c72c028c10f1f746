//! Agents of the host in an editor: the official SDK of the Agent Client Protocol drives `acheron acp`, and a hostile client.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::{GUARD, until};
use crate::mcp_servers::pypi_package;
use crate::test_host::TestHost;

const ACHERON: &str = env!("CARGO_BIN_EXE_acheron");
const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/house/acp_client.py");

fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

fn reply(text: &str) -> Value {
    call("file_write", json!({"path": "agents/self/chat/control/reply", "content": text}))
}

/// What charon answers, by the last message.
fn script() -> String {
    let read = call("file_read", json!({"path": "projects/here/fs/notes.txt"}));
    let lines = [
        json!({"when": "^What is in `/projects/here/fs/notes.txt`\n\n.sent from an editor whose directory is /projects/here/fs.$",
            "answer": format!("<think>A file.</think>{read}")}),
        json!({"when": "a note", "answer":
            call("file_write", json!({"path": "agents/self/chat/control/progress", "content": "Nearly."}))}),
        json!({"when": "bytes_written\":7", "answer": reply("A note.")}),
        json!({"when": "^Write it down\n\n.sent from an editor in /, which no project", "answer": call("file_write", json!(
            {"path": "agents/self/memory/control/create.json", "content": "{\"kind\":\"note\",\"name\":\"n\",\"content\":\"c\"}"}))}),
        json!({"when": "job_id", "answer": reply("Done.")}),
        json!({"when": "^Wait", "answer": call("file_read", json!({"path": "agents/self/events/sources/user/never.json"}))}),
        json!({"when": "^And now", "answer": reply("Still the same.")}),
        json!({"when": "^Hi", "repeat": true, "answer": reply("Hello.")}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

fn house() -> TestHost {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "script", "name": "../script.ndjson"},
        "agents": {"charon": {"projects": ["here"]}}, "projects": {"here": {"binds": {"/": {"path": "."}}}}});
    TestHost::prepared(&spec.to_string(), |here| {
        std::fs::write(here.join("../script.ndjson"), script()).unwrap();
    })
}

fn python() -> Option<PathBuf> {
    pypi_package("acp-python-sdk", "agent-client-protocol", "0.12.1", "bin/python")
}

fn door(house: &TestHost) -> Vec<String> {
    [ACHERON, "acp", "--state", &house.state().display().to_string()].map(str::to_owned).to_vec()
}

#[test]
fn the_official_sdk_drives_an_agent_of_the_host() {
    let Some(python) = python() else { return };
    let house = house();
    let directory = house.here().canonicalize().unwrap();
    let mut command = Command::new("timeout");
    command.arg((5 * GUARD.as_secs()).to_string()).arg(python).args(["-W", "ignore", CLIENT]).arg(&directory);
    let output = command.args(door(&house)).current_dir(&directory).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    expect![[r#"
        1 acheron True
        agent_thought_chunk 'A file.'
        call: Read /projects/here/fs/notes.txt read in_progress ['DIR/notes.txt']
        call is completed ['a note\n']
        agent_message_chunk 'Nearly.\n\n'
        agent_message_chunk 'A note.'
        -> end_turn
        call: memory.create execute in_progress ['TREE/agents/self/memory/control/create.json']
        call is completed ['{"job_id":"JOB"}']
        agent_message_chunk 'Done.'
        -> end_turn
        call: Read /agents/self/events/sources/user/never.json read in_progress ['TREE/agents/self/events/sources/user/never.json']
        -> cancelled
        refused: the script ../script.ndjson has no answer left for this message
        ['What is in `/projects/here/fs/notes.txt`'] [True]
        code 0
        user_message_chunk 'What is in `/projects/here/fs/notes.txt`'
        agent_message_chunk 'A note.'
        agent_message_chunk 'Still the same.'
        -> end_turn
        refused: the history has no session `nothing`; `session/list` shows those that it has
    "#]].assert_eq(&said);
    house.check(
        r#"
        jq -c '[.input, .reply, .error.code, .session.place]' agents/charon/chat/history.ndjson
        "#,
        expect![[r#"
            ["What is in `/projects/here/fs/notes.txt`","A note.",null,"/projects/here/fs"]
            ["Write it down","Done.",null,null]
            ["Wait",null,"cancelled",null]
            ["Fail",null,"provider_error",null]
            ["And now?","Still the same.",null,"/projects/here/fs"]
        "#]],
    );
}

/// An editor that writes lines and reads lines.
struct LineEditor {
    child: Child,
    read: BufReader<ChildStdout>,
    write: Option<ChildStdin>,
}

impl LineEditor {
    fn start(dir: &Path, words: &[String]) -> LineEditor {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (read, write) = (BufReader::new(child.stdout.take().unwrap()), child.stdin.take());
        LineEditor { child, read, write }
    }

    fn send(&mut self, message: &Value) {
        self.write.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.read.read_line(&mut line).unwrap() > 0, "the door has gone");
        serde_json::from_str(&line).unwrap()
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// A greeted editor with a session.
    fn with_session(dir: &Path, words: &[String]) -> (LineEditor, String) {
        let mut editor = LineEditor::start(dir, words);
        editor.ask(0, "initialize", json!({"protocolVersion": 1}));
        editor.answer(0);
        editor.ask(1, "session/new", json!({"cwd": "/", "mcpServers": []}));
        let session = editor.answer(1)["result"]["sessionId"].as_str().unwrap().to_owned();
        (editor, session)
    }

    fn end(mut self) -> Option<i32> {
        drop(self.write.take());
        let mut rest = Vec::new();
        self.read.read_to_end(&mut rest).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for LineEditor {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// Without a mount and without a host: the command runs one.
#[test]
fn an_editor_needs_no_mount_and_its_conversations_outlive_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let spec = json!({"layout": "acheron-1", "model": {"kind": "script", "name": "script.ndjson"}, "agents": {"charon": {}, "ada": {}}});
    std::fs::write(dir.path().join("spec.json"), spec.to_string()).unwrap();
    std::fs::write(dir.path().join("script.ndjson"), script()).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let words = |agent: &str| {
        [ACHERON, "acp", "--spec", &path("spec.json"), "--state", &path("state"), "--agent", agent]
            .map(str::to_owned)
            .to_vec()
    };
    let (mut editor, session) = LineEditor::with_session(dir.path(), &words("ada"));
    editor.ask(2, "session/prompt", prompt(&session, "Hi"));
    assert_eq!(editor.next()["params"]["update"]["content"]["text"], "Hello.");
    assert_eq!(editor.answer(2)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.end(), Some(0));
    let (mut editor, _) = LineEditor::with_session(dir.path(), &words("ada"));
    editor.ask(2, "session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []}));
    let texts: Vec<Value> = (0..2).map(|_| editor.next()["params"]["update"]["content"]["text"].clone()).collect();
    assert_eq!((texts, &editor.answer(2)["result"]), (vec!["Hi".into(), "Hello.".into()], &json!({})));
    assert_eq!(editor.end(), Some(0));
    // Another agent has other conversations.
    let (mut editor, _) = LineEditor::with_session(dir.path(), &words("charon"));
    editor.ask(2, "session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []}));
    assert_eq!(editor.answer(2)["error"]["code"], -32002);
    drop(editor);
    let mut nobody = Command::new(ACHERON);
    nobody.args(&words("nobody")[1..]).current_dir(dir.path()).stdin(Stdio::null());
    let output = nobody.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("there is no agent `nobody`"), "{said}");
}

/// A rule asks: the editor puts the question to its user, and the answer decides.
#[test]
fn an_editor_is_asked_and_its_answer_decides() {
    let lines = [
        json!({"when": "^Remember (.)", "repeat": true, "answer": call("file_write", json!(
            {"path": "agents/self/memory/control/create.json", "content": "{\"kind\":\"note\",\"name\":\"$1\",\"content\":\"c\"}"}))}),
        json!({"when": "\"ok\\\\\":true", "repeat": true, "answer": reply("Remembered.")}),
        json!({"when": "\"ok\\\\\":false", "repeat": true, "answer": reply("Not remembered.")}),
        json!({"when": "job_id", "repeat": true, "answer": call("file_read", json!({"path": "agents/self/memory/result.json"}))}),
    ];
    let spec = json!({"layout": "acheron-1", "model": {"kind": "script", "name": "../script.ndjson"},
        "agents": {"charon": {"permissions": [{"ask": ["invoke"], "path": "/agents/self/memory/control/*"}]}}});
    let house = TestHost::prepared(&spec.to_string(), |here| {
        std::fs::write(here.join("../script.ndjson"), lines.map(|line| format!("{line}\n")).concat()).unwrap();
    });
    let (mut editor, session) = LineEditor::with_session(&house.here(), &door(&house));
    for (number, option, said) in [(2, "allow", "Remembered."), (3, "deny", "Not remembered.")] {
        editor.ask(number, "session/prompt", prompt(&session, &format!("Remember {number}")));
        let question = loop {
            let message = editor.next();
            if message["method"] == "session/request_permission" {
                break message;
            }
        };
        assert!(question["params"]["toolCall"]["title"].as_str().unwrap().contains("memory"), "{question}");
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        editor.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}));
        let mut last = Value::Null;
        let ended = loop {
            let message = editor.next();
            if message["id"] == number {
                break message;
            }
            last = message["params"]["update"]["content"]["text"].clone();
        };
        assert_eq!((&last, &ended["result"]["stopReason"]), (&json!(said), &json!("end_turn")));
    }
    assert_eq!(house.says("ls agents/charon/memory/items; jq .waiting approvals/status.json"), "2\n0\n");
}

/// Ctrl-C at a command that runs the host itself: its turn has ended, and does not go on at the next start.
#[test]
fn an_interrupted_command_leaves_no_turn_behind() {
    let dir = tempfile::tempdir().unwrap();
    let spec =
        json!({"layout": "acheron-1", "model": {"kind": "script", "name": "script.ndjson"}, "agents": {"charon": {}}});
    std::fs::write(dir.path().join("spec.json"), spec.to_string()).unwrap();
    std::fs::write(dir.path().join("script.ndjson"), script()).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let words = [ACHERON, "acp", "--spec", &path("spec.json"), "--state", &path("state")].map(str::to_owned);
    let (mut editor, session) = LineEditor::with_session(dir.path(), &words);
    editor.ask(2, "session/prompt", prompt(&session, "Wait"));
    assert_eq!(editor.next()["params"]["update"]["sessionUpdate"], "tool_call");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(editor.child.id() as i32).unwrap(),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert_eq!(editor.child.wait().unwrap().code(), Some(0));
    let (mut editor, _) = LineEditor::with_session(dir.path(), &words);
    editor.ask(2, "session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []}));
    let texts: Vec<Value> = (0..2).map(|_| editor.next()["params"]["update"]["content"]["text"].clone()).collect();
    assert!(texts[0] == "Wait" && texts[1].is_string(), "{texts:?}");
    editor.answer(2);
    editor.ask(3, "session/prompt", prompt(&session, "Hi"));
    assert_eq!(editor.answer(3)["result"]["stopReason"], "end_turn");
}

#[test]
fn an_editor_that_goes_away_cancels_its_turn_and_two_share_an_agent() {
    let house = house();
    let state = || house.says("jq -r .state agents/charon/chat/status.json");
    for how in ["killed", "ended"] {
        let (mut editor, session) = LineEditor::with_session(&house.here(), &door(&house));
        editor.ask(2, "session/prompt", prompt(&session, "Wait"));
        if how == "killed" {
            // The script has answered, so that it has no answer left the next time.
            assert_eq!(editor.next()["params"]["update"]["sessionUpdate"], "tool_call");
            drop(editor);
        } else {
            // The script knows this once.
            assert_eq!(editor.answer(2)["error"]["data"]["code"], "provider_error");
            assert_eq!(editor.end(), Some(0));
        }
        until("the turn has ended", || state() == "idle\n");
    }
    assert_eq!(house.says("head -n 1 agents/charon/chat/history.ndjson | jq -r .error.code"), "cancelled\n");
    let (mut one, first) = LineEditor::with_session(&house.here(), &door(&house));
    let (mut two, second) = LineEditor::with_session(&house.here(), &door(&house));
    one.ask(2, "session/prompt", prompt(&first, "Hi from one"));
    two.ask(2, "session/prompt", prompt(&second, "Hi from two"));
    for editor in [&mut one, &mut two] {
        assert_eq!(editor.answer(2)["result"]["stopReason"], "end_turn");
    }
    // A session of another connection is not this one's.
    one.ask(3, "session/prompt", prompt(&second, "Hi"));
    assert_eq!(one.answer(3)["error"]["code"], -32002);
}

/// A hundred thousand lines, most of them wrong: the door answers the next good one, and the host is as before.
#[test]
fn a_hostile_editor_changes_nothing_for_the_next_message() {
    let house = house();
    let (mut editor, session) = LineEditor::with_session(&house.here(), &door(&house));
    let good: Vec<String> = [
        json!({"jsonrpc": "2.0", "id": 7, "method": "session/list", "params": {}}),
        json!({"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": prompt(&session, "")}),
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}),
        json!({"jsonrpc": "2.0", "id": 8, "result": {"outcome": {"outcome": "selected", "optionId": "allow"}}}),
    ]
    .map(|message| message.to_string())
    .to_vec();
    let mut seed = 1_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let mut stdin = editor.write.take().unwrap();
    let writing = std::thread::spawn(move || {
        for number in 0..100_000 {
            let mut line = good[random(good.len())].clone().into_bytes();
            match number % 4 {
                0 => {
                    let at = random(line.len());
                    line[at] = (random(256)) as u8;
                }
                1 => line.truncate(random(line.len())),
                2 => line = (0..random(60)).map(|_| random(256) as u8).collect(),
                _ => {
                    let (from, to) = (random(line.len()), random(line.len()));
                    line.swap(from, to);
                }
            }
            line.retain(|byte| *byte != b'\n');
            line.push(b'\n');
            stdin.write_all(&line).unwrap();
        }
        stdin.write_all(&vec![b'x'; 9 << 20]).unwrap();
        stdin.write_all(b"\n").unwrap();
        let last =
            json!({"jsonrpc": "2.0", "id": 424242, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}});
        stdin.write_all(format!("{last}\n").as_bytes()).unwrap();
        stdin
    });
    assert!(editor.answer(424242)["result"]["sessionId"].is_string());
    editor.write = Some(writing.join().unwrap());
    assert_eq!(editor.end(), Some(0));
    // Empty messages were refused, and nothing runs.
    assert_eq!(
        house.says("jq -c '[.queued, .input, .state]' agents/charon/chat/status.json"),
        "[0,null,\"refused\"]\n"
    );
}

/// It floods prompts and never reads: it is alone with it.
#[test]
fn an_editor_that_never_reads_keeps_nobody_else() {
    let house = house();
    let (mut deaf, _) = LineEditor::with_session(&house.here(), &door(&house));
    let mut stdin = deaf.write.take().unwrap();
    let flooding = std::thread::spawn(move || {
        let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}));
        // Fails when the test ends the door.
        while stdin.write_all(line.as_bytes()).is_ok() {}
    });
    let (mut editor, session) = LineEditor::with_session(&house.here(), &door(&house));
    editor.ask(2, "session/prompt", prompt(&session, "Hi"));
    assert_eq!(editor.answer(2)["result"]["stopReason"], "end_turn");
    drop(deaf);
    flooding.join().unwrap();
}
