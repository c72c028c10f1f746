//! What one agent may keep on the host: beyond a limit it is refused, by whatever door, and the refusal says which.

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::until;
use crate::test_host::TestHost;

fn spec(limits: &Value) -> String {
    json!({"layout": "acheron-1", "agents": {"charon": {}, "styx": {}}, "limits": limits}).to_string()
}

/// Signals of a megabyte, each with its outcome.
const SIGNALS: &str = r#"cd agents/charon/events
    head -c 1000000 /dev/zero | tr '\0' x > /tmp/mega.$$
    for i in $(seq 20); do
        { printf '{"event_type":"user","payload":"'; cat /tmp/mega.$$; echo '"}'; } |
            dd bs=2M iflag=fullblock status=none of=control/signal.json 2>&1 | sed 's/.*: //'
    done | sort | uniq -c | sed 's/^ *//'
    rm /tmp/mega.$$"#;

#[test]
fn signals_beyond_the_limit_are_refused_and_do_not_come_back() {
    let mut house = TestHost::of(&spec(&json!({"signals_bytes": 5_000_000})));
    house.check(
        SIGNALS,
        expect![[r#"
            16 Disk quota exceeded
        "#]],
    );
    // Another sender is not refused for it.
    house.check(
        r#"echo '{"command":"echo {\\\"event_type\\\":\\\"user\\\"} > /agents/self/events/control/signal.json; echo $?"}' > agents/charon/terminal/control/exec.json
        jq -r .result.stdout agents/charon/terminal/result.json
        jq -r .error.message agents/charon/events/status.json"#,
        expect![[r#"
            0

            null
        "#]],
    );
    house.restart();
    house.check(
        SIGNALS,
        expect![[r#"
            20 Disk quota exceeded
        "#]],
    );
    house.check(
        "jq -r .error.message agents/charon/events/status.json",
        expect![[r#"
            the signals from this sender would have 5000345 bytes, and at most 5000000 are allowed: send less, or have the operator raise `limits.signals_bytes` in the mountspec
        "#]],
    );
    // The operator raises it: no new mount is needed.
    house.edit(&spec(&json!({"signals_bytes": 6_000_000})));
    until("a signal is taken again", || {
        house.says(r#"echo '{"event_type":"user"}' > agents/charon/events/control/signal.json && echo taken"#)
            == "taken\n"
    });
}

#[test]
fn memories_beyond_the_limit_are_refused_by_every_door() {
    let house = TestHost::of(&spec(&json!({"memory_bytes": 30_000})));
    house.check(
        r#"cd agents/charon/memory; x=$(head -c 10000 /dev/zero | tr '\0' x)
        for i in 1 2 3 4; do
            echo "{\"kind\":\"note\",\"name\":\"n$i\",\"content\":\"$x\"}" > control/create.json
            jq -r '.error.message // "kept"' result.json
        done
        printf %s "$x" | dd of=items/n1/content conv=fsync status=none 2>&1 | sed 's/.*: //'
        mkdir items/empty && ls items
        wc -c < items/n1/content; ls items/n1/versions
        echo "{\"memory_path\":\"/agents/charon/memory/items/n1\",\"append\":\"$x\"}" > control/mutate.json; jq -r .error.code result.json"#,
        expect![[r#"
            kept
            kept
            kept
            the memories would have 40000 bytes, and at most 30000 are allowed: write less, or have the operator raise `limits.memory_bytes` in the mountspec
            Disk quota exceeded
            Disk quota exceeded
            empty
            n1
            n2
            n3
            10000
            1
            quota_exceeded
        "#]],
    );
}

#[test]
fn files_beyond_the_limit_are_refused_by_every_door() {
    let house = TestHost::of(&spec(&json!({"files_bytes": 60_000, "links_per_page": 3})));
    house.check(
        r#"cd agents/charon/recall; head -c 50000 /dev/zero | tr '\0' x > nodes/semantic/Big.md; ls nodes/semantic
        head -c 50000 /dev/zero | tr '\0' x | dd of=nodes/semantic/More.md conv=fsync status=none 2>&1 | sed 's/.*: //'
        echo "{\"path\":\"semantic/More.md\",\"text\":\"$(head -c 50000 /dev/zero | tr '\0' y)\"}" > control/write.json
        jq -r .error.message result.json | sed 's/have [0-9]* bytes/have N bytes/'
        echo "{\"conversation\":\"talk\",\"role\":\"user\",\"text\":\"$(head -c 50000 /dev/zero | tr '\0' y)\"}" > control/add.json
        mkdir conversations/talk
        echo "{\"conversation\":\"talk\",\"role\":\"user\",\"text\":\"$(head -c 50000 /dev/zero | tr '\0' y)\"}" > control/add.json
        jq -r .error.code result.json
        echo '[[a]] [[b]] [[c]] [[d]]' | dd of=nodes/semantic/Links.md conv=fsync status=none 2>&1 | sed 's/.*: //'
        echo '{"path":"semantic/Links.md","text":"[[a]] [[b]] [[c]] [[d]]"}' > control/write.json; jq -r .error.message result.json
        rm nodes/semantic/Big.md; head -c 30000 /dev/zero | tr '\0' x > nodes/semantic/Again.md; ls nodes/semantic"#,
        expect![[r#"
            Big.md
            Disk quota exceeded
            Disk quota exceeded
            the files of the agent would have N bytes, and at most 60000 are allowed: remove some, or have the operator raise `limits.files_bytes` in the mountspec
            quota_exceeded
            Disk quota exceeded
            Disk quota exceeded
            the page would have 4 links, and at most 3 are allowed: divide it, or have the operator raise `limits.links_per_page` in the mountspec
            Again.md
        "#]],
    );
}

#[test]
fn a_turn_whose_transcript_is_too_long_ends_and_old_transcripts_go() {
    let read =
        json!({"answer": {"tool_calls": [{"name": "file_read", "arguments": {"path": "/projects/here/fs/long.txt"}}]}});
    let script: String = (0..40).map(|_| format!("{read}\n")).collect();
    let spec = json!({"layout": "acheron-1", "limits": {"turns_bytes": 60_000},
        "model": {"kind": "script", "name": "script.ndjson"}, "agents": {"charon": {"projects": ["here"]}},
        "projects": {"here": {"binds": {"/": {"path": "."}}}}});
    let house = TestHost::prepared(&spec.to_string(), |here| {
        std::fs::write(here.join("script.ndjson"), script).unwrap();
        std::fs::write(here.join("long.txt"), "x".repeat(3000)).unwrap();
    });
    house.check(
        r#"for i in 1 2; do echo work > agents/charon/chat/control/input; cat agents/charon/chat/latest.txt; done |
            sed 's/have 6[0-9]* bytes/have N bytes/'"#,
        expect![[r#"
            the transcript of the turn would have N bytes, and at most 60000 are allowed: begin another turn, or have the operator raise `limits.turns_bytes` in the mountspec
            the transcript of the turn would have N bytes, and at most 60000 are allowed: begin another turn, or have the operator raise `limits.turns_bytes` in the mountspec
        "#]],
    );
    let kept = || {
        let database = acheron_store::Connection::open(house.state().join(acheron_store::FILE)).unwrap();
        acheron::state::turns::sizes(&database, "charon").unwrap().len()
    };
    assert_eq!(kept(), 2);
    house.inside(async |host| acheron::host::tidy::tidy(&host.state).await.unwrap());
    assert_eq!(kept(), 0, "each is larger than all may be");
}
