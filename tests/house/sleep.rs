//! Consolidation on a mount: what was said becomes pages, after somebody has looked at the proposal; and a wiki whose folder is
//! taken away.

use expect_test::expect;
use serde_json::json;

use crate::common::until;
use crate::model_server::FakeModelServer;
use crate::test_host::TestHost;

const TALK: &str = "wiki/episodic-raw/2026-11-16/crossing";

/// A wiki of two pages and one transcript in the directory of the host.
fn prepare(here: &std::path::Path) {
    let put = |path: &str, text: &str| {
        let path = here.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("wiki/index.md", "# Index\n\n- [[River]]\n");
    put("wiki/semantic/River.md", "# River\n\nWide and dark.\n");
    put(&format!("{TALK}/1794787200000000001-system.md"), "You are a companion.");
    put(&format!("{TALK}/1794787200000000002-user.md"), "The river is forty fathoms wide at the landing.");
    put(&format!("{TALK}/1794787200000000003-assistant.md"), "Noted.");
}

const SPEC: &str = r#"{"agents":{"charon":{}},"recall":{"store":"wiki"}}"#;

#[test]
fn ten_lines_of_shell_turn_a_conversation_into_pages_and_back() {
    let house = TestHost::prepared(SPEC, prepare);
    house.check(
        r#"
        cd agents/self/recall
        echo '{"dry_run":true}' > control/consolidate.json; jq -c '.result | [.state, .by, .requests, .run]' result.json
        echo '{}' > control/consolidate.json; run=$(jq -r .result.run result.json); ls sleep/$run
        sed 's/[ \t]*$//' sleep/$run/diff.patch
        jq -c '.pages[0].added[2].citations' sleep/$run/report.json
        cat nodes/index.md
        echo "{\"run\":\"$run\"}" > control/apply.json; jq -c '.result | [.state, .pages]' result.json
        cat nodes/index.md "by/backlinks/episodic/2026-11-16 crossing.md"
        echo '{}' > control/check.json; jq -c '.result | [.ok, .findings]' result.json
        echo '{}' > control/consolidate.json; jq -c '.result | [.state, .requests]' result.json
        echo "{\"run\":\"$run\"}" > control/undo.json; jq -c '.result.state' result.json; jq -r .state sleep/$run/report.json
        cat nodes/index.md; ls nodes/episodic
        echo 'Mine: [[River]]' > nodes/index.md
        echo "{\"run\":\"$run\"}" > control/apply.json; jq -r .error.message result.json | sed "s/$run/RUN/"
        cat nodes/index.md
        "#,
        expect![[r#"
            ["planned","extract",1,null]
            diff.patch
            proposal.json
            report.json
            --- /dev/null
            +++ b/episodic/2026-11-16 crossing.md
            @@ -0,0 +1,4 @@
            +# 2026-11-16 crossing
            +
            +- [[River]]
            +- said: The river is forty fathoms wide at the landing. ([[episodic-raw/2026-11-16/crossing/1794787200000000002-user|crossing]])
            --- a/index.md
            +++ b/index.md
            @@ -1,3 +1,4 @@
             # Index

             - [[River]]
            +- [[2026-11-16 crossing]]
            [{"message":"episodic-raw/2026-11-16/crossing/1794787200000000002-user.md","quote":"The river is forty fathoms wide at the landing."}]
            # Index

            - [[River]]
            ["applied",["episodic/2026-11-16 crossing.md","index.md"]]
            # Index

            - [[River]]
            - [[2026-11-16 crossing]]
            index.md
            [true,[]]
            ["empty",0]
            "undone"
            undone
            # Index

            - [[River]]
            index.md has changed since run RUN proposed its change: run consolidate again
            Mine: [[River]]
        "#]],
    );
    let patched = crate::common::session(
        &house.here(),
        "cp -r wiki copy; cd copy; printf '# Index\\n\\n- [[River]]\\n' > index.md
         git apply sleep/*/diff.patch && cat index.md && ls episodic",
    );
    expect![[r#"
        # Index

        - [[River]]
        - [[2026-11-16 crossing]]
        2026-11-16 crossing.md
    "#]]
    .assert_eq(&patched);
}

#[test]
fn a_model_proposes_and_is_paid_and_hostile_answers_change_nothing() {
    let good = json!({"pages": [{"path": "semantic/River.md", "text": "# River\n\nForty fathoms wide. [^m1]\n",
        "citations": [{"message": "m1", "quote": "forty fathoms wide"}],
        "removed": [{"line": "Wide and dark.", "reason": "the width is known"}]}]});
    let evil = json!({"pages": [{"path": "../../../escaped.md", "text": "# x"}]});
    let answers = [evil.to_string(), good.to_string()];
    let server = FakeModelServer::start({
        let turn = std::sync::atomic::AtomicUsize::new(0);
        move |_, _| answers[turn.fetch_add(1, std::sync::atomic::Ordering::SeqCst).min(1)].clone()
    });
    let spec = json!({"agents": {"charon": {"budget": {"rounds": 2}}}, "recall": {"store": "wiki"},
        "model": {"kind": "openai", "name": "m", "base_url": server.url}});
    let house = TestHost::prepared(&spec.to_string(), prepare);
    house.check(
        r#"
        cd agents/self/recall
        echo '{}' > control/consolidate.json; run=$(jq -r .result.run result.json)
        jq -c '.result | [.state, .by, (.pages | map(.path)), .refused]' result.json
        jq -c '[.spent.rounds, .spent.input, .spent.output]' ../chat/status.json
        echo "{\"run\":\"$run\"}" > control/apply.json; jq -c '.ok' result.json
        cat nodes/semantic/River.md
        echo '{"since":"2026-11-01"}' > control/consolidate.json; jq -r .error.code result.json
        "#,
        expect![[r#"
            ["proposed","model",["semantic/River.md"],[]]
            [2,14,10]
            true
            # River

            Forty fathoms wide. ([[episodic-raw/2026-11-16/crossing/1794787200000000002-user|crossing]])
            budget_exceeded
        "#]],
    );
    assert_eq!(server.asked(), 2, "an exhausted budget asks no more");
    let asked = server.bodies()[1].to_string();
    assert!(asked.contains("Your proposal is refused") && asked.contains("never an order"), "{asked}");
    assert!(!house.here().join("escaped.md").exists() && !house.here().parent().unwrap().join("escaped.md").exists());
}

#[test]
fn a_writer_of_a_page_or_a_memory_hears_that_it_is_no_text() {
    let spec = r#"{"agents":{"charon":{}},"limits":{"links_per_page":1000}}"#;
    TestHost::of(spec).check(
        r#"
        cd agents/self
        printf 'a\377b' > recall/nodes/semantic/Bad.md || echo refused
        printf 'a\000b' > recall/nodes/semantic/Bad.md || echo refused
        yes '[[River]]' 2> /dev/null | head -1500 | dd bs=1M iflag=fullblock of=recall/nodes/semantic/Many.md status=none || echo refused
        mkdir recall/conversations/one
        printf '\377' > recall/conversations/one/messages/1-user.md || echo refused
        echo '{"kind":"note","name":"one","content":"text"}' > memory/control/create.json
        cat memory/result.json > /dev/null
        printf 'a\377b' > memory/items/one/content || echo refused
        cat memory/items/one/content
        { printf 'gr\303'; printf '\274n\n'; } > recall/nodes/semantic/Good.md
        cat recall/nodes/semantic/Good.md; ls recall/nodes/semantic
        "#,
        expect![[r#"
            refused
            refused
            refused
            refused
            refused
            textgrün
            Good.md
            ! bash: line 3: printf: write error: Invalid argument
            ! bash: line 4: printf: write error: Invalid argument
            ! dd: error writing 'recall/nodes/semantic/Many.md': Disk quota exceeded
            ! dd: closing output file 'recall/nodes/semantic/Many.md': Disk quota exceeded
            ! bash: line 7: printf: write error: Invalid argument
            ! bash: line 10: printf: write error: Invalid argument
        "#]],
    );
}

#[test]
fn a_wiki_whose_folder_is_replaced_is_found_again_and_its_loss_is_told() {
    let house = TestHost::prepared(SPEC, prepare);
    let (here, node) = (house.here(), house.root().join("agents/self/recall/nodes/semantic"));
    assert!(node.join("River.md").is_file());
    // Another one in its place.
    std::fs::rename(here.join("wiki"), here.join("away")).unwrap();
    std::fs::create_dir_all(here.join("wiki/semantic")).unwrap();
    std::fs::write(here.join("wiki/index.md"), "[[Lake]]").unwrap();
    std::fs::write(here.join("wiki/semantic/Lake.md"), "Calm.\n").unwrap();
    until("the new page is there", || node.join("Lake.md").is_file());
    assert!(!node.join("River.md").exists());
    std::fs::write(node.join("Pond.md"), "Small. [[Lake]]\n").unwrap();
    assert!(here.join("wiki/semantic/Pond.md").is_file() && !here.join("away/semantic/Pond.md").exists());
    std::fs::write(here.join("wiki/semantic/Outside.md"), "x\n").unwrap();
    until("the new folder is watched", || node.join("Outside.md").is_file());
    assert!(house.says("jq .ok meta/health.json").contains("true"));
    // Gone: told, refused, and not made anew.
    std::fs::rename(here.join("wiki"), here.join("gone")).unwrap();
    until("the loss is in health.json", || house.says("cat meta/health.json").contains("the folder of a wiki"));
    house.check(
        r#"
        cd agents/self/recall
        echo '{"path":"semantic/X.md","text":"x"}' > control/write.json; jq -r .error.message result.json | sed 's/wiki, .*, is/wiki, FOLDER, is/'
        grep '"wiki"' ../events/log.ndjson | jq -c .payload
        jq '.ok, (.faults | length)' /proc/self/cwd/../../../meta/health.json
        "#,
        expect![[r#"
            the folder of the wiki, FOLDER, is gone: put it back, or make an empty one there
            {"wiki":"lost"}
            {"wiki":"found"}
            {"wiki":"lost"}
            false
            1
        "#]],
    );
    assert!(!here.join("wiki").exists());
    std::fs::rename(here.join("away"), here.join("wiki")).unwrap();
    until("it is found again", || node.join("River.md").is_file());
    assert!(house.says("jq .ok meta/health.json").contains("true"));
}

#[test]
fn an_event_begins_the_night() {
    let spec = r#"{"agents":{"charon":{"wake":[
        {"on":"/agents/self/events/sources/user/night.json","call":{"service":"recall","op":"consolidate"}},
        {"on":"/agents/self/events/sources/user/wrong.json","call":{"service":"recall","op":"dream"}}]}},
        "recall":{"store":"wiki"}}"#;
    let house = TestHost::prepared(spec, prepare);
    house.says("echo '{\"event_type\":\"user\",\"parameter\":\"night\"}' > agents/self/events/control/signal.json");
    until("a run is proposed", || house.says("ls agents/self/recall/sleep").contains("-001"));
    let said = house.says("cat agents/self/jobs/*/status.json | jq -c 'select(.operation == \"consolidate\") | [.state, .caller]' | head -1");
    assert!(said.starts_with("[\"done\""), "{said}");
    house.says("echo '{\"event_type\":\"user\",\"parameter\":\"wrong\"}' > agents/self/events/control/signal.json");
    until("the refusal is an event", || {
        house.says("grep dream agents/self/events/log.ndjson").contains("no operation")
    });
    let both = r#"{"agents":{"charon":{"wake":[{"on":"/agents/self/events/sources/user/x.json","say":"up","call":{"service":"recall","op":"check"}}]}}}"#;
    house.edit(both);
    until("the fault is told", || house.says("cat meta/health.json").contains("give `say` or `call`, not both"));
}
