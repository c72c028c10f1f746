//! An agent at work: the same run on the mount and off it, helpers, and runs given again.

use std::sync::Arc;

use acheron::agent::protocol;
use acheron::agent::transcript::{self, Record};
use acheron::file_tools::{Outside, perform};
use acheron::model::script::Script;
use acheron::model::{Ask, Message, Model};
use expect_test::expect;
use serde_json::{Value, json};

use crate::house::{House, steady};

fn call(when: Option<&str>, name: &str, arguments: Value) -> Value {
    let mut line = json!({"answer": {"tool_calls": [{"name": name, "arguments": arguments}]}});
    if let Some(when) = when {
        line["when"] = when.into();
    }
    line
}

fn read(path: &str) -> Value {
    call(None, "file_read", json!({ "path": path }))
}

fn write(path: &str, content: &str) -> Value {
    call(None, "file_write", json!({"path": path, "content": content}))
}

/// Reads a file of the job that the last call began.
fn of_the_job(file: &str) -> Value {
    let path = format!("agents/self/jobs/$1/{file}");
    call(Some(r#""job_id":"(job-[^"]+)""#), "file_read", json!({ "path": path }))
}

fn spec(script: &str) -> String {
    json!({"layout": "acheron-1", "model": {"kind": "script", "name": script},
        "agents": {"charon": {"projects": ["here"]}}, "sandbox": {"allow_unconfined": true},
        "projects": {"here": {"binds": {"/": {"path": "."}}}}})
    .to_string()
}

fn house(lines: &[Value]) -> House {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    House::prepared(&spec("script.ndjson"), |here| std::fs::write(here.join("script.ndjson"), text).unwrap())
}

/// Discovers what there is, reads contracts, searches, runs a program, waits for it, remembers, replies.
fn work() -> Vec<Value> {
    let home = "agents/self";
    vec![
        read("agents/self/services/SERVICES.json"),
        read("agents/self/search_code/README.md"),
        read("agents/self/search_code/SCHEMA.json"),
        write(&format!("{home}/search_code/control/search.json"), r#"{"query":"TODO"}"#),
        of_the_job("status.json"),
        read("agents/self/search_code/result.json"),
        read("agents/self/terminal/OPS.json"),
        write(&format!("{home}/terminal/control/exec.json"), r#"{"command":"printf 'a\\nb\\n' | wc -l"}"#),
        of_the_job("result.json"),
        write(
            &format!("{home}/memory/control/create.json"),
            r#"{"kind":"note","name":"todo","content":"one is left"}"#,
        ),
        of_the_job("result.json"),
        read("agents/self/memory/items/todo/content"),
        call(None, "file_list", json!({"path": "agents/self/memory/items"})),
        call(None, "file_read", json!({"path": "agents/self/nothing"})),
        write(&format!("{home}/chat/control/reply"), "done"),
    ]
}

/// What differs between two runs, or between an agent and an operator who looks at the same things.
fn same(results: &[Value], house: &House) -> Vec<String> {
    let numbers = regex::Regex::new(r#"\\?"(bytes|duration_ms|took_ms|elapsed_ms)\\?": ?[0-9]+"#).unwrap();
    let shown = results.iter().map(|result| {
        let mut result = result.clone();
        // Sentences about refusals are the kernel's on a mount; codes are the same.
        if let Some(error) = result.get_mut("error") {
            error["message"] = "…".into();
        }
        let text =
            steady(&result.to_string(), house.root().parent().unwrap()).replace("/agents/charon/", "/agents/self/");
        numbers.replace_all(&text, "$1:N").into_owned()
    });
    let chosen = regex::Regex::new(r"\b(c|tool)-[0-9a-f]{8}-[0-9a-f-]{27}").unwrap();
    shown.map(|text| chosen.replace_all(&text, "ID").into_owned()).collect()
}

#[test]
fn the_same_work_is_the_same_on_the_mount_and_off_it() {
    let steps = work();
    // In the process, by the agent itself.
    let inside = house(&steps);
    inside.check(
        "echo go > agents/self/chat/control/input; cat agents/self/chat/latest.txt",
        expect![[r#"
        done
    "#]],
    );
    let turns = std::fs::read_dir(inside.state().join("agents/charon/turns")).unwrap();
    let file = turns.map(|entry| entry.unwrap().path()).next().unwrap();
    let (records, _) = transcript::read(&std::fs::read(file).unwrap()).unwrap();
    let results = records.into_iter().filter_map(|record| match record {
        Record::Outcome { result, .. } => Some(result),
        _ => None,
    });
    let mut results: Vec<Value> = results.collect();
    assert_eq!(results.len(), steps.len());
    results.pop(); // a person cannot reply for an agent

    // Through the kernel, by a program that has the same script.
    let outside = house(&steps);
    let text: String = steps.iter().map(|line| format!("{line}\n")).collect();
    let script = Script::read("steps", &text).unwrap();
    let ground = Outside::new(outside.root(), Arc::new(|| format!("tool-{}", uuid::Uuid::now_v7())));
    let mut seen = Vec::new();
    let mut ask = Ask { messages: vec![Message::user("go")], ..Ask::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for _ in 0..steps.len() - 1 {
            let said = script.answer(&ask, &mut |_| ()).await.unwrap();
            let call = protocol::read(&said).unwrap();
            let result = perform(&ground, &call.tool).await;
            ask.messages = vec![Message::user(json!({"tool_result": {"result": result}}).to_string())];
            seen.push(result);
        }
    });
    drop(runtime);
    for (step, (off, on)) in same(&results, &inside).iter().zip(same(&seen, &outside)).enumerate() {
        assert_eq!(*off, on, "step {}", step + 1);
    }
}

#[test]
fn a_sub_brain_does_a_task_and_reports() {
    let reply = |when: &str, text: &str| {
        call(Some(when), "file_write", json!({"path": "agents/self/chat/control/reply", "content": text}))
    };
    house(&[reply("count", "there are two")]).check(
        r#"
        cd agents/self/sub_brains
        invoke() { exec 3<>control/$1.json; echo "$2" >&3; jq -c '.error.message // .result' <&3; exec 3>&-; }
        invoke upsert '{"brain":"scout","about":"Looks things up."}'
        invoke upsert '{"brain":"thief","about":"x","permissions":[{"allow":["read"],"path":"/**"}]}'
        invoke spawn '{"brain":"nobody","task":"x"}'
        invoke spawn '{"brain":"scout","task":"count the files","budget":{"rounds":2}}' | jq -r .reply
        invoke list '{}' | jq -c '[.count, (.children | length)]'
        child=$(ls ../.. | grep scout)
        jq -c '[.source, .input, .reply]' ../../$child/chat/history.ndjson
        invoke spawn '{"brain":"scout","task":"nothing is written for this"}' | grep -c 'has no answer left'
        "#,
        expect![[r#"
            {"brain":"scout","updated":false}
            "a sub-brain may be given less than its parent, not more: only rules that deny"
            "there is no sub-brain `nobody`; upsert it first"
            there are two
            [1,1]
            [{"task":"charon"},"count the files","there are two"]
            1
        "#]],
    );
}

#[test]
fn a_wake_up_in_the_mountspec_begins_turns() {
    let mut spec: Value = serde_json::from_str(&spec("script.ndjson")).unwrap();
    spec["agents"]["charon"]["wake"] =
        json!([{"on": "/agents/self/events/sources/hook/bell.json", "say": "answer the door"}]);
    let line = call(None, "file_write", json!({"path": "agents/self/chat/control/reply", "content": "coming"}));
    let house = House::prepared(&spec.to_string(), |here| {
        std::fs::write(here.join("script.ndjson"), line.to_string()).unwrap();
    });
    house.check(
        r#"
        cd agents/self
        echo '{"event_type":"hook","parameter":"bell"}' > events/control/signal.json
        until [ -s chat/history.ndjson ]; do :; done
        jq -r '.reply, (.input | split("\n")[0]), (.source | keys[0])' chat/history.ndjson
        "#,
        expect![[r#"
            coming
            answer the door
            wake
        "#]],
    );
}
