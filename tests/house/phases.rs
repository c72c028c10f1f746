//! Phases and symbols as somebody meets them in a shell.

use expect_test::expect;

use crate::model_server::{CUT, FakeModelServer};
use crate::test_host::TestHost;

#[test]
fn a_query_goes_through_its_phases_and_leaves_a_trace() {
    TestHost::new().check(
        r#"
        cd agents/self/phases
        jq -r '.sets[] | select(.set == "recursive") | .phases[].phase_id' phases.json
        echo '{"query":"How do we mend trust?","session_id":"first"}' > control/run.json
        jq -c '[.ok, .result.stop_reason, (.result.intermediate_responses | length)]' result.json
        cd runs/*
        ls
        jq -c '[.state, .phase_id, .iteration]' status.json
        cut -c 1-46 reply.txt
        head -n 1 reply.raw.txt | jq -r .narrative | cut -c 1-20
        jq -r .action commands.ndjson | sort | uniq -c | sort -rn | head -n 1
        grep -c 'CURRENT_QUERY: How do we mend trust?' context.md
        cd ../..
        jq -r .role sessions/first/history.ndjson | head -n 1
        jq -r 'select(.path | contains("/phases/")) | .payload.what' ../events/log.ndjson | sort | uniq -c
        echo '{"query":"x","session_id":"../evil"}' > control/run.json
        jq -r .error.code result.json
        "#,
        expect![[r#"
            symbolize_input
            recurse_thought
            synthesize_symbols
            validate_symbols
            build_output
            [true,"complete",5]
            commands.ndjson
            context.md
            reply.raw.txt
            reply.txt
            status.json
            symbols.json
            trace.ndjson
            ["done","build_output",5]
            I am a scripted guide, not a language model: I
            I am a scripted guid
                  3 query_symbols
            1
            query
                  5 command
                  5 context
                  1 end
                  5 phase
            invalid_payload
            ! bash: line 16: echo: write error: Invalid argument
        "#]],
    );
}

#[test]
fn a_run_has_the_window_of_the_model_that_the_agent_has_now() {
    TestHost::new().check(
        r#"
        run() { exec 3<>control/run.json; echo '{"query":"trust","session_id":"s"}' >&3; jq -c '.error.message // .result.stop_reason' <&3; exec 3>&-; }
        cd agents/self/phases
        run
        before=$(cat runs/*/context.md | wc -c); [ $before -gt 5000 ] && echo "more than 5000 bytes"
        echo '{"agent_id":"charon","model":{"context_tokens":1200}}' > ../agents/control/update.json; jq .ok ../agents/result.json
        run; [ $(cat runs/*/context.md | wc -c) -lt $((before + 5000)) ] && echo "fewer than 5000 bytes"
        echo '{"agent_id":"charon","model":{},"limits":{"tokens":10}}' > ../agents/control/update.json; jq .ok ../agents/result.json
        run
        "#,
        expect![[r#"
            "complete"
            more than 5000 bytes
            true
            "complete"
            fewer than 5000 bytes
            true
            "the run has used its 10 tokens"
        "#]],
    );
}

#[test]
fn a_symbol_is_found_changed_and_taken_back() {
    TestHost::new().check(
        r#"
        cd agents/self/symbols
        jq -r .name items/ACH-Trust-Repair-005.json
        jq -c . domains.json
        echo '{"query":"mend a broken promise","k":2}' > control/search.json
        jq -r '.result.hits[0].id' result.json
        echo '{"body":{"id":"ACH-Trust-Repair-005","name":"Mended"},"reason":"shorter"}' > control/update.json
        jq -c '[.result.version, .result.body.name]' result.json
        echo '{"id":"ACH-Trust-Repair-005"}' > control/undo.json
        jq -c '[.result.version, .result.body.name]' result.json
        echo '{"id":"ACH-Trust-Repair-005"}' > control/ledger.json
        jq -c '.result.changes[] | [.version, .act, .by.who, .reason]' result.json
        "#,
        expect![[r#"
            Trust Repair
            ["cognition","defense","governance","memory","narrative","root","work"]
            ACH-Trust-Repair-005
            [2,"Mended"]
            [3,"Trust Repair"]
            [1,"put","catalogue","shipped"]
            [2,"put","operator","shorter"]
            [3,"undo","operator",null]
        "#]],
    );
}

const LIBRARY: &str = r#"{
  "layout": "acheron-1", "default_agent": "charon", "library": "lib",
  "agents": {"charon": {"about": "Ferries."}}
}"#;

/// What the library holds is what counts: the sets of phases, and the symbols with which every session begins.
#[test]
fn the_default_context_and_the_phases_come_from_the_library_as_it_is_now() {
    let defaults = |id: &str| format!(r#"{{"default_agent_ids": [], "default_symbol_ids": ["{id}"]}}"#);
    let host = TestHost::prepared(LIBRARY, |here| {
        for folder in ["lib/catalogue", "lib/prompts/own"] {
            std::fs::create_dir_all(here.join(folder)).unwrap();
        }
        std::fs::write(here.join("lib/Index.md"), "# Library\n").unwrap();
        std::fs::write(here.join("lib/prompts/own/00-look.txt"), "---\nphase_id: look\n---\nLook.\n").unwrap();
        std::fs::write(here.join("lib/catalogue/default_context_config.json"), defaults("ACH-Calm-Hold-033")).unwrap();
    });
    let file = host.here().join("lib/catalogue/default_context_config.json");
    let run = r#"
        cd agents/self/phases
        jq -c '[.sets[].set]' phases.json
        exec 3<>control/run.json; echo '{"query":"qqq","session_id":"s","set":"own"}' >&3
        jq -c '.error.message // .result.symbols_used[0]' <&3; exec 3>&-
        "#;
    let mut said = host.says(run);
    std::fs::write(&file, defaults("ACH-Deadline-Guard-036")).unwrap();
    said += &host.says(run);
    std::fs::write(&file, "{").unwrap();
    said += &host.says(run);
    std::fs::remove_file(&file).unwrap();
    said += &host.says(run);
    expect![[r#"
        ["own","recursive"]
        "ACH-Calm-Hold-033"
        ["own","recursive"]
        "ACH-Deadline-Guard-036"
        ["own","recursive"]
        "default context configuration is malformed: EOF while parsing an object at line 1 column 1"
        ["own","recursive"]
        "ACH-Signal-Anchor-001"
    "#]]
    .assert_eq(&said);
}

#[test]
fn an_answer_that_the_server_cut_at_its_token_limit_is_told_as_cut() {
    let server = FakeModelServer::start(|_, _| format!("It goes on and on{CUT}"));
    let spec = serde_json::json!({"agents": {"charon": {}},
        "model": {"kind": "openai", "name": "m", "base_url": server.url}});
    let host = TestHost::of(&spec.to_string());
    let said = host.says(
        r#"
        cd agents/self/phases
        echo '{"query":"trust","session_id":"s"}' > control/run.json
        jq -c '.result | [.stop_reason, .intermediate_responses[0].diagnostics[-1].message]' result.json
        "#,
    );
    assert_eq!(said, "[\"cut\",\"the reply was cut at the token limit of the model\"]\n");
    assert_eq!(server.asked(), 4, "it may go on three times");
}
