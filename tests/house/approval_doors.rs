//! Every operation of every service with a rule that asks waits, by whichever way it is called, and nothing is done before the
//! decision. What is called is made from the contracts: a new service or operation is tried without a line here.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{python, until};
use crate::served::{Served, token};
use crate::test_doors::{HttpDoor, InsideDoor, MountDoor, TestDoor};
use crate::test_host::TestHost;
use acheron::host::Host;
use acheron::jobs::{Job, JobState};
use acheron::policy::PrincipalCaller;
use acheron_vfs::Caller;

/// The tables in which a call that waits leaves its traces.
const TRACES: [&str; 6] = ["jobs", "approvals", "events", "event_logs", "audit_blocks", "audit_head"];

fn house() -> TestHost {
    let spec = json!({"agents": {"charon": {"projects": ["here"], "permissions": [
            {"ask": ["invoke"], "path": "/agents/self/**"},
            {"allow": ["invoke"], "path": "/agents/self/jobs/**"}]}},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}},
        "services": {"spoil": {"command": ["sh", "-c", "echo spoilt > /projects/here/fs/spoilt; echo '{}'"],
            "operations": {"go": {"effect": "execute"}, "look": {"effect": "read"}}}}});
    TestHost::of(&spec.to_string())
}

/// Everything that a call could change: the rows of the database, and the files of the project and of the agent.
fn state(house: &TestHost) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = rusqlite::Connection::open_with_flags(house.state().join("acheron.db"), flags).unwrap();
    let mut names = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for name in names.iter().filter(|name| !TRACES.contains(&name.as_str()) && !name.starts_with("sqlite_")) {
        let Ok(mut rows) = database.prepare(&format!("SELECT * FROM {name}")) else { continue }; // a virtual one
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        let mut text = String::new();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                text.push_str(&format!("{:?} ", row.get_ref(column).unwrap()));
            }
        }
        all.insert(name.clone(), text);
    }
    for dir in [house.here(), house.state().join("agents")] {
        files(&dir, &mut all);
    }
    all
}

fn files(dir: &Path, all: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, all),
            false => _ = all.insert(path.display().to_string(), format!("{:?}", std::fs::read(&path).ok())),
        }
    }
}

/// Every operation: service, name, effect, arguments that work.
fn operations(house: &TestHost) -> Vec<(String, String, &'static str, Value)> {
    house.inside(async |host| {
        let mut all = Vec::new();
        for instance in host.state.context.instances_of("charon") {
            let contract = instance.contract();
            for operation in &contract.operations {
                let arguments = contract.template(operation);
                all.push((instance.name().to_owned(), operation.name.clone(), operation.effect.name(), arguments));
            }
        }
        all
    })
}

fn last(host: &Host) -> std::sync::Arc<Job> {
    let jobs = host.state.context.jobs.of("charon");
    let mut unfinished = jobs.unfinished();
    unfinished.pop().expect("a job that waits")
}

/// The newest job waits and has not begun; it is cancelled, so that the next has room.
#[track_caller]
fn waits(house: &TestHost, what: &str) {
    house.inside(async |host| {
        let job = last(host);
        let now = job.now();
        assert_eq!((now.state, now.started_at_ms), (JobState::WaitingForApproval, None), "{what}");
        let approval = job.approval().and_then(|id| host.state.context.approvals.get(&id)).expect(what);
        job.cancel.cancel();
        job.end().await;
        assert_eq!(approval.settled().await.state.name(), "withdrawn", "{what}");
    });
}

#[test]
fn every_operation_of_every_service_waits_however_it_is_called_and_nothing_is_done() {
    let house = house();
    let charon = InsideDoor::new(&house, Caller::agent("charon"));
    let all = operations(&house);
    assert!(all.len() > 60, "only {} operations", all.len());
    for effect in ["read", "write", "execute"] {
        assert!(all.iter().any(|(_, _, its, _)| *its == effect), "none of effect {effect}");
    }
    let before = state(&house);
    let mut refused = Vec::new();
    for (service, op, effect, arguments) in &all {
        let what = format!("{service}.{op} ({effect})");
        // What a service gives to no agent is refused, and not asked about.
        if let Err(why) = charon.write(&format!("/agents/self/{service}/control/{op}.json"), &arguments.to_string()) {
            refused.push(format!("{what}: {why:?}"));
            continue;
        }
        waits(&house, &what);
        let envelope = json!({"op": op, "arguments": arguments}).to_string();
        charon.write(&format!("/agents/charon/{service}/control/invoke.json"), &envelope).unwrap();
        waits(&house, &what);
        house.inside(async |host| {
            let context = &host.state.context;
            let job = context.call(&Caller::agent("charon"), "charon", service, op, arguments.clone()).await;
            assert_eq!(job.unwrap().now().state, JobState::WaitingForApproval, "{what}");
        });
        waits(&house, &what);
    }
    assert!(refused.len() < 6, "{refused:#?}");
    let after = state(&house);
    for (name, text) in &before {
        assert_eq!(Some(text), after.get(name), "{name} has changed");
    }
    assert_eq!(before.len(), after.len());
}

/// Writes a command over 9P with a token: as few messages as it takes.
const NINEP: &str = r#"
import socket, struct, sys
address, token, path, text = sys.argv[1:]
host, port = address.rsplit(':', 1)
s = socket.create_connection((host, int(port)))
word = lambda t: struct.pack('<H', len(t.encode())) + t.encode()
def ask(kind, tag, body):
    s.sendall(struct.pack('<IBH', 7 + len(body), kind, tag) + body)
    size, kind, tag = struct.unpack('<IBH', s.recv(7, socket.MSG_WAITALL))
    body = s.recv(size - 7, socket.MSG_WAITALL) if size > 7 else b''
    if kind == 7: sys.exit('refused %d' % struct.unpack('<I', body)[0])
ask(100, 65535, struct.pack('<I', 8192) + word('9P2000.L'))
ask(104, 1, struct.pack('<II', 0, 0xffffffff) + word('x') + word(token) + struct.pack('<I', 0))
names = path.strip('/').split('/')
ask(110, 2, struct.pack('<IIH', 0, 1, len(names)) + b''.join(map(word, names)))
ask(12, 3, struct.pack('<II', 1, 1))
ask(118, 4, struct.pack('<IQI', 1, 0, len(text.encode())) + text.encode())
ask(120, 5, struct.pack('<I', 1))
"#;

#[test]
fn an_operation_waits_at_every_door() {
    let house = house();
    let served = Served::begin(&house, &["--fs"]);
    let token = token(&house, &["create", "--agent", "charon"]);
    let http = HttpDoor { served: &served, token: token.clone() };
    let before = state(&house);
    let acheron = env!("CARGO_BIN_EXE_acheron");
    for (service, op, arguments) in [
        ("memory", "create", json!({"kind": "note", "name": "n", "content": "x"})),
        ("terminal", "exec", json!({"command": "touch /projects/here/fs/made"})),
        ("spoil", "go", json!({})),
        ("spoil", "look", json!({})),
    ] {
        let path = format!("/agents/charon/{service}/control/{op}.json");
        let text = arguments.to_string();
        http.write(&path, &text).unwrap();
        waits(&house, "http");
        // A program of the agent, in its sandbox, by the kernel.
        let said =
            house.says(&format!("{acheron} exec --root . --agent charon -- sh -c 'cat > {path}' <<'E'\n{text}\nE"));
        assert_eq!(said, "", "by the mount");
        waits(&house, "the mount");
        let state = house.state().display().to_string();
        let call = json!({"path": path, "content": text}).to_string();
        let said = mcp(&house, &state, &call);
        assert!(said.contains("job_id"), "by MCP: {said}");
        waits(&house, "MCP");
    }
    // The operator is never asked.
    let operator = MountDoor(house.root());
    operator.write("/agents/charon/memory/control/search.json", r#"{"query":"x"}"#).unwrap();
    until("it is done", || house.says("jq -r .state agents/charon/memory/status.json") == "done\n");
    let after = state(&house);
    for (name, text) in before.iter().filter(|(name, _)| *name != "door_tokens") {
        assert_eq!(Some(text), after.get(name), "{name} has changed");
    }
    assert!(!house.here().join("made").exists() && !house.here().join("spoilt").exists());
    drop(served);
    let ninep = Served::ninep(&house);
    let path = "/agents/charon/memory/control/create.json";
    let arguments = json!({"kind": "note", "name": "n", "content": "x"}).to_string();
    let script =
        format!("import sys; sys.argv = ['', {:?}, {token:?}, {path:?}, {arguments:?}]\n{NINEP}", ninep.address());
    assert_eq!(python(&house.root(), &script), "");
    waits(&house, "9P");
}

/// One call of `file_write` by MCP, as the agent.
fn mcp(house: &TestHost, state: &str, arguments: &str) -> String {
    let init = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "file_write",
        "arguments": serde_json::from_str::<Value>(arguments).unwrap()}});
    let acheron = env!("CARGO_BIN_EXE_acheron");
    house.says(&format!(
        "(echo '{init}'; echo '{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}'; cat <<'E'\n{call}\nE\nsleep 2) | {acheron} mcp --agent charon --state {state}"
    ))
}
