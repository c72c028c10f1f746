//! Agents that try to be more than they are.

use expect_test::expect;

use crate::house::House;

/// Runs a command in the terminal of charon.
const RUN: &str = r#"run() { jq -cn --arg c "$1" '{command: $c}' > agents/charon/terminal/control/exec.json
    jq -r '.result.stdout + .result.stderr + (.error.message // "")' agents/charon/terminal/result.json; }
"#;

#[test]
fn an_agent_gives_no_model_and_no_wake_and_knows_only_whom_it_sees() {
    let house = House::of(
        r#"{ "layout": "acheron-1", "agents": { "charon": { "projects": ["p"] , "permissions": [
                { "allow": ["invoke"], "path": "/agents/styx/agents/control/update.json" },
                { "allow": ["read"], "path": "/nodes/**" }] }, "styx": {} , "ada": {} },
             "projects": { "p": { "binds": { "/": { "path": "." } } } } }"#,
    );
    let script = r#"
        run 'cd /agents/self; s=sub_brains/control/upsert.json
             echo "{\"brain\":\"spy\",\"about\":\"x\",\"model\":{\"kind\":\"openai\",\"name\":\"m\",\"base_url\":\"http://127.0.0.1:1\"}}" > $s
             jq -r .error.message sub_brains/result.json
             echo "{\"agent_id\":\"styx\",\"wake\":[]}" > agents/control/update.json; jq -r .error.message agents/result.json
             echo "{\"agent_id\":\"ada\"}" > agents/control/get.json; jq -r .error.message agents/result.json
             jq -c keys /nodes/local/STATUS.json'
        "#;
    house.check(
        &format!("{RUN}{script}"),
        expect![[r#"
            only the operator gives a sub-brain a model; without one it thinks with its parent's
            only the operator gives an agent a model, limits, a budget, permissions, projects or wakes
            there is no agent `ada`
            ["ok","started_at_ms","uptime_ms"]

        "#]],
    );
}

#[test]
fn rules_for_a_project_hold_in_its_terminal() {
    let house = House::prepared(
        r#"{ "layout": "acheron-1", "agents": { "charon": { "projects": ["p"], "permissions": [
                { "deny": ["read", "write"], "path": "/projects/p/fs/secret/**" },
                { "deny": ["write"], "path": "/projects/p/fs/fixed/**" }] } },
             "projects": { "p": { "binds": { "/": { "path": ".", "read_only": false } } } } }"#,
        |here| {
            for name in ["secret", "fixed"] {
                std::fs::create_dir(here.join(name)).unwrap();
                std::fs::write(here.join(name).join("key"), "k\n").unwrap();
            }
        },
    );
    house.check(
        &format!("{RUN} run 'cat secret/key 2>/dev/null || echo hidden; cat fixed/key; (echo x > fixed/key) 2>/dev/null || echo fixed'"),
        expect![["hidden\nk\nfixed\n\n"]],
    );
}
