//! Commands in a reply: `⟐CMD {"action": …}`, and the entries of `control_signature.emit`.
//!
//! The grammar is narrow on purpose: the marker, optional blanks and one colon, an object, and nothing between. A marker
//! that stands in prose, in a thought or in the string of some object is not a command. Everything that was meant as one
//! and is none gives a diagnostic with its place; the rest goes on.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::scan::{Patience, bounded, thoughts, within};

/// What a command begins with: U+27D0 and three letters.
pub const MARKER: &str = "⟐CMD";
/// The most markers that are looked at in one reply.
const MOST_MARKERS: usize = 1024;

/// Something that the model asked the host to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub body: Value,
    /// Where it stood in the reply.
    pub span: Range<usize>,
}

/// Something that was meant as a command or a payload, and is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// The byte of the reply at which it begins.
    pub offset: usize,
    pub message: String,
}

/// What a reply holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub commands: Vec<Asked>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Finds the commands that are written with a marker outside any other object.
pub fn marked(reply: &str) -> Found {
    let text = bounded(reply);
    let thoughts = thoughts(text);
    let mut found = Found::default();
    let mut at = 0;
    let mut seen = 0;
    let mut patience = Patience::default();
    while let Some(place) = next(text, at) {
        if let Some(thought) = within(&thoughts, place) {
            at = thought.end;
            continue;
        }
        if text.as_bytes()[place] == b'{' {
            // An object that is not a command: markers inside it are its own (a payload's emit list, a string).
            at = patience.object(text, place).map_or(place + 1, |(_, end)| end);
            if patience.is_over() {
                break;
            }
            continue;
        }
        seen += 1;
        if seen > MOST_MARKERS || patience.is_over() {
            let message = "too many markers or broken objects; the rest is not read".to_owned();
            found.diagnostics.push(Diagnostic { offset: place, message });
            break;
        }
        at = place + MARKER.len();
        let Some(start) = opening(text, at) else { continue };
        match patience.object(text, start) {
            Ok((body, end)) => {
                found.commands.push(Asked { body, span: place..end });
                at = end;
            }
            Err(message) => found.diagnostics.push(Diagnostic { offset: place, message }),
        }
    }
    found
}

/// The next marker or brace from `at`.
fn next(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let brace = rest.find('{');
    let marker = rest[..brace.unwrap_or(rest.len())].find(MARKER);
    marker.or(brace).map(|found| at + found)
}

/// Where the object of a marker that ends at `at` begins; none if the marker is only a word.
fn opening(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let after_blank = rest.trim_start();
    let after = after_blank.strip_prefix(':').unwrap_or(after_blank).trim_start();
    after.starts_with('{').then(|| text.len() - after.len())
}

/// The entries of a payload's `control_signature.emit`: `{"⟐CMD": {…}}` or the bare object.
pub fn emitted(payload: &Value, span: &Range<usize>) -> Found {
    let mut found = Found::default();
    let entries = match payload.pointer("/control_signature/emit") {
        None | Some(Value::Null) => return found,
        Some(Value::Array(entries)) => entries.as_slice(),
        Some(one @ Value::Object(_)) => std::slice::from_ref(one),
        Some(_) => {
            let message = "control_signature.emit must be a list of commands".to_owned();
            found.diagnostics.push(Diagnostic { offset: span.start, message });
            return found;
        }
    };
    for (place, entry) in entries.iter().enumerate() {
        let body = entry.get(MARKER).unwrap_or(entry);
        if body.is_object() {
            found.commands.push(Asked { body: body.clone(), span: span.clone() });
        } else {
            let message = format!("entry {place} of control_signature.emit is not an object");
            found.diagnostics.push(Diagnostic { offset: span.start, message });
        }
    }
    found
}

/// Both ways together, in order, the same command only once.
pub fn all(marked: Found, emitted: Found) -> Found {
    let mut all = marked;
    let written = all.commands.len();
    for asked in emitted.commands {
        if !all.commands[..written].iter().any(|other| other.body == asked.body) {
            all.commands.push(asked);
        }
    }
    all.diagnostics.extend(emitted.diagnostics);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::phases::payload;
    use expect_test::{Expect, expect};

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
        for reply in [
            "⟐CMD {\"action\":\"x\"}",
            "⟐CMD{\"action\":\"x\"}",
            "⟐CMD: {\"action\":\"x\"}",
            "⟐CMD\n  {\"action\":\"x\"}",
        ] {
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
        let found = marked(&"⟐CMD ".repeat(MOST_MARKERS + 5));
        assert_eq!(found.diagnostics.len(), 1);
        assert!(marked(&"⟐CMD {".repeat(50_000)).diagnostics.len() <= MOST_MARKERS + 1);
        assert_eq!(marked(&"{".repeat(2 << 20)), Found::default());
        assert_eq!(marked(&"{\"".repeat(1 << 20)), Found::default());
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
}
