//! Traces for OpenTelemetry, as a collector receives them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::common::GUARD;
use crate::test_host::TestHost;

/// A collector: the bodies that it received.
fn collector() -> (String, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (received, bodies) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            loop {
                let (mut first, mut length) = (String::new(), 0);
                if reader.read_line(&mut first).unwrap_or(0) == 0 {
                    break;
                }
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if line == "\r\n" {
                        break;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let path = first.split(' ').nth(1).unwrap().to_owned();
                reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
                if received.send((path, serde_json::from_slice(&body).unwrap())).is_err() {
                    return;
                }
            }
        }
    });
    (url, bodies)
}

#[test]
fn a_turn_and_its_calls_are_one_trace() {
    let (url, bodies) = collector();
    let write = |path: &str, content: &str| json!({"answer": {"tool_calls": [{"name": "file_write", "arguments": {"path": path, "content": content}}]}});
    let lines = [
        write("agents/self/memory/control/create.json", r#"{"kind":"note","name":"ford","content":"secret words"}"#),
        write("agents/self/memory/control/create.json", r#"{"kind":"note"}"#),
        write("agents/self/chat/control/reply", "done"),
    ];
    let spec = json!({"layout": "acheron-1", "model": {"kind": "script", "name": "script.ndjson"}, "agents": {"charon": {}},
        "telemetry": {"otlp": url}});
    let house = TestHost::prepared(&spec.to_string(), |here| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(here.join("script.ndjson"), text).unwrap();
    });
    assert_eq!(
        house.says("echo 'private words' > agents/self/chat/control/input; cat agents/self/chat/latest.txt"),
        "done\n"
    );
    let mut spans: Vec<Value> = Vec::new();
    while !spans.iter().any(|span| span["name"] == "invoke_agent charon") {
        let (path, body) = bodies.recv_timeout(GUARD).unwrap();
        assert_eq!(path, "/v1/traces");
        assert!(!body.to_string().contains("words"), "what was said is not sent: {body}");
        let resource = &body["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "acheron");
        spans.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().iter().cloned());
    }
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).cloned().collect::<Vec<_>>();
    let turn = &named("invoke_agent charon")[0];
    let (trace, id) = (turn["traceId"].as_str().unwrap(), turn["spanId"].as_str().unwrap());
    assert_eq!((trace.len(), id.len(), turn.get("parentSpanId")), (32, 16, None));
    let calls: Vec<Value> = spans.iter().filter(|span| span["parentSpanId"] == *id).cloned().collect();
    let names: Vec<&str> = calls.iter().map(|span| span["name"].as_str().unwrap().split(' ').next().unwrap()).collect();
    assert_eq!(names, ["chat", "execute_tool", "chat", "execute_tool", "chat", "execute_tool"]);
    assert!(calls.iter().all(|span| span["traceId"] == *trace));
    let attribute = |span: &Value, key: &str| {
        let found = span["attributes"].as_array().unwrap().iter().find(|it| it["key"] == key).cloned();
        found.unwrap_or_else(|| panic!("no {key}: {span}"))["value"].clone()
    };
    assert_eq!(attribute(&calls[1], "gen_ai.tool.name"), json!({"stringValue": "file_write"}));
    assert!(attribute(&calls[0], "gen_ai.usage.input_tokens")["intValue"].is_string());
    // The job that the first call started has a trace of its own, to which the call is linked; the second was refused.
    let memory = &named("memory create")[0];
    assert_eq!(calls[1]["links"][0]["traceId"], memory["traceId"]);
    assert_eq!(
        (&calls[3]["status"]["code"], attribute(&calls[3], "error.type")),
        (&json!(2), json!({"stringValue": "invalid_payload"}))
    );
}
