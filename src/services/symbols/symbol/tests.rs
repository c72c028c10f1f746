use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn check(written: Value, expected: Expect) {
    let shown = match Symbol::read(&written) {
        Ok(symbol) => symbol.json().to_string(),
        Err(fault) => format!("{}: {fault}", fault.code.name()),
    };
    expected.assert_eq(&shown);
}

#[test]
fn a_triad_may_be_a_list_or_a_string() {
    check(json!({"id":"A","triad":["x","y","z"]}), expect![[r#"{"id":"A","triad":["x","y","z"],"version":0}"#]]);
    check(json!({"id":"A","triad":"x y, z"}), expect![[r#"{"id":"A","triad":["x","y","z"],"version":0}"#]]);
    check(json!({"id":"A","triad":"⟐⇌🜔"}), expect![[r#"{"id":"A","triad":["⟐⇌🜔"],"version":0}"#]]);
}

#[test]
fn the_spellings_that_the_prompts_teach_are_understood() {
    check(
        json!({"id":"A","links":["B"],"linked_patterns":["C","B"],"invariants":["auditability"],"traits":"validated"}),
        expect![[
            r#"{"id":"A","facets":{"invariants":["auditability"]},"linked_patterns":["C","B"],"traits":["validated"],"version":0}"#
        ]],
    );
}

#[test]
fn nulls_are_dropped_and_strange_fields_kept() {
    check(
        json!({"id":"A","macro":null,"facets":{"commit":null,"risk":"low"},"mood":{"deep":[1]},"version":"new"}),
        expect![[r#"{"id":"A","facets":{"risk":"low"},"version":0,"mood":{"deep":[1]}}"#]],
    );
}

#[test]
fn what_cannot_be_a_symbol_is_refused_with_its_cause() {
    check(json!([1]), expect!["invalid_payload: a symbol must be a JSON object"]);
    check(json!({"name":"x"}), expect!["invalid_payload: id of a symbol: an id is missing or empty"]);
    check(json!({"id":7}), expect!["invalid_payload: id of a symbol: an id is missing or empty"]);
    check(
        json!({"id":"../evil"}),
        expect![[
            r#"invalid_payload: id of a symbol: the id `../evil` cannot be a file name: no slash, no control character, no leading dot"#
        ]],
    );
    check(json!({"id":"A","macro":7}), expect!["invalid_payload: macro must be a string"]);
    check(
        json!({"id":"A","linked_patterns":[1]}),
        expect!["invalid_payload: linked_patterns must be a list of strings"],
    );
    check(json!({"id":"A","facets":7}), expect!["invalid_payload: facets of a symbol must be an object"]);
    check(
        json!({"id":"A","description":"x".repeat(LARGEST)}),
        expect!["too_large: a symbol of 65563 bytes is over the limit of 65536"],
    );
}

#[test]
fn the_validated_mark_is_found_in_status_and_traits_in_any_case() {
    for (symbol, expected) in [
        (json!({"id":"A","status":"VALIDATED"}), true),
        (json!({"id":"A","traits":["x","Validated"]}), true),
        (json!({"id":"A","traits":"validated"}), true),
        (json!({"id":"A","status":"draft"}), false),
        (json!({"id":"A"}), false),
    ] {
        assert_eq!(Symbol::read(&symbol).unwrap().validated(), expected, "{symbol}");
    }
}

#[test]
fn links_are_both_spellings_each_once() {
    let symbol = Symbol::read(&json!({"id":"A","linked_patterns":["B","C","B"],"lnk":["C","D"]})).unwrap();
    assert_eq!(symbol.links(), ["B", "C", "D"]);
}
