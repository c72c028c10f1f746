use proptest::prelude::*;

use super::*;

fn shown(text: &str) -> String {
    match parse(text) {
        Ok(call) => serde_json::to_string(&call).unwrap(),
        Err(wrong) => format!("{}: {}", wrong.fault.name(), wrong.why),
    }
}

#[test]
fn an_answer_is_one_call_or_a_precise_fault() {
    const READ: &str = r#"{"tool_calls":[{"name":"file_read","arguments":{"path":"a"}}]}"#;
    let fenced = format!("```json\n{READ}\n```");
    let thinking = format!("<think>a {{ b</think>\n{READ}");
    let (before, after, twice) = (format!("I'll do that. {READ}"), format!("{READ}\nDone."), format!("{READ} {READ}"));
    let good = r#"{"name":"file_read","arguments":{"path":"a"}}"#;
    for (text, wanted) in [
        (READ, good),
        (thinking.as_str(), good),
        (
            r#" {"note": [1, {"x": {}}], "tool_calls":[{"id":7,"name":"file_list"}]} "#,
            r#"{"id":"7","name":"file_list","arguments":{"path":"."}}"#,
        ),
        ("", "zero_calls: the answer is empty"),
        ("<think>hm</think>", "zero_calls: the answer is empty"),
        ("{}", "zero_calls: the object has no `tool_calls`"),
        (r#"{"tool_calls":[]}"#, "zero_calls: `tool_calls` is empty"),
        (r#"{"thought":"I'll do that now"}"#, "zero_calls"),
        (r#"{"tool_calls":[{"name":"file_list"},{"name":"file_list"},3]}"#, "many_calls: `tool_calls` has 3 calls"),
        (
            r#"{"tool_calls":[{"name":"file_list"}],"tool_calls":[]}"#,
            "many_calls: `tool_calls` is repeated in the object",
        ),
        (twice.as_str(), "many_calls: the answer has more than one object"),
        (before.as_str(), "prose_around: there is text before"),
        (after.as_str(), "prose_around: there is text after"),
        (fenced.as_str(), "prose_around: there is a code fence"),
        ("{} {}", "prose_around"),
        ("<tool_call>{\"name\":\"file_list\"}</tool_call>", "native_call"),
        ("I call <invoke name=\"x\">", "native_call"),
        (r#"{"name":"file_read","arguments":{"path":"a"}}"#, "native_call: the object has `name`"),
        (r#"{"function_call":{"name":"file_read","arguments":"{}"}}"#, "native_call"),
        (
            r#"{"tool_calls":[{"type":"function","function":{"name":"file_read","arguments":"{}"}}]}"#,
            "native_call: the call has a provider's own form",
        ),
        (r#"{"tool_calls":[{"name":"bash","arguments":{}}]}"#, "unknown_tool: there is no tool `bash`"),
        (r#"{"tool_calls":[{"name":"file_read","arguments":{}}]}"#, "bad_arguments: file_read needs `path`"),
        (r#"{"tool_calls":[{"name":"file_read","arguments":"{}"}]}"#, "bad_arguments: `arguments` is a string"),
        (r#"{"tool_calls":[{"name":"file_read","arguments":[1]}]}"#, "bad_arguments: `arguments` is not an object"),
        (
            r#"{"tool_calls":[{"name":"file_read","args":{"path":"a"}}]}"#,
            "bad_arguments: a call has `id`, `name` and `arguments`, but no `args`",
        ),
        (r#"{"tool_calls":[{"arguments":{}}]}"#, "bad_arguments: the call has no `name`"),
        (r#"{"tool_calls":["file_read"]}"#, "bad_arguments: a call is an object"),
        (r#"{"tool_calls":{"name":"file_read"}}"#, "bad_arguments: `tool_calls` is not a list"),
        (r#"{"tool_calls":null}"#, "bad_arguments: `tool_calls` is not a list"),
        (
            r#"{"tool_calls":[{"name":"file_read","arguments":{"path":"a","path":"b"}}]}"#,
            "bad_arguments: the call is not readable: the key `path` is repeated in one object",
        ),
        ("I'll do that now.", "not_json: the answer is not a JSON object"),
        ("[1, 2]", "not_json: the answer is JSON, but not an object"),
        (r#"{"tool_calls":[{"name":"file_read""#, "not_json: the JSON is broken: EOF"),
        (r#"{'tool_calls':[]}"#, "not_json: the JSON is broken: key must be a string"),
        ("<think>never closed", "not_json"),
    ] {
        assert!(shown(text).starts_with(wanted), "{text}\n→ {}\nnot {wanted}", shown(text));
    }
}

/// What is understood of an answer, and whether it deviates.
fn understood_of(text: &str) -> Result<(String, bool), String> {
    let said = ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
    assert!(read_as(&said, Reading::Strict).is_err(), "{text} is no deviation");
    match read(&said) {
        Ok(call) => Ok((format!("{} {}", call.tool.name(), call.tool.path()), call.deviates)),
        Err(wrong) => Err(wrong.fault.name().to_owned()),
    }
}

#[test]
fn one_call_in_whatever_form_is_understood_and_two_are_not() {
    const READ: &str = r#"{"tool_calls":[{"name":"file_read","arguments":{"path":"a"}}]}"#;
    const BARE: &str = r#"{"name":"file_read","arguments":{"path":"a"}}"#;
    let native = r#"{"id":"c1","type":"function","function":{"name":"file_read","arguments":"{\"path\":\"a\"}"}}"#;
    for text in [
        format!("```json\n{READ}\n```"),
        format!("I'll look at it first. {READ}"),
        format!("{READ}\nThen I will see."),
        BARE.to_owned(),
        format!("<tool_call>\n{BARE}\n</tool_call>"),
        native.to_owned(),
        format!("{{\"tool_calls\":[{native}]}}"),
        r#"{"tool_calls":[{"name":"file_read","arguments":"{\"path\":\"a\"}"}]}"#.to_owned(),
        r#"{"function_call":{"name":"file_read","arguments":"{\"path\":\"a\"}"}}"#.to_owned(),
        r#"{"type":"tool_use","id":"t","name":"file_read","input":{"path":"a"}}"#.to_owned(),
        format!("The sizes are {{\"small\": 1}}. {READ}"),
    ] {
        assert_eq!(understood_of(&text), Ok(("file_read a".to_owned(), true)), "{text}");
    }
    for (text, fault) in [
        (format!("An example: `{READ}`. Now: {READ}"), "many_calls"),
        (format!("{READ} {BARE}"), "many_calls"),
        (r#"{"tool_calls":[{"name":"file_list"},{"name":"file_list"}]}"#.to_owned(), "many_calls"),
        (format!("{{\"example\": {READ}}}"), "zero_calls"),
        (format!("{{\"broken\": {READ}"), "not_json"),
        (r#"{"name":"Ada","arguments":{}}"#.to_owned(), "native_call"),
        (format!("<think>I could {READ}</think> Let me think."), "not_json"),
        (r#"Here: {"tool_calls":[{"name":"bash","arguments":{}}]}"#.to_owned(), "unknown_tool"),
        ("All is well.".to_owned(), "not_json"),
    ] {
        assert_eq!(understood_of(&text), Err(fault.to_owned()), "{text}");
    }
}

#[test]
fn a_native_call_beside_the_text_is_a_fault() {
    let said = ModelAnswer { native_call: true, ..ModelAnswer::default() };
    assert_eq!(read(&said).unwrap_err().fault, FaultKind::NativeCall);
}

/// Each of these is ten megabytes. They end soon and without filling the memory, or this test would not end.
#[test]
fn a_huge_hostile_answer_is_a_fault_like_any_other() {
    const SIZE: usize = 10 << 20;
    let long = "x".repeat(SIZE);
    for (text, wanted) in [
        ("{".repeat(SIZE), FaultKind::NotJson),
        ("[".repeat(SIZE), FaultKind::NotJson),
        (format!("{{\"a\":{}", "[".repeat(SIZE)), FaultKind::NotJson),
        (format!("{{\"tool_calls\":[{}{{}}]}}", "{},".repeat(SIZE / 3)), FaultKind::ManyCalls),
        (format!("{{\"tool_calls\":[[{}0]]}}", "0,".repeat(SIZE / 2)), FaultKind::BadArguments),
        (format!("{{\"a\":[{}0]}}", "0,".repeat(SIZE / 2)), FaultKind::ZeroCalls),
        ("{\"tool_calls\"".repeat(SIZE / 13), FaultKind::NotJson),
        ("{} ".repeat(SIZE / 3), FaultKind::ProseAround),
        ("<think>".repeat(SIZE / 7), FaultKind::NotJson),
        (long.clone(), FaultKind::NotJson),
        (format!("{{\"tool_calls\":[{{\"name\":\"{long}\"}}]}}"), FaultKind::UnknownTool),
    ] {
        let wrong = parse(&text).unwrap_err();
        assert_eq!(wrong.fault, wanted, "{}…", &text[..40]);
        assert!(read(&ModelAnswer { text: text.clone(), ..ModelAnswer::default() }).is_err(), "{}…", &text[..40]);
        assert!(wrong.why.len() < 500, "{}", wrong.why.len());
    }
}

proptest! {
    #[test]
    fn every_text_is_a_call_or_a_fault(text in "\\PC{0,80}") {
        drop(parse(&text));
    }

    #[test]
    fn what_looks_nearly_right_is_read_too(text in r#"(\{|\}|\[|\]|,|:|"tool_calls"|"name"|"arguments"|"file_read"|"path"|1|null|<think>|</think>| ){0,40}"#) {
        drop(parse(&text));
    }

    #[test]
    fn a_call_that_was_written_is_read_again(path in "[^\0]{0,40}", content in "\\PC*", append: bool, id in proptest::option::of("[a-z]{1,8}")) {
        let tool = ToolCall::Write(crate::agent::tools::FileWrite { path, content, append, create_parents: false, wait_until_ready: true });
        let call = ModelCall { id, deviates: false, tool };
        let text = serde_json::json!({"tool_calls": [call]}).to_string();
        prop_assert_eq!(parse(&text), Ok(call));
    }
}
