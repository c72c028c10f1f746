use expect_test::{Expect, expect};

use super::*;

fn check(script: &str, messages: &[&str], expected: Expect) {
    let shown = match Script::read("s", script) {
        Err(error) => format!("{error}\n"),
        Ok(script) => {
            let answers = messages.iter().map(|message| script.next(message).unwrap_or("(exhausted)".into()) + "\n");
            answers.collect()
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn lines_are_used_in_order() {
    check(
        "\"one\"\n\n# a remark\n{\"answer\": {\"b\": 1, \"a\": 2}}",
        &["x", "x", "x"],
        expect![[r#"
            one
            {"b":1,"a":2}
            (exhausted)
        "#]],
    );
}

#[test]
fn a_line_waits_for_its_message_and_may_repeat() {
    let script = r#"
{"when": "cat", "answer": "meow"}
{"when": "dog", "answer": "woof", "repeat": true}
{"answer": "what?"}"#;
    check(
        script,
        &["dog", "a cat", "cat", "dog", "cow"],
        expect![[r#"
            woof
            meow
            what?
            woof
            (exhausted)
        "#]],
    );
}

#[test]
fn what_was_captured_stands_in_the_answer() {
    let script = r#"
{"when": "remember (.+)", "answer": {"content": "<$1> costs $ 5, $9"}, "repeat": true}
{"when": "\"content\":\"(?<it_json>(?:[^\"\\\\]|\\\\.)*)\"", "answer": "${it_json}"}
{"when": "plain", "answer": "$1 stays"}"#;
    check(
        script,
        &["remember \"this\"", r#"{"content":"two\nlines \"x\""}"#, "plain"],
        expect![[r#"
            {"content":"<\"this\"> costs $ 5, $9"}
            two
            lines "x"
            $1 stays
        "#]],
    );
}

#[test]
fn a_bad_script_is_refused_by_its_line() {
    check(
        "\"fine\"\n{\"anwser\": \"x\"}",
        &[],
        expect![[r#"
            s, line 2: unknown field `anwser`, expected one of `answer`, `when`, `repeat`
        "#]],
    );
    check(
        "{\"answer\": 3}",
        &[],
        expect![[r#"
            s, line 1: answer is a string or an object
        "#]],
    );
    check(
        "{\"answer\": \"x\", \"when\": \"(\"}",
        &[],
        expect![[r#"
            s, line 1: regex parse error:
                (
                ^
            error: unclosed group
        "#]],
    );
}

#[test]
fn a_turn_goes_on_where_it_was_cut() {
    let script = Script::read("s", "\"one\"\n\"two\"\n\"three\"").unwrap();
    script.resume(&["one", "two"].map(|text| ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() }));
    assert_eq!(script.next("x").as_deref(), Some("three"));
}
