//! A kill between any two steps of applying a run of consolidation, and of taking it back: the wiki is as it was, or as it should
//! be, never in between.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::life::{AGENT, Life};
use super::load::put;
use super::steps::begin;

/// The steps of such a call, and whether it has happened if the host dies there. Four files are changed.
const STEPS: [(&str, bool); 10] = [
    ("run.begins", false),
    ("files.prepared", false),
    ("files.decided", true),
    ("files.step.0", true),
    ("files.step.1", true),
    ("files.step.2", true),
    ("files.step.3", true),
    ("files.made", true),
    ("run.worked", true),
    ("run.ended", true),
];

/// Every page of the wiki, without the runs and what was never finished.
fn pages(place: &Path) -> BTreeMap<String, String> {
    let store = place.join("state/agents").join(AGENT).join("recall/store");
    let mut found = BTreeMap::new();
    let mut dirs = vec![store.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.strip_prefix(&store).unwrap().to_str().unwrap().to_owned();
            match entry.is_dir() {
                true if name != "sleep" => dirs.push(entry),
                false if !name.contains("unfinished") => _ = found.insert(name, fs::read_to_string(&entry).unwrap()),
                _ => {}
            }
        }
    }
    found
}

fn call(life: &Life, operation: &str, arguments: &Value) -> Value {
    put(&life.agent().join(format!("recall/control/{operation}.json")), &arguments.to_string()).unwrap();
    let told = fs::read(life.agent().join("recall/result.json")).unwrap();
    serde_json::from_slice(&told).unwrap()
}

/// Kills the host at `step` of an operation; whether it has happened by the next start.
fn killed(place: &Path, operation: &str, run: &str, (step, happens): (&str, bool)) -> bool {
    let what = format!("{operation} killed at {step}");
    let (life, arm, name) = (begin(place), place.join("step"), format!("{operation}-{step}"));
    fs::write(&arm, step).unwrap();
    let payload = json!({ "run": run, "_meta": { "correlation_id": name } });
    _ = put(&life.agent().join(format!("recall/control/{operation}.json")), &payload.to_string());
    life.wait_for_death();
    life.kill();
    fs::remove_file(&arm).unwrap();
    let life = begin(place);
    let status = fs::read(life.agent().join(format!("jobs/by/{name}/status.json"))).unwrap();
    let status: Value = serde_json::from_slice(&status).unwrap();
    assert_eq!(status["state"], if happens { "done" } else { "interrupted" }, "{what}: {status}");
    let report = fs::read(life.agent().join(format!("recall/sleep/{run}/report.json"))).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let state = if operation == "apply" { "applied" } else { "undone" };
    assert_eq!(report["state"] == state, happens, "{what}: {}", report["state"]);
    life.leave();
    happens
}

#[test]
fn a_run_of_consolidation_that_is_killed_between_any_two_steps_is_applied_or_not_and_can_be_undone() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let life = begin(place);
    call(&life, "new", &json!({ "conversation": "talk" }));
    let text = "The river is forty fathoms wide at the landing.";
    call(&life, "add", &json!({ "conversation": "talk", "role": "user", "text": text }));
    call(&life, "archive", &json!({ "conversation": "talk" }));
    let report = call(&life, "consolidate", &json!({}));
    let run = report["result"]["run"].as_str().unwrap_or_else(|| panic!("{report}")).to_owned();
    assert_eq!(report["result"]["pages"].as_array().unwrap().len(), 2, "{report}");
    let before = pages(place);
    assert_eq!(call(&life, "apply", &json!({ "run": run }))["ok"], true);
    let after = pages(place);
    assert_eq!(after.len(), before.len() + 1);
    assert_eq!(call(&life, "undo", &json!({ "run": run }))["ok"], true);
    assert_eq!(pages(place), before);
    life.leave();
    for step in STEPS {
        let applied = killed(place, "apply", &run, step);
        assert_eq!(pages(place), if applied { &after } else { &before }.clone(), "apply killed at {}", step.0);
        if !applied {
            let life = begin(place);
            assert_eq!(call(&life, "apply", &json!({ "run": run }))["ok"], true);
            life.leave();
        }
        // One file less: what the pages were is there.
        if step.0 != "files.step.3" {
            let undone = killed(place, "undo", &run, step);
            assert_eq!(pages(place), if undone { &before } else { &after }.clone(), "undo killed at {}", step.0);
            if undone {
                continue;
            }
        }
        let life = begin(place);
        assert_eq!(call(&life, "undo", &json!({ "run": run }))["ok"], true);
        life.leave();
    }
}
