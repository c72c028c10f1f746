//! The model gateway: programs ask the model of an agent in their own languages, and the agent pays.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use acheron::gateway::{GatewayClient, GatewayGuard};
use acheron_gateway::{
    AnswerCall, AnswerEnd, AnswerIdentity, AnswerWriter, Dialect, StopReason, TokenUsage, WholeAnswer, whole_answer,
};
use serde_json::{Value, json};

use crate::test_host::TestHost;
use crate::upstream::{Told, Upstream, get, post, receive, send};

/// A gateway for the agent of a host.
fn serve(host: &TestHost, record: Option<PathBuf>) -> (SocketAddr, GatewayGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = GatewayClient { agent: "charon".to_owned(), program: "probe".to_owned(), record };
    (address, host.inside(async |host| host.state.gateway().serve(listener, client).unwrap()))
}

fn spec(model: Value, budget: Value) -> String {
    json!({"layout": "acheron-1", "model": model, "agents": {"charon": {"budget": budget}}}).to_string()
}

/// The model of a server that speaks a language.
fn model(dialect: Dialect, upstream: &Upstream) -> Value {
    match dialect {
        Dialect::Chat => json!({"kind": "openai", "name": "real", "base_url": upstream.url()}),
        Dialect::Responses => json!({"kind": "openai", "name": "real", "base_url": upstream.url(), "api": "responses"}),
        Dialect::Messages => json!({"kind": "anthropic", "name": "real", "base_url": upstream.url()}),
        Dialect::Gemini => json!({"kind": "gemini", "name": "real", "base_url": format!("{}/v1beta", upstream.url())}),
    }
}

/// The path and the body of a request in a language.
fn request(dialect: Dialect, text: &str, stream: bool) -> (String, Value) {
    let said = json!([{"role": "user", "content": text}]);
    let tool = json!({"type": "object", "properties": {}});
    let usage = json!({"include_usage": true});
    match dialect {
        Dialect::Chat => (
            "/v1/chat/completions".into(),
            json!({"model": "mine", "messages": said, "stream": stream,
            "max_tokens": 100, "stream_options": usage,
            "tools": [{"type": "function", "function": {"name": "run", "parameters": tool}}]}),
        ),
        Dialect::Responses => (
            "/v1/responses".into(),
            json!({"model": "mine", "input": said, "stream": stream,
            "max_output_tokens": 100, "tools": [{"type": "function", "name": "run", "parameters": tool}, {"type": "web_search"}]}),
        ),
        Dialect::Messages => (
            "/v1/messages?beta=true".into(),
            json!({"model": "mine", "messages": said, "stream": stream,
            "max_tokens": 100, "tools": [{"name": "run", "input_schema": tool}]}),
        ),
        Dialect::Gemini => {
            let action = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            (
                format!("/v1beta/models/mine:{action}"),
                json!({"contents": [{"role": "user", "parts": [{"text": text}]}],
                "generationConfig": {"maxOutputTokens": 100},
                "tools": [{"functionDeclarations": [{"name": "run", "parameters": tool}]}]}),
            )
        }
    }
}

fn identity() -> AnswerIdentity {
    AnswerIdentity { id: "1".into(), model: "real".into(), created: 1, input: 70, wants_usage: true }
}

/// An answer with words and a call, which costs 70 and 5.
fn answer() -> WholeAnswer {
    let call = AnswerCall { id: "call_1".into(), name: "run".into(), arguments: "{\"a\":1}".into() };
    let usage = TokenUsage { input: Some(70), output: Some(5), cache_read: 30, cache_write: 0 };
    let end = AnswerEnd { reason: StopReason::Calls, usage };
    WholeAnswer { thoughts: String::new(), text: "Hello you".into(), calls: vec![call], end }
}

/// The events of an answer, one piece each.
fn events(dialect: Dialect, answer: &WholeAnswer) -> Vec<String> {
    let (mut writer, mut out) = (AnswerWriter::new(dialect, identity()), Vec::new());
    writer.begin(&mut out);
    answer.parts().iter().for_each(|part| writer.part(part, &mut out));
    writer.end(&answer.end, &mut out);
    let text = String::from_utf8(out).unwrap();
    text.split_inclusive("\n\n").map(str::to_owned).collect()
}

fn told(dialect: Dialect, stream: bool) -> Told {
    match stream {
        true => Told::stream(events(dialect, &answer())),
        false => Told::whole(&whole_answer(dialect, &identity(), &answer())),
    }
}

/// An upstream that answers in its language whatever it is asked.
fn speaking(dialect: Dialect) -> Upstream {
    Upstream::start(move |asked| told(dialect, asked.body["stream"] == true || asked.path.contains(":stream")))
}

/// The lines of `requests.ndjson`, as soon as there are so many: a refusal does not wait for the disk.
fn lines(host: &TestHost, count: usize) -> Vec<Value> {
    let read = || std::fs::read_to_string(host.root().join("agents/charon/model/requests.ndjson")).unwrap();
    crate::common::until("the lines are there", || read().lines().count() >= count);
    let text = read();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"))).collect()
}

/// Rounds, input and output that the agent has spent.
fn spent(host: &TestHost) -> Value {
    let said = host.says("jq -c '[.spent.rounds, .spent.input, .spent.output]' agents/self/chat/status.json");
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"))
}

#[test]
fn every_language_passes_through_untouched_streamed_and_whole() {
    for dialect in Dialect::ALL {
        let upstream = speaking(dialect);
        let host = TestHost::of(&spec(model(dialect, &upstream), json!({})));
        let (address, guard) = serve(&host, None);
        for stream in [true, false] {
            let (path, body) = request(dialect, "hi", stream);
            let head = format!(
                "POST {path} HTTP/1.1\r\nauthorization: Bearer placeholder\r\nx-api-key: placeholder\r\ncookie: c=d\r\nanthropic-beta: b1\r\nx-own: kept"
            );
            let got = receive(send(address, &head, body.to_string().as_bytes()));
            assert_eq!(got.status, 200, "{dialect:?}: {got:?}");
            assert_eq!(got.text, told(dialect, stream).pieces.concat(), "{dialect:?}");
            assert!(got.head.contains("request-id: req_1") && !got.head.contains("set-cookie"), "{}", got.head);
            let asked = upstream.asked().pop().unwrap();
            let mut wanted = body;
            if dialect == Dialect::Gemini {
                assert!(asked.path.starts_with("/v1beta/models/real:"), "{}", asked.path);
            } else {
                wanted["model"] = "real".into();
            }
            assert_eq!(asked.body, wanted, "{dialect:?}");
            assert!(asked.head.contains("anthropic-beta: b1") && asked.head.contains("x-own: kept"), "{}", asked.head);
            assert!(!asked.head.contains("placeholder") && !asked.head.contains("cookie"), "{}", asked.head);
        }
        assert_eq!(spent(&host), json!([2, 140, 10]), "{dialect:?}");
        let lines = lines(&host, 2);
        assert_eq!(lines.len(), 2, "{lines:#?}");
        for line in &lines {
            let known = json!([
                line["program"],
                line["dialect"],
                line["asked_model"],
                line["input"],
                line["output"],
                line["cached"],
                line["status"],
                line["error"],
                line["estimated"]
            ]);
            let asked_model = "mine";
            assert_eq!(known, json!(["probe", dialect.name(), asked_model, 70, 5, 30, 200, null, null]));
        }
        let totals = guard.totals();
        assert_eq!((totals.requests, totals.input, totals.output, totals.cached), (2, 140, 10, 60));
    }
}

#[test]
fn messages_and_responses_are_translated_for_a_server_of_chat_completions() {
    let upstream = speaking(Dialect::Chat);
    let host = TestHost::of(&spec(model(Dialect::Chat, &upstream), json!({})));
    let (address, _guard) = serve(&host, None);
    for dialect in [Dialect::Messages, Dialect::Responses] {
        for stream in [true, false] {
            let (path, body) = request(dialect, "hi", stream);
            let got = post(address, &path, &body);
            assert_eq!(got.status, 200, "{got:?}");
            let asked = upstream.asked().pop().unwrap();
            assert_eq!(asked.path, "/v1/chat/completions");
            assert_eq!(asked.body["messages"], json!([{"role": "user", "content": "hi"}]));
            assert_eq!(asked.body["tools"].as_array().unwrap().len(), 1, "the server's own tools are dropped");
            assert_eq!((&asked.body["model"], &asked.body["max_completion_tokens"]), (&"real".into(), &100.into()));
            let whole = if stream { of_events(dialect, &got.text) } else { got.json() };
            let (text, call) = match dialect {
                Dialect::Messages => (whole["content"][0]["text"].clone(), whole["content"][1]["input"]["a"].clone()),
                _ => {
                    let call: Value = serde_json::from_str(whole["output"][1]["arguments"].as_str().unwrap()).unwrap();
                    (whole["output"][0]["content"][0]["text"].clone(), call["a"].clone())
                }
            };
            assert_eq!((text, call), ("Hello you".into(), 1.into()), "{dialect:?} {stream}: {whole:#}");
        }
    }
    assert_eq!(spent(&host), json!([4, 280, 20]));
    let lines = lines(&host, 4);
    assert!(lines.iter().all(|line| line["translated_to"] == "chat" && line["cached"] == 30), "{lines:#?}");
    // What no translation exists for is refused with a sentence.
    let (path, body) = request(Dialect::Gemini, "hi", true);
    let got = post(address, &path, &body);
    assert_eq!((got.status, &got.json()["error"]["status"]), (400, &"INVALID_ARGUMENT".into()));
    assert!(got.text.contains("give the agent a gemini model"), "{}", got.text);
}

/// The whole answer that a stream of events amounts to.
fn of_events(dialect: Dialect, text: &str) -> Value {
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect();
    if dialect == Dialect::Responses {
        return events.last().unwrap()["response"].clone();
    }
    let mut content: Vec<Value> = Vec::new();
    let mut arguments = String::new();
    for event in &events {
        match event["type"].as_str().unwrap() {
            "content_block_start" => content.push(event["content_block"].clone()),
            "content_block_delta" => {
                let last = content.last_mut().unwrap();
                match event["delta"]["text"].as_str() {
                    Some(more) => last["text"] = format!("{}{more}", last["text"].as_str().unwrap()).into(),
                    None => {
                        arguments.push_str(event["delta"]["partial_json"].as_str().unwrap());
                        last["input"] = serde_json::from_str(&arguments).unwrap_or_default();
                    }
                }
            }
            _ => (),
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    json!({"content": content})
}

/// A request that is asked exactly so often as its budget pays for: input, by a count, and 100 tokens of output.
fn cost_of_one(host: &TestHost, address: SocketAddr, body: &Value) -> u64 {
    let got = post(address, "/v1/messages/count_tokens", body);
    assert_eq!(got.status, 200, "{got:?} {}", host.here().display());
    got.json()["input_tokens"].as_u64().unwrap() + 100
}

#[test]
fn of_64_requests_at_once_exactly_those_pass_that_the_budget_pays_for() {
    let (path, body) = request(Dialect::Chat, "the same for all", false);
    let counted = {
        let upstream = speaking(Dialect::Chat);
        let host = TestHost::of(&spec(model(Dialect::Chat, &upstream), json!({})));
        let (address, _guard) = serve(&host, None);
        cost_of_one(&host, address, &body)
    };
    // It answers only when all have come, and each costs just what was reserved.
    let upstream = Upstream::start(move |_| Told {
        waits: true,
        pieces: vec![
            " ".to_owned(),
            json!({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": counted - 100, "completion_tokens": 100}})
            .to_string(),
        ],
        ..Told::whole(&Value::Null)
    });
    let host = TestHost::of(&spec(model(Dialect::Chat, &upstream), json!({"tokens": 10 * counted})));
    let (address, guard) = serve(&host, None);
    let asking: Vec<_> = (0..64)
        .map(|_| {
            let (path, body) = (path.clone(), body.clone());
            std::thread::spawn(move || post(address, &path, &body))
        })
        .collect();
    crate::common::until("54 are refused", || guard.totals().refused == 54);
    upstream.go_on();
    let got: Vec<_> = asking.into_iter().map(|one| one.join().unwrap()).collect();
    let passed = got.iter().filter(|got| got.status == 200).count();
    let refused: Vec<_> = got.iter().filter(|got| got.status == 429).collect();
    assert_eq!((passed, refused.len(), upstream.asked().len()), (10, 54, 10));
    assert!(refused.iter().all(|got| got.json()["error"]["code"] == "budget_exceeded"), "{:?}", refused[0]);
    assert!(refused.iter().all(|got| got.head.contains("x-should-retry: false")), "{:?}", refused[0]);
    assert_eq!(spent(&host), json!([10, 10 * (counted - 100), 1000]));
    // Each is a line, and nothing is left for another.
    assert_eq!(lines(&host, 64).len(), 64);
    for dialect in [Dialect::Messages, Dialect::Responses] {
        let (path, body) = request(dialect, "one more", true);
        let got = post(address, &path, &body);
        assert!(got.text.contains("budget_exceeded"), "{got:?}");
        assert_eq!(got.status, if dialect == Dialect::Messages { 402 } else { 429 });
    }
}

#[test]
fn an_answer_is_shortened_to_what_the_budget_pays_for_and_that_is_noted() {
    let upstream = speaking(Dialect::Messages);
    let host = TestHost::of(&spec(model(Dialect::Messages, &upstream), json!({"tokens": 2000})));
    let (address, _guard) = serve(&host, None);
    let (path, mut body) = request(Dialect::Messages, "hi", true);
    body["max_tokens"] = 128_000.into();
    assert_eq!(post(address, &path, &body).status, 200);
    let asked = upstream.asked().pop().unwrap().body["max_tokens"].as_u64().unwrap();
    assert!((1500..2000).contains(&asked), "{asked}");
    assert_eq!(lines(&host, 1)[0]["max_tokens"], json!({"from": 128_000, "to": asked}));
}

#[test]
fn a_program_that_goes_away_cancels_the_request_and_pays_for_what_has_come() {
    let upstream = Upstream::start(|_| {
        let answer = WholeAnswer { text: "word ".repeat(300), ..answer() };
        let events = events(Dialect::Chat, &answer);
        let first = events[..2].concat();
        Told { waits: true, ..Told::stream(vec![first, events[2..].concat()]) }
    });
    let host = TestHost::of(&spec(model(Dialect::Chat, &upstream), json!({"tokens": 100_000})));
    let (address, guard) = serve(&host, None);
    let (path, mut body) = request(Dialect::Chat, "hi", true);
    body["max_tokens"] = 50_000.into();
    let mut stream = send(address, &format!("POST {path} HTTP/1.1"), body.to_string().as_bytes());
    // The first piece comes at once, though the rest waits: nothing is held back.
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("word word") {
        let mut chunk = [0; 4096];
        let count = std::io::Read::read(&mut stream, &mut chunk).unwrap();
        assert!(count > 0, "the stream ended");
        seen.extend_from_slice(&chunk[..count]);
    }
    drop(stream);
    crate::common::until("the request is cancelled", || upstream.left() == 1);
    crate::common::until("it is settled", || guard.totals().requests == 1);
    let line = &lines(&host, 1)[0];
    let output = line["output"].as_u64().unwrap();
    assert!((300..1000).contains(&output), "{line}");
    assert!(line["error"].as_str().unwrap().starts_with("client_gone"), "{line}");
    assert_eq!(spent(&host)[2], output);
    // The rest of the 50,000 is free again.
    upstream.go_on();
    let (path, mut body) = request(Dialect::Chat, "hi", true);
    body["max_tokens"] = 90_000.into();
    assert_eq!(post(address, &path, &body).status, 200);
    assert_eq!(upstream.asked().pop().unwrap().body["max_tokens"], 90_000);
}

#[test]
fn the_second_model_answers_when_the_first_fails() {
    let upstream = speaking(Dialect::Chat);
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let broken =
        Upstream::start(|_| Told { status: 404, ..Told::whole(&json!({"error": {"message": "no such model"}})) });
    for first in [broken.url(), format!("http://{dead}")] {
        let fallback = json!({"kind": "vllm", "name": "second", "base_url": upstream.url()});
        let model = json!({"kind": "openai", "name": "first", "base_url": first, "fallback": fallback});
        let host = TestHost::of(&spec(model, json!({})));
        let (address, _guard) = serve(&host, None);
        let (path, body) = request(Dialect::Messages, "hi", true);
        let got = post(address, &path, &body);
        assert_eq!(got.status, 200, "{got:?}");
        assert_eq!(upstream.asked().pop().unwrap().body["model"], "second");
        let lines = lines(&host, 2);
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert_eq!(
            (&lines[0]["output"], &lines[1]["model"], &lines[1]["fallback"]),
            (&0.into(), &"vllm:second".into(), &true.into())
        );
        assert!(lines[0]["error"].is_string(), "{lines:#?}");
    }
}

#[test]
fn a_refusal_of_the_server_is_passed_on_and_costs_nothing() {
    let said = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}});
    let upstream = Upstream::start(move |_| Told { status: 400, ..Told::whole(&said) });
    let host = TestHost::of(&spec(model(Dialect::Messages, &upstream), json!({"tokens": 9000})));
    let (address, _guard) = serve(&host, None);
    let (path, body) = request(Dialect::Messages, "hi", true);
    let got = post(address, &path, &body);
    assert_eq!((got.status, &got.json()["error"]["message"]), (400, &"prompt is too long".into()));
    assert_eq!(spent(&host), json!([0, 0, 0]));
    assert_eq!(lines(&host, 1)[0]["status"], 400);
    // A server that wants another key is no business of the program.
    let upstream = Upstream::start(|_| Told { status: 401, ..Told::whole(&json!({"error": {"message": "bad key"}})) });
    let host = TestHost::of(&spec(model(Dialect::Messages, &upstream), json!({})));
    let (address, _guard) = serve(&host, None);
    let got = post(address, &path, &body);
    assert_eq!((got.status, got.text.contains("ANTHROPIC_API_KEY")), (502, true), "{got:?}");
}

#[test]
fn a_scripted_model_answers_in_every_language() {
    let script = [
        json!({"when": "^hi$", "repeat": true, "answer": {"text": "Running.", "tool_calls": [{"id": "c7", "name": "run", "arguments": {"a": 1}}]}}),
        json!({"when": "^plain", "repeat": true, "answer": "Just words."}),
        json!({"when": "it worked", "repeat": true, "answer": "Well done."}),
    ];
    let script = script.map(|line| format!("{line}\n")).concat();
    let host = TestHost::prepared(&spec(json!({"kind": "script", "name": "s.ndjson"}), json!({})), |here| {
        std::fs::write(here.join("s.ndjson"), script).unwrap();
    });
    let (address, _guard) = serve(&host, None);
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let (path, body) = request(dialect, "hi", stream);
            let got = post(address, &path, &body);
            assert_eq!(got.status, 200, "{got:?}");
            for word in [if stream { "ing." } else { "Running." }, "run", "c7"] {
                assert!(got.text.contains(word), "{dialect:?}: {got:?}");
            }
            let (path, body) = request(dialect, "plain", stream);
            let got = post(address, &path, &body);
            assert!(got.text.contains("ords."), "{dialect:?}: {got:?}");
        }
    }
    let results = json!({"model": "m", "max_tokens": 100, "tools": [{"name": "run", "input_schema": {}}], "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c7", "name": "run", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c7", "content": "it worked"}]}]});
    assert_eq!(post(address, "/v1/messages", &results).json()["content"][0]["text"], "Well done.");
    let (path, body) = request(Dialect::Chat, "something else", false);
    let got = post(address, &path, &body);
    assert_eq!(got.status, 502, "{got:?}");
    assert!(got.text.contains("has no answer left"), "{got:?}");
    assert_eq!(lines(&host, 18).len(), 18);
}

#[test]
fn a_run_is_recorded_once_and_replayed_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.ndjson");
    let ask = |address: SocketAddr, cwd: &str, id: &str| -> Vec<String> {
        let texts = [format!("Working directory: {cwd}. Read {cwd}/a, session {id}"), "second".to_owned()];
        let asked = Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Gemini).flat_map(|dialect| {
            texts.clone().into_iter().flat_map(move |text| [true, false].map(|stream| request(dialect, &text, stream)))
        });
        asked.map(|(path, body)| post(address, &path, &body).text).collect()
    };
    let recorded = {
        let upstream = speaking(Dialect::Chat);
        let host = TestHost::of(&spec(model(Dialect::Chat, &upstream), json!({})));
        let (address, guard) = serve(&host, Some(file.clone()));
        let recorded = ask(address, "/home/ann/x", "0a1b2c3d-0000-4000-8000-00000000000a");
        assert_eq!(guard.totals().requests, 12);
        let client = GatewayClient { agent: "charon".into(), program: "p".into(), record: Some(file.clone()) };
        let again = host.inside(async |host| {
            host.state.gateway().serve(TcpListener::bind("127.0.0.1:0").unwrap(), client).map(drop)
        });
        assert!(again.is_err(), "a recording is never overwritten");
        recorded
    };
    let host = TestHost::of(&spec(json!({"kind": "replay", "name": file}), json!({})));
    let (address, _guard) = serve(&host, None);
    let replayed = ask(address, "/srv/bob", "ffffffff-1111-4222-8333-444444444444");
    assert_eq!(replayed, recorded);
    let (path, body) = request(Dialect::Chat, "third", true);
    let got = post(address, &path, &body);
    assert_eq!((got.status, &got.json()["error"]["code"]), (400, &"replay_mismatch".into()));
    assert!(got.text.contains("has no further request") || got.text.contains("differs at character"), "{got:?}");
    assert_eq!(lines(&host, 13).len(), 13);
}

#[test]
fn a_replay_says_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.ndjson");
    let (path, body) = request(Dialect::Messages, "read the first file", true);
    {
        let upstream = speaking(Dialect::Messages);
        let host = TestHost::of(&spec(model(Dialect::Messages, &upstream), json!({})));
        let (address, _guard) = serve(&host, Some(file.clone()));
        post(address, &path, &body);
    }
    let host = TestHost::of(&spec(json!({"kind": "replay", "name": file}), json!({})));
    let (address, _guard) = serve(&host, None);
    let mut other = body.clone();
    other["messages"][0]["content"] = "read the other file".into();
    let got = post(address, &path, &other);
    let said = got.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        said.contains(
            "messages[0].content differs at character 9: recorded \"read the first file\", now \"read the other file\""
        ),
        "{said}"
    );
    assert_eq!(post(address, &path, &body).status, 200);
}

#[test]
fn hostile_and_unknown_requests_are_refused_in_the_language_of_the_program() {
    let upstream = speaking(Dialect::Chat);
    let host = TestHost::of(&spec(model(Dialect::Chat, &upstream), json!({})));
    let (address, _guard) = serve(&host, None);
    let models = get(address, "GET /v1/models HTTP/1.1").json();
    assert_eq!(models["data"][0]["id"], "real");
    assert_eq!(get(address, "HEAD /api/hello HTTP/1.1").status, 200);
    let upgrade = get(address, "GET /v1/responses HTTP/1.1\r\nupgrade: websocket");
    assert_eq!(upgrade.status, 426);
    let unknown = get(address, "POST /v1/embeddings HTTP/1.1");
    assert_eq!(unknown.status, 404);
    assert!(unknown.text.contains("POST /v1/chat/completions"), "{unknown:?}");
    assert_eq!(post(address, "/v1/v1/messages", &request(Dialect::Messages, "hi", false).1).status, 200);
    for (body, status) in [
        ("{".to_owned(), 400),
        ("[1]".to_owned(), 400),
        ("{\"messages\": \"\\ud800\"}".to_owned(), 400),
        ("[".repeat(100_000), 400),
        (String::new(), 400),
    ] {
        let got = receive(send(address, "POST /v1/messages HTTP/1.1", body.as_bytes()));
        assert_eq!((got.status, &got.json()["type"]), (status, &"error".into()), "{body:.40}: {got:?}");
    }
    let large = vec![b' '; (32 << 20) + 1];
    let got = receive(send(address, "POST /v1/messages HTTP/1.1", &large));
    assert!(got.status == 413 || got.status == 0, "{got:?}"); // the connection may be gone before the program reads it
    let got = receive(send(address, "NONSENSE", b""));
    assert_eq!(got.status, 400);
    assert_eq!(upstream.asked().len(), 1);
    // A host without a model says so.
    let host = TestHost::new();
    let (address, _guard) = serve(&host, None);
    let (path, body) = request(Dialect::Chat, "hi", false);
    let got = post(address, &path, &body);
    assert_eq!((got.status, got.text.contains("name a model for it in the mountspec")), (503, true), "{got:?}");
}

#[test]
fn lines_and_bodies_outlast_the_host_and_a_dropped_gateway_is_gone() {
    let upstream = speaking(Dialect::Chat);
    let mut model = model(Dialect::Chat, &upstream);
    model["keep_bodies"] = true.into();
    let mut host = TestHost::of(&spec(model, json!({})));
    let (address, guard) = serve(&host, None);
    let (path, body) = request(Dialect::Chat, "remember this", true);
    assert_eq!(post(address, &path, &body).status, 200);
    drop(guard);
    crate::common::until("the listener is closed", || std::net::TcpStream::connect(address).is_err());
    let before = lines(&host, 1);
    host.restart();
    assert_eq!(lines(&host, 1), before);
    let bodies = host.says("jq -r '.request, .answer' agents/self/model/bodies.ndjson");
    assert!(bodies.contains("remember this") && bodies.contains("Hello you"), "{bodies}");
    let id = host.says("jq -r .id agents/self/model/requests.ndjson agents/self/model/bodies.ndjson | sort -u | wc -l");
    assert_eq!(id.trim(), "1");
}

#[test]
fn a_server_that_tells_no_usage_is_charged_by_a_count_of_ours() {
    let upstream = Upstream::start(|asked| {
        let wanted = json!({"choices": [{"index": 0, "delta": {"content": "some words of an answer"}, "finish_reason": "stop"}]});
        let whole = json!({"choices": [{"message": {"content": "some words of an answer"}, "finish_reason": "stop"}]});
        match asked.body["stream"] == true {
            true => Told::stream(vec![format!("data: {wanted}\n\n"), "data: [DONE]\n\n".to_owned()]),
            false => Told::whole(&whole),
        }
    });
    let mut model = model(Dialect::Chat, &upstream);
    model["prices"] = json!({"input_per_mtok": 1_000_000.0, "output_per_mtok": 2_000_000.0});
    let host = TestHost::of(&spec(model, json!({"money": 100_000.0})));
    let (address, guard) = serve(&host, None);
    for stream in [true, false] {
        let (path, body) = request(Dialect::Chat, "hi", stream);
        assert_eq!(post(address, &path, &body).status, 200);
    }
    for line in lines(&host, 2) {
        let (input, output) = (line["input"].as_u64().unwrap(), line["output"].as_u64().unwrap());
        assert!(line["estimated"] == true && (20..200).contains(&input) && (4..40).contains(&output), "{line}");
        assert_eq!(line["money"].as_f64().unwrap(), (input + 2 * output) as f64);
    }
    assert!(guard.totals().money > 40.0);
}

#[test]
fn an_agent_itself_is_told_that_its_model_is_for_programs() {
    let upstream = speaking(Dialect::Gemini);
    let host = TestHost::of(&spec(model(Dialect::Gemini, &upstream), json!({})));
    let said =
        host.says("echo hi > agents/self/chat/control/input; jq -r .error.message agents/self/jobs/last/status.json");
    assert!(said.contains("answers only programs that ask it through the gateway"), "{said}");
    assert_eq!(upstream.asked().len(), 0);
}
