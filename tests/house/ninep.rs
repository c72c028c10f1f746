//! The tree over 9P, with the clients of diod: by a unix socket as the process that asks, and by TCP with a token.

use std::io::BufRead as _;
use std::process::{Child, Command, Stdio};

use crate::common::command;
use crate::test_host::TestHost;

/// `acheron serve --9p`, as long as it is held.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn new(host: &TestHost, address: &str) -> Serving {
        let state = host.state();
        let mut child = Command::new(env!("CARGO_BIN_EXE_acheron"))
            .args(["serve", "--9p", address, "--state", state.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Serving { child, address: address.trim().to_owned() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn acheron(host: &TestHost, words: &[&str]) -> String {
    let state = host.state();
    let ran = Command::new(env!("CARGO_BIN_EXE_acheron"))
        .args(words)
        .args(["--state", state.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// What a client of diod prints; `None` if it fails.
fn diod(host: &TestHost, program: &str, server: &str, tree: &str, path: &str) -> Option<String> {
    let program = format!("/usr/sbin/{program}");
    let ran = command(&host.here(), &[&program, "-s", server, "-a", tree, path]).output().unwrap();
    ran.status.success().then(|| String::from_utf8(ran.stdout).unwrap())
}

#[test]
fn a_process_of_the_operator_sees_the_tree_by_a_unix_socket() {
    let host = TestHost::new();
    let socket = host.here().join("tree.sock");
    let serving = Serving::new(&host, &format!("unix:{}", socket.display()));
    assert_eq!(serving.address, format!("unix:{}", socket.display()));
    let server = socket.to_str().unwrap();
    let readme = std::fs::read_to_string(host.root().join("README.md")).unwrap();
    assert_eq!(diod(&host, "diodcat", server, "/", "README.md").unwrap(), readme);
    let listed = diod(&host, "diodls", server, "/", "agents").unwrap();
    assert!(listed.lines().any(|line| line == "charon") && listed.lines().any(|line| line == "self"), "{listed}");
    assert_eq!(diod(&host, "diodcat", server, "/", "agents/charon/absent"), None);
    drop(serving);
    crate::common::until("the socket goes with its command", || !socket.exists());
}

#[test]
fn by_tcp_a_token_decides_and_without_one_nobody_comes_in() {
    let host = TestHost::new();
    let serving = Serving::new(&host, "tcp:127.0.0.1:0");
    let server = serving.address.strip_prefix("tcp:").unwrap();
    let operator = acheron(&host, &["token", "create", "--operator"]);
    let agent = acheron(&host, &["token", "create", "--agent", "charon"]);
    let health = |token: &str| diod(&host, "diodcat", server, token, "meta/health.json");
    assert!(health(&operator).unwrap().contains("\"pid\""));
    assert_eq!(health(&agent), None, "an agent may not see it");
    assert!(diod(&host, "diodcat", server, &agent, "AGENTS.md").is_some());
    for wrong in ["/", "ach_0000", "nobody"] {
        assert_eq!(diod(&host, "diodcat", server, wrong, "AGENTS.md"), None, "{wrong}");
    }
    let elsewhere = Command::new(env!("CARGO_BIN_EXE_acheron"))
        .args(["serve", "--9p", "tcp:0.0.0.0:0", "--state", host.state().to_str().unwrap()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&elsewhere.stderr).into_owned();
    assert!(!elsewhere.status.success() && said.contains("loopback only"), "{said}");
}
