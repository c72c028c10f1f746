//! An agent at work: the same run on the mount and off it, helpers, and runs given again.

use std::sync::Arc;

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::GUARD;
use crate::test_host::{TestHost, steady};
use acheron::agent::protocol;
use acheron::agent::tools::{MountTools, perform};
use acheron::agent::transcript::TranscriptRecord;
use acheron::host::{Host, Options};
use acheron::model::script::Script;
use acheron::model::{Message, Model, ModelRequest};
use acheron::policy::PrincipalCaller;
use acheron::state::turns;
use acheron_base::{Clock, Ids, Random};
use acheron_vfs::Caller;

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

/// Calls a service under a name of the caller's own, so that the same words find the job in every run.
fn order(service: &str, op: &str, name: &str, mut arguments: Value) -> Value {
    arguments["_meta"] = json!({ "correlation_id": name });
    write(&format!("agents/self/{service}/control/{op}.json"), &arguments.to_string())
}

fn spec(script: &str) -> String {
    json!({"layout": "acheron-1", "model": {"kind": "script", "name": script},
        "agents": {"charon": {"projects": ["here"]}}, "sandbox": {"allow_unconfined": true},
        "projects": {"here": {"binds": {"/": {"path": "."}}}}})
    .to_string()
}

fn house(lines: &[Value]) -> TestHost {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    TestHost::prepared(&spec("script.ndjson"), |here| std::fs::write(here.join("script.ndjson"), text).unwrap())
}

/// Discovers what there is, reads contracts, searches, runs a program, waits for it, remembers, replies.
fn work() -> Vec<Value> {
    vec![
        read("agents/self/services/SERVICES.json"),
        read("agents/self/search_code/README.md"),
        read("agents/self/search_code/SCHEMA.json"),
        order("search_code", "search", "find", json!({"query": "TODO"})),
        read("agents/self/jobs/by/find/status.json"),
        read("agents/self/search_code/result.json"),
        read("agents/self/terminal/OPS.json"),
        order("terminal", "exec", "count", json!({"command": "printf 'a\\nb\\n' | wc -l"})),
        read("agents/self/jobs/by/count/result.json"),
        order("memory", "create", "note", json!({"kind": "note", "name": "todo", "content": "one is left"})),
        read("agents/self/jobs/by/note/result.json"),
        read("agents/self/memory/items/todo/content"),
        call(None, "file_read", json!({"path": "agents/self/memory/items/todo/content", "max_bytes": 3})),
        call(None, "file_read", json!({"path": "agents/self/events/sources/user.json", "wait_until_ready": false})),
        call(None, "file_list", json!({"path": "agents/self/memory/items", "recursive": true, "max_entries": 4})),
        call(None, "file_list", json!({"path": "agents/self/nothing"})),
        read("agents/self/nothing"),
        read("agents/self/memory"),
        write("agents/self/README.md", "x"),
        order("search_code", "fly", "fly", json!({})),
        order("search_code", "search", "bad", json!({"qury": "TODO"})),
        write("agents/self/chat/control/reply", "done"),
    ]
}

/// What differs between two runs, or between an agent and an operator who looks at the same things.
fn same(results: &[Value], dir: &std::path::Path) -> Vec<String> {
    let numbers = regex::Regex::new(r#"\\?"(bytes|duration_ms|took_ms|elapsed_ms)\\?": ?[0-9]+"#).unwrap();
    let shown = results.iter().map(|result| {
        let mut result = result.clone();
        // Sentences about refusals are the kernel's on a mount; codes are the same.
        if let Some(error) = result.get_mut("error") {
            error["message"] = "…".into();
        }
        let text = steady(&result.to_string(), dir).replace("/agents/charon/", "/agents/self/");
        numbers.replace_all(&text, "$1:N").into_owned()
    });
    let chosen = regex::Regex::new(r"\b(c|tool)-[0-9a-f]{8}-[0-9a-f-]{27}").unwrap();
    shown.map(|text| chosen.replace_all(&text, "ID").into_owned()).collect()
}

/// The transcript of the only turn of `charon`.
fn turn(state: &std::path::Path) -> Vec<TranscriptRecord> {
    let store = acheron_store::Connection::open(state.join(acheron_store::FILE)).unwrap();
    let jobs = turns::jobs(&store, "charon").unwrap();
    let records = turns::records(&store, "charon", &jobs[0]).unwrap();
    records.iter().map(|record| serde_json::from_str(record).unwrap()).collect()
}

fn results(records: &[TranscriptRecord]) -> Vec<Value> {
    let results = records.iter().filter_map(|record| match record {
        TranscriptRecord::Outcome { result, .. } => Some(result.clone()),
        _ => None,
    });
    results.collect()
}

/// A host that is not mounted, with the same project; says `go` and returns what happened.
fn unmounted(model: Value, prepare: impl FnOnce(&std::path::Path)) -> (Vec<TranscriptRecord>, tempfile::TempDir) {
    let dir = tempfile::TempDir::new().unwrap();
    let (here, state) = (dir.path().join("here"), dir.path().join("state"));
    std::fs::create_dir(&here).unwrap();
    project(&here);
    prepare(&here);
    let mut spec: Value = serde_json::from_str(&spec("script.ndjson")).unwrap();
    spec["model"] = model;
    let spec = acheron::spec::Spec::check(&spec.to_string()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let options = Options {
            spec,
            here,
            state: state.clone(),
            mountpoint: None,
            clock: Clock::real(),
            random: Random::real(),
        };
        let host = Host::start(options).unwrap();
        let operator = Caller::operator();
        host.tree().write(&operator, "agents/self/chat/control/input", b"go").await.unwrap();
        let reply = tokio::time::timeout(GUARD, host.tree().read(&operator, "agents/self/chat/latest.txt")).await;
        assert_eq!(reply.unwrap().unwrap(), "done\n");
        host.down().await;
    });
    runtime.shutdown_background();
    (turn(&state), dir)
}

/// What [`TestHost`] puts into its project.
fn project(here: &std::path::Path) {
    std::fs::write(here.join("main.rs"), "fn main() {\n    // TODO: everything\n}\n").unwrap();
    std::fs::write(here.join("notes.txt"), "a note\n").unwrap();
}

/// A transcript without what is different in every run.
fn shown(records: &[TranscriptRecord], dir: &std::path::Path) -> Vec<String> {
    let times = regex::Regex::new(r#""(at_ms|ms|parked_ms)":[0-9]+"#).unwrap();
    let lines: Vec<Value> = records.iter().map(|record| serde_json::to_value(record).unwrap()).collect();
    same(&lines, dir).iter().map(|line| times.replace_all(line, "\"$1\":N").into_owned()).collect()
}

#[test]
fn the_same_work_is_the_same_on_the_mount_and_off_it() {
    let steps = work();
    // By the agent itself, in the process of a host that is mounted; its model is recorded.
    let mounted = house(&steps);
    let recording = mounted.here().join("../run.ndjson");
    mounted.inside(async |host| host.state.shared.runtimes.record(&recording)).unwrap();
    mounted.check(
        "echo go > agents/self/chat/control/input; cat agents/self/chat/latest.txt",
        expect![[r#"
        done
    "#]],
    );
    let records = turn(&mounted.state());
    let mut inside = results(&records);
    assert_eq!(inside.len(), steps.len());

    // Given again to an agent of a host that is not mounted: the same transcript, word for word.
    let run = std::fs::read_to_string(&recording).unwrap();
    let model = json!({"kind": "replay", "name": "../run.ndjson"});
    let (again, dir) = unmounted(model, |here| {
        std::fs::copy(mounted.here().join("script.ndjson"), here.join("script.ndjson")).unwrap();
        std::fs::write(here.join("../run.ndjson"), run).unwrap();
    });
    let pairs = shown(&records, mounted.root().parent().unwrap()).into_iter().zip(shown(&again, dir.path()));
    for (line, (on, off)) in pairs.enumerate() {
        assert_eq!(on, off, "line {}", line + 1);
    }
    assert_eq!(records.len(), again.len());

    // Through the kernel, by a program that has the same script.
    inside.pop(); // a person cannot reply for an agent
    let outside = house(&steps);
    let text: String = steps.iter().map(|line| format!("{line}\n")).collect();
    let script = Script::read("steps", &text).unwrap();
    let ids = Ids::new(Clock::real(), Random::real());
    let ground = MountTools::new(outside.root(), Arc::new(move || ids.id("tool")));
    let mut seen = Vec::new();
    let ask = ModelRequest { messages: vec![Message::user("go")], ..ModelRequest::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for _ in 0..steps.len() - 1 {
            let said = script.answer(&ask, &mut |_| ()).await.unwrap();
            let call = protocol::read(&said).unwrap();
            seen.push(perform(&ground, &call.tool).await);
        }
    });
    drop(runtime);
    let (inside, seen) =
        (same(&inside, mounted.root().parent().unwrap()), same(&seen, outside.root().parent().unwrap()));
    for (step, (off, on)) in inside.iter().zip(seen).enumerate() {
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
    let house = TestHost::prepared(&spec.to_string(), |here| {
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
