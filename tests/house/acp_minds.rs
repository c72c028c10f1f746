//! Agents whose mind is a program that speaks the Agent Client Protocol: a small one in Python, in the sandbox of its agent.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::until;
use crate::model_server::FakeModelServer;
use crate::test_host::TestHost;

const PROGRAM: &str = include_str!("acp_agent.py");

/// Beside the project, which the agent may write.
fn prepare(here: &Path) {
    let program = here.join("../agent.py");
    std::fs::write(&program, PROGRAM).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(here.join("secret.txt"), "hidden\n").unwrap();
}

fn spec(model: &Value) -> Value {
    json!({
        "layout": "acheron-1",
        "agents": {
            "charon": {"model": model, "projects": ["here"],
                "permissions": [{"allow": ["write"], "path": "/projects/here/**"}, {"deny": ["read"], "path": "/projects/here/fs/secret.txt"}]},
            "ada": {"model": {"kind": "external"}},
        },
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}},
    })
}

fn house(model: &Value) -> TestHost {
    TestHost::prepared(&spec(model).to_string(), prepare)
}

/// Says something to charon; returns what it answers.
fn say(house: &TestHost, words: &str) -> String {
    house.says(&format!("echo '{words}' > agents/charon/chat/control/input && cat agents/charon/chat/latest.txt"))
}

#[test]
fn a_program_answers_and_its_files_are_the_tree_with_the_rights_of_the_agent() {
    let house = house(&json!({"kind": "acp", "command": ["../agent.py"]}));
    let said = |words: &str| say(&house, words);
    assert_eq!(said("Hello"), "You said: Hello\n");
    assert_eq!(said("read /projects/here/fs/notes.txt"), "a note\n");
    assert_eq!(said("write /projects/here/fs/new.txt made"), "written\n");
    assert_eq!(house.says("cat projects/here/fs/new.txt"), "made\n");
    // What does not exist yet in a project is empty; anything else is refused.
    assert_eq!(said("read /projects/here/fs/none.txt"), "\n");
    assert_eq!(said("read /agents/charon/none"), "-32002 there is no `/agents/charon/none`\n");
    // What the agent may not see is not there: neither for the tree nor for a shell of the program.
    assert_eq!(said("read /projects/here/fs/secret.txt"), "\n");
    assert_eq!(said("shell wc -c secret.txt"), "0 secret.txt\n");
    assert_eq!(said("read /agents/ada/chat/history.ndjson"), "-32002 there is no `/agents/ada`\n");
    assert!(said("write /agents/charon/README.md x").starts_with("-32603 "));
    // A file that waits is not waited for.
    assert!(said("read /agents/charon/events/sources/user/go.json").contains("not ready"));
    assert_eq!(said("shell cat notes.txt"), "a note\n");
    assert_eq!(said("terminal"), "-32601 this client has no method `terminal/create`\n");
    assert_eq!(said("may rm -rf /"), "{\"outcome\": \"selected\", \"optionId\": \"no\"}\n");
    house.check(
        r#"
        jq -c '[.model, .state]' agents/charon/chat/status.json
        jq -c 'del(.ms)' agents/charon/jobs/$(jq -r 'select(.input == "shell cat notes.txt") | .job_id' agents/charon/chat/history.ndjson)/steps.ndjson
        grep -c 'refused: rm -rf /: the program asked for permission' agents/charon/jobs/last/log.txt
        "#,
        expect![[r#"
            ["acp:agent.py","idle"]
            {"seq":1,"step":"call","tool":"cat notes.txt","kind":"execute","locations":[],"arguments":{}}
            {"seq":2,"step":"outcome","call":1,"ok":true,"text":"a note\n"}
            {"seq":3,"step":"text","text":"a note\n"}
            1
        "#]],
    );
}

#[test]
fn a_program_asks_the_model_of_the_gateway_and_the_agent_pays() {
    let server = FakeModelServer::start(|_, _| "across the river".to_owned());
    let gateway = json!({"kind": "openai", "name": "m-1", "base_url": server.url});
    let house = house(&json!({"kind": "acp", "command": ["../agent.py"], "gateway": gateway}));
    assert_eq!(say(&house, "model Where to?"), "across the river\n");
    assert_eq!((server.asked(), server.bodies()[0]["model"].clone()), (1, json!("m-1")));
    house.check(
        r#"
        jq -c '[.program, .model, .status]' agents/charon/model/requests.ndjson
        jq -c '[.spent.input, .spent.output]' agents/charon/chat/status.json
        "#,
        expect![[r#"
            ["agent.py","openai:m-1",200]
            [7,5]
        "#]],
    );
}

#[test]
fn a_turn_is_cancelled_a_deaf_program_is_ended_and_one_that_dies_says_why() {
    let house = house(&json!({"kind": "acp", "command": ["../agent.py"]}));
    let state = || house.says("jq -r .state agents/charon/chat/status.json");
    for words in ["wait", "deaf"] {
        house.says(&format!("echo {words} > agents/charon/chat/control/input"));
        until("the turn runs", || state() == "running\n");
        if words == "wait" {
            until("the program works", || house.says("cat agents/charon/jobs/last/steps.ndjson").contains("waiting"));
        }
        house.says("echo > agents/charon/jobs/last/control/cancel");
        until("the turn has ended", || state() == "idle\n");
        assert_eq!(house.says("tail -n 1 agents/charon/chat/history.ndjson | jq -r .error.code"), "cancelled\n");
        assert_eq!(say(&house, "Hello again"), "You said: Hello again\n");
    }
    assert_eq!(say(&house, "die"), "the program ended with exit code 3; it said last: I have had enough\n");
    assert_eq!(say(&house, "flood"), "the program sent a message longer than 8388608 bytes\n");
    assert_eq!(say(&house, "noise"), "npm warn is no message\n");
}

/// A program that was started anew is told what was said before; each conversation has its own.
#[test]
fn a_conversation_goes_on_after_the_program_was_started_anew() {
    let mut house = house(&json!({"kind": "acp", "command": ["../agent.py"]}));
    assert_eq!(say(&house, "My name is Ann"), "You said: My name is Ann\n");
    let whole = |said: &str| said.contains("User: My name is Ann\nYou: You said: My name is Ann\n");
    assert!(!whole(&say(&house, "all")), "the same program knows it");
    let other = house.says(
        r#"exec 3<>agents/charon/chat/control/input.json; echo '{"input":"all","session":{"id":"other"}}' >&3; jq -r .reply <&3"#,
    );
    assert!(!whole(&other) && other.contains("You are the agent charon"), "{other}");
    assert!(whole(&say(&house, "all")));
    house.restart();
    assert!(whole(&say(&house, "all")));
}

#[test]
fn what_cannot_be_a_mind_is_refused_with_the_reason() {
    let house = house(&json!({"kind": "acp", "command": ["../agent.py", "--new"]}));
    let refused = "the program refused initialize: it speaks version 2 of the protocol, and this host version 1\n";
    assert_eq!(say(&house, "Hello"), refused);
    let missing = self::house(&json!({"kind": "acp", "command": ["no-such-agent"]}));
    assert_eq!(
        say(&missing, "Hello"),
        "there is no program `no-such-agent` on the PATH: install it, or name its file\n"
    );
    for (model, fault) in [
        (json!({"kind": "acp"}), "agents.charon.model.command: must name the program and its arguments"),
        (
            json!({"kind": "script", "command": ["x"]}),
            "agents.charon.model.command: belongs to a model of the kind acp",
        ),
        (
            json!({"kind": "acp", "command": ["x"], "gateway": {"kind": "acp"}}),
            "agents.charon.model.gateway.kind: a second model needs a server",
        ),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), spec(&model).to_string()).unwrap();
        let faults = acheron::spec::Spec::load(file.path()).map(drop).unwrap_err().message;
        assert!(faults.contains(fault), "{faults}");
    }
}
