//! A kill at every step of a call, from the write that is accepted to the reader that is told, for every operation of
//! every service. The operations come from the contracts of a live host, the steps from the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Value, json};

use super::life::{AGENT, Life};
use super::load::put;
use acheron::state::{events, jobs};

pub const ALL: events::PageLimits = events::PageLimits { events: usize::MAX >> 1, bytes: usize::MAX };

/// One operation, as its service describes it.
#[derive(Clone, Debug)]
struct Operation {
    control: PathBuf,
    name: String,
    effect: String,
    payload: Value,
}

/// The operations of a host, each with the payload that its control file suggests.
fn operations(agent: &Path) -> Vec<Operation> {
    let mut all = Vec::new();
    let services: BTreeSet<PathBuf> = fs::read_dir(agent).unwrap().map(|entry| entry.unwrap().path()).collect();
    for service in services {
        let Ok(ops) = fs::read(service.join("OPS.json")) else { continue };
        let ops: BTreeMap<String, Value> = serde_json::from_slice(&ops).unwrap();
        for (op, about) in ops {
            let service = service.file_name().unwrap().to_str().unwrap();
            let control = PathBuf::from(service).join(about["control_path"].as_str().unwrap());
            let payload = serde_json::from_slice(&fs::read(agent.join(&control)).unwrap()).unwrap();
            let effect = about["effect"].as_str().unwrap().to_owned();
            all.push(Operation { control, name: format!("{service}.{op}"), effect, payload });
        }
    }
    assert!(all.len() > 60, "only {} operations", all.len());
    all
}

/// Every step that the sources name.
fn steps() -> Vec<String> {
    let named = Regex::new(r#"failpoint::step\("([^"]+)"\)"#).unwrap();
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["crates/store/src/writer.rs", "src/service/runner/mod.rs", "src/service/runner/write.rs"];
    let files = files.into_iter().chain(["src/service/runner/execute.rs"]);
    let text: String = files.map(|file| fs::read_to_string(top.join(file)).unwrap()).collect();
    named.captures_iter(&text).map(|found| found[1].to_owned()).collect()
}

/// The steps that a call of this effect passes.
fn steps_of(effect: &str) -> Vec<String> {
    let passes = |step: &String| match (effect, step.split('.').next().unwrap()) {
        ("read", family) => family == "run",
        ("write", family) => family != "run",
        (_, family) => family != "write",
    };
    steps().into_iter().filter(passes).collect()
}

/// What a killed call left in the database: the state of its job, and the number of events about it.
pub fn left(state: &Path, name: &str) -> Option<(String, usize)> {
    let store = crate::open_state(state);
    let row = store.look(|conn| jobs::correlated(conn, AGENT, name)).unwrap();
    let told = |id: &str| {
        let all = store.look(|conn| events::since(conn, AGENT, 0, ALL)).unwrap().0;
        all.iter().filter(|event| event.kind == "job" && event.path.contains(id)).count()
    };
    let found = row.map(|row| (row.state.name().to_owned(), told(&row.id)));
    store.close();
    found
}

/// Every version of a memory has one event, and every event its version.
fn check_memory(state: &Path) {
    let store = crate::open_state(state);
    let versions = store.look(|conn| {
        let sql = "SELECT m.name, v.version FROM memory_versions v JOIN memories m ON m.id = v.memory ORDER BY 1, 2";
        let mut select = conn.prepare(sql)?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<Vec<(String, u64)>, _>>()?)
    });
    let all = store.look(|conn| events::since(conn, AGENT, 0, ALL)).unwrap().0;
    store.close();
    let told = all.iter().filter(|event| event.payload["memory"].as_str().is_some_and(|what| what != "evicted"));
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let mut told: Vec<_> = told.map(|event| (name(&event.path), event.payload["version"].as_u64().unwrap())).collect();
    told.sort();
    let versions = versions.unwrap();
    assert!(!versions.is_empty());
    assert_eq!(told, versions);
}

pub fn begin(place: &Path) -> Life {
    let armed = format!("ACHERON_FAILPOINT={}", place.join("step").display());
    Life::begin(place, &["env".to_owned(), armed])
}

/// Kills the host at `step` of a call of `operation`, and looks at what is left before and after the next start.
fn kill_at(place: &Path, operation: &Operation, step: &str, name: &str) {
    let what = format!("{} killed at {step}", operation.name);
    let (life, state, arm) = (begin(place), place.join("state"), place.join("step"));
    let mut payload = operation.payload.clone();
    payload["_meta"] = json!({ "correlation_id": name });
    fs::write(&arm, step).unwrap();
    let acknowledged = put(&life.agent().join(&operation.control), &payload.to_string()).is_ok();
    if operation.effect == "execute" && acknowledged && step.starts_with("run") {
        life.wait_for_death();
    }
    life.kill();
    fs::remove_file(&arm).unwrap();
    let before = left(&state, name);
    match (operation.effect.as_str(), &before) {
        ("read", found) => assert_eq!(*found, None, "{what}: a read is not journaled"),
        (_, None) => assert!(!acknowledged, "{what}: acknowledged, and lost"),
        ("write", Some((state, told))) => {
            assert!(["done", "failed"].contains(&state.as_str()), "{what}: {state}");
            assert_eq!(*told, 1, "{what}: the job and its event are one commit");
        }
        (_, Some((state, told))) => {
            let ended = !["queued", "running"].contains(&state.as_str());
            assert_eq!(*told, usize::from(ended), "{what}: {state} with {told} events");
        }
    }
    if operation.effect != "execute" || before.is_none() {
        return;
    }
    // The next host runs it, or says that it was interrupted: once.
    let life = begin(place);
    let status = life.agent().join("jobs/by").join(name).join("status.json");
    let ended = std::process::Command::new("timeout").arg("60").arg("cat").arg(status).output().unwrap();
    let ended: Value = serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{what}: {error}"));
    life.leave();
    let after = left(&state, name);
    assert_eq!(after, Some((ended["state"].as_str().unwrap().to_owned(), 1)), "{what}");
}

#[test]
fn a_call_killed_at_any_step_happened_completely_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let life = begin(place.path());
    let operations = operations(&life.agent());
    let seed = json!({ "kind": "note", "name": "seed", "content": "x" });
    put(&life.agent().join("memory/control/create.json"), &seed.to_string()).unwrap();
    life.leave();
    // Every step for one operation of each effect; every operation once, each at another step. CRASH_ALL=1 does all of it.
    let all = std::env::var_os("CRASH_ALL").is_some();
    let mut first = BTreeSet::new();
    let mut kills = 0;
    for (n, operation) in operations.iter().enumerate() {
        let steps = steps_of(&operation.effect);
        let every = first.insert(operation.effect.clone()) || all;
        let chosen = if every { steps } else { vec![steps[n % steps.len()].clone()] };
        for step in chosen {
            kill_at(place.path(), operation, &step, &format!("k-{kills}"));
            kills += 1;
        }
    }
    check_memory(&place.path().join("state"));
    println!("{kills} kills, {} operations, {} steps", operations.len(), steps().len());
}
