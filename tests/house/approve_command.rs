//! `acheron approve`, the questions of `acheron chat`, notices, and the page behind a link.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::until;
use crate::served::Served;
use crate::test_doors::{InsideDoor, TestDoor as _};
use crate::test_host::TestHost;
use acheron::policy::PrincipalCaller;
use acheron_vfs::Caller;

const ACHERON: &str = env!("CARGO_BIN_EXE_acheron");

fn spec(approvals: &Value) -> String {
    json!({"agents": {"charon": {"permissions": [{"ask": ["invoke"], "path": "/agents/self/memory/control/create.json"}]}},
        "approvals": approvals})
    .to_string()
}

/// The agent calls, and waits.
fn asks(house: &TestHost, name: &str) {
    let call = json!({"kind": "note", "name": name, "content": "x", "_meta": {"correlation_id": name, "reason": "<b>new</b>"}});
    let door = InsideDoor::new(house, Caller::agent("charon"));
    door.write("/agents/self/memory/control/create.json", &call.to_string()).unwrap();
}

fn approve(house: &TestHost, words: &[&str]) -> (bool, String) {
    let ran = Command::new(ACHERON).arg("approve").args(words).arg("--root").arg(house.root()).output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    (ran.status.success(), String::from_utf8(said).unwrap())
}

fn end(house: &TestHost, name: &str) -> String {
    house.says(&format!(
        "jq -r '[.state, .error.message // \"\"] | join(\" \")' agents/charon/jobs/by/{name}/status.json"
    ))
}

#[test]
fn requests_are_listed_shown_and_answered_at_the_command_line() {
    let house = TestHost::of(&spec(&json!({})));
    assert_eq!(approve(&house, &[]), (true, "nothing waits for a decision\n".to_owned()));
    asks(&house, "ford");
    asks(&house, "well");
    let (_, listed) = approve(&house, &["--list"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let all: Value = serde_json::from_str(&approve(&house, &["--json"]).1).unwrap();
    let ids: Vec<&str> = all.as_array().unwrap().iter().filter_map(|it| it["id"].as_str()).collect();
    // The end of a name is enough.
    let short = &ids[0][ids[0].len() - 12..];
    let (_, shown) = approve(&house, &["show", short]);
    assert!(shown.contains("\"name\": \"ford\"") && shown.contains("the model says: <b>new</b>"), "{shown}");
    let (ok, said) = approve(&house, &["allow", short]);
    assert!(ok && said.starts_with("allowed by operator: allow: charon calls memory.create"), "{said}");
    assert_eq!(end(&house, "ford"), "done \n");
    let (ok, said) = approve(&house, &["allow", short]);
    assert!(!ok && said.contains("was decided already: allowed by operator: allow"), "{said}");
    let (ok, _) = approve(&house, &["deny", ids[1], "not", "now"]);
    assert!(ok);
    assert_eq!(end(&house, "well"), "failed the operator denied this: not now\n");
    let (ok, said) = approve(&house, &["allow", "nothing"]);
    assert!(!ok && said.contains("there is no request `nothing`"), "{said}");
}

#[test]
fn at_a_terminal_a_question_stands_until_it_is_answered_here_or_elsewhere() {
    let house = TestHost::of(&spec(&json!({})));
    asks(&house, "here");
    let root = house.root().display().to_string();
    let script = format!(
        "(sleep 3; echo a; sleep 1; echo q) | timeout 50 script -qec '{ACHERON} approve --root {root}' /dev/null"
    );
    let said = house.says(&script);
    assert!(said.contains("[a]llow") && said.contains("allowed by operator: allow"), "{said}");
    assert_eq!(end(&house, "here"), "done \n");
    asks(&house, "elsewhere");
    let script = format!(
        "(sleep 4; echo q) | timeout 50 script -qec '{ACHERON} approve --root {root}' /dev/null & sleep 1.5\n\
         echo 'deny: by another' > approvals/$(jq -r .id approvals/next.json)/decision; wait"
    );
    let said = house.says(&script);
    assert!(said.contains("denied by operator: deny: by another"), "{said}");
}

/// The first request of a client, answered with 200.
fn webhook(listener: &TcpListener) -> Value {
    let (mut stream, _) = listener.accept().unwrap();
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).unwrap();
        text.extend_from_slice(&chunk[..count]);
        let said = String::from_utf8_lossy(&text);
        let Some((head, body)) = said.split_once("\r\n\r\n") else { continue };
        let length = head.to_ascii_lowercase();
        let length =
            length.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok()).unwrap();
        if body.len() >= length {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
            return serde_json::from_str(body).unwrap();
        }
    }
}

#[test]
fn a_notice_goes_out_with_a_link_whose_page_alone_decides_and_only_by_post() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hook = format!("http://{}/hook", listener.local_addr().unwrap());
    let kept = tempfile::NamedTempFile::new().unwrap();
    let command = format!("cat >> {}", kept.path().display());
    let house = TestHost::of(&spec(&json!({"notify": [{"webhook": hook}, {"command": ["sh", "-c", command]}]})));
    let served = Served::begin(&house, &["--approve"]);
    asks(&house, "ford");
    let notice = webhook(&listener);
    assert_eq!((notice["event"].as_str(), notice["agent"].as_str()), (Some("asked"), Some("charon")));
    let link = notice["link"].as_str().unwrap().to_owned();
    let path = link.strip_prefix(&served.url).unwrap_or_else(|| panic!("{link}"));
    until("the command has it", || std::fs::read_to_string(kept.path()).unwrap().contains(&link));
    // A preview of the link, as many as there are, decides nothing; nor does a wrong signature or another request.
    for _ in 0..3 {
        let page = served.ask("GET", path, &[], "");
        assert_eq!(page.status, 200, "{page:?}");
        assert!(page.body.contains("<form method=\"post\"") && !page.body.contains("<b>new"), "{page:?}");
    }
    assert_eq!(served.ask("HEAD", path, &[], "").status, 200);
    let wrong = path.replace("&t=", "&t=0");
    assert_eq!(served.ask("GET", &wrong, &[], "").status, 404);
    assert_eq!(served.ask("GET", "/approve", &[], "").status, 404);
    let field = |name: &str| {
        let page = served.ask("GET", path, &[], "").body;
        let at = page.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap().to_owned();
        at.split('"').next().unwrap().to_owned()
    };
    let (id, signature, hash) = (field("id"), field("t"), field("sha256"));
    let post = |body: &str, headers: &[(&str, &str)]| served.ask("POST", "/approve", headers, body).status;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(post(&format!("id={id}&t={signature}&sha256={}&decision=allow", "0".repeat(64)), &form), 409);
    assert_eq!(post(&format!("id={id}&t={}&sha256={hash}&decision=allow", "0".repeat(64)), &form), 404);
    assert_eq!(post(&format!("id={id}&t={signature}&sha256={hash}&decision=perhaps"), &form), 400);
    let evil = [form[0], ("origin", "http://evil.example")];
    assert_eq!(post(&format!("id={id}&t={signature}&sha256={hash}&decision=allow"), &evil), 403);
    assert_eq!(house.says("jq .waiting approvals/status.json"), "1\n");
    let body = format!("id={id}&t={signature}&sha256={hash}&decision=deny&reason=not+on+a+Friday");
    assert_eq!(post(&body, &form), 200);
    assert_eq!(end(&house, "ford"), "failed the operator denied this: not on a Friday\n");
    assert_eq!(post(&body, &form), 409, "a link decides once");
    assert!(!served.ask("GET", path, &[], "").body.contains("<form"), "and its page falls silent");
    assert_eq!(webhook(&listener)["event"], "decided");
    assert_eq!(house.says("ls agents/charon/memory/items"), "");
}
