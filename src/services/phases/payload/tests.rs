use expect_test::{Expect, expect};

use super::*;
use crate::services::phases::command::marked;

fn check(reply: &str, expected: Expect) {
    let search = find(reply, &marked(reply).commands);
    let payload =
        search.payload.map_or_else(|| "none".to_owned(), |found| format!("{} at {:?}", found.value, found.span));
    let rejected: Vec<String> =
        search.rejected.iter().map(|fault| format!("; {} {}", fault.offset, fault.message)).collect();
    expected.assert_eq(&(payload + &rejected.concat()));
}

#[test]
fn a_bare_object_is_the_payload() {
    check(r#"{"next_phase":"x"}"#, expect![[r#"{"next_phase":"x"} at 0..18"#]]);
    check(r#"{"a":"}"} tail"#, expect![[r#"{"a":"}"} at 0..9"#]]);
}

#[test]
fn fences_and_prose_do_not_matter() {
    check("```json\n{\"a\":1}\n```", expect![[r#"{"a":1} at 8..15"#]]);
    check("```\n{\"a\":1}\n```", expect![[r#"{"a":1} at 4..11"#]]);
    check("Well.\n```json\n{\"a\":1}\n```\nDone.", expect![[r#"{"a":1} at 14..21"#]]);
    check("```json\n{\"a\":1}\n``` and so on", expect![[r#"{"a":1} at 8..15"#]]);
}

#[test]
fn the_first_of_two_objects_wins() {
    check(r#"text {"next_phase":"a"} more {"next_phase":"b"}"#, expect![[r#"{"next_phase":"a"} at 5..23"#]]);
}

#[test]
fn commands_are_not_payloads() {
    check("{\"next_phase\":\"x\"}\n⟐CMD {\"action\":\"y\"}", expect![[r#"{"next_phase":"x"} at 0..18"#]]);
    check("⟐CMD {\"action\":\"y\"}\n{\"next_phase\":\"x\"}", expect![[r#"{"next_phase":"x"} at 22..40"#]]);
    check("⟐CMD {\"action\":\"y\"}", expect!["none"]);
}

#[test]
fn thoughts_are_skipped() {
    check(r#"<think>{bad}</think>{"next_phase":"x"}"#, expect![[r#"{"next_phase":"x"} at 20..38"#]]);
    check(r#"<think>{"next_phase":"no"}</think>{"next_phase":"x"}"#, expect![[r#"{"next_phase":"x"} at 34..52"#]]);
    check(r#"<think>{"next_phase":"no"}"#, expect!["none"]);
}

#[test]
fn lists_nulls_strings_and_nothing_are_no_payload() {
    for reply in [r#"[{"next_phase":"a"}]"#, "```json\n[{\"a\":1}]\n```", "null", "\"str\"", "", "   ", "plain words"] {
        check(reply, expect!["none"]);
    }
}

#[test]
fn what_does_not_parse_is_named_and_passed_over() {
    check(r#"{"a":1,}"#, expect!["none; 0 trailing comma at line 1 column 8"]);
    check(r#"{bad} {"a":1}"#, expect![[r#"{"a":1} at 6..13; 0 key must be a string at line 1 column 2"#]]);
}

/// A payload that does not parse is none: nothing inside it, and nothing after it in the same stretch of text, is one.
#[test]
fn nothing_inside_a_broken_payload_is_the_payload() {
    let nested = r#"{"control_signature":{"emit":[{"action":"delete_symbol","id":"A"}]}}"#;
    for reply in [
        format!(r#"{{"next_phase":"b","x":{nested},}}"#),
        format!(r#"{{next_phase:"b","x":{nested}}}"#),
        format!(r#"{{"next_phase":"b","x":{nested}"#),
        format!(r#"{{"text":"a "b}}","x":{nested}}}"#),
        format!("```json\n{{\"next_phase\":\"b\",\"x\":{nested}\n```\n"),
        format!(r#"[{nested},"#),
        r#"{"note":"cut here","x":{"a":1},"y":"#.to_owned(),
        format!(r#"⟐CMD {{"action":"x","x":{nested}"#),
    ] {
        let search = find(&reply, &marked(&reply).commands);
        assert_eq!(search.payload, None, "{reply}");
    }
}

#[test]
fn a_brace_in_a_code_span_opens_nothing() {
    check("Objects begin with `{`. {\"a\":1}", expect![[r#"{"a":1} at 24..31"#]]);
    check("So: `{\"a\":1}`", expect![[r#"{"a":1} at 5..12"#]]);
    check("```\n{\"a\": \n```\n{\"b\":2}", expect![[r#"{"b":2} at 15..22; 4 the object is never closed"#]]);
}

#[test]
fn two_megabytes_of_braces_are_bounded() {
    let search = find(&"{".repeat(2 << 20), &[]);
    assert_eq!((search.payload, search.rejected.len()), (None, 1));
    let far = format!("{}{{\"a\":1}}", " ".repeat(super::super::scan::LONGEST));
    assert_eq!(find(&far, &[]).payload, None, "what is too far is not read");
}

/// Every reply of the corpus, cut at every place and with every byte once spoilt.
#[test]
fn the_corpus_is_read_however_it_is_damaged() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/phase_payload");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for place in 0..=bytes.len() {
            for spoilt in [b'{', b'"', 0xff] {
                let mut damaged = bytes.clone();
                if let Some(byte) = damaged.get_mut(place) {
                    *byte = spoilt;
                }
                for text in [&damaged[..], &damaged[..place]] {
                    let reply = String::from_utf8_lossy(text);
                    find(&reply, &marked(&reply).commands);
                    count += 1;
                }
            }
        }
    }
    assert!(count > 1000, "{count}");
}

#[test]
fn a_wish_that_is_no_name_is_strange() {
    let kind = |text: &str| match wish(&serde_json::from_str(text).unwrap()) {
        NextPhase::None => "none".to_owned(),
        NextPhase::Phase(name) => name,
        NextPhase::Strange(shown) => format!("strange {shown}"),
    };
    for (payload, expected) in [
        ("{}", "none"),
        (r#"{"next_phase":null}"#, "none"),
        (r#"{"next_phase":""}"#, "none"),
        (r#"{"next_phase":"a"}"#, "a"),
        (r#"{"next_phase":["a"]}"#, r#"strange ["a"]"#),
        (r#"{"next_phase":7}"#, "strange 7"),
    ] {
        assert_eq!(kind(payload), expected);
    }
}

proptest::proptest! {
    #[test]
    fn any_reply_has_an_answer(reply in "(⟐CMD|[{}\\[\\]\":, a\\\\`\n]|<think>|</think>|\"a\":1){0,80}") {
        let search = find(&reply, &marked(&reply).commands);
        if let Some(found) = search.payload {
            proptest::prop_assert!(found.value.is_object());
            proptest::prop_assert_eq!(serde_json::from_str::<Value>(&reply[found.span]).unwrap(), found.value);
        }
    }
}
