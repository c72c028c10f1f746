//! A turn that is killed in the middle of an answer with several native calls.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::life::{self, Life};
use super::load::{put, until};

fn add(word: &str) -> Value {
    json!({"id": word, "name": "file_write",
        "arguments": {"path": "/projects/here/fs/lines", "content": format!("{word}\n"), "append": true}})
}

fn lines(place: &Path) -> Vec<String> {
    fs::read_to_string(place.join("here/lines")).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_kill_in_the_middle_of_an_answer_with_three_calls_repeats_none_of_them() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("here")).unwrap();
    fs::write(place.path().join("here/lines"), "").unwrap();
    let wait =
        json!({"id": "three", "name": "file_read", "arguments": {"path": "/agents/self/events/sources/user/go.json"}});
    // The next answer comes only if the model sees the results of all three calls, in order.
    let results = r#"(?s)^\{"tool_result":\{"id":"one",.*"bytes_written":4.*\{"tool_result":\{"id":"two",.*"bytes_written":4.*\{"tool_result":\{"id":"three","#;
    let script = [
        json!({"answer": {"tool_calls": [add("one"), add("two"), wait]}}),
        json!({"when": results, "answer": {"tool_calls": [add("four")]}}),
        json!({"answer": "All three were done once."}),
    ];
    fs::write(place.path().join("here/script.ndjson"), script.map(|line| format!("{line}\n")).concat()).unwrap();
    let permissions = json!([{"allow": ["read", "write", "invoke"], "path": "/agents/self/**"},
                             {"allow": ["read", "write"], "path": "/projects/here/**"}]);
    life::write_spec(
        place.path(),
        &json!({"layout": "acheron-1", "default_agent": life::AGENT,
        "model": {"kind": "script", "name": "script.ndjson", "protocol": "native"},
        "agents": {life::AGENT: {"projects": ["here"], "permissions": permissions}},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}}),
    );
    let life = Life::begin(place.path(), &[]);
    put(&life.agent().join("chat/control/input"), "go").unwrap();
    let waits = |life: &Life| {
        fs::read_to_string(life.agent().join("jobs/last/progress.json"))
            .is_ok_and(|text| text.contains("\"waiting\":true"))
    };
    until("the third call waits", || waits(&life));
    assert_eq!(lines(place.path()), ["one", "two"]);
    life.kill();

    let life = Life::begin(place.path(), &[]);
    until("the third call waits again", || waits(&life));
    assert_eq!(lines(place.path()), ["one", "two"], "the first two are not repeated");
    put(&life.agent().join("events/control/signal.json"), r#"{"event_type":"user","parameter":"go"}"#).unwrap();
    let said = fs::read_to_string(life.agent().join("chat/latest.txt")).unwrap();
    assert_eq!(said.trim(), "All three were done once.");
    assert_eq!(lines(place.path()), ["one", "two", "four"]);
    life.leave();
    let records = life::turn_records(&place.path().join("state"), life::AGENT);
    let intents = records.iter().filter(|record| record.contains("\"kind\":\"intent\"")).count();
    assert_eq!(intents, 3, "each write is intended once: {records:#?}");
}
