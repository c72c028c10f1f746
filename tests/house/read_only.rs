//! A project that an agent may only read stays as the operator leaves it, whatever the agent asks of whichever service.
//!
//! What is asked is made from the contracts: every operation that writes or executes, with the projects in every place
//! where its schema takes a word. A new service or operation is tried without a line here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::test_host::TestHost;
use acheron::contract::Effect;
use acheron::host::Host;
use acheron::policy::PrincipalCaller;
use acheron_vfs::Caller;

/// `here` is bound read-only, `kept` is denied by a rule, `mine` may be written: there it is seen that the same calls do
/// change something where they may.
const SPEC: &str = r#"{
    "layout": "acheron-1", "default_agent": "charon",
    "agents": { "charon": { "projects": ["here", "kept", "mine"],
        "permissions": [{ "deny": ["write"], "path": "/projects/kept/**" }] } },
    "projects": {
        "here": { "binds": { "/": { "path": "." } } },
        "kept": { "binds": { "/": { "path": "../kept", "read_only": false } } },
        "mine": { "binds": { "/": { "path": "../mine", "read_only": false } } }
    },
    "services": { "spoil": {
        "command": ["sh", "-c", "jq -r .path | while read -r path; do echo spoilt > \"$path\"; done; echo '{}'"],
        "operations": { "go": { "effect": "write", "example": { "path": "/tmp/x" },
            "arguments": { "type": "object", "properties": { "path": { "type": "string" } } } } } } }
}"#;
const PROJECTS: [&str; 3] = ["here", "kept", "mine"];
/// As many values of one argument are tried at most.
const LARGEST: usize = 64;

/// Everything of a project that can be changed: its files, and the names that stand beside them in the tree.
fn state(house: &TestHost, project: &str) -> BTreeMap<PathBuf, String> {
    fn walk(dir: &Path, all: &mut BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let said = format!("{:?} {:?}", meta.permissions(), fs::read(&path).ok());
            if meta.is_dir() {
                walk(&path, all);
            }
            all.insert(path, said);
        }
    }
    let mut all = BTreeMap::new();
    walk(&folder(house, project), &mut all);
    let beside = fs::read_dir(house.root().join("projects").join(project)).unwrap();
    all.extend(beside.map(|entry| (entry.unwrap().path(), String::new())));
    all
}

fn folder(house: &TestHost, project: &str) -> PathBuf {
    if project == "here" { house.here() } else { house.here().with_file_name(project) }
}

/// Words that lead into projects, and those that earlier answers gave for an argument of this name.
fn words(house: &TestHost, name: &str, known: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let known = known.get(name).filter(|_| !["kind", "project"].contains(&name));
    let mut all: Vec<String> = known.into_iter().flatten().cloned().collect();
    for id in PROJECTS {
        let (tree, host) = (format!("/projects/{id}/fs"), folder(house, id).display().to_string());
        all.extend(match name {
            "project" => vec![id.to_owned()],
            "kind" if all.is_empty() => vec!["filesystem".to_owned()],
            "kind" => vec![],
            "command" => {
                vec![format!("cd {tree}; echo spoilt > notes.txt; echo new > new; rm -f gone; chmod 777 notes.txt")]
            }
            "bind_path" => vec![format!("/projects/{id}/name")],
            _ => vec![format!("{tree}/notes.txt"), format!("{tree}/new"), format!("../../..{tree}/new"), host],
        });
    }
    all
}

/// Values that a schema allows, each with words of ours somewhere in it.
fn values(
    schema: &Value,
    document: &Value,
    depth: usize,
    said: &dyn Fn(&str) -> Vec<String>,
    name: &str,
) -> Vec<Value> {
    if depth > 6 {
        return Vec::new();
    }
    let inner = |schema: &Value, name: &str| values(schema, document, depth + 1, said, name);
    if let Some(place) = schema["$ref"].as_str() {
        return document.pointer(place.trim_start_matches('#')).map(|schema| inner(schema, name)).unwrap_or_default();
    }
    for either in ["anyOf", "oneOf", "allOf"] {
        if let Some(choices) = schema[either].as_array() {
            return choices.iter().flat_map(|choice| inner(choice, name)).collect();
        }
    }
    if let Some(only) = schema.get("const") {
        return vec![only.clone()];
    }
    let kind =
        |kind: &str| schema["type"] == kind || schema["type"].as_array().is_some_and(|all| all.contains(&kind.into()));
    if kind("string") && schema["enum"].is_null() {
        return said(name).into_iter().map(Value::from).collect();
    }
    if kind("array") {
        return inner(&schema["items"], name).into_iter().map(|value| json!([value])).collect();
    }
    if let (true, Some(properties)) = (kind("object"), schema["properties"].as_object()) {
        // Each word of one with each of the others: a project counts only together with the right kind.
        let mut all = vec![Map::new()];
        for (name, schema) in properties {
            let mut more = Vec::new();
            for value in inner(schema, name) {
                more.extend(all.iter().cloned().map(|mut one: Map<String, Value>| {
                    one.insert(name.clone(), value.clone());
                    one
                }));
            }
            all = if more.is_empty() { all } else { more };
            all.truncate(LARGEST);
        }
        return all.into_iter().filter(|one| !one.is_empty()).map(Value::Object).collect();
    }
    if kind("object") && schema["additionalProperties"].is_object() {
        return inner(&schema["additionalProperties"], name)
            .into_iter()
            .map(|value| json!({ "files": value }))
            .collect();
    }
    Vec::new()
}

/// The example, and the example with each argument in turn replaced.
fn variants(example: &Value, schema: &Value, document: &Value, said: &dyn Fn(&str) -> Vec<String>) -> Vec<Value> {
    let base = example.as_object().cloned().unwrap_or_default();
    let mut all = vec![Value::Object(base.clone())];
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        for value in values(schema, document, 0, said, name) {
            let mut with: Map<String, Value> = base.clone();
            with.insert(name.clone(), value);
            all.push(Value::Object(with));
        }
    }
    all
}

/// What an answer tells, by the name of the argument that would take it.
fn learn(answer: &Value, known: &mut BTreeMap<String, BTreeSet<String>>) {
    for (name, value) in answer.as_object().into_iter().flatten() {
        if let Some(word) = value.as_str().filter(|word| word.len() < 100) {
            known.entry(name.clone()).or_default().insert(word.to_owned());
        }
        learn(value, known);
    }
}

/// Calls it as the agent, and waits for the end; a call that takes long is given up.
async fn call(host: &Host, service: &str, op: &str, arguments: Value) -> Option<Value> {
    let context = &host.state.context;
    let job = context.call(&Caller::agent("charon"), "charon", service, op, arguments).await.ok()?;
    match tokio::time::timeout(Duration::from_secs(10), job.end()).await {
        Ok(now) => now.outcome.and_then(|outcome| outcome.as_ref().clone().ok()),
        Err(_) => {
            job.cancel.cancel();
            job.end().await;
            None
        }
    }
}

#[test]
fn no_operation_of_any_service_changes_a_project_that_the_agent_may_only_read() {
    let house = TestHost::prepared(SPEC, |here| {
        for name in ["kept", "mine"] {
            let folder = here.with_file_name(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("notes.txt"), "a note\n").unwrap();
        }
    });
    let contracts = house.inside(async |host| {
        let desks = host.state.context.instances_of("charon").into_iter();
        // Who lives here is changed last.
        let (last, mut all): (Vec<_>, Vec<_>) =
            desks.map(|desk| (desk.name().to_owned(), desk.contract().clone())).partition(|(name, _)| name == "agents");
        all.extend(last);
        all
    });
    let (mut known, mut changed, mut spoilt) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let (mut tried, mut edits) = (BTreeSet::new(), 0);
    for (service, contract) in &contracts {
        let mut operations: Vec<_> = contract.operations.iter().filter(|it| it.effect != Effect::Read).collect();
        // What ends something comes last: the others need it.
        operations.sort_by_key(|it| ["close", "delete", "kill", "remove", "unbind"].contains(&it.name.as_str()));
        for operation in operations {
            let example = operation.example.clone().unwrap_or_default();
            let all = variants(&example, &operation.arguments, contract.schema(), &|name| words(&house, name, &known));
            for arguments in all {
                // The operator works on: what is older than this must not come back, what is new must stay.
                edits += 1;
                for id in PROJECTS {
                    fs::write(folder(&house, id).join("notes.txt"), format!("edit {edits}\n")).unwrap();
                    fs::write(folder(&house, id).join(format!("more-{}", edits % 7)), "").unwrap();
                }
                let before = PROJECTS.map(|id| state(&house, id));
                let answer = house.inside(async |host| call(host, service, &operation.name, arguments.clone()).await);
                learn(&answer.unwrap_or_default(), &mut known);
                tried.insert(format!("{service}.{}", operation.name));
                for (id, _) in PROJECTS.into_iter().zip(before).filter(|(id, before)| state(&house, id) != *before) {
                    match id {
                        "mine" => changed.insert(format!("{service}.{}", operation.name)),
                        id => spoilt.insert(format!("{id}: {service}.{}", operation.name)),
                    };
                }
            }
        }
    }
    assert_eq!(spoilt, BTreeSet::new(), "tried {tried:?}");
    // The calls are real ones: where the agent may write, they do.
    for op in ["mounts.bind", "prompts.restore", "spoil.go", "terminal.exec"] {
        assert!(changed.contains(op), "{op} changed nothing: {changed:?}");
    }
}

#[test]
fn rights_that_went_are_gone_for_what_is_open_too() {
    let house =
        TestHost::of(&SPEC.replace(r#""path": ".""#, r#""path": ".", "read_only": false"#).replace("../", "./"));
    let open = r#"
        cd agents/self/prompts
        say() { echo "$2" > control/$1.json; jq -c '.ok, .error.message // empty' result.json; }
        say open '{"prompt":"review/change","id":"r","params":{"Change":{"title":"t","diff":"d"}},"resources":{"f":{"kind":"filesystem","project":"here"}}}'
        say snapshot '{"open_id":"r","tag":"t"}'"#;
    assert_eq!(house.says(open), "true\ntrue\n");
    house.edit(&SPEC.replace("../", "./"));
    crate::common::until("it is read-only", || {
        house.says("jq -c '.binds[].read_only' projects/here/meta.json") == "true\n"
    });
    fs::write(house.here().join("notes.txt"), "the operator's\n").unwrap();
    expect_test::expect![[r#"
        false
        "resources: restore failed at `f`: its files cannot be rolled back: `/projects/here/fs` is bound read-only"
    "#]]
    .assert_eq(
        &house.says(
            &open
                .replace("say open", ": open")
                .replace("say snapshot", r#"say restore '{"open_id":"r","snapshot":"t"}'; : "#),
        ),
    );
    assert_eq!(fs::read_to_string(house.here().join("notes.txt")).unwrap(), "the operator's\n");
}
