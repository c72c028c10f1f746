//! Ways back to earlier turns under `kill -9`: after each, files, conversation and memory are together as before or as wanted.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::life::{AGENT, Life, write_spec};
use super::load::put;
use super::steps::begin;

fn script() -> String {
    let call = |path: &str, content: &str| json!({"answer": {"tool_calls": [{"name": "file_write", "arguments": {"path": path, "content": content}}]}});
    let mut lines = Vec::new();
    for turn in 1..=3 {
        lines.push(call("projects/here/fs/tool.txt", &format!("turn {turn}")));
        lines.push(call(&format!("projects/here/fs/t{turn}.txt"), "new"));
        let create = json!({"kind": "note", "name": format!("n{turn}"), "content": "x"}).to_string();
        lines.push(call("agents/self/memory/control/create.json", &create));
        lines.push(call("agents/self/chat/control/reply", &format!("done {turn}")));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn state(life: &Life) -> String {
    let list = format!(
        "cd projects/here/views/{AGENT}/fs; find . -type f | sort | xargs tail -n +1; cd ../../../../../agents/{AGENT}/memory/items; ls"
    );
    let said = Command::new("sh").args(["-c", &list]).current_dir(life.root()).output().unwrap();
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// The numbers of the turns that count, from the file of the history.
fn counted(life: &Life) -> Vec<u64> {
    let (mut turns, mut dropped) = (Vec::new(), Vec::new());
    for line in fs::read_to_string(life.agent().join("chat/history.ndjson")).unwrap().lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        match (&entry["rewound"]["to"], &entry["rewound"]["undoes"]) {
            (Value::Null, _) => turns.push(entry["seq"].as_u64().unwrap()),
            (_, Value::String(_)) => turns.append(&mut dropped),
            (to, _) => {
                dropped = turns.split_off(turns.iter().take_while(|turn| **turn <= to.as_u64().unwrap()).count());
            }
        }
    }
    turns
}

fn unmount(place: &Path) {
    for view in fs::read_dir(place.join("state/views")).into_iter().flatten().flatten() {
        _ = nix::mount::umount2(&view.path().join("fs"), nix::mount::MntFlags::MNT_DETACH);
    }
}

#[test]
fn fifty_kills_leave_an_agent_at_one_turn_or_another_and_never_between() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path();
    let spec = json!({"layout": "acheron-1", "model": {"kind": "script", "name": "../script.ndjson"},
        "agents": {AGENT: {"projects": ["here"], "view": "own"}},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}});
    write_spec(place, &spec);
    fs::write(place.join("script.ndjson"), script()).unwrap();
    let life = begin(place);
    let mut states = vec![state(&life)];
    for _ in 0..3 {
        put(&life.agent().join("chat/control/input"), "go on").unwrap();
        fs::read(life.agent().join("chat/latest.txt")).unwrap();
        states.push(state(&life));
    }
    life.leave();
    let control = |life: &Life| life.agent().join("chat/control/rewind.json");
    let steps = ["rewind.decided", "restore.copied", "restore.decided", "rewind.files", "rewind.told"];
    let arm = place.join("step");
    for round in 0..25 {
        let (step, to) = (steps[round % steps.len()], 1 + round % 2);
        let life = begin(place);
        fs::write(&arm, step).unwrap();
        _ = put(&control(&life), &json!({"to": to, "_meta": {"correlation_id": format!("r{round}")}}).to_string());
        life.wait_for_death();
        life.kill();
        fs::remove_file(&arm).unwrap();
        let life = begin(place);
        // The memory follows at once.
        super::load::until("all of it is finished", || {
            let journal = fs::read(place.join(format!("state/agents/{AGENT}/rewind/journal.json"))).unwrap_or_default();
            serde_json::from_slice::<Value>(&journal).is_ok_and(|journal| journal["done"] == true)
        });
        assert_eq!(state(&life), states[to], "{round}: {step}");
        assert_eq!(counted(&life).len(), to, "{round}: {step}");
        fs::write(&arm, step).unwrap();
        _ = put(&control(&life), &json!({"undo": true}).to_string());
        life.wait_for_death();
        life.kill();
        fs::remove_file(&arm).unwrap();
        let life = begin(place);
        super::load::until("all of it is finished", || {
            let journal = fs::read(place.join(format!("state/agents/{AGENT}/rewind/journal.json"))).unwrap_or_default();
            serde_json::from_slice::<Value>(&journal).is_ok_and(|journal| journal["done"] == true)
        });
        assert_eq!(state(&life), states[3], "{round}: undone at {step}");
        assert_eq!(counted(&life).len(), 3, "{round}: undone at {step}");
        life.leave();
    }
    unmount(place);
}
