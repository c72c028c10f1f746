//! Prompts as a person meets them: opened, filled in, read, answered and understood with nothing but a shell.

use expect_test::expect;

use crate::test_host::TestHost;

const SPEC: &str = r#"{
  "layout": "acheron-1", "default_agent": "charon", "prompts": "prompts",
  "agents": {"charon": {"about": "Ferries.", "projects": ["here"]}},
  "projects": {"here": {"binds": {"/": {"path": "work", "read_only": false}}}}
}"#;

fn ferry() -> TestHost {
    TestHost::prepared(SPEC, |here| {
        std::fs::create_dir(here.join("work")).unwrap();
        std::fs::write(here.join("work/notes.txt"), "a note\n").unwrap();
        let folder = here.join("prompts/ferry/crossing");
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            (
                "prompt.json",
                r#"{
  "ns": "ferry", "key": "crossing",
  "params": {"Passenger": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
  "sections": [
    {"key": "who", "title": "Who crosses", "params": "Passenger", "body": "who.md"},
    {"key": "river", "title": "The river", "body": "river.md", "summary": "river.short.md", "visibility": "summary"}
  ],
  "output": {"name": "Fare", "schema": {"type": "object", "required": ["obols"],
    "properties": {"obols": {"type": "integer", "minimum": 1}}}}
}"#,
            ),
            ("who.md", "Take $name across and name the fare."),
            ("river.md", "It is wide and slow, and nobody swims it twice."),
            ("river.short.md", "It is wide."),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
    })
}

#[test]
fn a_prompt_is_filled_in_read_answered_and_understood() {
    ferry().check(
        r#"
        cd agents/self/prompts
        ls templates/ferry/crossing
        echo '{"prompt":"ferry/crossing","id":"one"}' > control/open.json
        jq -c '[.ok, .result.open_id]' result.json
        ls open/one
        cat open/one/text || jq -r .message open/one/error.json
        echo '{"name":"Aeneas"}' > open/one/params/Passenger.json
        cat open/one/text
        echo full > open/one/sections/river/visibility
        tail -n 3 open/one/text
        echo 'He pays. ```json {"obols":"2"}```' > open/one/reply
        cat open/one/output.json
        jq -c '.[] | [.path, .what]' open/one/repairs.json
        echo 'He pays {"obols":0}.' > open/one/reply
        cat open/one/repairs.json
        cat open/one/output.json || jq -c '[.path, .message, .raw]' open/one/error.json
        echo '{"open_id":"one"}' > control/close.json
        jq -c .result result.json
        ls open
        "#,
        expect![[r#"
            README.md
            descriptor.json
            schema.json
            sections.json
            [true,"one"]
            error.json
            output.json
            params
            rendered.json
            repairs.json
            reply
            sections
            session.json
            status.json
            text
            tools.json
            missing parameters for section
            ## 1. Who crosses

            Take Aeneas across and name the fare.

            ## 2. The river

            It is wide.

            ---
            [This section is shown in short: call `read_section` with key "river" to read it.]
            ## 2. The river

            It is wide and slow, and nobody swims it twice.
            {
              "obols": 2
            }
            ["obols","`2` was read as 2"]
            []
            ["obols","0 is less than the minimum of 1","He pays {\"obols\":0}.\n"]
            {"closed":"one","was_open":true,"errors":[]}
            ! cat: open/one/text: Invalid argument
            ! cat: open/one/output.json: Invalid argument
        "#]],
    );
}

#[test]
fn words_are_overridden_and_a_faulty_edit_keeps_the_last_good_prompt() {
    let house = ferry();
    house.check(
        r#"
        cd agents/self/prompts
        show() { echo '{"prompt":"ferry/crossing","params":{"Passenger":{"name":"Dante"}}}' > control/render.json; jq -r .result.text result.json | sed -n 3p; }
        show
        echo '{"prompt":"ferry/crossing","change":{"target":"section","path":"who","body":"Let $nobody pass."}}' > control/override_store.json
        jq -r .error.message result.json
        echo '{"prompt":"ferry/crossing","change":{"target":"section","path":"who","body":"Let $name pass."}}' > control/override_store.json
        jq -c '[.ok, .result.version]' result.json
        show
        "#,
        expect![[r#"
            Take Dante across and name the fare.
            override of ferry/crossing/who, body:1:5: template references unknown placeholder (section who, params Passenger, placeholder nobody)
            [true,2]
            Let Dante pass.
        "#]],
    );
    let text = house.here().join("prompts/ferry/crossing/who.md");
    std::fs::write(&text, "Carry $nmae.").unwrap();
    house.check(
        r#"
        cd agents/self/prompts
        show() { echo '{"prompt":"ferry/crossing","params":{"Passenger":{"name":"Dante"}}}' > control/render.json; jq -r .result.text result.json | sed -n 3p; }
        echo '{}' > control/reload.json; jq -r '.result.faults[]' result.json | sed 's/.*prompts.ferry/ferry/'
        show
        "#,
        expect![[r#"
            ferry/crossing/who.md:1:7: template references unknown placeholder (section who, params Passenger, placeholder nmae)
            Let Dante pass.
        "#]],
    );
    std::fs::write(&text, "Carry $name.").unwrap();
    house.check(
        r#"
        cd agents/self/prompts
        show() { echo '{"prompt":"ferry/crossing","params":{"Passenger":{"name":"Dante"}}}' > control/render.json; jq -r .result.text result.json | sed -n 3p; }
        echo '{}' > control/reload.json; jq -c .result result.json
        show
        echo '{"prompt":"ferry/crossing"}' > control/override_resolve.json
        jq -c '.result | [.sections, .stale[0].target, .stale[0].reason]' result.json
        "#,
        expect![[r#"
            {"faults":[]}
            Carry Dante.
            [[],"who","the section has changed"]
        "#]],
    );
}

#[test]
fn memory_and_files_go_back_to_a_snapshot() {
    let house = ferry();
    house.check(
        r#"
        cd agents/self/prompts
        echo '{"prompt":"ferry/crossing","id":"two","resources":{"remembered":{"kind":"memory"},"files":{"kind":"filesystem","project":"here"}}}' > control/open.json
        jq -c .ok result.json
        echo '{"kind":"note","name":"fare","content":"one obol"}' > ../memory/control/create.json
        jq -c .ok ../memory/result.json
        echo '{"open_id":"two","tag":"before"}' > control/snapshot.json
        jq -c '.result | [.made, .resources.remembered]' result.json
        echo 'two obols' > ../memory/items/fare/content
        echo '{"kind":"note","name":"later","content":"x"}' > ../memory/control/create.json
        jq -c .ok ../memory/result.json
        "#,
        expect![[r#"
            true
            true
            [["files","remembered"],{"fare":1}]
            true
        "#]],
    );
    std::fs::write(house.here().join("work/notes.txt"), "spoilt").unwrap();
    house.check(
        r#"
        cd agents/self/prompts
        echo '{"open_id":"two","snapshot":"before"}' > control/restore.json
        jq -c '.result.resources, .error' result.json
        cat ../memory/items/fare/content; echo
        jq -c .version ../memory/items/fare/meta.json
        ls ../memory/items
        "#,
        expect![[r#"
            ["files","remembered"]
            null
            one obol
            3
            fare
        "#]],
    );
    assert_eq!(std::fs::read_to_string(house.here().join("work/notes.txt")).unwrap(), "a note\n");
}

#[test]
fn what_is_open_keeps_its_template_over_an_edit_and_a_restart_and_says_so() {
    let mut house = ferry();
    house.check(
        r#"
        cd agents/self/prompts
        echo '{"prompt":"ferry/crossing","id":"old","params":{"Passenger":{"name":"Dido"}}}' > control/open.json
        jq -c .ok result.json
        jq -c '[.prompt, .tag, .stale, .stale_because]' open/old/status.json
        "#,
        expect![[r#"
            true
            ["ferry/crossing","latest",false,null]
        "#]],
    );
    std::fs::write(house.here().join("prompts/ferry/crossing/who.md"), "Carry $name.").unwrap();
    let look = r#"
        cd agents/self/prompts
        echo '{}' > control/reload.json; cat result.json > /dev/null
        sed -n 3p open/old/text
        jq -r '.stale_because' open/old/status.json
        echo '{}' > control/list.json; jq -c '.result | [.open, .stale]' result.json
        "#;
    let expected = expect![[r#"
        Take Dido across and name the fare.
        its template was changed after it was opened; open it again to have the new one
        [["old"],["old"]]
    "#]];
    expected.assert_eq(&house.says(look));
    house.restart();
    expected.assert_eq(&house.says(look));
    std::fs::remove_dir_all(house.here().join("prompts/ferry")).unwrap();
    house.check(
        r#"
        cd agents/self/prompts
        echo '{}' > control/reload.json; cat result.json > /dev/null
        sed -n 3p open/old/text
        jq -r '.stale_because' open/old/status.json
        echo '{"open_id":"old"}' > control/close.json; jq -c .ok result.json
        "#,
        expect![[r#"
            Take Dido across and name the fare.
            its template is gone; it can be used until it is closed
            true
        "#]],
    );
}

/// What is known to be wrong while it is written is refused to the writer, who need not look for it.
#[test]
fn a_writer_hears_that_what_it_writes_is_wrong() {
    ferry().check(
        r#"
        cd agents/self/prompts
        echo '{"prompt":"ferry/crossing","id":"one"}' > control/open.json; jq -c .ok result.json
        cd open/one
        echo loud > sections/river/visibility || echo refused
        echo summary > sections/who/visibility || echo refused
        printf fu > sections/river/visibility; echo full > sections/river/visibility && cat sections/river/visibility
        echo '{"name":7}' > params/Passenger.json || echo refused
        echo 'name: Aeneas' > params/Passenger.json || echo refused
        { printf '{"name":'; sleep 0; printf '"Aeneas"}'; } > params/Passenger.json && jq -r .name params/Passenger.json
        echo '[1]' > session.json || echo refused
        "#,
        expect![[r#"
            true
            refused
            refused
            full
            refused
            refused
            Aeneas
            refused
            ! bash: line 5: echo: write error: Invalid argument
            ! bash: line 6: echo: write error: Invalid argument
            ! bash: line 8: echo: write error: Invalid argument
            ! bash: line 9: echo: write error: Invalid argument
            ! bash: line 11: echo: write error: Invalid argument
        "#]],
    );
}
