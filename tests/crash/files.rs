//! A kill at every step of a call that changes plain files: its files and its job agree, whatever the step.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::life::Life;
use super::load::put;
use super::steps::{begin, left};

/// One operation that changes plain files, told apart by `n`.
struct FileCall {
    control: &'static str,
    payload: fn(u32) -> Value,
    /// Whether call `n` has happened.
    happened: fn(&Path, u32) -> bool,
}

const CALLS: &[FileCall] = &[
    FileCall {
        control: "mounts/control/bind.json",
        payload: |n| json!({ "bind_path": format!("/agents/self/b{n}"), "target_path": "/global/library" }),
        happened: |agent, n| agent.join(format!("b{n}")).is_symlink(),
    },
    FileCall {
        control: "prompts/control/open.json",
        payload: |n| json!({ "prompt": "review/change", "id": format!("o{n}") }),
        happened: |agent, n| agent.join(format!("prompts/open/o{n}")).is_dir(),
    },
    FileCall {
        control: "prompts/control/override_seed.json",
        payload: |n| json!({ "prompt": "review/change", "tag": format!("t{n}") }),
        happened: |agent, n| {
            let resolve = json!({ "prompt": "review/change" }).to_string();
            put(&agent.join("prompts/control/override_resolve.json"), &resolve).unwrap();
            let tags: Value = serde_json::from_slice(&fs::read(agent.join("prompts/result.json")).unwrap()).unwrap();
            tags["result"]["tags"].as_array().unwrap().contains(&json!(format!("t{n}")))
        },
    },
    FileCall {
        control: "recall/control/new.json",
        payload: |n| json!({ "conversation": format!("c{n}") }),
        happened: |agent, n| {
            let talk = agent.join(format!("recall/conversations/c{n}/messages"));
            let messages = fs::read_dir(&talk).map(|names| names.count());
            assert!(!matches!(messages, Ok(0)), "c{n} has begun without its first message");
            messages.is_ok()
        },
    },
    FileCall {
        control: "recall/control/add.json",
        payload: |n| json!({ "conversation": "seed", "role": "user", "text": format!("message {n}") }),
        happened: |agent, n| {
            let names = fs::read_dir(agent.join("recall/conversations/seed/messages")).unwrap();
            let said = names.filter_map(|name| fs::read_to_string(name.unwrap().path()).ok());
            let times = said.filter(|text| text.trim() == format!("message {n}")).count();
            assert!(times < 2, "message {n} was added twice");
            times == 1
        },
    },
    FileCall {
        control: "dm/control/new_campaign.json",
        payload: |n| json!({ "id": format!("new{n}") }),
        happened: |agent, n| {
            let made = agent.join(format!("dm/campaigns/new{n}")).is_dir();
            let active = fs::read_to_string(agent.join("dm/active.json")).unwrap();
            assert_eq!(
                made,
                active.contains(&format!("\"new{n}\"")),
                "new{n} is made and active, or neither: {active}"
            );
            made
        },
    },
    FileCall {
        control: "dm/control/play.json",
        payload: |n| json!({ "campaign": "seed", "input": format!("[LOOK]{{around the number {n}}}") }),
        happened: |agent, n| {
            let journal = fs::read_to_string(agent.join("dm/campaigns/seed/journal.ndjson")).unwrap();
            let times = journal.matches(&format!("around the number {n}}}")).count();
            assert!(times < 2, "turn {n} was played twice");
            times == 1
        },
    },
    FileCall {
        control: "dm/control/tools.json",
        payload: |n| {
            let at = format!("campaigns/tool{n}");
            json!({ "role": "BUILDER", "scope_confirmed": true, "tool_calls": [
                { "name": "copy_template", "arguments": { "src": "campaigns/_template", "dst": at } },
                { "name": "bind_campaign", "arguments": { "campaign_path": at, "cartridge_id": "longdry", "version_lock": "1.x.x" } },
            ]})
        },
        happened: |agent, n| agent.join(format!("dm/campaigns/tool{n}")).is_dir(),
    },
];

/// The steps of such a call, in their order, and whether it has happened if the host dies there.
const STEPS: &[(&str, bool)] = &[
    ("run.begins", false),
    ("files.prepared", false),
    ("files.decided", true),
    ("files.made", true),
    ("run.worked", true),
    ("run.ended", true),
];

/// Every file below the state that was never finished.
fn unfinished(state: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![state.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => dirs.push(entry.path()),
                false if entry.file_name().to_string_lossy().contains("unfinished") => found.push(entry.path()),
                false => {}
            }
        }
    }
    found
}

fn kill_at(place: &Path, call: &FileCall, n: u32, step: &str, happens: bool) {
    let what = format!("{} killed at {step}", call.control);
    let (life, state, arm) = (begin(place), place.join("state"), place.join("step"));
    let mut payload = (call.payload)(n);
    payload["_meta"] = json!({ "correlation_id": format!("f{n}") });
    fs::write(&arm, step).unwrap();
    _ = put(&life.agent().join(call.control), &payload.to_string());
    life.wait_for_death();
    life.kill();
    fs::remove_file(&arm).unwrap();
    let life = begin(place);
    let status = life.agent().join(format!("jobs/by/f{n}/status.json"));
    let ended: Value = serde_json::from_slice(&fs::read(status).unwrap()).unwrap();
    // One that may run again is run again.
    let happens = happens || call.control.contains("seed");
    assert_eq!(ended["state"], if happens { "done" } else { "interrupted" }, "{what}: {ended}");
    assert_eq!((call.happened)(&life.agent(), n), happens, "{what}");
    if happens {
        let result = fs::read(life.agent().join(format!("jobs/by/f{n}/result.json"))).unwrap();
        let result: Value = serde_json::from_slice(&result).unwrap();
        assert!(result["result"].is_object(), "{what}: {result}");
    }
    life.leave();
    assert_eq!(left(&state, &format!("f{n}")).unwrap().1, 1, "{what}: one event");
}

#[test]
fn a_call_that_changes_plain_files_killed_at_any_step_has_happened_if_its_job_says_so() {
    let place = tempfile::tempdir().unwrap();
    let life = begin(place.path());
    put(&life.agent().join("recall/control/new.json"), r#"{"conversation":"seed"}"#).unwrap();
    fs::read(life.agent().join("recall/result.json")).unwrap();
    for (operation, arguments) in [
        ("new_campaign", json!({ "id": "seed", "seed": 7 })),
        (
            "init",
            json!({ "campaign": "seed", "confirm": true, "answers": { "preset": "Standard Adventure", "pc_name": "Ann" } }),
        ),
    ] {
        put(&life.agent().join(format!("dm/control/{operation}.json")), &arguments.to_string()).unwrap();
        let told = fs::read_to_string(life.agent().join("dm/result.json")).unwrap();
        assert!(told.contains("\"campaign\""), "{told}");
    }
    Life::leave(life);
    let mut n = 0;
    for call in CALLS {
        for (step, happens) in STEPS {
            if call.control.contains("seed") && step.starts_with("files") {
                continue; // it is whole by itself, and runs again
            }
            kill_at(place.path(), call, n, step, *happens);
            n += 1;
        }
    }
    let left = unfinished(&place.path().join("state"));
    let prepared = CALLS.len() - 1; // killed between the file and the decision
    assert!(left.len() <= prepared, "{left:?}");
}
