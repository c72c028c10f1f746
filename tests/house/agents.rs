//! Agents among themselves, on a real mount: let in, changed, sent away; helpers; messages from one to another.

use expect_test::expect;
use serde_json::{Value, json};

use crate::test_host::TestHost;
use acheron::policy::PrincipalCaller;
use acheron_base::Code;
use acheron_vfs::Caller;

/// Calls an operation of the service in the working directory, on a handle of its own.
const INVOKE: &str = r#"
    invoke() { exec 3<>control/$1.json; echo "$2" >&3; jq -c "${3:-.error.message // .result}" <&3; exec 3>&-; }
"#;

fn call(when: &str, name: &str, arguments: Value) -> Value {
    json!({"when": when, "repeat": true, "answer": {"tool_calls": [{"name": name, "arguments": arguments}]}})
}

fn reply(when: &str, text: &str) -> Value {
    call(when, "file_write", json!({"path": "agents/self/chat/control/reply", "content": text}))
}

fn wait_for(when: &str, name: &str) -> Value {
    call(when, "file_read", json!({"path": format!("agents/self/events/sources/user/{name}.json")}))
}

/// A house whose agents all answer from one script, each from its beginning.
fn house(agents: &Value, lines: &[Value]) -> TestHost {
    let spec = json!({"layout": "acheron-1", "default_agent": "charon", "agents": agents,
        "model": {"kind": "script", "name": "script.ndjson"}});
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    TestHost::prepared(&spec.to_string(), |here| {
        std::fs::write(here.join("script.ndjson"), text).unwrap();
        let other = reply(".", "I am another now").to_string();
        std::fs::write(here.join("other.ndjson"), other).unwrap();
    })
}

fn session(rest: &str) -> String {
    format!("{INVOKE}{rest}")
}

#[test]
fn a_change_ends_no_turn_and_is_there_in_the_next() {
    let lines = [wait_for("^.*wait for it", "go"), reply("event_id", "waited"), reply("hello", "as ever")];
    house(&json!({"charon": {}}), &lines).check(
        &session(
            r#"
            cd agents/self/agents
            invoke create '{"agent_id":"ada","budget":{"rounds":9}}' '.result | [.limits.rounds, .budget, .spent.rounds]'
            echo 'wait for it' > ../../ada/chat/control/input
            until [ "$(jq .progress.waiting ../../ada/jobs/last/progress.json)" = true ]; do :; done
            invoke update '{"agent_id":"ada","model":{"kind":"script","name":"other.ndjson"},"limits":{"rounds":3}}' '.result | [.state, .model, .limits.rounds]'
            echo '{"event_type":"user","parameter":"go"}' > ../../ada/events/control/signal.json
            cat ../../ada/chat/latest.txt
            echo hello > ../../ada/chat/control/input; cat ../../ada/chat/latest.txt
            jq -c '[.limits.turn.rounds, .limits.agent.rounds, .spent.rounds]' ../../ada/chat/status.json
            invoke update '{"agent_id":"ada","budget":{"rounds":3}}' '.result.budget'
            echo hello > ../../ada/chat/control/input; cat ../../ada/chat/latest.txt
            jq -c .error.code ../../ada/jobs/last/status.json
            invoke update '{"agent_id":"ada","budget":{"money":1}}'
            invoke update '{"agent_id":"ada","projects":["nowhere"]}'
            invoke update '{"agent_id":"ada","wake":[{"on":"/agents/self/events/sources/tmie/after/1.json","say":"x"}]}'
            invoke update '{"agent_id":"ada","colour":"red"}'
            jq -r .error.message status.json
            "#,
        ),
        expect![[r#"
            [32,{"rounds":9},0]
            ["running","script:other.ndjson",3]
            waited
            I am another now
            [3,9,3]
            {"rounds":3}
            ada has used up its rounds; raise its budget with agents.update
            "budget_exceeded"
            "ada.budget.money: needs model.prices; without prices every call costs 0"
            "ada.projects[0]: there is no project `nowhere`; projects are here"
            "ada.wake[0].on: sources/tmie/after/1.json is not a source: the path is too deep"
            "update: unknown key `colour`; other keys are name, about, model, limits, budget, permissions, projects, wake"
            update: unknown key `colour`; other keys are name, about, model, limits, budget, permissions, projects, wake
            ! environment: line 2: echo: write error: Invalid argument
        "#]],
    );
}

#[test]
fn a_purge_leaves_nothing_of_an_agent() {
    let house = house(&json!({"charon": {}}), &[reply("word", "the word is Xylophagous")]);
    house.check(
        &session(
            r#"
            cd agents/self/agents
            invoke create '{"agent_id":"ada"}' .ok
            echo 'the word is Xylophagous' > ../../ada/chat/control/input; cat ../../ada/chat/latest.txt
            echo '{"kind":"note","name":"word","content":"Xylophagous beetles"}' > ../../ada/memory/control/create.json
            jq -c .ok ../../ada/memory/result.json
            echo '{"event_type":"user","payload":"Xylophagous"}' > ../../ada/events/control/signal.json
            invoke delete '{"agent_id":"ada","purge":true}'
            invoke create '{"agent_id":"ada"}' '.result.spent.rounds'
            ls ../../ada/memory/items ../../ada/jobs; cat ../../ada/chat/history.ndjson ../../ada/events/log.ndjson
            "#,
        ),
        expect![[r#"
            true
            the word is Xylophagous
            true
            {"agent_id":"ada","deleted":true,"purged":true}
            0
            ../../ada/jobs:
            README.md
            by
            recent.json

            ../../ada/memory/items:
        "#]],
    );
    let left = std::process::Command::new("grep").arg("-rlia").arg("xylophag").arg(house.state()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "the word is in a file");
}

#[test]
fn an_agent_tells_another_something_if_it_may() {
    let tell = |to: &str| {
        let signal = json!({"event_type": "agent", "parameter": "note", "payload": "hi", "to": to}).to_string();
        call(
            &format!("tell {to}"),
            "file_write",
            json!({"path": "agents/self/events/control/signal.json", "content": signal}),
        )
    };
    let lines = [
        tell("bob"),
        tell("charon"),
        tell("nobody"),
        reply(r#""code":"(\w+)","message":"([^"]*)""#, "$1: $2"),
        reply("bytes_written", "told"),
    ];
    let rule = json!([{"allow": ["invoke"], "path": "/agents/bob/events/control/signal.json"}]);
    house(&json!({"charon": {"permissions": rule}, "bob": {}}), &lines).check(
        r#"
        cd agents
        say() { echo "$2" > $1/chat/control/input; cat $1/chat/latest.txt; }
        say charon 'tell bob'
        jq -c 'select(.kind == "signal") | [.path, .payload.payload, .payload.from]' bob/events/log.ndjson
        say bob 'tell charon'
        jq -c 'select(.kind == "signal")' charon/events/log.ndjson
        say charon 'tell nobody'
        echo '{"event_type":"agent","parameter":"note","to":"bob"}' > charon/events/control/signal.json
        jq -c 'select(.kind == "signal") | .payload.from' bob/events/log.ndjson
        "#,
        expect![[r#"
            told
            ["/agents/bob/events/sources/agent/note.json","hi","agent charon"]
            forbidden: no rule allows agent bob to invoke /agents/charon/events/control/signal.json
            forbidden: no rule allows agent charon to invoke /agents/nobody/events/control/signal.json
            "agent charon"
            "operator"
        "#]],
    );
}

#[test]
fn helpers_are_bounded_in_depth_and_number() {
    let lines = [wait_for("hold", "go"), reply("event_id", "held"), reply("quick", "done")];
    house(&json!({"charon": {}}), &lines).check(
        &session(
            r#"
            cd agents/charon/sub_brains
            for level in 1 2 3; do
                invoke upsert '{"brain":"b","about":"Helps."}' .ok
                child=$(invoke spawn '{"brain":"b","task":"quick"}' .result.agent_id | tr -d '"')
                cd ../../$child/sub_brains
            done
            invoke upsert '{"brain":"b","about":"Helps."}' .ok
            invoke spawn '{"brain":"b","task":"quick"}' '[.error.code, .error.message]'
            cd ../../charon/sub_brains
            spawn() { echo '{"op":"spawn","arguments":{"brain":"b","task":"'$2'"},"correlation_id":"'$1'"}' > control/invoke.json; }
            for n in 1 2 3 4 5 6 7 8 9; do spawn hold-$n hold; done
            holding() { for c in $(invoke list '{}' '.result.children[]' | tr -d '"'); do jq -r .input ../../$c/chat/status.json 2> /dev/null; done | grep -c hold; }
            until [ "$(holding)" = 8 ]; do :; done
            until [ "$(jq -r .progress.waiting_for ../jobs/by/hold-9/progress.json)" = 'a helper that ends' ]; do :; done
            invoke list '{}' '.result.children | length'
            go() { for c in $(invoke list '{}' '.result.children[]' | tr -d '"'); do
                echo '{"event_type":"user","parameter":"go"}' > ../../$c/events/control/signal.json
            done; }
            go; for n in 1 2 3 4 5 6 7 8; do cat ../jobs/by/hold-$n/result.txt > /dev/null; done
            until [ "$(holding)" = 1 ]; do :; done; go
            for n in 1 2 3 4 5 6 7 8 9; do jq -r .reply ../jobs/by/hold-$n/result.txt; done | uniq -c | tr -s ' '
            spawn last quick; jq -r .reply ../jobs/by/last/result.txt
            jq -c 'select(.kind == "job" and .payload.operation == "spawn") | .payload.state' ../events/log.ndjson | sort | uniq -c | tr -s ' '
            "#,
        ),
        expect![[r#"
            true
            true
            true
            true
            ["budget_exceeded","3 levels of sub-brains are the limit"]
            8
             9 held
            done
             11 "done"
        "#]],
    );
}

#[test]
fn helpers_that_have_ended_are_tidied() {
    let host = house(&json!({"charon": {}}), &[wait_for("hold", "go"), reply("quick", "done")]);
    host.check(
        &session(
            r#"
            cd agents/charon/sub_brains
            invoke upsert '{"brain":"b","about":"Helps."}' .ok
            child=$(invoke spawn '{"brain":"b","task":"quick"}' .result.agent_id | tr -d '"')
            cd ../../$child/sub_brains
            invoke upsert '{"brain":"b","about":"Helps."}' .ok
            invoke spawn '{"brain":"b","task":"quick"}' .result.reply
            cd ../../charon/sub_brains
            echo '{"brain":"b","task":"hold"}' > control/spawn.json
            until invoke list '{}' '.result.children | length' | grep -q 2; do :; done
            "#,
        ),
        expect![[r#"
            true
            true
            "done"
        "#]],
    );
    let tidy = |before_ms: u64| {
        host.inside(async |host| acheron::host::tidy::tidy_helpers(&host.state, before_ms).await.unwrap())
    };
    assert_eq!(tidy(1), 0, "they may be looked at for a while");
    let gone: usize = (0..2).map(|_| tidy(u64::MAX)).sum();
    assert_eq!(gone, 2, "the one that ended and its own; not the one at work");
    assert_eq!(host.says("ls agents | wc -l"), "3\n");
}

#[test]
fn a_rule_given_by_update_wakes_an_agent() {
    house(&json!({"charon": {}}), &[reply("somebody rang", "coming")]).check(
        &session(
            r#"
            cd agents/self/agents
            invoke update '{"agent_id":"charon","wake":[{"on":"/agents/self/events/sources/hook/bell.json","say":"somebody rang"}]}' .ok
            echo '{"event_type":"hook","parameter":"bell"}' > ../events/control/signal.json
            until [ -s ../chat/history.ndjson ]; do :; done
            jq -c '[.reply, .source]' ../chat/history.ndjson
            "#,
        ),
        expect![[r#"
            true
            ["coming",{"wake":"/agents/self/events/sources/hook/bell.json"}]
        "#]],
    );
}

/// The answer to a call of `agents` by charon.
fn by_charon(house: &TestHost, op: &str, agent: &str) -> String {
    let path = format!("/agents/charon/agents/control/{op}.json");
    let said = house.inside(async |host| {
        host.tree().ask(&Caller::agent("charon"), &path, json!({"agent_id": agent}).to_string().as_bytes()).await
    });
    let said: Value = serde_json::from_slice(&said.unwrap()).unwrap();
    match &said["error"] {
        Value::Null => said["result"]["state"].as_str().unwrap_or("done").to_owned(),
        error => format!("{}: {}", error["code"].as_str().unwrap(), error["message"].as_str().unwrap()),
    }
}

#[test]
fn only_the_operator_resumes_what_the_operator_paused() {
    let rules: Vec<Value> = ["pause", "resume", "delete", "create"]
        .iter()
        .map(|op| json!({"allow": ["invoke"], "path": format!("/agents/*/agents/control/{op}.json")}))
        .collect();
    let mut house = house(&json!({"charon": {"permissions": rules}, "styx": {}}), &[reply("hello", "as ever")]);
    let operator = |house: &TestHost, op: &str, agent: &str| {
        let call = format!(
            "cd agents/charon/agents; invoke {op} '{{\"agent_id\":\"{agent}\"}}' '.error.message // .result.state'"
        );
        house.says(&session(&call))
    };
    let refused =
        |agent: &str| format!("forbidden: the operator has paused {agent}; only the operator resumes or deletes it");
    // What an agent paused, an agent that may resumes.
    assert_eq!(by_charon(&house, "pause", "styx"), "paused");
    assert_eq!(by_charon(&house, "resume", "styx"), "idle");
    assert_eq!(operator(&house, "create", "ada"), "\"idle\"\n");
    for agent in ["styx", "ada"] {
        assert_eq!(operator(&house, "pause", agent), "\"paused\"\n");
        assert_eq!(by_charon(&house, "resume", agent), refused(agent));
        // Pausing it once more does not make the pause its own.
        assert_eq!(by_charon(&house, "pause", agent), "paused");
        assert_eq!(by_charon(&house, "resume", agent), refused(agent));
    }
    assert_eq!(by_charon(&house, "delete", "ada"), refused("ada"), "it would be there again, and not paused");
    // What an agent paused, the operator may pause too.
    assert_eq!(operator(&house, "resume", "styx"), "\"idle\"\n");
    assert_eq!(by_charon(&house, "pause", "styx"), "paused");
    assert_eq!(operator(&house, "pause", "styx"), "\"paused\"\n");
    house.restart();
    for agent in ["styx", "ada"] {
        assert_eq!(by_charon(&house, "resume", agent), refused(agent), "after a restart");
        assert_eq!(operator(&house, "resume", agent), "\"idle\"\n");
    }
}

#[test]
fn a_right_that_is_taken_away_is_gone_from_files_that_are_open() {
    let rule = json!({"allow": ["read", "invoke"], "path": "/agents/styx/chat/control/input"});
    let house = house(&json!({"charon": {"permissions": [rule]}, "styx": {}}), &[]);
    let writes = [
        ("/agents/charon/events/control/signal.json", r#"{"event_type":"user"}"#),
        ("/agents/charon/events/control/wait.json", r#"{"paths":["/agents/self/events/sources/user.json"]}"#),
        ("/agents/styx/chat/control/input", "a message"),
    ];
    let (said, flushed) = house.inside(async |host| {
        let (tree, caller) = (host.tree(), Caller::agent("charon"));
        let open = |path: &str| tree.open_path(&caller, path, acheron_vfs::Open::WRITE).unwrap();
        let handles: Vec<_> = writes.iter().map(|(path, _)| open(path)).collect();
        let begun = open(writes[2].0);
        begun.write(0, b"the beginning").wait().await.unwrap();
        let deny = json!([{"deny": ["invoke"], "path": "/agents/self/events/control/**"}]);
        let update = json!({"agent_id": "charon", "permissions": deny}).to_string();
        let file = "/agents/charon/agents/control/update.json";
        let update = tree.ask(&Caller::operator(), file, update.as_bytes()).await.unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&update).unwrap()["ok"], true);
        let mut said = Vec::new();
        for (handle, (_, bytes)) in handles.iter().zip(writes) {
            said.push(handle.write(0, bytes.as_bytes()).wait().await.err().map(|error| error.code));
        }
        (said, begun.flush(true).wait().await.err().map(|error| error.code))
    });
    assert_eq!(said, [Some(Code::Forbidden); 3]);
    assert_eq!(flushed, Some(Code::Forbidden), "a message that was begun before is not sent");
    assert_eq!(house.says("cat agents/styx/chat/history.ndjson; jq .queued agents/styx/chat/status.json"), "0\n");
}
