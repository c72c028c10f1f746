//! One turn of very many calls on a long conversation, killed again and again: it ends once, and a call costs as many
//! bytes at the end as at the beginning.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::life::{self, Life};
use super::load::{put, until};

/// Calls and kills of one run; `CRASH_ALL=1` makes the whole of it.
fn size() -> (usize, usize) {
    if std::env::var_os("CRASH_ALL").is_some() { (10_000, 100) } else { (200, 8) }
}

/// The tokens of the conversation, at four bytes each.
const TOKENS: usize = 200_000;

fn call(name: &str, arguments: Value) -> Value {
    json!({"answer": {"tool_calls": [{"name": name, "arguments": arguments}]}})
}

fn prepare(place: &Path, calls: usize) {
    fs::create_dir_all(place.join("here")).unwrap();
    fs::write(place.join("here/lines"), "").unwrap();
    let add =
        |n| call("file_write", json!({"path": "/projects/here/fs/lines", "content": format!("{n}\n"), "append": true}));
    let reply = call("file_write", json!({"path": "/agents/self/chat/control/reply", "content": "done"}));
    let script: String = (0..calls).map(add).chain([reply]).map(|line| format!("{line}\n")).collect();
    fs::write(place.join("here/script.ndjson"), script).unwrap();
    let permissions = json!([{"allow": ["read", "write", "invoke"], "path": "/agents/self/**"},
                             {"allow": ["read", "write"], "path": "/projects/here/**"}]);
    let model = json!({"kind": "script", "name": "script.ndjson", "context_tokens": TOKENS * 5 / 4});
    let agent = json!({"projects": ["here"], "permissions": permissions, "model": model,
                       "limits": {"rounds": 1_000_000, "tokens": 1_000_000_000_000u64, "seconds": 1_000_000}});
    let projects = json!({"here": {"binds": {"/": {"path": ".", "read_only": false}}}});
    let spec = json!({"layout": "acheron-1", "default_agent": life::AGENT, "agents": {life::AGENT: agent},
                      "projects": projects});
    life::write_spec(place, &spec);
}

fn lines(place: &Path) -> Vec<usize> {
    fs::read_to_string(place.join("here/lines")).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// Waits for so many lines, for as long as there are ever more of them.
fn goes_on(place: &Path, wanted: usize) {
    let mut seen = 0;
    while seen < wanted {
        until("the turn goes on", || lines(place).len() > seen);
        seen = lines(place).len();
    }
}

/// The bytes of the agent's turns.
fn bytes(place: &Path) -> u64 {
    life::turn_records(&place.join("state"), life::AGENT).iter().map(|record| record.len() as u64).sum()
}

#[test]
fn a_turn_of_very_many_calls_that_is_killed_again_and_again_ends_once_and_grows_evenly() {
    let (calls, kills) = size();
    let place = tempfile::tempdir().unwrap();
    prepare(place.path(), calls);
    // What a call takes on disk, between one kill and the next.
    let mut costs = Vec::new();
    let (mut done, mut kept) = (0, 0);
    for kill in 0..kills {
        let life = Life::begin(place.path(), &[]);
        if kill == 0 {
            put(&life.agent().join("chat/control/input"), &"word ".repeat(TOKENS * 4 / 5)).unwrap();
        }
        let wanted = (kill + 1) * calls / (kills + 1);
        goes_on(place.path(), wanted.saturating_sub(kill));
        life.kill();
        let (now, size) = (lines(place.path()).len(), bytes(place.path()));
        if kill > 0 && now > done {
            costs.push((size - kept) as f64 / (now - done) as f64);
        }
        (done, kept) = (now, size);
    }
    let life = Life::begin(place.path(), &[]);
    assert_eq!(fs::read_to_string(life.agent().join("chat/latest.txt")).unwrap().trim(), "done");
    let history = fs::read_to_string(life.agent().join("chat/history.ndjson")).unwrap();
    assert_eq!(history.lines().count(), 1, "the turn has ended once");
    life.leave();
    let found = lines(place.path());
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "a call was made twice");
    assert!(found.len() + kills >= calls, "{} calls of {calls}, {kills} kills", found.len());
    // The first has the conversation itself in it.
    let (first, last) = (costs[1], costs[costs.len() - 1]);
    println!("{calls} calls, {kills} kills, {first:.0} bytes a call at first, {last:.0} at last");
    assert!(last < first * 2.0, "a call costs more and more: {costs:?}");
}
