//! The network by name: whatever starts a program of an agent, it reaches the hosts that the mountspec names, and no others.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::common::{self, until};
use crate::test_host::TestHost;

/// A server on loopback that answers every connection once it has heard something.
pub fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                _ = stream.read(&mut [0; 4096]);
                _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello\n");
            });
        }
    });
    port
}

/// A script that asks the proxy for some hosts and prints what it is told.
pub fn asking(port: u16) -> String {
    format!(
        r#"ask() {{ exec 3<>/dev/tcp/127.0.0.1/4142 && printf "$1" >&3 && cat <&3 | tr -d '\r' | grep -aE '^(HTTP|hello)'; }}
ask 'CONNECT localhost:{port} HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n'
ask 'GET http://localhost:{port}/ HTTP/1.1\r\n\r\n'
ask 'CONNECT evil.example:443 HTTP/1.1\r\n\r\n'
ask 'GET http://169.254.169.254/latest/ HTTP/1.1\r\n\r\n'
"#
    )
}

/// What the script prints where the server is allowed.
const ASKED: &str = "HTTP/1.1 200 Connection established\nHTTP/1.0 200 OK\nhello\nHTTP/1.0 200 OK\nhello\n\
                     HTTP/1.1 403 evil.example:443 is not in network\n\
                     HTTP/1.1 403 169.254.169.254:80 is not in network\n";

fn spec(network: Value) -> String {
    let project = json!({"binds": {"/": {"path": "."}}});
    json!({
        "layout": "acheron-1",
        "agents": {"charon": {"projects": ["here"]}, "ada": {"projects": ["here"]}},
        "projects": {"here": project},
        "sandbox": {"network": network},
    })
    .to_string()
}

#[test]
fn a_program_reaches_the_hosts_of_its_agent_however_it_was_started() {
    let port = server();
    let host = TestHost::prepared(&spec(json!({"charon": [format!("localhost:{port}")]})), |here| {
        std::fs::write(here.join("ask.sh"), asking(port)).unwrap();
    });
    let terminal = "cd agents/charon/terminal";
    let by_call = host.says(&format!(
        r#"{terminal}; echo '{{"argv":["bash","ask.sh"]}}' > control/exec.json; jq -j .result.stdout result.json"#
    ));
    assert_eq!(by_call, ASKED);
    let by_session = host.says(&format!(
        r#"{terminal}; echo '{{"session_id":"s"}}' > control/create.json; jq -j .ok result.json
        echo '{{"session_id":"s","command":"bash ask.sh"}}' > control/exec.json; jq -j .result.stdout result.json"#
    ));
    assert_eq!(by_session.replace("\r\n", "\n"), format!("true{ASKED}"));
    let acheron = env!("CARGO_BIN_EXE_acheron");
    let by_exec = format!("{acheron} exec --root . --agent charon -- bash ask.sh < /dev/null");
    assert_eq!(common::session(&host.root(), &by_exec), ASKED);
    // Its variables, in both cases; and what it may reach is in the plan that it can read.
    let variables = host.says(&format!(
        r#"{terminal}; echo '{{"command":"env | grep -i proxy | LC_ALL=C sort"}}' > control/exec.json; jq -j .result.stdout result.json
        jq -c .hosts sandbox.json; jq -c .network sandbox.json"#
    ));
    let proxy = "http://127.0.0.1:4142";
    let expected = format!(
        "ALL_PROXY={proxy}\nHTTPS_PROXY={proxy}\nHTTP_PROXY={proxy}\nNODE_USE_ENV_PROXY=1\nNO_PROXY=127.0.0.1,localhost,::1\n\
         all_proxy={proxy}\nhttp_proxy={proxy}\nhttps_proxy={proxy}\nno_proxy=127.0.0.1,localhost,::1\n\
         [\"localhost:{port}\"]\nfalse\n"
    );
    assert_eq!(variables, expected);
    // Each refusal is an event with the name of the host, and the rule that would allow it.
    let told = host.says(r#"jq -c 'select(.kind == "network") | .payload | [.refused, .allow]' agents/charon/events/log.ndjson | sort | uniq -c | tr -s ' '"#);
    assert_eq!(
        told,
        " 3 [\"169.254.169.254:80\",\"169.254.169.254:80\"]\n 3 [\"evil.example:443\",\"evil.example:443\"]\n"
    );
    // Another agent has none of it.
    let other = host.says(
        r#"cd agents/ada/terminal; echo '{"argv":["bash","ask.sh"]}' > control/exec.json; jq -r '.result.stdout' result.json
        jq -r .result.stderr result.json | grep -c 'Connection refused'"#,
    );
    assert_eq!(other, "\n8\n");
}

#[test]
fn an_edit_of_the_hosts_holds_at_once_for_programs_that_run() {
    let port = server();
    let host = TestHost::prepared(&spec(json!({"charon": [format!("localhost:{port}")]})), |here| {
        std::fs::write(here.join("ask.sh"), asking(port)).unwrap();
    });
    let ask = |script: &str| {
        host.says(&format!(
            r#"cd agents/charon/terminal; {script}
            echo '{{"session_id":"s","command":"bash ask.sh 2>&1 | head -1"}}' > control/exec.json; jq -j .result.stdout result.json"#
        ))
        .replace("\r\n", "\n")
    };
    let open = r#"echo '{"session_id":"s"}' > control/create.json; jq -j .ok result.json"#;
    assert_eq!(ask(open), "trueHTTP/1.1 200 Connection established\n");
    host.edit(&spec(json!({"charon": ["other.example"]})));
    let refused = format!("HTTP/1.1 403 localhost:{port} is not in network\n");
    until("the rule is gone", || ask("") == refused);
    host.edit(&spec(json!({"charon": ["other.example", format!("localhost:{port}")]})));
    until("it is back", || ask("") == "HTTP/1.1 200 Connection established\n");
}

#[test]
fn a_rule_that_means_nothing_is_a_fault_of_the_mountspec() {
    let dir = tempfile::tempdir().unwrap();
    let check = |network: Value| {
        std::fs::write(dir.path().join("spec.json"), spec(network)).unwrap();
        common::session(dir.path(), &format!("{} check spec.json", env!("CARGO_BIN_EXE_acheron")))
    };
    assert!(
        check(json!({"charon": ["api.github.com:443", "*.example.org", "10.0.0.0/8:5432"]})).contains("spec.json: ok")
    );
    assert!(check(json!(["charon"])).contains("spec.json: ok"));
    let said = check(json!({"charon": ["ok.example", "https://x.example/", "a.*.example"], "ada": ["x:99999"]}));
    for line in [
        "sandbox.network.charon[1]: `https://x.example/`: a port is a number from 1 to 65535",
        "sandbox.network.charon[2]: `a.*.example`: `*` stands for a whole name",
        "sandbox.network.ada[0]: `x:99999`: a port is a number from 1 to 65535",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!check(json!({"charon": "api.github.com"})).contains("spec.json: ok"));
}
