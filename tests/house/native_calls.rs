//! The native protocol against servers in the shapes of the providers: the same conversation leaves the same tree.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::model_server::FakeModelServer;
use crate::test_host::TestHost;

/// One call per answer; the last is the reply.
fn conversation() -> Vec<(&'static str, Value)> {
    let write = |path: &str, content: &str| ("file_write", json!({"path": path, "content": content}));
    vec![
        ("file_list", json!({"path": "agents/self"})),
        ("file_read", json!({"path": "projects/here/fs/notes.txt"})),
        write("projects/here/fs/made.txt", "made by a model: \"Σ\"\n"),
        write("agents/self/memory/control/create.json", r#"{"kind":"note","name":"river","content":"wide"}"#),
        write("agents/self/search_code/control/search.json", r#"{"query":"TODO"}"#),
        ("file_read", json!({"path": "agents/self/search_code/result.json"})),
        ("file_read", json!({"path": "agents/self/no/such/file"})),
        write("agents/self/chat/control/reply", "It is done."),
    ]
}

fn events(all: &[Value]) -> (&'static str, String) {
    let event = |each: &Value| format!("event: {}\ndata: {each}\n\n", each["type"].as_str().unwrap_or("x"));
    ("text/event-stream", all.iter().map(event).collect())
}

/// An answer with these calls and words as an API streams it, with 7 and 5 tokens.
fn streamed(api: &str, calls: &[(String, &str, String)], words: &str) -> (&'static str, String) {
    let halves = |text: &str| {
        let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        [text[..half].to_owned(), text[half..].to_owned()]
    };
    let mut all = Vec::new();
    match api {
        "chat" => {
            let delta = |delta: Value| json!({"model": "m", "choices": [{"delta": delta}]});
            all.push(delta(json!({ "content": words })));
            for (at, (id, name, arguments)) in calls.iter().enumerate() {
                let begin =
                    json!({"index": at, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
                all.push(delta(json!({ "tool_calls": [begin] })));
                for half in halves(arguments) {
                    all.push(delta(json!({"tool_calls": [{"index": at, "function": {"arguments": half}}]})));
                }
            }
            all.push(json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}));
            all.push(json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}));
            let (kind, text) = events(&all);
            return (kind, text + "data: [DONE]\n\n");
        }
        "messages" => {
            let usage = json!({"input_tokens": 7, "output_tokens": 1});
            all.push(json!({"type": "message_start", "message": {"model": "m", "usage": usage}}));
            let block =
                |at: usize, block: Value| json!({"type": "content_block_start", "index": at, "content_block": block});
            let delta = |at: usize, delta: Value| json!({"type": "content_block_delta", "index": at, "delta": delta});
            all.push(block(0, json!({"type": "thinking", "thinking": "", "signature": ""})));
            all.push(delta(0, json!({"type": "thinking_delta", "thinking": "hm"})));
            all.push(delta(0, json!({"type": "signature_delta", "signature": format!("signed {}", calls.len())})));
            all.push(block(1, json!({"type": "text", "text": ""})));
            all.push(delta(1, json!({"type": "text_delta", "text": words})));
            for (at, (id, name, arguments)) in calls.iter().enumerate() {
                all.push(block(at + 2, json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
                for half in halves(arguments) {
                    all.push(delta(at + 2, json!({"type": "input_json_delta", "partial_json": half})));
                }
            }
            all.push(json!({"type": "message_delta", "delta": {"stop_reason": "x"}, "usage": {"output_tokens": 5}}));
            all.push(json!({"type": "message_stop"}));
        }
        _ => {
            all.push(json!({"type": "response.output_text.delta", "output_index": 0, "delta": words}));
            for (at, (id, name, arguments)) in calls.iter().enumerate() {
                let item = |arguments: &str| json!({"type": "function_call", "id": format!("fc-{id}"), "call_id": id, "name": name, "arguments": arguments});
                all.push(json!({"type": "response.output_item.added", "output_index": at + 1, "item": item("")}));
                for half in halves(arguments) {
                    all.push(json!({"type": "response.function_call_arguments.delta", "output_index": at + 1, "delta": half}));
                }
                all.push(json!({"type": "response.output_item.done", "output_index": at + 1, "item": item(arguments)}));
            }
            let usage = json!({"input_tokens": 7, "output_tokens": 5});
            all.push(json!({"type": "response.completed", "response": {"model": "m", "usage": usage}}));
        }
    }
    events(&all)
}

fn api(path: &str) -> &'static str {
    match path {
        path if path.ends_with("/messages") => "messages",
        path if path.ends_with("/responses") => "responses",
        _ => "chat",
    }
}

/// A server that goes through the conversation, in the protocol in which it is asked.
fn server() -> FakeModelServer {
    let at = AtomicUsize::new(0);
    FakeModelServer::responding(move |path, body| {
        let number = at.fetch_add(1, Ordering::SeqCst);
        let (name, arguments) = conversation().swap_remove(number);
        match body.get("tools") {
            Some(_) => streamed(api(path), &[(format!("id-{number}"), name, arguments.to_string())], ""),
            None => {
                let text = json!({"tool_calls": [{"name": name, "arguments": arguments}]}).to_string();
                streamed(api(path), &[], &text)
            }
        }
    })
}

fn spec(server: &FakeModelServer, model: &Value) -> String {
    let mut model = model.clone();
    model["name"] = "m".into();
    model["base_url"] = server.url.as_str().into();
    json!({"layout": "acheron-1", "model": model, "agents": {"charon": {"projects": ["here"],
        "permissions": [{"allow": ["read", "write"], "path": "/projects/here/**"}]}},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}})
    .to_string()
}

/// Every file of the agent and of the project, without thoughts, ids, times and the name of the provider. When the kernel tells
/// that a file of the project has changed is not up to the turn; `next.json` and `sources/` wait; a transcript has the answers as they came.
const WHOLE_TREE: &str = r#"
    echo go > agents/self/chat/control/input
    cat agents/self/chat/latest.txt
    ls agents/self/recall/nodes > /dev/null
    until jq -e '.progress.index == "ready"' agents/self/recall/status.json > /dev/null; do sleep 0.05; done
    find agents/self/ projects \( -name thoughts -o -name sources -o -name next.json -o -name transcript.ndjson \) -prune -o -type f -print | LC_ALL=C sort | while read -r file; do
        echo "== $file"
        timeout 60 cat "$file" | sed -E '/"kind":"change"|"step":"thought"/d; s/"(seq|call)":[0-9]+/"\1":0/g; s/"(inode|device)": ?[0-9]+/"\1":0/g; s/"host": ?"[0-9.]+"/"host":0/g; s/"(ms|median_ms)":[0-9]+/"\1":0/g; s/done in [0-9]+ ms/done/; s/(openai|anthropic):m/MODEL/g;
            s/"correlation_id":"c[^"]*"/"correlation_id":"C"/g; s/\bc-[0-9a-f-]{8,}/C/g; s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z?/TIME/g'
    done
    echo "== end""#;

#[test]
fn the_same_conversation_leaves_the_same_tree_in_both_protocols_and_with_every_provider() {
    let (openai, anthropic) = (json!({"kind": "openai"}), json!({"kind": "anthropic"}));
    let native = |model: &Value| {
        let mut model = model.clone();
        model["protocol"] = "native".into();
        model
    };
    let mut responses = native(&openai);
    responses["api"] = "responses".into();
    let mut trees = Vec::new();
    for model in [openai.clone(), native(&openai), native(&anthropic), responses] {
        let server = server();
        let host = TestHost::of(&spec(&server, &model));
        let said = host.says(WHOLE_TREE);
        assert_eq!(server.asked(), conversation().len(), "{model}: {said}");
        assert!(said.starts_with("It is done.\n"), "{model}: {said}");
        assert!(said.contains("made by a model") && said.ends_with("== end\n"), "{model}: {said}");
        assert_eq!(std::fs::read_to_string(host.here().join("made.txt")).unwrap(), "made by a model: \"Σ\"\n");
        let native = model.get("protocol").is_some();
        assert!(server.bodies().iter().all(|body| body.get("tools").is_some() == native), "{model}");
        trees.push((model, said));
    }
    for (model, tree) in &trees[1..] {
        let differs = tree.lines().zip(trees[0].1.lines()).find(|(one, other)| one != other);
        assert_eq!(differs, None, "{model}");
        assert_eq!(tree.lines().count(), trees[0].1.lines().count());
    }
}

/// Several calls, words, and the next turn, through each API.
#[test]
fn several_calls_go_out_and_come_back_with_their_ids_and_words_end_the_turn() {
    for (kind, of) in [("openai", "chat"), ("anthropic", "messages"), ("openai", "responses")] {
        let at = AtomicUsize::new(0);
        let server = FakeModelServer::responding(move |path, _| {
            let list = |path: &str| ("file_list", json!({ "path": path }).to_string());
            let calls: Vec<(String, &str, String)> = match at.fetch_add(1, Ordering::SeqCst) {
                0 => [list("projects"), list("agents"), ("fly", "{}".to_owned())]
                    .into_iter()
                    .enumerate()
                    .map(|(at, (name, arguments))| (format!("id-{at}"), name, arguments))
                    .collect(),
                _ => Vec::new(),
            };
            streamed(api(path), &calls, if calls.is_empty() { "Two places." } else { "Let me look." })
        });
        let mut model = json!({"kind": kind, "protocol": "native"});
        if of == "responses" {
            model["api"] = "responses".into();
        }
        let host = TestHost::of(&spec(&server, &model));
        let said = host
            .says("for n in 1 2; do echo go > agents/self/chat/control/input; cat agents/self/chat/latest.txt; done");
        assert_eq!(said, "Two places.\nTwo places.\n", "{of}");
        let bodies = server.bodies();
        let back = bodies[1].to_string();
        for id in ["id-0", "id-1", "id-2"] {
            assert_eq!(back.matches(&format!("\"{id}\"")).count(), 2, "{of}: a call and its result: {back}");
        }
        assert!(back.contains("there is no tool `fly`"), "{of}: {back}");
        assert_eq!(back.contains("\"signature\":\"signed 3\""), of == "messages", "{of}: {back}");
        // The next turn shows the last one as words.
        let next = bodies[2].to_string();
        assert!(next.contains("Two places.") && !next.contains("id-0"), "{of}: {next}");
    }
}

#[test]
fn the_two_contracts_differ_only_in_how_tools_are_called() {
    let sections = |text: &str| -> Vec<(String, String)> {
        let split = text.split("\n## ").map(|section| section.split_once('\n').unwrap_or((section, "")));
        split.map(|(title, body)| (title.to_owned(), body.to_owned())).collect()
    };
    let json = sections(include_str!("../../prompts/runtime/core.md"));
    let native = sections(include_str!("../../prompts/runtime/core_native.md"));
    let differ: Vec<&str> =
        json.iter().zip(&native).filter(|(one, other)| one != other).map(|(one, _)| one.0.as_str()).collect();
    assert_eq!(json.len(), native.len());
    assert_eq!(differ, ["One answer, one object", "Three tools", "Talking"]);
}
