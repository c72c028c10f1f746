//! The listener and the HTTP face of the tree.

use std::io::{Read, Write};
use std::time::Duration;

use expect_test::expect;
use serde_json::json;

use crate::common::until;
use crate::served::{Served, bearer, token};
use crate::test_host::TestHost;

/// Two agents, of which charon's turns are answered by this test.
fn two_agents() -> TestHost {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "external"}, "agents": {"charon": {}, "ada": {}},
        "default_agent": "charon"});
    TestHost::of(&spec.to_string())
}

#[test]
fn a_shell_reads_writes_and_waits_with_curl() {
    let house = TestHost::new();
    let served = Served::begin(&house, &[]);
    let script = format!(
        r#"
        T=$({0} token create --operator --state {1} 2>/dev/null); U={2}
        ask() {{ curl -sS -H "Authorization: Bearer $T" "$@"; }}
        ask $U/fs/agents/self/memory | jq -c '[.path, (.entries | map(.name))]'
        ask $U/fs/README.md | head -n 1
        ask -r 2-8 $U/fs/README.md; echo
        ask -X POST $U/fs/agents/self/memory/control/create.json -d '{{"kind":"note","name":"ford","content":"At the willow."}}' | jq -r 'keys[]'
        ask $U/fs/agents/self/memory/items/ford/content; echo
        ask -X POST "$U/fs/agents/self/memory/control/search.json?wait=30" -d '{{"query":"willow"}}' | jq -c '[.ok, .operation]'
        ask -T - $U/fs/agents/self/memory/items/ford/content <<< "At the oak."
        ask $U/fs/agents/self/memory/items/ford/content
        ask -X POST $U/fs/agents/self/memory/control/create.json -d '{{"kind":"note"}}' | jq -c '[.status, .code, .detail]'
        ask -X POST "$U/fs/agents/self/chat/control/input?wait=30" -d 'Hello' | head -c 1 | wc -c
        ask $U/fs/nowhere | jq -c
        curl -sS $U/fs/ | jq -r .code
        "#,
        env!("CARGO_BIN_EXE_acheron"),
        house.state().display(),
        served.url
    );
    house.check(
        &script,
        expect![[r#"
            ["/agents/self/memory",["CAPS.json","OPS.json","PERMISSIONS.json","README.md","SCHEMA.json","active.json","control","items","result.json","status.json"]]
            # Acheron
            Acheron
            job_id
            location
            At the willow.
            [true,"search"]
            At the oak.
            [400,"invalid_payload","create: content is missing"]
            1
            {"type":"about:blank","title":"Not Found","status":404,"code":"not_found","detail":"there is no `/nowhere`"}
            forbidden
        "#]],
    );
}

#[test]
fn tokens_are_shown_once_listed_without_secrets_and_revoked_at_once() {
    let house = two_agents();
    let served = Served::begin(&house, &["--fs"]);
    let word = token(&house, &["create", "--agent", "ada", "--label", "laptop"]);
    assert!(word.starts_with("ach_") && !word.contains(char::is_whitespace), "{word}");
    let auth = bearer(&word);
    let read = |path: &str| served.ask("GET", path, &[("authorization", &auth)], "");
    assert_eq!(read("/fs/agents/ada/chat/status.json").status, 200);
    // Rights are those of the agent: what it may not see does not exist.
    assert_eq!((read("/fs/agents/charon/README.md").status, read("/fs/meta/health.json").status), (404, 404));
    let listed = token(&house, &["list", "--json"]);
    assert!(!listed.contains(&word[4..]), "{listed}");
    let row: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&row["principal"], &row["label"]), (&json!("agent ada"), &json!("laptop")));

    // A wait and a stream that are under way end with the token.
    house.says("echo hi > agents/ada/chat/control/input");
    let mut waiting = served.send("GET", "/fs/agents/ada/chat/latest.txt", &[("authorization", &auth)], "");
    let streaming = [("authorization", auth.as_str()), ("accept", "text/event-stream")];
    let mut stream = served.send("GET", "/fs/agents/ada/chat/status.json", &streaming, "");
    let mut first = [0; 64];
    assert!(stream.read(&mut first).unwrap() > 0);
    token(&house, &["revoke", row["id"].as_str().unwrap()]);
    let (mut answer, mut rest) = (String::new(), Vec::new());
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(read("/fs/README.md").status, 401);
    assert_eq!(token(&house, &["list", "--json"]), "");
}

#[test]
fn requests_that_are_not_for_this_listener_are_refused_and_written_down() {
    let house = two_agents();
    let served = Served::begin(&house, &[]);
    let auth = bearer(&token(&house, &["create", "--operator"]));
    let known = ("authorization", auth.as_str());
    let same = format!("http://{}", served.address());
    for (headers, expected) in [
        (vec![known], 200),
        (vec![known, ("origin", same.as_str())], 200),
        (vec![], 401),
        (vec![("authorization", "Bearer ach_0000")], 401),
        (vec![("authorization", "Basic YTpi")], 401),
        (vec![known, ("host", "evil.example")], 403),
        (vec![known, ("origin", "http://evil.example")], 403),
        (vec![known, ("origin", "null")], 403),
        (vec![known, known], 401),
    ] {
        let answer = served.ask("GET", "/fs/README.md", &headers, "");
        assert_eq!(answer.status, expected, "{headers:?}: {answer:?}");
    }
    // Each door answers in the form that its clients read.
    let refused = served.ask("GET", "/v1/models", &[], "").json();
    assert_eq!((&refused["error"]["code"], &refused["error"]["param"]), (&json!("forbidden"), &json!(null)));
    assert_eq!(served.ask("GET", "/metrics", &[], "").header("content-type"), Some("application/problem+json"));
    assert_eq!(served.ask("GET", "/nowhere", &[known], "").code(), "not_found");
    assert_eq!(served.ask("GET", "/nowhere", &[], "").status, 401);
    // The page is at `/`, for whoever is known.
    let html = Some("text/html; charset=utf-8");
    for (headers, expected) in [
        (vec![known], (200, html)),
        (vec![], (401, html)),
        (vec![known, ("host", "evil.example")], (403, Some("application/problem+json"))),
    ] {
        let answer = served.ask("GET", "/", &headers, "");
        assert_eq!((answer.status, answer.header("content-type")), expected, "{headers:?}: {answer:?}");
    }
    let audited = || {
        let lines = std::fs::read_to_string(house.root().join("meta/audit.ndjson")).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines
            .filter(|line| line["principal"] == "unknown client")
            .map(|line| line["reason"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    until("refusals are written down", || audited().len() >= 12);
    assert!(audited().iter().any(|reason| reason.contains("evil.example")));
}

#[test]
fn paths_mean_one_thing_and_bodies_are_bounded() {
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {"projects": ["here"]}},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}});
    let house = TestHost::of(&spec.to_string());
    let served = Served::begin(&house, &["--fs"]);
    let auth = bearer(&token(&house, &["create", "--operator"]));
    let known = [("authorization", auth.as_str())];
    for path in ["/fs/agents/../README.md", "/fs/%2e%2e/x", "/fs/a%2fb", "/fs/README.md%00", "/fs/%ff", "/fs/%"] {
        let answer = served.ask("GET", path, &known, "");
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_payload"), "{path}");
    }
    let mut stream = served.connect();
    let head = format!(
        "PUT /fs/agents/self/memory/items/x/content HTTP/1.1\r\nhost: {}\r\nauthorization: {auth}\r\nconnection: close\r\ncontent-length: 99999999999\r\n\r\n",
        served.address()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("too_large"), "{answer}");
    // A project: files of true size, in parts, made, renamed and removed.
    let dir = "/fs/projects/here/fs";
    let ask = |method: &str, path: &str, body: &str| served.ask(method, path, &known, body);
    assert_eq!(ask("PUT", &format!("{dir}/new.bin"), "0123456789").status, 204);
    let part = served.ask("GET", &format!("{dir}/new.bin"), &[known[0], ("range", "bytes=-3")], "");
    assert_eq!((part.status, part.body.as_str(), part.header("content-range")), (206, "789", Some("bytes 7-9/10")));
    let beyond = served.ask("GET", &format!("{dir}/new.bin"), &[known[0], ("range", "bytes=10-")], "");
    assert_eq!(beyond.status, 416);
    assert_eq!(ask("MKCOL", &format!("{dir}/sub"), "").status, 201);
    // The directories of projects do not rename here; those of the tree do where they can.
    let file = format!("{dir}/new.bin");
    let moved = served.ask("MOVE", &file, &[known[0], ("destination", "/fs/projects/here/fs/sub/moved.bin")], "");
    assert_eq!((moved.status, moved.code().as_str()), (403, "not_permitted"), "{moved:?}");
    assert_eq!(ask("GET", &file, "").body, "0123456789");
    assert_eq!((ask("DELETE", &file, "").status, ask("GET", &file, "").status), (204, 404));
    assert_eq!(ask("DELETE", &format!("{dir}/sub"), "").status, 204);
    assert_eq!(ask("DELETE", "/fs/README.md", "").status, 403);
    assert_eq!(ask("PATCH", "/fs/README.md", "").status, 405);
}

#[test]
fn a_read_that_waits_is_a_long_poll_or_a_stream_of_events() {
    let house = two_agents();
    let served = Served::begin(&house, &["--fs"]);
    let auth = bearer(&token(&house, &["create", "--operator"]));
    let known = [("authorization", auth.as_str())];
    let latest = "/fs/agents/charon/chat/latest.txt";
    house.says("echo hi > agents/charon/chat/control/input");
    let look = served.ask("GET", &format!("{latest}?wait=0"), &known, "");
    assert_eq!((look.status, look.code().as_str()), (503, "busy"));
    let late = served.ask("GET", &format!("{latest}?wait=1"), &known, "");
    assert_eq!((late.status, late.code().as_str()), (504, "timeout"));
    let mut waiting = served.send("GET", &format!("{latest}?wait=60"), &known, "");
    let events = [known[0], ("accept", "text/event-stream")];
    let mut stream = served.send("GET", latest, &events, "");
    let mut history = served.send("GET", "/fs/agents/charon/chat/history.ndjson", &events, "");
    house.says("echo 'Over there.' > agents/charon/chat/control/reply");
    let (mut long, mut once) = (String::new(), String::new());
    waiting.read_to_string(&mut long).unwrap();
    assert!(long.ends_with("Over there.\n"), "{long}");
    stream.read_to_string(&mut once).unwrap();
    assert!(once.contains("event: value\ndata: Over there.\n\n"), "{once}");
    let mut lines = String::new();
    while !lines.contains("\n\n") {
        let mut some = [0; 1024];
        let read = history.read(&mut some).unwrap();
        assert!(read > 0, "{lines}");
        lines.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    assert!(lines.contains("event: line\nid: ") && lines.contains(r#""reply":"Over there."#), "{lines}");
}

#[test]
fn a_listener_ends_with_its_command_and_what_waits_there_with_it() {
    let house = two_agents();
    let mut served = Served::begin(&house, &[]);
    let auth = bearer(&token(&house, &["create", "--operator"]));
    house.says("echo hi > agents/charon/chat/control/input");
    let mut waiting = served.send("GET", "/fs/agents/charon/chat/latest.txt", &[("authorization", auth.as_str())], "");
    std::thread::sleep(Duration::from_millis(200));
    served.end();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    until("the listener is closed", || std::net::TcpStream::connect(served.address()).is_err());
}

#[test]
fn metrics_are_prometheus_text() {
    let house = two_agents();
    let served = Served::begin(&house, &["--metrics"]);
    let auth = bearer(&token(&house, &["create", "--operator"]));
    let answer = served.ask("GET", "/metrics", &[("authorization", auth.as_str())], "");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in ["# TYPE acheron_commits_total counter", r#"acheron_agent_tokens_total{agent="ada",type="input"} 0"#] {
        assert!(answer.body.lines().any(|it| it == line), "{line}: {}", answer.body);
    }
    // Only the doors that were named are open.
    assert_eq!(served.ask("GET", "/fs/", &[("authorization", auth.as_str())], "").status, 404);
    let ada = bearer(&token(&house, &["create", "--agent", "ada"]));
    assert_eq!(served.ask("GET", "/metrics", &[("authorization", ada.as_str())], "").status, 404);
}

#[test]
fn another_machine_connects_only_over_tls_and_if_it_may() {
    let house = two_agents();
    let refused = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_acheron"));
        let output = command.arg("serve").args(words).arg("--state").arg(house.state()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--listen", "0.0.0.0:0"]).contains("needs TLS"));
    let dir = house.here();
    let made = house.says(&format!(
        "cd {} && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
         -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null; ls *.pem | wc -l",
        dir.display()
    ));
    assert_eq!(made, "2\n");
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let files = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    assert!(refused(&[&["--listen", "0.0.0.0:0"], &files[..]].concat()).contains("--public"));
    assert!(refused(&["--tls-cert", key.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]).contains("key.pem"));
    let served = Served::begin(&house, &files);
    let word = token(&house, &["create", "--operator"]);
    let said = house.says(&format!(
        "curl -sS --cacert {} -H 'Authorization: Bearer {word}' {}/fs/README.md | head -n 1",
        cert.display(),
        served.url
    ));
    assert_eq!((served.url.starts_with("https://"), said.as_str()), (true, "# Acheron\n"));
    // Without TLS there is no answer.
    let mut plain = served.send("GET", "/fs/", &[], "");
    let mut bytes = Vec::new();
    _ = plain.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP/"), "{bytes:?}");
}
