//! Clients that mean harm, or are broken: none of them stops the listener, makes it grow, or keeps others out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::until;
use crate::served::{Served, bearer, token};
use crate::test_host::TestHost;

fn more_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(16_384, |most| most.min(16_384));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).unwrap();
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Whether another client is served.
#[track_caller]
fn others_are_served(served: &Served, auth: &str) {
    let answer = served.ask("GET", "/fs/README.md", &[("authorization", auth)], "");
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn silent_connections_keep_nobody_out_and_leave_nothing_behind() {
    more_descriptors();
    let house = TestHost::new();
    let mut served = Served::begin(&house, &[]);
    let auth = bearer(&token(&house, &["create", "--operator"]));
    let before = descriptors();
    // More than there is room for: half say nothing, half begin and stop.
    let open: Vec<TcpStream> = (0..1300)
        .map(|number| {
            let mut stream = served.connect();
            if number % 2 == 0 {
                stream.write_all(b"GET /fs/README.md HTTP/1.1\r\nhost: 127").unwrap();
            }
            stream
        })
        .collect();
    others_are_served(&served, &auth);
    drop(open);
    until("the connections are gone", || descriptors() < before + 50);
    others_are_served(&served, &auth);
    served.end();
}

#[test]
fn clients_that_do_not_read_or_send_too_much_are_alone_with_it() {
    let spec = r#"{"agents":{"charon":{"projects":["here"]}},"projects":{"here":{"binds":{"/":{"path":"."}}}}}"#;
    let house = TestHost::prepared(spec, |here| std::fs::write(here.join("big.bin"), vec![b'x'; 32 << 20]).unwrap());
    let served = Served::begin(&house, &[]);
    let auth = bearer(&token(&house, &["create", "--operator"]));
    let known = [("authorization", auth.as_str())];
    let deaf: Vec<TcpStream> =
        (0..16).map(|_| served.send("GET", "/fs/projects/here/fs/big.bin", &known, "")).collect();
    others_are_served(&served, &auth);
    // A head that does not end, a name that does not end, a body that was not announced.
    for (request, expected) in [
        (format!("GET /fs/ HTTP/1.1\r\nx: {}", "y".repeat(1 << 20)), Some("431")),
        (format!("GET /{} HTTP/1.1\r\n", "y".repeat(1 << 20)), None),
        (format!("GET /fs/ HTTP/1.1\r\n{}", "a: b\r\n".repeat(10_000)), Some("431")),
    ] {
        let mut stream = served.connect();
        // The listener may close it before all is sent.
        _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains(" 200 "), "{answer}");
        if let Some(status) = expected.filter(|_| !answer.is_empty()) {
            assert!(answer.contains(status), "{answer}");
        }
    }
    others_are_served(&served, &auth);
    drop(deaf);
    // Those who come too often without a token are told so, and others are served.
    let mut stream = served.connect();
    let request = format!("GET /fs/ HTTP/1.1\r\nhost: {}\r\n\r\n", served.address());
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || _ = writer.write_all(request.repeat(3000).as_bytes()));
    let (mut limited, mut answers) = (false, Vec::new());
    while !limited {
        let mut some = [0; 65536];
        let read = stream.read(&mut some).unwrap();
        assert!(read > 0, "the connection ended");
        answers.extend_from_slice(&some[..read]);
        limited = answers.windows(12).any(|part| part == b"HTTP/1.1 429");
    }
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    writing.join().unwrap();
    others_are_served(&served, &auth);
}

/// Requests that are nearly right: a valid one with some bytes changed, added or taken away, and noise.
fn nearly(address: &str, auth: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let methods = ["GET", "PUT", "POST", "DELETE", "HEAD", "MOVE", "MKCOL", "OPTIONS", "BREW"];
    let paths = [
        "/fs/",
        "/fs/README.md?wait=0",
        "/fs/agents/self/memory/control/create.json",
        "/v1/models",
        "/v1/chat/completions",
        "/v1/responses",
        "/metrics",
        "/fs/%2e%2e",
        "*",
        "//",
        "/fs/a?wait=99999999999999999999",
    ];
    let (address, auth) = (address.to_owned(), auth.to_owned());
    let request = (prop::sample::select(methods.to_vec()), prop::sample::select(paths.to_vec()), ".{0,80}").prop_map(
        move |(method, path, body)| {
            format!(
                "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: {auth}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes()
        },
    );
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..6);
    let changed = (request, changes).prop_map(|(mut bytes, changes)| {
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => _ = bytes.remove(at),
            }
        }
        bytes
    });
    prop_oneof![4 => changed, 1 => prop::collection::vec(any::<u8>(), 0..300)]
}

#[test]
fn ten_thousand_broken_requests_break_nothing() {
    let house = TestHost::new();
    let served = Served::begin(&house, &[]);
    let auth = bearer(&token(&house, &["create", "--agent", "charon"]));
    let operator = bearer(&token(&house, &["create", "--operator"]));
    let before = descriptors();
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let many = prop::collection::vec(nearly(served.address(), &auth), 50);
    let ran = runner.run(&many, |requests| {
        let mut stream = served.connect();
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        for request in requests {
            let mut some = [0; 65536];
            // What the listener closes is begun again.
            if stream.write_all(&request).is_err() || matches!(stream.read(&mut some), Ok(0)) {
                stream = served.connect();
                stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            }
        }
        Ok(())
    });
    ran.unwrap();
    others_are_served(&served, &operator);
    until("the connections are gone", || descriptors() < before + 50);
    assert_eq!(house.says("jq .ok meta/health.json"), "true\n");
}
