//! A wiki that is walked: by a model, and by people with `cat`, `ls` and `echo`.

use expect_test::expect;

use crate::test_host::TestHost;

/// A host whose model says these lines, over a wiki of three pages.
fn house(lines: &[&str]) -> TestHost {
    let script: String = lines.iter().map(|line| format!("{}\n", serde_json::json!(line))).collect();
    let spec = r#"{"agents":{"charon":{}},"model":{"kind":"script","name":"script.ndjson"},"recall":{"store":"wiki"}}"#;
    TestHost::prepared(spec, |here| {
        std::fs::write(here.join("script.ndjson"), script).unwrap();
        std::fs::create_dir_all(here.join("wiki/semantic")).unwrap();
        let put = |path: &str, text: &str| std::fs::write(here.join("wiki").join(path), text).unwrap();
        put("index.md", "---\ncreated: 2026-01-01\n---\n# Index\n\n- [[River]]: where it is crossed\n");
        put("semantic/River.md", "# River\n\nWide and dark. The fare is an [[Obol]].\n");
        put("semantic/Obol.md", "# Obol\n\nA small coin.\n");
    })
}

#[test]
fn a_model_walks_from_link_to_link() {
    let lines = ["I look. <recall>River</recall>", "<recall>obol</recall><recall>River.md</recall>", "One small coin."];
    house(&lines).check(
        r#"
        cd agents/self/recall
        mkdir conversations/fare
        echo 'What does it cost to cross?' > conversations/fare/control/input
        cat conversations/fare/latest.txt
        cd conversations/fare/messages
        ls | sed 's/^[0-9]*/NS/'
        cat $(ls | tail -n +2)
        jq -c '[.state, .messages, .window.context_tokens, .window.left_out]' ../status.json
        "#,
        expect![[r#"
            One small coin.
            NS-system.md
            NS-user.md
            NS-assistant.md
            NS-user.md
            NS-assistant.md
            NS-user.md
            NS-assistant.md
            What does it cost to cross?I look. <recall>River</recall><memory name="River">
            # River

            Wide and dark. The fare is an [[Obol]].
            </memory><recall>obol</recall><recall>River.md</recall><memory name="Obol">
            # Obol

            A small coin.
            </memory>

            <cathedral>
            You have `River.md` in front of you already. Answer with what you have.
            </cathedral>One small coin.["idle",7,32768,0]
        "#]],
    );
}

#[test]
fn messages_that_come_at_once_wait_their_turn_and_none_is_lost() {
    let lines: Vec<String> = (0..20).map(|number| format!("answer {number}")).collect();
    house(&lines.iter().map(String::as_str).collect::<Vec<_>>()).check(
        r#"
        cd agents/self/recall
        mkdir conversations/fare
        for i in $(seq 20); do echo "question $i" > conversations/fare/control/input & done; wait
        cat conversations/fare/latest.txt
        cat conversations/fare/messages/*-user.md | grep -o question | wc -l
        ls conversations/fare/messages | sed 1d | sed 's/^[0-9]*-//' | sort | uniq -c
        jq -s -c 'map(.state) | unique' $(ls -d ../jobs/*/status.json | grep -v last)
        mkdir conversations/notes
        for i in $(seq 20); do
            echo "{\"conversation\":\"notes\",\"role\":\"user\",\"text\":\"note $i\"}" > control/add.json &
        done; wait
        until [ "$(ls conversations/notes/messages | wc -l)" = 20 ]; do sleep 0.02; done
        cat $(ls -d ../jobs/*/status.json | grep -v last) | jq -s -c 'map(.state) | unique'
        for i in 1 2 3; do echo '{"conversation":"same"}' > control/new.json & done; wait
        cat $(ls -d ../jobs/*/status.json | grep -v last) | jq -s -c 'map(select(.operation == "new") | .state) | sort'
        "#,
        expect![[r#"
            answer 19
            20
                 20 assistant.md
                 20 user.md
            ["done"]
            ["done"]
            ["done","failed","failed"]
        "#]],
    );
}

#[test]
fn a_conversation_can_be_put_away_and_removed() {
    let house = house(&["one", "two", "three"]);
    house.check(
        r#"
        cd agents/self/recall
        for id in kept gone; do
            mkdir conversations/$id
            echo 'hello' > conversations/$id/control/input
            cat conversations/$id/latest.txt
        done
        mkdir conversations/empty
        rmdir conversations/kept conversations/empty && ls conversations
        rm -r conversations/gone && ls conversations
        rm -r conversations/nothing
        mkdir conversations/third
        echo 'hello' > conversations/third/control/input
        cat conversations/third/latest.txt
        rm conversations/third/latest.txt conversations/third/control/input
        ls conversations/third conversations/third/control
        echo '{"conversation":"third"}' > control/delete.json; jq -c '.result' result.json
        ls conversations
        "#,
        expect![[r#"
            one
            two
            gone
            three
            conversations/third:
            control
            messages
            status.json

            conversations/third/control:
            {"conversation":"third","removed":3}
            ! rm: cannot remove 'conversations/nothing': No such file or directory
        "#]],
    );
    let kept = crate::common::session(&house.here(), "cat wiki/episodic-raw/*/kept/*-user.md; ls wiki/episodic-raw/*");
    expect![[r#"
        hellokept
    "#]]
    .assert_eq(&kept);
}

#[test]
fn a_turn_is_an_operation_too_and_never_goes_on_for_ever() {
    house(&["<recall>../../secret</recall>", "<recall>River</recall>", "wide"]).check(
        r#"
        cd agents/self/recall
        echo '{"message":"How wide?"}' > control/turn.json
        jq -c '.result | [.text, .end, .reads, .generations, (.recalls | map([.name, .code, .path]))]' result.json
        grep -c . prompt.md
        grep '^- ' prompt.md
        "#,
        expect![[r#"
            ["wide","done",2,3,[["../../secret","denied",null],["River","served","semantic/River.md"]]]
            8
            - [[River]]: where it is crossed
        "#]],
    );
}

#[test]
fn the_limits_of_a_turn_are_keys_of_the_mountspec() {
    let lines =
        ["<recall>River</recall><recall>Obol</recall>", "<search>coin</search><search>river</search>", "on", "on"];
    let script: String = lines.iter().map(|line| format!("{}\n", serde_json::json!(line))).collect();
    let spec = r#"{"agents":{"charon":{}},"model":{"kind":"script","name":"script.ndjson"},
        "recall":{"limits":{"recalls":1,"searches":1,"generations":2}}}"#;
    let house = TestHost::prepared(spec, |here| std::fs::write(here.join("script.ndjson"), script).unwrap());
    house.check(
        r#"
        cd agents/self/recall
        echo 'Wide. [[Obol]]' > nodes/semantic/River.md
        echo 'A coin.' > nodes/semantic/Obol.md
        echo '{"message":"go"}' > control/turn.json
        jq -c '.result | [.end, .reads, .searches, .generations, (.recalls | map([.name, .code]))]' result.json
        "#,
        expect![[r#"
            ["limit",1,0,2,[["River","served"],["Obol","limit"]]]
        "#]],
    );
    let refused = TestHost::of(r#"{"agents":{"charon":{}}}"#);
    refused.edit(r#"{"agents":{"charon":{}},"recall":{"limits":{"seconds":0}}}"#);
    crate::common::until("the fault is told", || {
        refused.says("cat meta/health.json").contains("recall.limits.seconds")
    });
}

#[test]
fn the_wiki_is_files() {
    house(&["so"]).check(
        r#"
        cd agents/self/recall
        ls . nodes nodes/semantic by/backlinks/semantic
        cat nodes/semantic/Obol.md by/backlinks/semantic/Obol.md
        echo 'Takes the [[Obol]], knows [[Nobody]].' > nodes/semantic/Charon.md
        cat nodes/semantic/Charon.md by/backlinks/semantic/Obol.md by/broken/semantic/Charon.md
        cat by/orphans/semantic/Charon.md
        echo 'He is old.' >> nodes/semantic/Charon.md
        ls by/recent | wc -l
        mkdir nodes/episodic
        echo 'x' > nodes/episodic/Trip.md
        rm nodes/episodic/Trip.md
        rmdir nodes/episodic
        echo x > nodes/semantic/note.txt
        echo x > nodes/sleep.md/x
        rmdir nodes/semantic
        cat by/orphans/semantic/River.md
        "#,
        expect![[r#"
            .:
            CAPS.json
            OPS.json
            PERMISSIONS.json
            README.md
            SCHEMA.json
            by
            control
            conversations
            index.md
            nodes
            prompt.md
            result.json
            sleep
            status.json

            by/backlinks/semantic:
            Obol.md
            River.md

            nodes:
            index.md
            semantic

            nodes/semantic:
            Obol.md
            River.md
            # Obol

            A small coin.
            semantic/River.md
            Takes the [[Obol]], knows [[Nobody]].
            semantic/Charon.md
            semantic/River.md
            1: [[Nobody]] not_found
            Takes the [[Obol]], knows [[Nobody]].
            3
            ! bash: line 14: nodes/semantic/note.txt: Permission denied
            ! bash: line 15: nodes/sleep.md/x: No such file or directory
            ! rmdir: failed to remove 'nodes/semantic': Directory not empty
            ! cat: by/orphans/semantic/River.md: No such file or directory
        "#]],
    );
}

#[test]
fn edits_by_others_are_seen() {
    let house = house(&["so"]);
    let wiki = house.here().join("wiki/semantic");
    let node = house.root().join("agents/self/recall/nodes/semantic/New.md");
    assert!(!node.exists());
    std::fs::write(wiki.join("New.md"), "first\n").unwrap();
    crate::common::until("the page is there", || node.is_file());
    assert_eq!(std::fs::read_to_string(&node).unwrap(), "first\n");
    std::fs::write(wiki.join("New.md"), "the second is longer\n").unwrap();
    crate::common::until("the page is new", || std::fs::read_to_string(&node).unwrap() == "the second is longer\n");
    std::fs::remove_file(wiki.join("New.md")).unwrap();
    crate::common::until("the page is gone", || !node.exists());
}

#[test]
fn a_large_wiki_shows_how_far_it_is_read_and_is_read_once() {
    let spec = r#"{"agents":{"charon":{}},"recall":{"store":"wiki"}}"#;
    let mut house = TestHost::prepared(spec, |here| {
        std::fs::create_dir_all(here.join("wiki/semantic")).unwrap();
        for number in 0..2000 {
            let text = format!("# Page {number}\n\n{} word{number} [[P{}]]\n", "plain text ".repeat(50), number + 1);
            std::fs::write(here.join(format!("wiki/semantic/P{number}.md")), text).unwrap();
        }
        std::fs::write(here.join("wiki/index.md"), "[[P0]]\n").unwrap();
        crate::common::session(here, "find wiki -name '*.md' -exec touch -d '2 days ago' {} +");
    });
    let script = r#"
        cd agents/self/recall
        jq -c .progress status.json
        ls nodes/semantic | wc -l
        jq -c '.progress | [.pages, .to_read]' status.json
        echo '{"query":"word1234"}' > control/search.json; jq -c '[.result.hits[0].path]' result.json
        jq -c .progress status.json
        ls by/broken/semantic by/backlinks/semantic | wc -l
        grep -c '"indexed":2001' ../events/log.ndjson
        "#;
    house.check(
        script,
        expect![[r#"
        null
        2000
        [2001,2001]
        ["semantic/P1234.md"]
        {"index":"ready","pages":2001,"to_read":2001,"read":2001}
        2004
        1
    "#]],
    );
    house.restart();
    house.check(
        script,
        expect![[r#"
        null
        2000
        [2001,0]
        ["semantic/P1234.md"]
        {"index":"ready","pages":2001,"to_read":0,"read":0}
        2004
        1
    "#]],
    );
}

#[test]
fn a_page_that_is_renamed_keeps_its_links() {
    let mut house = house(&["so"]);
    house.check(
        r#"
        cd agents/self/recall
        printf -- '---\naliases: [Charon fee]\n---\n# The coin\n\n[r](River.md)\n' > nodes/semantic/Obol.md
        echo 'See [[Obol|a coin]], [[Charon fee]], [o](Obol.md#x) and [[semantic/Obol]].' > nodes/semantic/Fare.md
        mkdir nodes/episodic
        mv nodes/semantic/Obol.md nodes/episodic/Drachma.md && ls nodes/semantic nodes/episodic
        cat nodes/semantic/Fare.md nodes/episodic/Drachma.md nodes/semantic/River.md
        cat by/backlinks/episodic/Drachma.md; ls by/broken
        mv nodes/semantic/Fare.md nodes/semantic/River.md
        mv nodes/semantic/Fare.md nodes/semantic/Fare.txt
        mv nodes/index.md nodes/start.md
        echo '{"name":"the coin","to":"semantic/Coin.md"}' > control/rename.json; jq -c .result result.json
        cat nodes/semantic/Fare.md
        for name in 'Charon Fee' 'coin#Nowhere'; do
            echo "{\"name\":\"$name\"}" > control/read.json; jq -c '.result | [.path, .missing_heading]' result.json
        done
        "#,
        expect![[r#"
            nodes/episodic:
            Drachma.md

            nodes/semantic:
            Fare.md
            River.md
            See [[Drachma|a coin]], [[Charon fee]], [o](../episodic/Drachma.md#x) and [[episodic/Drachma]].
            ---
            aliases: [Charon fee]
            ---
            # The coin

            [r](../semantic/River.md)
            # River

            Wide and dark. The fare is an [[Drachma]].
            semantic/Fare.md
            semantic/River.md
            {"from":"episodic/Drachma.md","to":"semantic/Coin.md","relinked":["semantic/Fare.md","semantic/River.md"]}
            See [[Coin|a coin]], [[Charon fee]], [o](Coin.md#x) and [[semantic/Coin]].
            ["semantic/Coin.md",null]
            ["semantic/Coin.md","Nowhere"]
            ! mv: cannot move 'nodes/semantic/Fare.md' to 'nodes/semantic/River.md': File exists
            ! mv: cannot move 'nodes/semantic/Fare.md' to 'nodes/semantic/Fare.txt': Operation not permitted
            ! mv: cannot move 'nodes/index.md' to 'nodes/start.md': Operation not permitted
        "#]],
    );
    house.restart();
    house.check(
        "cat agents/self/recall/by/backlinks/semantic/Coin.md",
        expect![[r#"
            semantic/Fare.md
            semantic/River.md
        "#]],
    );
}

#[test]
fn questions_about_the_wiki_are_answered() {
    house(&["so"]).check(
        r#"
        cd agents/self/recall
        ask() { echo "$2" > control/$1.json; jq -c "$3" result.json; }
        ask search '{"query":"small coin"}' '.result.hits[] | [.path, .score, .snippet, (.why | map(.because))]'
        ask read '{"name":"[[river|water]]"}' '.result | [.path, .title]'
        ask read '{"name":"../script.ndjson"}' '.error.code'
        ask links '{"name":"River"}' '.result.links'
        ask backlinks '{"name":"Obol"}' '.result.pages'
        ask orphans '{}' '.result.pages'
        ask broken '{}' '.result.broken'
        ask check '{}' '.result | [.ok, .nodes]'
        ask tokens '{}' '.result.pages | map(.path)'
        ask write '{"path":"semantic/River.md","text":"[[Gone]]"}' '.ok'
        ask check '{}' '.result.findings | map([.code, .path])'
        ask new '{"conversation":"a"}' '.result'
        ask add '{"conversation":"a","role":"user","text":"hi"}' '.result.text'
        ask gen '{"conversation":"a"}' '.result.text'
        ask gen '{"conversation":"b"}' '.error.message'
        ls conversations/a/messages | wc -l
        "#,
        expect![[r#"
            ["semantic/Obol.md",1244,"A small coin.",["text","lead","text","lead","near"]]
            ["semantic/River.md",186,"Wide and dark. The fare is an [[Obol]].",["linked"]]
            ["semantic/River.md","River"]
            "forbidden"
            [{"link":"Obol","line":3,"to":"semantic/Obol.md"}]
            ["semantic/River.md"]
            []
            []
            [true,2]
            ["semantic/River.md","index.md","semantic/Obol.md"]
            true
            [["broken_link","semantic/River.md"],["orphan","semantic/Obol.md"]]
            {"conversation":"a"}
            "hi"
            "so"
            "there is no conversation b"
            3
        "#]],
    );
}
