//! Budgets: what a model's server was asked is what the agent has spent, whichever service asked.

use serde_json::{Value, json};

use crate::model_server::FakeModelServer;
use crate::test_host::TestHost;

/// The services that ask a model, each with a session in which it does so at least once.
const ASKING: [(&str, &str); 7] = [
    ("chat", "echo go > chat/control/input; cat chat/latest.txt"),
    ("recall", "call recall/control/turn.json '{\"message\":\"hello\"}'"),
    ("phases", "call phases/control/run.json '{\"query\":\"trust\",\"session_id\":\"s\"}'"),
    (
        "prompts",
        "call prompts/control/open.json '{\"prompt\":\"review/change\",\"id\":\"p\",\"params\":{\"Change\":{\"title\":\"t\",\"diff\":\"-a\"}}}'
         call prompts/control/evaluate.json '{\"open_id\":\"p\"}'",
    ),
    (
        "memory",
        "call memory/control/create.json '{\"kind\":\"note\",\"name\":\"one\",\"content\":\"the river is wide\"}'
         call memory/control/summarize.json '{\"memory_paths\":[\"/agents/self/memory/items/one\"],\"into\":\"sum\"}'",
    ),
    (
        "dm",
        "call dm/control/new_campaign.json '{\"id\":\"c1\",\"seed\":7}'
         call dm/control/init.json '{\"answers\":{\"preset\":\"Mystery Investigation\",\"pc_name\":\"Ann\",\"pc_strengths\":\"clever, charming\",\"date\":\"2026-11-16\"},\"confirm\":true}'
         call dm/control/play.json '{\"input\":\"[LOOK]{around}\"}'",
    ),
    (
        "sub_brains",
        "call sub_brains/control/upsert.json '{\"brain\":\"scout\",\"about\":\"Looks.\"}'
         call sub_brains/control/spawn.json '{\"brain\":\"scout\",\"task\":\"go\"}'",
    ),
];

const CALL: &str = r#"cd agents/self; call() { exec 3<>$1; echo "$2" >&3; jq -c '[.error.code // .ok, .result.reports?]' <&3; exec 3>&-; };"#;

/// Replies at once to a turn of an agent; nothing else understands it.
fn reply() -> String {
    json!({"tool_calls": [{"name": "file_write",
        "arguments": {"path": "agents/self/chat/control/reply", "content": "done"}}]})
    .to_string()
}

fn spec(server: &FakeModelServer, budget: Value) -> String {
    json!({"layout": "acheron-1", "model": {"kind": "openai", "name": "m", "base_url": server.url},
        "agents": {"charon": {"budget": budget}}})
    .to_string()
}

/// Rounds, input and output tokens.
fn spent(host: &TestHost) -> [u64; 3] {
    let said = host.says("jq -c '[.spent.rounds, .spent.input, .spent.output]' agents/self/chat/status.json");
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"))
}

#[test]
fn what_a_server_was_asked_is_what_was_spent_for_every_service_that_asks_a_model() {
    let server = FakeModelServer::start(|_, _| reply());
    let host = TestHost::of(&spec(&server, json!({})));
    let mut before = 0;
    for (service, session) in ASKING {
        let said = host.says(&format!("{CALL}\n{session}"));
        let asked = server.asked() as u64;
        assert!(asked > before, "{service} asked nothing: {said}");
        assert_eq!(spent(&host), [asked, 7 * asked, 5 * asked], "{service}: {said}");
        before = asked;
    }
}

#[test]
fn an_exhausted_budget_lets_no_service_ask() {
    let server = FakeModelServer::start(|_, _| reply());
    let host = TestHost::of(&spec(&server, json!({"rounds": 1})));
    host.says("echo go > agents/self/chat/control/input; cat agents/self/chat/latest.txt");
    assert_eq!(server.asked(), 1);
    for (service, session) in ASKING {
        let said = host.says(&format!("{CALL}\n{session}"));
        assert_eq!((server.asked(), spent(&host)[0]), (1, 1), "{service}: {said}");
        assert!(said.contains("budget_exceeded") || said.contains("has used up its rounds"), "{service}: {said}");
    }
}

#[test]
fn calls_at_the_same_time_cannot_overspend() {
    // Nobody is answered before the others have asked, or have been refused.
    let server = FakeModelServer::start(|_, _| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        reply()
    });
    let host = TestHost::of(&spec(&server, json!({"rounds": 3})));
    let said = host.says(
        r#"
        cd agents/self/recall
        for n in 1 2 3 4 5 6 7 8; do
          (exec 3<>control/turn.json; echo '{"message":"hello"}' >&3; jq -r '.error.code // "done"' <&3) &
        done
        wait
        "#,
    );
    assert_eq!((server.asked(), spent(&host)), (3, [3, 21, 15]), "{said}");
    assert_eq!(said.matches("budget_exceeded").count(), 5, "{said}");
}

#[test]
fn tokens_and_money_are_reserved_before_they_are_spent() {
    let server = FakeModelServer::start(|_, _| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        reply()
    });
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {"budget": {"money": 1.0, "tokens": 12_000}}},
        "model": {"kind": "openai", "name": "m", "base_url": server.url,
            "prices": {"input_per_mtok": 0.0, "output_per_mtok": 150.0}}});
    let host = TestHost::of(&spec.to_string());
    host.says(
        r#"
        cd agents/self/recall
        for n in 1 2 3 4 5 6 7 8; do
          (exec 3<>control/turn.json; echo '{"message":"hello"}' >&3; jq -r '.error.code // "done"' <&3) &
        done
        wait
        "#,
    );
    let most: u64 = server.bodies().iter().map(|body| body["max_tokens"].as_u64().unwrap()).sum();
    assert!(server.asked() > 0 && most <= 6_666, "{} requests may cost {most} tokens of output", server.asked());
    assert_eq!(spent(&host)[0], server.asked() as u64);
}
