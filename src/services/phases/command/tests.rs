use expect_test::{Expect, expect};

use super::*;
use crate::services::phases::payload;

fn check(reply: &str, expected: Expect) {
    let marked = marked(reply);
    let payload = payload::find(reply, &marked.commands);
    let emitted = payload.payload.as_ref().map(|found| emitted(&found.value, &found.span)).unwrap_or_default();
    let found = all(marked, emitted);
    let mut shown = String::new();
    for asked in found.commands {
        shown += &format!("{} {}\n", asked.span.start, asked.body);
    }
    for diagnostic in found.diagnostics {
        shown += &format!("! {} {}\n", diagnostic.offset, diagnostic.message);
    }
    expected.assert_eq(&shown);
}

#[test]
fn the_marker_may_be_followed_by_blanks_and_one_colon() {
    for reply in
        ["⟐CMD {\"action\":\"x\"}", "⟐CMD{\"action\":\"x\"}", "⟐CMD: {\"action\":\"x\"}", "⟐CMD\n  {\"action\":\"x\"}"]
    {
        assert_eq!(marked(reply).commands[0].body, serde_json::json!({"action":"x"}), "{reply}");
    }
    check("⟐CMD :: {\"action\":\"x\"}", expect![""]);
}

#[test]
fn both_shapes_of_emit_run_once() {
    check(
        r#"{"control_signature":{"emit":[{"⟐CMD":{"action":"a"}},{"action":"query_symbols","ids":["B"]}]}}"#,
        expect![[r#"
                0 {"action":"a"}
                0 {"action":"query_symbols","ids":["B"]}
            "#]],
    );
    check(
        r#"⟐CMD {"action":"a"} {"control_signature":{"emit":[{"action":"a"}]}}"#,
        expect![[r#"
                0 {"action":"a"}
            "#]],
    );
    check(
        r#"{"control_signature":{"emit":{"action":"a"}}}"#,
        expect![[r#"
            0 {"action":"a"}
        "#]],
    );
}

#[test]
fn bad_entries_of_emit_give_a_diagnostic_and_the_rest_goes_on() {
    check(
        r#"{"control_signature":{"emit":[7,{"action":"a"}]}}"#,
        expect![[r#"
                0 {"action":"a"}
                ! 0 entry 0 of control_signature.emit is not an object
            "#]],
    );
    check(
        r#"{"control_signature":{"emit":"go"}}"#,
        expect![[r#"
            ! 0 control_signature.emit must be a list of commands
        "#]],
    );
}

#[test]
fn a_marker_in_prose_is_not_a_command() {
    check(r#"⟐CMD is a word. Later {"phase_id":"p"}"#, expect![""]);
    check(r#"⟐ CMD {"action":"x"}"#, expect![""]);
    check(r#"⟐cmd {"action":"x"}"#, expect![""]);
    check(r#"CMD {"action":"x"}"#, expect![""]);
    check(r#"⟐CMD [1,2]"#, expect![""]);
    check(r#"⟐CMD [{"action":"q"}]"#, expect![""]);
    check(r#"{"note":"⟐CMD {\"action\":\"x\"}"}"#, expect![""]);
    check(r#"<think>⟐CMD {"action":"x"}</think>"#, expect![""]);
}

#[test]
fn bad_ones_are_named_and_good_ones_run() {
    check(
        r#"⟐CMD {bad json} ⟐CMD {"action":"y"}"#,
        expect![[r#"
                18 {"action":"y"}
                ! 0 key must be a string at line 1 column 2
            "#]],
    );
    check(
        r#"⟐CMD {"action":"x"} ⟐CMD {"action":"y""#,
        expect![[r#"
                0 {"action":"x"}
                ! 22 the object is never closed
            "#]],
    );
}

#[test]
fn what_is_inside_a_command_is_not_another() {
    check(
        r#"⟐CMD {"action":"x","note":"⟐CMD {}"} ⟐CMD {"action":"y","in":{"⟐CMD":{"action":"z"}}}"#,
        expect![[r#"
                0 {"action":"x","note":"⟐CMD {}"}
                41 {"action":"y","in":{"⟐CMD":{"action":"z"}}}
            "#]],
    );
}

#[test]
fn what_is_inside_something_broken_is_no_command() {
    check(
        r#"⟐CMD {"action":"x","note":⟐CMD {"action":"delete_symbol"}"#,
        expect![[r#"
            ! 0 the object is never closed
        "#]],
    );
    check(r#"{"narrative": ⟐CMD {"action":"delete_symbol"}, "next_phase": "b""#, expect![""]);
    check(r#"{"narrative": "he said "⟐CMD {"action":"delete_symbol"}", "x": 1}"#, expect![""]);
}

#[test]
fn commands_in_code_are_text() {
    check("```\n⟐CMD {\"action\":\"x\"}\n```", expect![""]);
    check("Write `⟐CMD {\"action\":\"x\"}` to do it.", expect![""]);
    check("Write ``⟐CMD {\"action\":\"`x\"}`` to do it.", expect![""]);
    check(
        "A lone ` is no code. ⟐CMD {\"action\":\"x\"}",
        expect![[r#"
            21 {"action":"x"}
        "#]],
    );
}

#[test]
fn two_on_one_line_are_two_in_order() {
    check(
        r#"⟐CMD {"action":"a"}⟐CMD {"action":"b"}"#,
        expect![[r#"
                0 {"action":"a"}
                21 {"action":"b"}
            "#]],
    );
}

#[test]
fn a_flood_of_markers_is_cut_off() {
    assert_eq!(marked(&"⟐CMD ".repeat(5000)), ReplyCommands::default());
    assert_eq!(marked(&"⟐CMD {".repeat(50_000)).diagnostics.len(), 1);
    let many = marked(&"⟐CMD {}".repeat(3000));
    assert_eq!((many.commands.len(), many.diagnostics.len()), (2048, 1));
    assert_eq!(marked(&"{".repeat(2 << 20)), ReplyCommands::default());
    assert_eq!(marked(&"{\"".repeat(1 << 20)), ReplyCommands::default());
}

proptest::proptest! {
    #[test]
    fn any_reply_has_an_answer_with_true_spans(reply in "(⟐CMD|⟐|[{}\\[\\]\":, a\\\\]|<think>|</think>|\"action\":\"x\"){0,60}") {
        let found = marked(&reply);
        let mut last = 0;
        for asked in found.commands {
            proptest::prop_assert!(asked.span.start >= last);
            last = asked.span.end;
            proptest::prop_assert!(reply[asked.span].starts_with(MARKER));
        }
    }
}
