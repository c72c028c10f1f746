use serde_json::json;

use super::*;

#[test]
fn a_key_is_an_answer_and_anything_else_is_none() {
    let said = |text: &str| Some(TypedAnswer::Answer(text.to_owned()));
    for (line, wanted) in [
        ("a\n", said("allow")),
        ("y", said("allow")),
        ("d not on a Friday", said("deny: not on a Friday")),
        ("n", said("deny")),
        ("m", said("allow for 10m")),
        ("m 2h", said("allow for 2h")),
        ("w", said("allow always")),
        ("allow for 90s", said("allow for 90s")),
        ("s", Some(TypedAnswer::Skip)),
        ("v", Some(TypedAnswer::View)),
        ("q", Some(TypedAnswer::End)),
        ("", None),
        ("a b", None),
        ("what?", None),
    ] {
        assert_eq!(typed(line), wanted, "{line:?}");
    }
}

#[test]
fn nothing_of_a_request_is_cut_and_the_words_of_the_model_are_marked() {
    let command = format!("make deploy {}; rm -rf /", "x".repeat(500));
    let request = json!({"id": "apr-1", "agent": "ada", "summary": "ada calls terminal.exec", "subject":
        {"arguments": {"command": command}, "runs": null}, "risk": ["runs a shell command in the sandbox"],
        "stated_reason": "it is safe", "matched_rule": {"ask": ["invoke"]}, "jobs": ["a", "b"],
        "offers": [{"answer": "allow", "does": "it is done, once"}]});
    let page = page(&request);
    assert!(page.contains("; rm -rf /"), "{page}");
    assert!(page.contains("the model says: it is safe") && page.contains("2 equal calls wait"), "{page}");
}
