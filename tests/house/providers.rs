//! A model behind a real server, from the mountspec to the bill: what is counted, and what is never shown.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::expect;
use serde_json::json;
use tempfile::TempDir;

use crate::common::GUARD;

const KEY: &str = "sk-never-to-be-seen-0123456789";

/// Serves these answers in order, one a connection; a status of 200 is wrapped as a chat completion that took 7 tokens and
/// gave 5. Returns its address.
fn server(answers: Vec<(u16, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (status, text) in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut request = Vec::new();
            let mut bytes = [0; 65536];
            while !whole(&request) {
                match stream.read(&mut bytes) {
                    Ok(count @ 1..) => request.extend_from_slice(&bytes[..count]),
                    _ => break,
                }
            }
            assert!(String::from_utf8_lossy(&request).contains(KEY), "the key travels in its header");
            let body = match status {
                200 => json!({"model": "m", "choices": [{"message": {"content": text}}],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 5}})
                .to_string(),
                _ => text,
            };
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    url
}

fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

fn session(dir: &TempDir, script: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_acheron")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &GUARD.as_secs().to_string(), "bash", "-c", script]).current_dir(dir.path());
    command.env_clear().env("PATH", path).env("HOME", dir.path()).env("OPENAI_API_KEY", KEY).stdin(Stdio::null());
    let output = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn what_a_server_reports_is_what_is_counted_and_its_key_is_never_shown() {
    let call = |name: &str, arguments| json!({"tool_calls": [{"name": name, "arguments": arguments}]}).to_string();
    let url = server(vec![
        (200, call("file_list", json!({"path": "agents/self"}))),
        (500, format!("broken, and {KEY} too")),
        (200, call("file_read", json!({"path": "agents/self/thoughts/status.json"}))),
        (200, call("file_write", json!({"path": "agents/self/chat/control/reply", "content": "counted"}))),
        (401, json!({"error": {"message": format!("the key {KEY} is wrong")}}).to_string()),
    ]);
    let dir = TempDir::new().unwrap();
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {"budget": {"money": 1.0}}},
        "model": {"kind": "openai", "name": "m", "base_url": url, "prices": {"input_per_mtok": 100.0, "output_per_mtok": 1000.0}}});
    std::fs::create_dir(dir.path().join("ns")).unwrap();
    std::fs::write(dir.path().join("spec.json"), spec.to_string()).unwrap();
    let said = session(
        &dir,
        r#"
        acheron mount ns --daemon --spec spec.json --state state --record run.ndjson > /dev/null
        acheron chat --root ns -m 'count'
        jq -c '[.spent.rounds, .spent.input, .spent.output, .spent.money, .limits.agent.money]' ns/agents/self/chat/status.json
        acheron chat --root ns -m 'again'
        jq -c '[.spent.rounds, .error.code]' ns/agents/self/chat/status.json
        grep -rl sk-never ns/agents/self/chat ns/agents/self/thoughts ns/agents/self/events/log.ndjson ns/agents/self/jobs/last/log.txt ns/meta
        acheron unmount ns
        grep -rla sk-never state run.ndjson spec.json
        "#,
    );
    let port = url.trim_end_matches("/v1").rsplit(':').next().unwrap();
    let said = said.replace(port, "PORT");
    expect![[r#"
        counted
        [3,21,15,0.0171,1]
        [3,"provider_error"]
        error: 127.0.0.1:PORT/v1/chat/completions answered 401 Unauthorized: the key [secret] is wrong; is OPENAI_API_KEY right?
    "#]]
    .assert_eq(&said);
}
