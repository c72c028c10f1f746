//! The audit, as an operator sees it: every decision that matters is a line, agents see nothing of it, and a line that was changed is
//! found.

use std::process::Command;

use expect_test::expect;
use serde_json::Value;

use crate::common::until;
use crate::test_host::TestHost;
use acheron::policy::{Principal, PrincipalCaller};
use acheron_vfs::Caller;

const SPEC: &str = r#"{"agents": {"charon": {}, "styx": {"permissions": [{"allow": ["read"], "path": "/meta/**"}]}}}"#;

fn acheron(host: &TestHost, words: &[&str]) -> (bool, String) {
    let state = host.state();
    let ran = Command::new(env!("CARGO_BIN_EXE_acheron"))
        .args(words)
        .args(["--state", state.to_str().unwrap()])
        .output()
        .unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    (ran.status.success(), String::from_utf8(said).unwrap())
}

fn agent(id: &str) -> Caller {
    Caller::of(Principal::Agent(id.to_owned()))
}

fn lines(host: &TestHost) -> Vec<Value> {
    let text = std::fs::read_to_string(host.root().join("meta/audit.ndjson")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn calls_denials_and_edits_are_lines_and_no_argument_stands_in_them() {
    let host = TestHost::of(SPEC);
    host.check(
        r#"
        echo '{"kind":"note","name":"note","content":"the word is swordfish"}' > agents/charon/memory/control/create.json
        cat agents/charon/memory/result.json | jq -c .ok
        "#,
        expect![[r#"
            true
        "#]],
    );
    // What may not be written is refused, and that is a line.
    let refused = host.inside(async |host| {
        let written = host.tree().write(&agent("charon"), "/agents/styx/memory/control/create.json", b"{}").await;
        written.unwrap_err().code
    });
    assert_eq!(refused, acheron_base::Code::NotFound);
    let refused = host.inside(async |host| {
        let tree = host.tree();
        tree.may_change(&agent("charon"), "/agents/styx/memory/items/x").unwrap_err().code
    });
    assert_eq!(refused, acheron_base::Code::Forbidden);
    until("the denial is a line", || lines(&host).iter().any(|line| line["kind"] == "denied"));
    host.edit(&SPEC.replace("charon\": {}", "charon\": {\"about\": \"a ferryman\"}"));
    until("the edit is a line", || lines(&host).iter().any(|line| line["kind"] == "policy"));
    let all = lines(&host);
    let kinds: Vec<&str> = all.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds[..3], ["key", "start", "checkpoint"]);
    let call = all.iter().find(|line| line["kind"] == "call").unwrap();
    assert_eq!(
        (call["service"].as_str(), call["operation"].as_str(), call["outcome"].as_str()),
        (Some("memory"), Some("create"), Some("done"))
    );
    assert_eq!(call["principal"], "operator");
    let text = std::fs::read_to_string(host.root().join("meta/audit.ndjson")).unwrap();
    assert!(!text.contains("swordfish"));
    let (ok, said) = acheron(&host, &["audit", "verify"]);
    assert!(ok && said.starts_with("intact: "), "{said}");
}

#[test]
fn an_agent_sees_nothing_of_the_audit_even_where_a_rule_allows_all_of_meta() {
    let host = TestHost::of(SPEC);
    let (seen, read) = host.inside(async |host| {
        let (tree, styx) = (host.tree(), agent("styx"));
        let names = tree.list(&styx, "/meta").unwrap().into_iter().map(|entry| entry.path).collect::<Vec<_>>();
        (names, tree.read(&styx, "/meta/audit.ndjson").await.map_err(|error| error.code))
    });
    assert_eq!(seen, ["/meta/health.json", "/meta/metrics.json", "/meta/ns", "/meta/protocol.json"]);
    assert_eq!(read, Err(acheron_base::Code::NotFound));
    host.check(
        "ls meta; head -c 8 meta/audit.ndjson; tail -n 1 meta/audit.ndjson | jq -r .kind",
        expect![[r#"
            agents.json
            audit.ndjson
            events.ndjson
            events.ndjson.1
            health.json
            jobs.json
            metrics.json
            ns
            protocol.json
            {"seq":1checkpoint
        "#]],
    );
}

#[test]
fn a_line_that_was_changed_or_cut_off_behind_the_host_is_found() {
    let mut host = TestHost::of(SPEC);
    for n in 0..20 {
        let call = format!(
            r#"echo '{{"kind":"note","name":"n{n}","content":"x"}}' > agents/charon/memory/control/create.json"#
        );
        assert_eq!(host.says(&call), "");
    }
    let (ok, head) = acheron(&host, &["audit", "head"]);
    assert!(ok);
    std::fs::write(host.here().join("heads"), &head).unwrap();
    host.restart();
    let heads = host.here().join("heads");
    let (ok, said) = acheron(&host, &["audit", "verify", "--anchor", heads.to_str().unwrap()]);
    assert!(ok, "{said}");
    let (ok, shown) = acheron(&host, &["audit", "--since", "1h", "--agent", "charon"]);
    assert!(
        ok && shown.lines().count() == 20 && shown.contains(" call       operator memory.create of charon"),
        "{shown}"
    );
    let database = host.state().join("acheron.db");
    let tamper = |sql: &str| {
        let conn = acheron_store::Connection::open(&database).unwrap();
        conn.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        conn.execute_batch(sql).unwrap();
    };
    tamper("UPDATE audit_blocks SET lines = replace(lines, 'operator', 'somebody') WHERE first = 9");
    let (ok, said) = acheron(&host, &["audit", "verify"]);
    assert!(!ok && said.starts_with("error: the audit is broken at 10: "), "{said}");
    tamper("UPDATE audit_blocks SET lines = replace(lines, 'somebody', 'operator') WHERE first = 9");
    assert!(acheron(&host, &["audit", "verify"]).0);
    tamper("DELETE FROM audit_blocks WHERE first > 15");
    let (ok, said) = acheron(&host, &["audit", "verify", "--json"]);
    let verdict: Value = serde_json::from_str(&said).unwrap();
    assert!(!ok && verdict["verdict"].as_str().unwrap().starts_with("truncated after 15: "), "{said}");
}
