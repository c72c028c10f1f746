//! The timeline of an agent and `acheron log`: what an agent did, in one order, as it happens and after a restart.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::until;
use crate::test_host::TestHost;
use acheron::policy::{Principal, PrincipalCaller};
use acheron::state::audit::{self, Record};
use acheron_vfs::Caller;

fn house() -> TestHost {
    let reply = json!({"when": ".", "repeat": true, "answer": {"tool_calls": [
        {"name": "file_write", "arguments": {"path": "agents/self/chat/control/reply", "content": "yes"}}]}});
    let spec = r#"{"agents": {"charon": {}, "styx": {}}, "model": {"kind": "script", "name": "script.ndjson"}}"#;
    TestHost::prepared(spec, |here| std::fs::write(here.join("script.ndjson"), reply.to_string()).unwrap())
}

fn acheron(host: &TestHost, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acheron"));
    command.args(words).args(["--state", host.state().to_str().unwrap()]).stdin(Stdio::null());
    command
}

fn said(host: &TestHost, words: &[&str]) -> String {
    let ran = acheron(host, words).output().unwrap();
    String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap()
}

fn remember(host: &TestHost, agent: &str, name: &str) {
    let call = format!(
        r#"echo '{{"kind":"note","name":"{name}","content":"x"}}' > agents/{agent}/memory/control/create.json"#
    );
    assert_eq!(host.says(&call), "");
}

/// A turn, a call, a denial and a promote of the agent.
fn live(host: &TestHost) {
    assert_eq!(host.says("echo hello > agents/charon/chat/control/input; cat agents/charon/chat/latest.txt"), "yes\n");
    remember(host, "charon", "river");
    remember(host, "styx", "other");
    host.inside(async |host| {
        let charon = Caller::of(Principal::Agent("charon".to_owned()));
        host.tree().may_change(&charon, "/agents/styx/memory/items/x").unwrap_err();
        // A kind that the timeline does not know, as another part of the host would note it.
        let promote = Record::new(7, "promote").with("agent", "charon").with("view", "/projects/p/views/v");
        let noted = host.state.store.write(move |tx| {
            audit::note(tx, &promote);
            Ok(())
        });
        noted.await.unwrap();
    });
}

const SHOWN: &str = r#"jq -c '[.kind, .service // .action // .view, .outcome, (.link // "" | gsub("job-.*"; "JOB"))]' agents/charon/timeline.ndjson"#;

#[test]
fn a_timeline_has_turns_calls_denials_money_and_whatever_names_the_agent_in_one_order() {
    let mut host = house();
    live(&host);
    let shown = host.says(SHOWN);
    expect![[r#"
        ["call","chat","accepted","/agents/charon/jobs/JOB"]
        ["model",null,null,""]
        ["ended","chat","done","/agents/charon/jobs/JOB"]
        ["call","memory","done","/agents/charon/jobs/JOB"]
        ["denied","write",null,""]
        ["promote","/projects/p/views/v",null,""]
    "#]]
    .assert_eq(&shown);
    // A link leads to its job.
    host.check(
        r#"
        job=$(jq -r 'select(.service == "memory") | .link' agents/charon/timeline.ndjson)
        jq -r .operation ".$job/status.json"
        wc -l < agents/styx/timeline.ndjson; stat -c %s agents/styx/timeline.ndjson.1
        "#,
        expect![[r#"
            create
            1
            0
        "#]],
    );
    host.restart();
    assert_eq!(host.says(SHOWN), shown, "the same after a restart");
    remember(&host, "charon", "later");
    assert_eq!(host.says("tail -n 1 agents/charon/timeline.ndjson | jq -r .outcome"), "done\n");
}

#[test]
fn an_agent_sees_its_own_timeline_alone_and_a_new_agent_of_the_same_name_has_its_own() {
    let mut host = house();
    remember(&host, "charon", "river");
    let seen = host.inside(async |host| {
        let styx = Caller::of(Principal::Agent("styx".to_owned()));
        let own = host.tree().read(&styx, "/agents/self/timeline.ndjson").await.map(|bytes| bytes.len());
        (own, host.tree().read(&styx, "/agents/charon/timeline.ndjson").await.map_err(|error| error.code))
    });
    assert_eq!(seen, (Ok(0), Err(acheron_base::Code::NotFound)));
    host.check(
        r#"
        call() { exec 3<>agents/charon/agents/control/$1.json; echo "$2" >&3; jq -c '.ok, .error.message // empty' <&3; exec 3>&-; }
        call create '{"agent_id":"ada"}'
        echo '{"kind":"note","name":"a","content":"x"}' > agents/ada/memory/control/create.json
        wc -l < agents/ada/timeline.ndjson
        call delete '{"agent_id":"ada","purge":true}'
        call create '{"agent_id":"ada"}'
        wc -l < agents/ada/timeline.ndjson
        "#,
        expect![[r#"
            true
            1
            true
            true
            0
        "#]],
    );
    host.restart();
    assert_eq!(host.says("wc -l < agents/ada/timeline.ndjson"), "0\n");
}

#[test]
fn log_prints_one_readable_line_for_each_thing_with_and_without_a_host() {
    let host = house();
    live(&host);
    let time = regex::Regex::new(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ").unwrap();
    let tokens = regex::Regex::new(r"\d+ tokens in, \d+ out").unwrap();
    let steady = |text: String| {
        let text = crate::test_host::steady(&text, &host.here());
        tokens.replace_all(&time.replace_all(&text, ""), "N tokens").into_owned()
    };
    let mut lines: Vec<String> =
        steady(said(&host, &["log", "--agent", "charon"])).lines().map(str::to_owned).collect();
    lines.sort(); // lines of the same millisecond have no order between events and the audit
    expect![[r#"
        charon     call     memory.create done JOB by operator
        charon     change   /agents/charon/memory/items/river {"memory":"created","version":1}
        charon     chat     chat "hello"
        charon     denied   write /agents/styx/memory/items/x: no rule allows agent charon to write /agents/styx/memory/items/x
        charon     model    N tokens
        charon     promote  view=/projects/p/views/v
        charon     turn     begins JOB by operator
        charon     turn     done JOB"#]]
    .assert_eq(&lines.join("\n"));
    let all = said(&host, &["log", "--since", "1h"]);
    assert!(all.contains(" styx       call     memory.create done") && all.contains(" -          start "), "{all}");
    assert!(!all.contains("promote"), "it was long ago: {all}");
    let json: Vec<Value> =
        said(&host, &["log", "--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(json.iter().any(|line| line["kind"] == "event" && line["event"] == "chat" && line["agent"] == "charon"));
    assert!(json.iter().all(|line| line.get("prev").is_none() && line.get("arguments").is_none()));
    expect![[r#"
        error: there is no agent `nobody`
        hint: `acheron agents` lists them
    "#]]
    .assert_eq(&said(&host, &["log", "--agent", "nobody"]));
    let (state, before) = (host.state(), said(&host, &["log"]));
    let kept = tempfile::tempdir().unwrap();
    std::fs::copy(state.join("acheron.db"), kept.path().join("acheron.db")).unwrap();
    drop(host);
    let words = ["log", "--follow", "--state", kept.path().to_str().unwrap()];
    let ran = Command::new(env!("CARGO_BIN_EXE_acheron")).args(words).output().unwrap();
    assert!(String::from_utf8_lossy(&ran.stderr).contains("nothing will be added to its log"), "{ran:?} {before}");
}

#[test]
fn a_timeline_is_bounded_and_its_older_part_is_a_second_file() {
    let mut host = house();
    let noted = |host: &TestHost| {
        host.inside(async |host| {
            for from in (0..5_000).step_by(1_000) {
                let noted = host.state.store.write(move |tx| {
                    for number in from..from + 1_000 {
                        let line =
                            Record::new(number, "promote").with("agent", "charon").with("view", "/projects/p/views/v");
                        audit::note(tx, &line.with("files", "x".repeat(100)));
                    }
                    Ok(())
                });
                noted.await.unwrap();
            }
        });
    };
    noted(&host);
    let shown = |host: &TestHost| {
        host.says("cat agents/charon/timeline.ndjson.1 agents/charon/timeline.ndjson | jq -s -c '[length > 1000, length < 4000, .[-1].at_ms]'")
    };
    assert_eq!(shown(&host), "[true,true,4999]\n");
    assert_eq!(host.says("cat agents/charon/timeline.ndjson* | wc -c | awk '{print ($1 <= 524288)}'"), "1\n");
    host.restart();
    assert_eq!(shown(&host), "[true,true,4999]\n");
}

struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Following {
    fn of(host: &TestHost) -> (Following, impl Iterator<Item = String> + use<>) {
        let mut child =
            acheron(host, &["log", "--follow", "--agent", "charon"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        (Following(child), lines)
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

#[test]
fn log_follows_without_losing_a_line_and_ends_with_its_reader_or_with_the_host() {
    let host = house();
    remember(&host, "charon", "before");
    let (mut first, lines) = Following::of(&host);
    let mut calls = lines.filter(|line| line.contains(" call "));
    assert!(calls.next().unwrap().contains("memory.create done"));
    for name in 0..50 {
        remember(&host, "charon", &format!("n{name}"));
    }
    assert_eq!(calls.by_ref().take(50).count(), 50);
    // Nobody reads any more, and nothing is added: it ends all the same.
    drop(calls);
    until("the command ends with its reader", || first.has_ended());
    let (mut second, mut lines) = Following::of(&host);
    assert!(lines.next().is_some());
    drop(host);
    assert!(lines.count() >= 50, "the rest, and then the end");
    until("the command ends with the host", || second.has_ended());
}
