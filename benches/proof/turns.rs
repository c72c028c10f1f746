//! A durable step of a turn: the call of the model and what came of it are on the disk before the next one. And what a call
//! of a very long turn takes on the disk.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::Run;
use super::calls::Ledger;
use super::house::{Scratch, TestHost, until, write_once};
use super::method::{Chunk, summed_up};
use super::table::{Aim, Figure};

/// Turns at once in the second row.
const CROWD: usize = 64;

pub fn rows(run: &Run) -> Vec<Figure> {
    let (rounds, steps) = if run.quick { (2, 100) } else { (5, 400) };
    let many = if run.quick { 1_000 } else { 10_000 };
    vec![
        step(rounds, 1, steps, "a durable step, one turn ÷ a bare commit", Aim::AtMost(2.2)),
        step(rounds, CROWD, steps / 8, "a durable step, 64 turns at once ÷ a bare commit", Aim::AtMost(1.2)),
        growth(many),
    ]
}

/// So many turns at once, again and again; a step of theirs against one commit of SQLite.
fn step(rounds: usize, turns: usize, steps: usize, what: &str, aim: Aim) -> Figure {
    let house = agents(rounds * turns, steps, "");
    let scratch = Scratch::new();
    let mut ledger = Ledger::new(scratch.path());
    let mut commits = |count: usize| {
        let began = Instant::now();
        (0..count).for_each(|_| ledger.group(1));
        began.elapsed().as_secs_f64() / count as f64
    };
    let mut chunks: Vec<Chunk> = Vec::new();
    for round in 0..rounds {
        let base = commits(200);
        let names: Vec<String> = (0..turns).map(|turn| name(round * turns + turn)).collect();
        let began = Instant::now();
        for name in &names {
            write_once(&house.path(&format!("agents/{name}/chat/control/input")), b"go");
        }
        for name in &names {
            let reply = std::fs::read(house.path(&format!("agents/{name}/chat/latest.txt"))).expect("a reply");
            assert!(reply.starts_with(b"done"), "{}", String::from_utf8_lossy(&reply));
        }
        let ours = began.elapsed().as_secs_f64() / (turns * steps) as f64;
        chunks.push([ours, base, commits(200)]);
    }
    Figure::ratio(what, summed_up(&chunks), aim)
        .because("a step is two commits by itself, and between them the call is made and the next answer asked for")
}

/// One turn of very many calls on a conversation of 200,000 tokens: the bytes of its last calls against those of its first.
fn growth(calls: usize) -> Figure {
    let house = agents(1, calls, "first");
    let state = house.scratch().join("state");
    let began = Instant::now();
    write_once(&house.path(&format!("agents/{}/chat/control/input", name(0))), "word ".repeat(160_000).as_bytes());
    let lines = || std::fs::read_to_string(house.scratch().join("lines")).expect("the file").lines().count();
    let mut seen = Vec::new();
    for wanted in [100, 200, calls - 100, calls] {
        until("the turn goes on", || lines() >= wanted);
        seen.push((lines() as f64, bytes(&state) as f64));
    }
    let reply = std::fs::read(house.path(&format!("agents/{}/chat/latest.txt", name(0)))).expect("a reply");
    assert!(reply.starts_with(b"done"));
    let a_call = |from: usize| (seen[from + 1].1 - seen[from].1) / (seen[from + 1].0 - seen[from].0);
    let detail = format!(
        "{:.0} / {:.0} bytes a call; {:.0} calls a second",
        a_call(2),
        a_call(0),
        calls as f64 / began.elapsed().as_secs_f64()
    );
    let what = format!("a turn of {calls} calls on 200,000 tokens: bytes a call, last hundred ÷ second hundred");
    Figure::number(what, a_call(2) / a_call(0), "x", Aim::AtMost(1.1)).detail(detail)
}

/// The bytes of all records of turns.
fn bytes(state: &Path) -> u64 {
    let database = acheron_store::Connection::open(state.join(acheron_store::FILE)).expect("the database");
    let sum = "SELECT sum(length(CAST(record AS BLOB))) FROM turn_records";
    database.query_row(sum, [], |row| row.get(0)).expect("a sum")
}

fn name(number: usize) -> String {
    format!("agent-{number:03}")
}

/// A host with so many agents, each with a script of so many calls and a reply.
fn agents(count: usize, steps: usize, line: &str) -> TestHost {
    let scratch = Scratch::new();
    let call = |arguments: Value| json!({"answer": {"tool_calls": [{"name": "file_write", "arguments": arguments}]}});
    let mut script = String::new();
    for step in 0..steps {
        let content = format!("{line}{step}\n");
        let arguments = json!({ "path": "/projects/here/fs/lines", "content": content, "append": true });
        writeln!(script, "{}", call(arguments)).expect("memory");
    }
    let reply = json!({ "path": "/agents/self/chat/control/reply", "content": "done" });
    writeln!(script, "{}", call(reply)).expect("memory");
    std::fs::write(scratch.path().join("script.ndjson"), script).expect("a script");
    std::fs::write(scratch.path().join("lines"), "").expect("a file");
    let permissions = json!([{"allow": ["read", "write", "invoke"], "path": "/agents/self/**"},
                             {"allow": ["read", "write"], "path": "/projects/here/**"}]);
    let agent = json!({ "projects": ["here"], "permissions": permissions,
        "limits": { "rounds": 1_000_000, "tokens": 1_000_000_000_000_u64, "seconds": 1_000_000 } });
    let agents: serde_json::Map<String, Value> = (0..count).map(|number| (name(number), agent.clone())).collect();
    let window = if line.is_empty() { 16_000 } else { 250_000 };
    let spec = json!({
        "layout": "acheron-1",
        "default_agent": name(0),
        "model": { "kind": "script", "name": "script.ndjson", "context_tokens": window },
        "agents": agents,
        "projects": { "here": { "binds": { "/": { "path": ".", "read_only": false } } } },
    });
    TestHost::in_scratch(scratch, &spec)
}
