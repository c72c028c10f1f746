//! Several hosts that are joined by a NATS server: they see each other, call what the others offer, write to each other's agents,
//! and share queues.

use std::path::Path;
use std::sync::Arc;

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::{session, until};
use crate::test_host::TestHost;
use acheron::agent::tools::tree::TreeTools;
use acheron::agent::tools::{ToolCall, perform};
use acheron::policy::PrincipalCaller;
use acheron_nats::test_server::{NatsServer, old_server};
use acheron_vfs::Caller;

/// A mountspec of a host; `more` is merged into `fabric`.
fn spec(server: &NatsServer, node: &str, more: Value) -> Value {
    let monitor = format!("http://127.0.0.1:{}", server.monitor);
    let mut fabric = json!({"kind": "nats", "url": server.url(), "node": node, "monitor": monitor});
    fabric.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"layout": "acheron-1", "default_agent": "charon", "fabric": fabric,
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": true}}}},
        "agents": {"charon": {"projects": ["here"], "permissions": [
            {"allow": ["read", "invoke"], "path": "/nodes/**"}]}, "ada": {}}})
}

/// A host whose directory of another host is there.
fn sees(house: &TestHost, node: &str) {
    let path = house.root().join(format!("nodes/{node}/STATUS.json"));
    until(&format!("{node} is known"), || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.contains("\"up\": true"))
    });
}

fn offers(house: &TestHost, node: &str, service: &str) {
    let path = house.root().join(format!("nodes/{node}/services/{service}/README.md"));
    until(&format!("{service} of {node} is there"), || path.exists());
}

/// An agent writes a command into a control file.
fn acts(house: &TestHost, agent: &str, control: &str, command: Value) {
    let arguments = json!({"path": control, "content": command.to_string()});
    let tool = ToolCall::read("file_write", arguments.as_object().unwrap().clone()).ok().unwrap();
    let done = house.inside(async |host| {
        let (tree, caller) = (host.tree().clone(), Caller::agent(agent));
        perform(&TreeTools { tree, caller, id: Arc::new(|| "h".to_owned()), parked: Arc::new(|_| ()) }, &tool).await
    });
    assert!(done.get("error").is_none(), "{done}");
}

fn json_of(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_host_sees_the_others_and_calls_what_they_offer() {
    let server = NatsServer::start();
    let offer = json!({"offer": {"search_code": {"agent": "charon", "to": ["lethe/operator", "lethe/charon"]}}});
    let mut styx = TestHost::of(&spec(&server, "styx", offer).to_string());
    let lethe = TestHost::of(&spec(&server, "lethe", json!({})).to_string());
    sees(&lethe, "styx");
    sees(&styx, "lethe");
    offers(&lethe, "styx", "search_code");
    lethe.check(
        r#"ls nodes; readlink nodes/lethe; ls nodes/styx nodes/styx/services nodes/styx/services/search_code
        jq -c '[.node_id, .up, .error]' nodes/styx/STATUS.json; jq -c '.[] | [.node_id, .service_id]' nodes/styx/services/SERVICES.json
        jq -c '[.ok, .faults]' meta/health.json
        cd nodes/styx/services/search_code
        echo '{"query":"TODO"}' > control/search.json; jq -c '[.ok, .operation, (.result.matches | length)]' result.json
        jq -c '[.service, .state, .progress.node, .progress.state]' ../../../../agents/charon/jobs/last/progress.json
        exec 3<>control/invoke.json; echo '{"op":"search","arguments":{"query":"everything"}}' >&3; jq -c .ok <&3
        echo '{"qery":"x"}' > control/search.json"#,
        expect![[r#"
            lethe
            local
            styx
            local
            nodes/styx:
            CAPS.json
            README.md
            STATUS.json
            services

            nodes/styx/services:
            SERVICES.json
            search_code

            nodes/styx/services/search_code:
            CAPS.json
            OPS.json
            PERMISSIONS.json
            README.md
            SCHEMA.json
            control
            result.json
            status.json
            ["styx",true,null]
            ["styx","search_code"]
            [true,[]]
            [true,"search",1]
            ["styx/search_code","done","styx","done"]
            true
            ! bash: line 8: echo: write error: Invalid argument
        "#]],
    );
    // The job over there belongs to the agent whose service it is, and says who asked.
    styx.check(
        r#"cd agents/charon/jobs; jq -c '[.service, .operation, .state]' last/status.json; ls by | grep -c ^far-lethe-job"#,
        expect![[r#"
            ["search_code","search","done"]
            2
        "#]],
    );
    // A host that goes in good order is down at once, and one that comes back is up again.
    styx.stop_for_a_while();
    lethe.check(
        r#"jq -c .up nodes/styx/STATUS.json; cd nodes/styx/services/search_code
        echo '{"query":"TODO"}' > control/search.json; jq -c '[.ok, .error.code]' result.json"#,
        expect![[r#"
            false
            [false,"unavailable"]
        "#]],
    );
    styx.start_again();
    sees(&lethe, "styx");
    lethe.check(
        r#"cd nodes/styx/services/search_code; echo '{"query":"TODO"}' > control/search.json; jq -c .ok result.json"#,
        expect![[r#"
            true
        "#]],
    );
}

#[test]
fn the_receiving_host_decides_and_both_write_it_down() {
    let server = NatsServer::start();
    let offer = json!({"offer": {"search_code": {"agent": "charon", "to": ["lethe/charon"]}}});
    let styx = TestHost::of(&spec(&server, "styx", offer).to_string());
    let lethe = TestHost::of(&spec(&server, "lethe", json!({})).to_string());
    offers(&lethe, "styx", "search_code");
    lethe.check(
        r#"cd nodes/styx/services/search_code
        echo '{"query":"TODO"}' > control/search.json; jq -c '[.ok, .error.code, .error.message]' result.json"#,
        expect![[r#"
            [false,"forbidden","host styx: /agents/charon/search_code/control/search.json is not offered to lethe/operator"]
        "#]],
    );
    until("the refusal is in the audit of styx", || {
        session(&styx.root(), "cat meta/audit.ndjson").contains("far lethe/operator")
    });
    let called = |house: &TestHost| {
        let lines = r#"jq -c 'select(.kind == "call" or .kind == "ended") | [.principal, .service, .outcome]'"#;
        session(&house.root(), &format!("{lines} meta/audit.ndjson"))
    };
    let refused = "[\"operator\",\"styx/search_code\",\"accepted\"]\n[null,\"styx/search_code\",\"failed\"]\n";
    assert_eq!((called(&lethe).as_str(), called(&styx).as_str()), (refused, ""));
    // What is offered is written down, too.
    acts(&lethe, "charon", "nodes/styx/services/search_code/control/search.json", json!({"query": "TODO"}));
    until("the call is in the audit of styx", || {
        called(&styx)
            .ends_with("[\"far lethe/charon\",\"search_code\",\"accepted\"]\n[null,\"search_code\",\"done\"]\n")
    });
    until("the call is in the audit of lethe", || {
        called(&lethe)
            .ends_with("[\"agent charon\",\"styx/search_code\",\"accepted\"]\n[null,\"styx/search_code\",\"done\"]\n")
    });
}

#[test]
fn a_call_that_is_cancelled_here_ends_there() {
    let server = NatsServer::start();
    let offer = json!({"offer": {"terminal": {"agent": "charon", "operations": ["exec"], "to": ["lethe/*"]}}});
    let styx = TestHost::of(&spec(&server, "styx", offer).to_string());
    let lethe = TestHost::of(&spec(&server, "lethe", json!({})).to_string());
    offers(&lethe, "styx", "terminal");
    let there = |state: &str| {
        let path = styx.root().join("agents/charon/jobs/last/progress.json");
        until(state, || {
            std::fs::read_to_string(&path).is_ok_and(|text| text.contains(&format!("\"state\":\"{state}\"")))
        });
    };
    session(&lethe.root(), r#"echo '{"command":"sleep 600"}' > nodes/styx/services/terminal/control/exec.json"#);
    there("running");
    session(&lethe.root(), "echo > agents/charon/jobs/last/control/cancel");
    lethe.check(
        "jq -c .state agents/charon/jobs/last/status.json; ls nodes/styx/services/terminal/control",
        expect![[r#"
            "cancelled"
            README.md
            exec.json
            invoke.json
        "#]],
    );
    there("cancelled");
    // Ctrl-C ends the wait here; the call goes on until it is cancelled.
    session(&lethe.root(), r#"echo '{"command":"sleep 600"}' > nodes/styx/services/terminal/control/exec.json"#);
    there("running");
    let said = session(&lethe.root(), "timeout -s INT 1 cat nodes/styx/services/terminal/result.json; echo $?");
    assert_eq!(said, "124\n");
    there("running");
}

#[test]
fn a_call_goes_on_while_its_caller_is_restarted_and_runs_once() {
    let server = NatsServer::start();
    let offer = json!({"offer": {"terminal": {"agent": "charon", "to": ["lethe/*"]}}});
    let styx = TestHost::of(&spec(&server, "styx", offer).to_string());
    let mut lethe = TestHost::of(&spec(&server, "lethe", json!({})).to_string());
    offers(&lethe, "styx", "terminal");
    let said = session(
        &lethe.root(),
        r#"echo '{"command":"sleep 3; echo crossed"}' > nodes/styx/services/terminal/control/exec.json; readlink agents/charon/jobs/last"#,
    );
    let job = said.trim().to_owned();
    let last = styx.root().join("agents/charon/jobs/last/progress.json");
    until("it runs", || std::fs::read_to_string(&last).is_ok_and(|text| text.contains("running")));
    lethe.restart();
    let result = json_of(&lethe.root().join(format!("agents/charon/jobs/{job}/result.json")));
    assert_eq!((&result["ok"], &result["result"]["stdout"]), (&json!(true), &json!("crossed\n")), "{result}");
    assert_eq!(session(&styx.root(), "ls agents/charon/jobs | grep -c ^job-"), "1\n", "it ran once");
}

#[test]
fn mail_reaches_agents_of_other_hosts_and_answers_come_back() {
    let server = NatsServer::start();
    let mut styx = TestHost::of(
        &spec(&server, "styx", json!({"offer": {"mail": {"agent": "charon", "to": ["lethe/*"]}}})).to_string(),
    );
    let lethe = TestHost::of(&spec(&server, "lethe", json!({})).to_string());
    sees(&lethe, "styx");
    styx.stop_for_a_while();
    lethe.check(
        r#"cd mail; for to in styx/charon styx/ada styx/charon lethe/ada local/ada; do
          echo "{\"to\":\"$to\",\"body\":\"to $to\",\"id\":\"$to\"}" > control/send.json; done; jq -c .ok result.json
        echo '{"to":"no/such/one","body":""}' > control/send.json"#,
        expect![[r#"
            true
            ! bash: line 3: echo: write error: Invalid argument
        "#]],
    );
    styx.start_again();
    let inbox = styx.root().join("agents/charon/mail/inbox");
    until("the mail is there", || std::fs::read_dir(&inbox).unwrap().count() == 1);
    styx.check(
        r#"cd agents/charon/mail; jq -c '[.from, .to, .body]' next.json; ls ../../ada/mail/inbox | wc -l"#,
        expect![[r#"
            ["lethe/operator","charon","to styx/charon"]
            0
        "#]],
    );
    // Whoever got it answers: the operator of styx is somebody else.
    let got = json_of(&styx.root().join("agents/charon/mail/next.json"));
    let answer = json!({"to": got["from"], "body": "An answer.", "reply_to": got["id"]});
    styx.check(
        &format!("cd agents/charon/mail; echo '{answer}' > control/send.json; jq -c '[.ok, .error.code]' result.json"),
        expect![[r#"
            [false,"not_found"]
        "#]],
    );
    acts(&styx, "charon", "agents/self/mail/control/send.json", answer);
    acts(&styx, "charon", "agents/self/mail/control/ack.json", json!({"id": got["id"]}));
    let receipts = lethe.root().join("mail/receipts.ndjson");
    until("the receipts are there", || std::fs::read_to_string(&receipts).is_ok_and(|text| text.contains("answered")));
    lethe.check(
        r#"jq -c '[.from, .to, .body]' mail/next.json; jq -r '[.mail, .to, .reason // ""] | join(" ")' mail/receipts.ndjson | sort"#,
        expect![[r#"
            ["styx/charon","operator","An answer."]
            answered styx/charon 
            dead styx/ada there is no ada that lethe/operator may write to
            stored ada 
            stored ada 
            stored styx/charon 
        "#]],
    );
}

#[test]
fn a_queue_is_shared_by_all_hosts_that_name_it() {
    let server = NatsServer::start();
    let shared = json!({"queues": ["crossings"]});
    let styx = TestHost::of(&spec(&server, "styx", shared.clone()).to_string());
    let lethe = TestHost::of(&spec(&server, "lethe", shared).to_string());
    sees(&lethe, "styx");
    sees(&styx, "lethe");
    let worker = std::thread::spawn({
        let root = lethe.root();
        move || {
            session(
                &root,
                r#"exec 3<>agents/charon/queues/control/take.json; echo '{"queue":"crossings"}' >&3; jq -c '[.result.body, .result.attempt, .result.lease]' <&3"#,
            )
        }
    });
    styx.check(
        r#"cd agents/charon/queues; echo '{"queue":"crossings","body":"Orpheus","id":"o"}' > control/put.json; jq -c .ok result.json
        echo '{"queue":"crossings","body":"Orpheus","id":"o"}' > control/put.json; jq -c .ok result.json
        echo '{"queue":"own","body":1}' > control/put.json; jq -c .ok result.json; ls names"#,
        expect![[r#"
            true
            true
            true
            crossings
            own
        "#]],
    );
    let taken: Value = serde_json::from_str(&worker.join().unwrap()).unwrap();
    assert_eq!((&taken[0], &taken[1]), (&json!("Orpheus"), &json!(1)), "{taken}");
    let lease = taken[2].as_str().unwrap();
    let done =
        format!(r#"cd agents/charon/queues; echo '{{"lease":"{lease}"}}' > control/done.json; jq -c .ok result.json"#);
    assert_eq!(session(&lethe.root(), &done), "true\n");
    styx.check(
        r#"cd agents/charon/queues; jq -c '[.ready, .leased, .dead]' names/crossings/status.json; ls ../../charon/queues/names
        echo '{"queue":"crossings","wait_ms":0}' > control/take.json; jq -c .result.empty result.json"#,
        expect![[r#"
            [0,0,0]
            crossings
            own
            true
        "#]],
    );
}

#[test]
fn a_server_that_will_not_do_is_told_and_a_name_has_one_host() {
    let old = NatsServer::with(&old_server(), "", "");
    let house = TestHost::of(&spec(&old, "styx", json!({})).to_string());
    let health = house.root().join("meta/health.json");
    until("the old server is refused", || {
        std::fs::read_to_string(&health).unwrap().contains("2.12 or newer is needed")
    });
    drop(house);
    // Defaults: acknowledged, and not on the disk.
    let server = NatsServer::with(&acheron_nats::test_server::server(), "", "");
    let styx = TestHost::of(&spec(&server, "styx", json!({})).to_string());
    let health = |house: &TestHost| std::fs::read_to_string(house.root().join("meta/health.json")).unwrap();
    until("it is degraded", || health(&styx).contains("sync_interval: always"));
    let other = TestHost::of(&spec(&server, "styx", json!({})).to_string());
    until("the name is taken", || health(&other).contains("another host holds the name"));
    assert!(health(&styx).contains("sync_interval"), "the first one keeps it");
}
