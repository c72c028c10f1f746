//! The tree for MCP clients: the official SDKs drive `acheron mcp`, with and without a mount; and hostile clients.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::{GUARD, command};
use crate::mcp_servers::{npm_package, pypi_package};
use crate::test_host::TestHost;

const ACHERON: &str = env!("CARGO_BIN_EXE_acheron");
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/house");

/// A directory with a mountspec, for hosts that are not mounted.
fn place() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {}, "ada": {}}});
    std::fs::write(dir.path().join("spec.json"), spec.to_string()).unwrap();
    dir
}

/// `acheron mcp` without a mount.
fn unmounted(dir: &Path) -> Vec<String> {
    let path = |name: &str| dir.join(name).display().to_string();
    [ACHERON.to_owned(), "mcp".to_owned(), "--spec".to_owned(), path("spec.json"), "--state".to_owned(), path("state")]
        .into()
}

/// What a program prints. A session of an SDK takes longer than one of a shell.
fn run(dir: &Path, words: &[String]) -> String {
    said(patient(dir, words))
}

fn patient(dir: &Path, words: &[String]) -> Command {
    let mut command = Command::new("timeout");
    command.arg((5 * GUARD.as_secs()).to_string()).args(words).current_dir(dir).stdin(Stdio::null());
    command
}

fn said(mut command: Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn python() -> Option<PathBuf> {
    pypi_package("mcp-python-sdk", "mcp", "2.3.0", "bin/python")
}

#[test]
fn the_python_sdk_drives_the_door_in_each_of_its_modes() {
    let Some(python) = python() else { return };
    let session = |mode: &str| {
        let dir = place();
        let mut words = [&python.display().to_string(), "-W", "ignore", &format!("{HERE}/mcp_client.py"), mode]
            .map(str::to_owned)
            .to_vec();
        words.extend(unmounted(dir.path()));
        run(dir.path(), &words)
    };
    let old = session("legacy");
    expect![[r#"
        2025-11-25 ['file_read', 'file_write', 'file_list']
        ['acheron:/AGENTS.md', 'acheron:/README.md', 'acheron:/agents/self/services/SERVICES.json', 'acheron:/agents/self/chat/history.ndjson', 'acheron:/agents/self/events/log.ndjson']
        # For an agent that finds itself here
        {"directories":"ada charon","links":"self"}
        True
        At the willow.
        refused: invalid_payload: create: content is missing
        refused: not_found: there is no `/agents/ada/nothing`
        refused: unknown_operation: there is no tool `file_fly`; the tools are file_read, file_write and file_list
        [not ready]
        progress: waiting for /agents/self/events/sources/user/go.json
        True
        cancelled
        At the willow.
        30000 True True
        At the willow.
        updated
    "#]].assert_eq(&old);
    let new = session("auto");
    expect![[r#"
        2026-07-28 ['file_read', 'file_write', 'file_list']
        ['acheron:/AGENTS.md', 'acheron:/README.md', 'acheron:/agents/self/services/SERVICES.json', 'acheron:/agents/self/chat/history.ndjson', 'acheron:/agents/self/events/log.ndjson']
        # For an agent that finds itself here
        {"directories":"ada charon","links":"self"}
        True
        At the willow.
        refused: invalid_payload: create: content is missing
        refused: not_found: there is no `/agents/ada/nothing`
        refused: unknown_operation: there is no tool `file_fly`; the tools are file_read, file_write and file_list
        [not ready]
        progress: waiting for /agents/self/events/sources/user/go.json
        True
        cancelled
        At the willow.
        30000 True True
        At the willow.
        event: acheron:/agents/self/memory/items/ford/content
        updated
    "#]].assert_eq(&new);
    assert_eq!(session("2026-07-28"), new);
}

#[test]
fn the_typescript_sdk_drives_the_door() {
    let Some(package) = npm_package("@modelcontextprotocol/sdk", "1.32.2", "package.json") else { return };
    let (dir, home) = (place(), package.ancestors().nth(4).unwrap().display().to_string());
    let mut words = vec!["node".to_owned(), format!("{HERE}/mcp_client.mjs"), home];
    words.extend(unmounted(dir.path()));
    expect![[r#"
        file_read file_write file_list
        # For an agent that finds itself here
        true
        cold
        refused: not_found: there is no `/agents/ada/nothing`
        acheron:/agents/self/memory/items/styx/content
        cancelled
    "#]]
    .assert_eq(&run(dir.path(), &words));
}

/// `acheron serve --mcp` at a host.
struct Served {
    child: std::process::Child,
    url: String,
}

impl Served {
    fn at(house: &TestHost) -> Served {
        let mut command = Command::new(ACHERON);
        command.args(["serve", "--listen", "127.0.0.1:0", "--mcp", "--state"]).arg(house.state());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut said, &mut url).unwrap();
        Served { child, url: format!("{}/mcp", url.trim()) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn token(house: &TestHost, agent: &str) -> String {
    let mut create = Command::new(ACHERON);
    let output = create.args(["token", "create", "--agent", agent, "--state"]).arg(house.state()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_python_sdk_drives_the_door_over_http() {
    let Some(python) = python() else { return };
    for (mode, version, event) in [
        ("legacy", "2025-11-25", ""),
        ("auto", "2026-07-28", "event: acheron:/agents/self/memory/items/ford/content\n"),
    ] {
        let house = TestHost::of(r#"{"agents":{"charon":{},"ada":{}}}"#);
        let (served, token) = (Served::at(&house), token(&house, "charon"));
        let script = format!("{HERE}/mcp_client.py");
        let python = python.display().to_string();
        let words = [&python, "-W", "ignore", &script, mode, &served.url].map(str::to_owned);
        let mut client = patient(&house.here(), &words);
        client.env("TOKEN", token);
        // The SDK prints this at the end of each session of the old world: it does not expect 202.
        let said = said(client).replace("Session termination failed: 202\n", "");
        let expected = format!(
            "{version} ['file_read', 'file_write', 'file_list']\n\
            ['acheron:/AGENTS.md', 'acheron:/README.md', 'acheron:/agents/self/services/SERVICES.json', \
            'acheron:/agents/self/chat/history.ndjson', 'acheron:/agents/self/events/log.ndjson']\n\
            # For an agent that finds itself here\n\
            {{\"directories\":\"charon\",\"links\":\"self\"}}\nTrue\nAt the willow.\n\
            refused: invalid_payload: create: content is missing\n\
            refused: not_found: there is no `/agents/charon/nothing`\n\
            refused: unknown_operation: there is no tool `file_fly`; the tools are file_read, file_write and file_list\n\
            [not ready]\nprogress: waiting for /agents/self/events/sources/user/go.json\nTrue\ncancelled\nAt the willow.\n\
            30000 True True\nAt the willow.\n{event}updated\n"
        );
        assert_eq!(said, expected, "{mode}");
    }
}

/// Begins a session with one token and uses it with another.
const TWO_TOKENS: &str = r#"
import json, sys, urllib.request
url, one, two = sys.argv[1:]
def post(token, body, **headers):
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    if token: headers["authorization"] = "Bearer " + token
    request = urllib.request.Request(url, json.dumps({"jsonrpc": "2.0", **body}).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer: return answer.status, answer.headers.get("mcp-session-id")
    except urllib.error.HTTPError as error: return error.code, None
begin = {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
print(post(None, begin)[0], post(one, begin, origin="http://evil.example")[0])
status, session = post(one, begin)
print(status, post(one, {"method": "notifications/initialized"}, **{"mcp-session-id": session})[0])
ask = {"id": 2, "method": "tools/list"}
print(post(one, ask, **{"mcp-session-id": session})[0], post(two, ask, **{"mcp-session-id": session})[0])
"#;

#[test]
fn a_session_belongs_to_the_token_that_began_it() {
    let house = TestHost::of(r#"{"agents":{"charon":{},"ada":{}}}"#);
    let (served, one, two) = (Served::at(&house), token(&house, "charon"), token(&house, "ada"));
    let output = command(&house.here(), &["python3", "-c", TWO_TOKENS, &served.url, &one, &two]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "401 403\n200 202\n200 404\n");
}

/// A client that writes lines and reads lines.
struct LineClient {
    child: std::process::Child,
    read: std::io::BufReader<std::process::ChildStdout>,
}

impl LineClient {
    fn start(dir: &Path, words: &[String]) -> LineClient {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let read = std::io::BufReader::new(child.stdout.take().unwrap());
        LineClient { child, read }
    }

    fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// The answer to the request with this id.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(std::io::BufRead::read_line(&mut self.read, &mut line).unwrap() > 0, "the server has gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn greet(&mut self) {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        self.answer(0);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn call(&mut self, id: u64, tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        self.answer(id)["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Ends the input; returns the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        let mut rest = Vec::new();
        self.read.read_to_end(&mut rest).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for LineClient {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn a_client_of_an_agent_has_its_rights_and_two_share_one_host() {
    let dir = place();
    let words = unmounted(dir.path());
    let as_agent =
        |agent: &str| words.iter().cloned().chain(["--agent".to_owned(), agent.to_owned()]).collect::<Vec<_>>();
    let mut first = LineClient::start(dir.path(), &as_agent("charon"));
    first.greet();
    assert_eq!(first.call(1, "file_list", json!({"path": "/agents"})), r#"{"directories":"charon","links":"self"}"#);
    let refused = first.call(2, "file_read", json!({"path": "/agents/ada/chat/history.ndjson"}));
    assert!(refused.starts_with("not_found: "), "{refused}");
    first.call(3, "file_write", json!({"path": "/agents/self/memory/control/create.json", "content": "{\"kind\":\"note\",\"name\":\"x\",\"content\":\"y\"}"}));
    let mut second = LineClient::start(dir.path(), &words);
    second.greet();
    assert_eq!(second.call(1, "file_read", json!({"path": "/agents/charon/memory/items/x/content"})), "y");
    // The first command runs the host: it stays as long as the second needs it.
    drop(first.child.stdin.take());
    assert_eq!(second.call(2, "file_read", json!({"path": "/agents/charon/memory/items/x/content"})), "y");
    assert_eq!(second.end(), Some(0));
    assert_eq!(first.end(), Some(0));
    let said = run(dir.path(), &as_agent("nobody"));
    assert!(said.contains("error: there is no agent `nobody`"), "{said}");
}

#[test]
fn a_mounted_host_is_joined() {
    let house = TestHost::of(r#"{"agents":{"charon":{}}}"#);
    house.inside(async |_| ());
    let words = [ACHERON, "mcp", "--state", &house.state().display().to_string()].map(str::to_owned);
    let mut client = LineClient::start(&house.here(), &words);
    client.greet();
    house.says(
        "echo '{\"kind\":\"note\",\"name\":\"a\",\"content\":\"seen\"}' > agents/self/memory/control/create.json",
    );
    assert_eq!(client.call(1, "file_read", json!({"path": "/agents/self/memory/items/a/content"})), "seen");
    assert_eq!(client.end(), Some(0));
}

/// A hundred thousand lines, most of them wrong: the door answers the next good one.
#[test]
fn a_hostile_client_changes_nothing_for_the_next_message() {
    let dir = place();
    let mut client = LineClient::start(dir.path(), &unmounted(dir.path()));
    client.greet();
    let good = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "file_read", "arguments": {"path": "/AGENTS.md"}}}).to_string();
    let mut seed = 1_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let mut stdin = client.child.stdin.take().unwrap();
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for number in 0..100_000 {
            let mut line = good.clone().into_bytes();
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
        let huge = vec![b'x'; 5 << 20];
        stdin.write_all(&huge).unwrap();
        stdin.write_all(b"\n").unwrap();
        let last = json!({"jsonrpc": "2.0", "id": 424242, "method": "tools/list"});
        stdin.write_all(format!("{last}\n").as_bytes()).unwrap();
        sender.send(stdin).unwrap();
    });
    // What is answered is read all the while.
    let mut seen = 0_usize;
    loop {
        let mut line = String::new();
        assert!(std::io::BufRead::read_line(&mut client.read, &mut line).unwrap() > 0, "the door has gone");
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 424242 {
            assert_eq!(message["result"]["tools"].as_array().unwrap().len(), 3);
            break;
        }
        seen += 1;
    }
    assert!(seen > 0);
    client.child.stdin = Some(done.recv_timeout(GUARD).unwrap());
    assert_eq!(client.end(), Some(0));
}
