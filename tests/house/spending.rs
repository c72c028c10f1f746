//! Models as all services ask them: what a server was asked is what the agent has spent, prompt and answer go into the window
//! together, and every kind of model means the same to every service.

use serde_json::{Value, json};

use crate::model_server::FakeModelServer;
use crate::test_host::TestHost;

/// The services that ask a model, each with a session in which it does so at least once.
const ASKING: [(&str, &str); 8] = [
    ("chat", "echo go > chat/control/input; cat chat/latest.txt"),
    ("recall", "call recall/control/turn.json '{\"message\":\"hello\"}'"),
    (
        "recall, consolidate",
        "call recall/control/new.json '{\"conversation\":\"talk\"}'
         call recall/control/add.json '{\"conversation\":\"talk\",\"role\":\"user\",\"text\":\"the river is wide\"}'
         call recall/control/archive.json '{\"conversation\":\"talk\"}'
         call recall/control/consolidate.json '{}'",
    ),
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
fn whichever_service_uses_up_four_fifths_of_the_budget_an_event_tells_of_it_once() {
    for (service, session) in ASKING {
        let server = FakeModelServer::start(|_, _| reply());
        let host = TestHost::of(&spec(&server, json!({"rounds": 5})));
        let mut said = String::new();
        for _ in 0..8 {
            if server.asked() < 4 {
                said += &host.says(&format!("{CALL}\n{session}"));
            }
        }
        assert!(server.asked() >= 4, "{service}: {said}");
        let told = host.says(
            "jq -c 'select(.kind == \"budget\" and .payload.of == \"agent\") | [.payload.budget, .payload.spent.rounds]' \
             agents/self/events/log.ndjson",
        );
        assert_eq!(told, "[\"rounds\",4]\n", "{service}: {said}");
    }
}

/// Asks eight times at once, and lets the server answer when `refused` of them have been refused. Returns how often it was
/// asked.
fn at_once(host: &TestHost, server: &FakeModelServer, refused: usize) -> u64 {
    let port = server.url.trim_end_matches("/v1").rsplit(':').next().unwrap();
    let said = host.says(&format!(
        r#"
        cd agents/self/recall; out=$(mktemp -d)
        for n in 1 2 3 4 5 6 7 8; do
          (exec 3<>control/turn.json; echo '{{"message":"hello"}}' >&3; jq -r '.error.code // "done"' <&3 > $out/$n) &
        done
        until [ $(cat $out/* 2> /dev/null | grep -c budget_exceeded) -ge {refused} ]; do sleep 0.05; done
        exec 9<>/dev/tcp/127.0.0.1/{port}; printf 'POST /open HTTP/1.1\r\ncontent-length: 2\r\n\r\n{{}}' >&9
        wait
        cat $out/* | sort | uniq -c | tr -s ' '; rm -r $out
        "#
    ));
    let done = 8 - refused;
    assert_eq!(said, format!(" {refused} budget_exceeded\n {done} done\n"));
    server.asked() as u64 - 1
}

#[test]
fn calls_at_the_same_time_cannot_overspend() {
    let server = FakeModelServer::gated(reply());
    let host = TestHost::of(&spec(&server, json!({"rounds": 3})));
    assert_eq!((at_once(&host, &server, 5), spent(&host)), (3, [3, 21, 15]));
}

#[test]
fn tokens_and_money_are_reserved_before_they_are_spent() {
    let server = FakeModelServer::gated(reply());
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {"budget": {"money": 1.0, "tokens": 100_000}}},
        "model": {"kind": "openai", "name": "m", "base_url": server.url,
            "prices": {"input_per_mtok": 0.0, "output_per_mtok": 150.0}}});
    let host = TestHost::of(&spec.to_string());
    // One answer of 4096 tokens, and one for the rest of the money.
    assert_eq!((at_once(&host, &server, 6), spent(&host)[0]), (2, 2));
    let longest: Vec<u64> = server.bodies().iter().filter_map(|body| body["max_tokens"].as_u64()).collect();
    assert_eq!(longest.iter().sum::<u64>(), 6666, "{longest:?}");
}

/// What is said to services in words that no vocabulary has.
fn hard_words(count: usize) -> String {
    let mut x = 7u64;
    let mut next = || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        char::from(b"bcdfghjklmnpqrstvwxzBCDFGHJKLMNPQRSTVWXZ0123456789+/"[(x >> 33) as usize % 52])
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn prompt_and_answer_never_exceed_the_window_of_a_strict_server() {
    let vocabulary = bpe_openai::cl100k_base();
    for window in [4096, 8192, 16_384] {
        let server = FakeModelServer::start(|_, _| reply());
        let spec = json!({"layout": "acheron-1", "agents": {"charon": {}},
            "model": {"kind": "openai", "name": "m", "base_url": server.url, "context_tokens": window}});
        let host = TestHost::of(&spec.to_string());
        for (_, session) in ASKING {
            host.says(&format!("{CALL}\n{session}"));
        }
        let words = hard_words(30_000);
        let (message, query) = (json!({"message": words}), json!({"query": words, "session_id": "s"}));
        let said = host.says(&format!(
            "{CALL}\n echo {words} > chat/control/input; cat chat/latest.txt
            call recall/control/turn.json '{message}'; call phases/control/run.json '{query}'"
        ));
        assert!(said.starts_with("done\n"), "the chat cuts what does not fit: {said}");
        assert!(server.asked() > ASKING.len(), "{window}: {}", server.asked());
        for body in server.bodies() {
            let texts = body["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap());
            let prompt: usize = texts.map(|text| vocabulary.count(text)).sum();
            let answer = body["max_tokens"].as_u64().unwrap() as usize;
            assert!(prompt + answer <= window, "{prompt} and {answer} are more than {window}");
        }
    }
}

/// The services other than the chat that ask a model themselves.
fn services() -> impl Iterator<Item = (&'static str, &'static str)> {
    ASKING.into_iter().filter(|(service, _)| !["chat", "sub_brains"].contains(service))
}

#[test]
fn a_script_and_a_recording_answer_every_service() {
    let script = json!({"when": "", "answer": reply(), "repeat": true}).to_string();
    let answer = json!({"text": reply(), "usage": {"input": 7, "output": 5}, "model": "m"});
    let recorded = json!({"by": "charon", "asked": "", "said": answer}).to_string();
    for (kind, file) in [("script", script), ("replay", format!("{recorded}\n").repeat(200))] {
        let spec = json!({"layout": "acheron-1", "agents": {"charon": {}}, "model": {"kind": kind, "name": "answers"}});
        let host = TestHost::prepared(&spec.to_string(), |here| std::fs::write(here.join("answers"), &file).unwrap());
        let mut before = 0;
        for (service, session) in services() {
            let said = host.says(&format!("{CALL}\n{session}"));
            let now = spent(&host)[0];
            assert!(now > before, "{service} does not ask a {kind}: {said}");
            before = now;
        }
    }
}

/// The sentence of the host, whole.
const EXTERNAL: &str = "the model of this agent is `external`: programs outside answer its chat, and nobody answers its services; \
                        give the agent another model";

#[test]
fn every_service_says_that_an_external_model_cannot_be_asked() {
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {}}, "model": {"kind": "external"}});
    let host = TestHost::of(&spec.to_string());
    let call = CALL.replace(".error.code // .ok", ".error.message // .ok");
    for (service, session) in services() {
        let said = host.says(&format!("{call}\n{session}"));
        assert!(said.contains(EXTERNAL), "{service}: {said}");
    }
}

#[test]
fn a_host_that_is_idle_or_takes_short_turns_loads_no_vocabulary() {
    let host = TestHost::new();
    host.says("echo hello > agents/self/chat/control/input; cat agents/self/chat/latest.txt; cd agents/self/memory; echo '{\"kind\":\"note\",\"content\":\"x\"}' > control/create.json");
    assert!(!acheron_base::tokens::is_loaded());
    assert_eq!(acheron_base::tokens::count("hello world"), 2);
    assert!(acheron_base::tokens::is_loaded());
}
