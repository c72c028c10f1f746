//! Approvals, as an operator and an agent see them: what a rule asks about waits, an answer counts once and for exactly that, and
//! nobody's silence is a no.

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::until;
use crate::test_doors::{InsideDoor, TestDoor};
use crate::test_host::TestHost;
use acheron::policy::PrincipalCaller;
use acheron_base::Code;
use acheron_vfs::Caller;

const SPEC: &str = r#"{"agents": {"charon": {"permissions": [
        {"ask": ["invoke"], "path": "/agents/self/memory/control/*"},
        {"allow": ["invoke"], "path": "/agents/self/memory/control/versions.json"},
        {"ask": ["invoke"], "path": "/agents/self/terminal/**", "always": false}]}, "styx": {}}}"#;

/// What the agent does, by the tools of its turns.
fn charon(house: &TestHost) -> InsideDoor {
    InsideDoor::new(house, Caller::agent("charon"))
}

/// A call of the agent that creates an item of its memory.
fn create(door: &InsideDoor, name: &str) -> Result<(), crate::test_doors::Refusal> {
    let call =
        json!({"kind": "note", "name": name, "content": "x", "_meta": {"correlation_id": name, "reason": "it is new"}});
    door.write("/agents/self/memory/control/create.json", &call.to_string())
}

fn read(house: &TestHost, path: &str) -> Value {
    let text = std::fs::read_to_string(house.root().join(path)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"))
}

/// The oldest request that waits.
fn next(house: &TestHost) -> Value {
    read(house, "approvals/next.json")
}

fn decide(house: &TestHost, id: &Value, answer: &str) -> Result<(), i32> {
    let file = house.root().join(format!("approvals/{}/decision", id.as_str().unwrap()));
    std::fs::write(file, answer).map_err(|error| error.raw_os_error().unwrap())
}

/// The state of a job of the agent, without waiting.
fn state(house: &TestHost, name: &str) -> String {
    read(house, &format!("agents/charon/jobs/by/{name}/progress.json"))["state"].as_str().unwrap().to_owned()
}

/// The end of a job of the agent: its state and the code and the sentence of its error.
fn end(house: &TestHost, name: &str) -> String {
    let end = read(house, &format!("agents/charon/jobs/by/{name}/status.json"));
    let error = &end["error"];
    format!("{} {} {}", end["state"], error["code"], error["message"]).replace('"', "")
}

fn waiting(house: &TestHost) -> u64 {
    read(house, "approvals/status.json")["waiting"].as_u64().unwrap()
}

#[test]
fn a_session_of_an_operator_who_is_asked() {
    let house = TestHost::of(SPEC);
    let charon = charon(&house);
    create(&charon, "ford").unwrap();
    assert_eq!(state(&house, "ford"), "waiting_for_approval");
    house.check(
        r#"
        cd approvals; ls | sed 's/apr-.*/ID/'
        jq -c '[.waiting, .requests[].summary]' status.json
        jq 'del(.host, .id, .subject_sha256)' next.json | grep -v '_at_ms'
        id=$(jq -r .id next.json); cat $id/decision
        jq -c '[.state, .progress]' ../agents/charon/jobs/by/ford/progress.json | sed 's/1[0-9]*/NOW/'
        ls ../agents/charon/memory/items; timeout 0.2 cat $id/status.json; echo $?
        echo allow > $id/decision; jq -c '[.state, .by, .answer]' $id/status.json
        jq -c '[.state, .error]' ../agents/charon/jobs/by/ford/status.json; ls ../agents/charon/memory/items
        echo deny > $id/decision; jq -r .error.message status.json | sed 's/apr-[^ ]*/ID/'
        jq -c .waiting status.json; timeout 0.2 cat next.json; echo $?
        "#,
        expect![[r#"
            README.md
            ID
            status.json
            [1,"charon calls memory.create with {\"content\":\"x\",\"kind\":\"note\",\"name\":\"ford\"}"]
            {
              "state": "waiting",
              "jobs": [
                "JOB"
              ],
              "listeners": 0,
              "agent": "charon",
              "kind": "invoke",
              "summary": "charon calls memory.create with {\"content\":\"x\",\"kind\":\"note\",\"name\":\"ford\"}",
              "subject": {
                "path": "/agents/charon/memory/control/create.json",
                "service": "memory",
                "operation": "create",
                "effect": "write",
                "arguments": {
                  "kind": "note",
                  "name": "ford",
                  "content": "x"
                },
                "runs": null
              },
              "risk": [
                "changes the state of this host"
              ],
              "stated_reason": "it is new",
              "matched_rule": {
                "ask": [
                  "invoke"
                ],
                "path": "/agents/self/memory/control/*"
              },
              "offers": [
                {
                  "answer": "allow",
                  "does": "it is done, once"
                },
                {
                  "answer": "deny: reason",
                  "does": "it is not done, and the agent is told the reason"
                },
                {
                  "answer": "allow for 10m",
                  "does": "and what `writes` covers is not asked for that time",
                  "writes": {
                    "covers": "operation",
                    "path": "/agents/charon/memory/control/create.json"
                  }
                },
                {
                  "answer": "allow always",
                  "does": "and what `writes` covers is not asked again until it is revoked",
                  "writes": {
                    "covers": "operation",
                    "path": "/agents/charon/memory/control/create.json"
                  }
                }
              ]
            }
            allow | deny: reason | allow for 10m | allow always
            ["waiting_for_approval",{"waiting_for_approval":{"expires_at_ms":NOW,"listeners":0}}]
            124
            ["allowed","operator","allow"]
            ["done",null]
            ford
            ID was decided already: allowed by operator: allow
            0
            124
            ! bash: line 10: echo: write error: File exists
        "#]],
    );
}

#[test]
fn an_answer_is_yes_no_or_nothing_and_the_agent_is_told_which() {
    let house = TestHost::of(SPEC);
    let door = charon(&house);
    create(&door, "denied").unwrap();
    let id = next(&house)["id"].clone();
    assert_eq!(decide(&house, &id, "perhaps"), Err(Code::InvalidPayload.errno()));
    let stale = json!({"decision": "allow", "sha256": "0".repeat(64)}).to_string();
    assert_eq!(decide(&house, &id, &stale), Err(Code::Conflict.errno()), "an answer to something else");
    assert_eq!(state(&house, "denied"), "waiting_for_approval");
    decide(&house, &id, "deny: not on a Friday").unwrap();
    assert_eq!(end(&house, "denied"), "failed forbidden the operator denied this: not on a Friday");
    assert_eq!(decide(&house, &id, "allow"), Err(Code::AlreadyExists.errno()), "the first answer counts");
    create(&door, "bound").unwrap();
    let request = next(&house);
    let bound = json!({"decision": "allow", "sha256": request["subject_sha256"]});
    decide(&house, &request["id"], &bound.to_string()).unwrap();
    assert_eq!(end(&house, "bound"), "done null null");
    assert_eq!(house.says("ls agents/charon/memory/items"), "bound\n");
    drop((door, house));
    let house = TestHost::of(&SPEC.replace("\"agents\"", "\"approvals\": {\"expires_seconds\": 1}, \"agents\""));
    create(&charon(&house), "silence").unwrap();
    let said = end(&house, "silence");
    let id = Value::from(house.says("ls approvals | grep apr-").trim());
    assert!(said.starts_with("failed approval_expired nobody decided within 1 s"), "{said}");
    assert!(decide(&house, &id, "allow").is_err());
    let status = read(&house, &format!("approvals/{}/status.json", id.as_str().unwrap()));
    assert_eq!(status["state"], "expired");
}

#[test]
fn what_waits_is_withdrawn_when_the_agent_gives_it_up_and_equal_calls_are_done_once() {
    let house = TestHost::of(SPEC);
    let charon = charon(&house);
    create(&charon, "given-up").unwrap();
    let id = next(&house)["id"].as_str().unwrap().to_owned();
    charon.write("/agents/self/jobs/by/given-up/control/cancel", "x").unwrap();
    assert_eq!(read(&house, &format!("approvals/{id}/status.json"))["state"], "withdrawn");
    assert_eq!(waiting(&house), 0);
    // The same call three times, as of an agent that is impatient.
    let call = |name: &str| {
        let call = json!({"kind": "note", "name": "once", "content": "x", "_meta": {"correlation_id": name}});
        charon.write("/agents/self/memory/control/create.json", &call.to_string()).unwrap();
    };
    ["one", "two", "three"].into_iter().for_each(call);
    assert_eq!(waiting(&house), 1);
    let request = next(&house);
    assert_eq!(request["jobs"].as_array().unwrap().len(), 3);
    charon.write("/agents/self/jobs/by/one/control/cancel", "x").unwrap();
    until("it is cancelled", || state(&house, "one") == "cancelled");
    assert_eq!(waiting(&house), 1, "the others wait on");
    decide(&house, &request["id"], "allow").unwrap();
    assert_eq!((end(&house, "two"), end(&house, "three")), ("done null null".into(), "done null null".into()));
    assert_eq!(house.says("ls agents/charon/memory/items/once/versions"), "1\n");
}

#[test]
fn an_agent_cannot_flood_and_is_not_asked_about_for_ever() {
    let house = TestHost::of(SPEC);
    let charon = charon(&house);
    for number in 0..8 {
        create(&charon, &format!("n{number}")).unwrap();
    }
    let ninth = json!({"kind": "note", "name": "ninth", "content": "x"}).to_string();
    let refused = house.inside(async |host| {
        host.tree().write(&Caller::agent("charon"), "/agents/charon/memory/control/create.json", ninth.as_bytes()).await
    });
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, Code::Busy);
    assert!(refused.message.starts_with("8 requests of agent charon wait"), "{refused}");
    assert_eq!(waiting(&house), 8);
    // The operator and another agent are not kept out.
    assert_eq!(house.says(r#"echo '{"kind":"note","name":"mine","content":"x"}' > agents/charon/memory/control/create.json; ls agents/charon/memory/items"#), "mine\n");
    for _ in 0..8 {
        let id = next(&house)["id"].clone();
        decide(&house, &id, "deny").unwrap();
    }
    for _ in 0..2 {
        create(&charon, "n0").unwrap();
        let id = next(&house)["id"].clone();
        decide(&house, &id, "deny: I said no").unwrap();
        assert_eq!(end(&house, "n0"), "failed forbidden the operator denied this: I said no");
    }
    let refused = create(&charon, "n0").unwrap_err();
    assert_eq!(refused.sentence.as_deref(), Some("the operator has denied this 3 times already: I said no"));
    assert_eq!(waiting(&house), 0);
}

#[test]
fn always_is_an_exception_of_the_rule_that_asked_until_it_is_revoked() {
    let house = TestHost::of(SPEC);
    let charon = charon(&house);
    create(&charon, "a").unwrap();
    decide(&house, &next(&house)["id"], "allow always").unwrap();
    assert_eq!(end(&house, "a"), "done null null");
    create(&charon, "b").unwrap();
    assert_eq!(end(&house, "b"), "done null null", "it is not asked again");
    // Another operation is, and so is another agent.
    charon
        .write("/agents/self/memory/control/delete.json", r#"{"memory_path":"a","_meta":{"correlation_id":"d"}}"#)
        .unwrap();
    assert_eq!(state(&house, "d"), "waiting_for_approval");
    let list = read(&house, "agents/charon/permissions/always.json");
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["scope"], json!({"covers": "operation", "path": "/agents/charon/memory/control/create.json"}));
    // Nothing can be added there, and what is there cannot be widened.
    house.check(
        r#"
        cd agents/charon/permissions; jq '.[0].scope.path = "/x"' always.json > /tmp/wide.$$; cat /tmp/wide.$$ > always.json
        echo '[{}]' > always.json; jq length always.json; echo '[]' > always.json; jq length always.json; rm /tmp/wide.$$
        "#,
        expect![[r#"
            1
            0
            ! cat: write error: Permission denied
            ! cat: write error: Permission denied
            ! bash: line 3: echo: write error: Invalid argument
        "#]],
    );
    create(&charon, "c").unwrap();
    assert_eq!(state(&house, "c"), "waiting_for_approval", "it was revoked");
    // A rule that says so never allows for good, and a shell is allowed only exactly.
    let exec = |command: &str, name: &str| {
        let call = json!({"command": command, "_meta": {"correlation_id": name}}).to_string();
        charon.write("/agents/self/terminal/control/exec.json", &call).unwrap();
    };
    exec("true", "e1");
    let all = read(&house, "approvals/status.json");
    let id = all["requests"].as_array().unwrap().last().unwrap()["id"].clone();
    assert_eq!(decide(&house, &id, "allow always"), Err(Code::InvalidPayload.errno()));
    decide(&house, &id, "allow for 10m").unwrap();
    assert_eq!(end(&house, "e1"), "done null null");
    exec("true", "e2");
    assert_eq!(end(&house, "e2"), "done null null");
    exec("true ", "e3");
    assert_eq!(state(&house, "e3"), "waiting_for_approval");
}

#[test]
fn a_later_rule_that_denies_wins_over_always_and_a_changed_rule_asks_again() {
    let house = TestHost::of(SPEC);
    let charon = charon(&house);
    create(&charon, "a").unwrap();
    decide(&house, &next(&house)["id"], "allow always").unwrap();
    assert_eq!(end(&house, "a"), "done null null");
    let edited = |spec: String| {
        let edit = || read(&house, "meta/health.json")["mountspec"].clone();
        let before = edit()["at_ms"].clone();
        house.edit(&spec);
        // It is told when all of it counts.
        until("the edit counts", || {
            let now = edit();
            now["at_ms"] != before
                && now["agents"] == json!(["charon"])
                && house.inside(async |host| {
                    let rules = &host.state.current.spec().agents["charon"].permissions;
                    serde_json::to_value(rules).unwrap()
                        == serde_json::from_str::<Value>(&spec).unwrap()["agents"]["charon"]["permissions"]
                })
        });
    };
    let denies = r#"{"deny": ["invoke"], "path": "/agents/self/memory/control/create.json"},{"ask": ["invoke"], "path": "/agents/self/terminal"#;
    edited(SPEC.replace(r#"{"ask": ["invoke"], "path": "/agents/self/terminal"#, denies));
    let refused = create(&charon, "b").unwrap_err();
    assert_eq!(refused.errno, Code::Forbidden.errno());
    edited(SPEC.replace("memory/control/*", "memory/**"));
    create(&charon, "c").unwrap();
    assert_eq!(state(&house, "c"), "waiting_for_approval");
}

/// What a service needs beside its control file is asked about too, and one answer is none to another rule.
#[test]
fn a_rule_on_a_queue_asks_about_every_use_of_it() {
    let house = TestHost::of(
        r#"{"agents": {"charon": {"permissions": [
            {"ask": ["invoke"], "path": "/agents/self/queues/control/put.json"},
            {"ask": ["invoke"], "path": "/agents/self/queues/names/payroll"}]}}}"#,
    );
    let charon = charon(&house);
    let put = |queue: &str, name: &str| {
        let call = json!({"queue": queue, "body": name, "_meta": {"correlation_id": name}}).to_string();
        charon.write("/agents/self/queues/control/put.json", &call).unwrap();
    };
    put("souls", "a");
    decide(&house, &next(&house)["id"], "allow always").unwrap();
    assert_eq!(end(&house, "a"), "done null null");
    put("souls", "b");
    assert_eq!(end(&house, "b"), "done null null");
    put("payroll", "c");
    assert_eq!(state(&house, "c"), "waiting_for_approval");
    let request = next(&house);
    assert_eq!(request["matched_rule"]["path"], "/agents/self/queues/names/payroll");
    decide(&house, &request["id"], "deny").unwrap();
    assert!(end(&house, "c").starts_with("failed forbidden"));
    assert_eq!(house.says("ls agents/charon/queues/names"), "souls\n");
    let take = json!({"queue": "payroll", "wait_ms": 0, "_meta": {"correlation_id": "d"}}).to_string();
    charon.write("/agents/self/queues/control/take.json", &take).unwrap();
    assert_eq!(state(&house, "d"), "waiting_for_approval", "however it is used");
}

/// Mail to one recipient may need approval, and mail to another not; a recipient that is denied is not there, as before.
#[test]
fn a_rule_on_an_inbox_asks_about_mail_to_it() {
    let house = TestHost::of(
        r#"{"agents": {"charon": {"permissions": [
            {"allow": ["invoke"], "path": "/agents/ada/mail/inbox"},
            {"ask": ["invoke"], "path": "/agents/boss/mail/inbox"}]}, "ada": {}, "boss": {}, "eve": {}}}"#,
    );
    let charon = charon(&house);
    let send = |to: &str| {
        let call = json!({"to": to, "body": "hello", "_meta": {"correlation_id": to}}).to_string();
        charon.write("/agents/self/mail/control/send.json", &call)
    };
    send("ada").unwrap();
    assert_eq!(end(&house, "ada"), "done null null");
    send("boss").unwrap();
    assert_eq!(state(&house, "boss"), "waiting_for_approval");
    assert_eq!(house.says("ls agents/boss/mail/inbox | wc -l"), "0\n");
    decide(&house, &next(&house)["id"], "allow").unwrap();
    assert_eq!(end(&house, "boss"), "done null null");
    assert_eq!(house.says("jq -r .body agents/boss/mail/inbox/*"), "hello\n");
    let refused = send("eve").unwrap_err().sentence.unwrap_or_default();
    assert!(refused.starts_with("there is no `eve` that you may write to"), "{refused}");
    // An answer that answers nothing is no way around the question.
    let call = json!({"to": "boss", "body": "x", "reply_to": "mail-1", "_meta": {"correlation_id": "r"}}).to_string();
    charon.write("/agents/self/mail/control/send.json", &call).unwrap();
    assert!(end(&house, "r").starts_with("failed not_found"), "{}", end(&house, "r"));
}

#[test]
fn what_changed_after_it_was_asked_is_asked_anew() {
    let spec = json!({"agents": {"charon": {"permissions": [{"ask": ["invoke"], "path": "/agents/self/deploy/**"}]}},
        "services": {"deploy": {"command": ["./deploy.sh"], "about": "Deploys.", "operations": {"go": {"effect": "execute"}}}}});
    let house = TestHost::prepared(&spec.to_string(), |here| {
        std::fs::write(here.join("deploy.sh"), "#!/bin/sh\necho '\"harmless\"'\n").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(here.join("deploy.sh"), executable).unwrap();
    });
    let charon = charon(&house);
    charon.write("/agents/self/deploy/control/go.json", r#"{"_meta":{"correlation_id":"go"}}"#).unwrap();
    let asked = next(&house);
    assert!(asked["subject"]["runs"]["files"].to_string().contains("deploy.sh"), "{asked}");
    std::fs::write(house.here().join("deploy.sh"), "#!/bin/sh\necho '\"evil\"'\n").unwrap();
    decide(&house, &asked["id"], "allow").unwrap();
    let status = || read(&house, &format!("approvals/{}/status.json", asked["id"].as_str().unwrap()));
    until("it is void", || status()["state"] == "void");
    let again = next(&house);
    assert_ne!(again["subject_sha256"], asked["subject_sha256"]);
    assert_eq!(state(&house, "go"), "waiting_for_approval");
    decide(&house, &again["id"], "allow").unwrap();
    assert_eq!(read(&house, "agents/charon/jobs/by/go/result.json")["result"], "evil");
}

#[test]
fn what_waits_survives_a_restart_and_what_was_allowed_is_done_once() {
    let mut house = TestHost::of(SPEC);
    create(&charon(&house), "kept").unwrap();
    charon(&house)
        .write("/agents/self/memory/control/search.json", r#"{"query":"x","_meta":{"correlation_id":"read"}}"#)
        .unwrap();
    let asked = next(&house);
    house.restart();
    assert_eq!(state(&house, "kept"), "waiting_for_approval");
    let again = next(&house);
    assert_eq!(
        (&again["id"], &again["subject_sha256"], &again["jobs"]),
        (&asked["id"], &asked["subject_sha256"], &asked["jobs"])
    );
    assert_eq!(waiting(&house), 2);
    decide(&house, &asked["id"], "allow for 10m").unwrap();
    assert_eq!(end(&house, "kept"), "done null null");
    let search = next(&house);
    assert_eq!(search["subject"]["effect"], "read");
    decide(&house, &search["id"], "allow").unwrap();
    assert_eq!(end(&house, "read"), "done null null");
    house.restart();
    assert_eq!(house.says("ls agents/charon/memory/items/kept/versions"), "1\n");
    assert_eq!(end(&house, "kept"), "done null null");
    create(&charon(&house), "more").unwrap();
    assert_eq!(end(&house, "more"), "done null null", "an exception survives, too");
    let audit = house.says("jq -r 'select(.kind == \"approval\") | .state' meta/audit.ndjson | sort | uniq -c");
    assert_eq!(audit.split_whitespace().collect::<Vec<_>>(), ["2", "allowed", "2", "waiting"]);
}

#[test]
fn no_agent_sees_or_writes_anything_of_it() {
    let spec = SPEC.replace(
        r#""styx": {}"#,
        r#""styx": {"permissions": [{"allow": ["read", "write", "invoke"], "path": "/**"}]}"#,
    );
    let house = TestHost::of(&spec);
    create(&charon(&house), "a").unwrap();
    let id = next(&house)["id"].as_str().unwrap().to_owned();
    for agent in ["charon", "styx"] {
        let door = InsideDoor::new(&house, Caller::agent(agent));
        assert!(!door.list("/").unwrap().iter().any(|name| name.starts_with("approvals")), "{agent}");
        assert!(!door.list("/agents/charon").unwrap_or_default().iter().any(|name| name.starts_with("permissions")));
        for path in [
            "/approvals/next.json".to_owned(),
            "/approvals/status.json".to_owned(),
            format!("/approvals/{id}/request.json"),
            format!("/approvals/{id}/decision"),
            "/agents/charon/permissions/always.json".to_owned(),
        ] {
            let missing = door.read("/agents/none/x", false).unwrap_err().errno;
            assert_eq!(door.read(&path, false).unwrap_err().errno, missing, "{agent} {path}");
            assert!(door.write(&path, "allow").is_err(), "{agent} {path}");
        }
    }
    let program = env!("CARGO_BIN_EXE_acheron");
    let said = house.says(&format!(
        "{program} exec --root . --agent charon -- sh -c 'ls /approvals; cat /agents/charon/permissions/always.json; echo allow > /agents/charon/../../approvals/{id}/decision; find / -name \"apr-*\" 2>/dev/null'"
    ));
    assert!(!said.lines().any(|line| !line.starts_with('!')), "{said}");
    assert_eq!(state(&house, "a"), "waiting_for_approval");
}
