use super::*;

fn check(body: Value, expected: &str) {
    let shown = match read(&body) {
        Ok((_, action)) => format!("{action:?}"),
        Err(result) => result.to_string(),
    };
    assert_eq!(shown, expected, "{body}");
}

#[test]
fn every_documented_spelling_is_taken() {
    check(json!({"action":"load_symbol","symbol_id":"A"}), r#"LoadSymbol { ids: ["A"] }"#);
    check(json!({"action":"load_symbol","id":"A"}), r#"LoadSymbol { ids: ["A"] }"#);
    check(json!({"action":"load_symbol","ids":["A","B"]}), r#"LoadSymbol { ids: ["A", "B"] }"#);
    check(json!({"action":"delete_symbol","id":"A"}), r#"DeleteSymbol { id: "A" }"#);
    check(json!({"action":"delete_symbol","symbol_id":"A"}), r#"DeleteSymbol { id: "A" }"#);
    check(json!({"action":"load_kit","kit":"K"}), r#"LoadKit { kit: "K" }"#);
    check(json!({"action":"load_kit","kit_id":"K"}), r#"LoadKit { kit: "K" }"#);
    check(json!({"action":"invoke_agent","agent_id":"P","redrive_hint":"x"}), r#"InvokeAgent { id: "P" }"#);
    check(json!({"action":"invoke_agent","id":"P"}), r#"InvokeAgent { id: "P" }"#);
    check(
        json!({"action":"query_symbols","query":"q","k":900}),
        r#"QuerySymbols { ids: [], query: Some("q"), k: 50, domain: None, tag: None }"#,
    );
    check(json!({"action":"recurse_graph"}), "RecurseGraph { ids: [], query: None, depth: 1 }");
    check(json!({"action":"recurse_graph","depth":99}), "RecurseGraph { ids: [], query: None, depth: 5 }");
    check(json!({"action":"dispatch_task","task":"t"}), r#"DispatchTask { task: "t", payload: Object {} }"#);
}

#[test]
fn what_is_missing_is_named() {
    check(json!({}), r#"{"error":"missing_action"}"#);
    check(json!({"action":null}), r#"{"error":"missing_action"}"#);
    check(json!({"action":["store_symbol"]}), r#"{"status":"error","reason":"action must be a string"}"#);
    check(json!({"action":"store_symbol"}), r#"{"status":"rejected","reason":"missing_validated_trait"}"#);
    check(
        json!({"action":"store_symbol","symbol":{"id":"A","status":"draft"}}),
        r#"{"status":"rejected","reason":"missing_validated_trait"}"#,
    );
    check(json!({"action":"update_symbol","symbol":{"macro":"x"}}), r#"{"status":"error","reason":"invalid_symbol"}"#);
    check(json!({"action":"delete_symbol"}), r#"{"status":"error","reason":"missing_symbol_id"}"#);
    check(json!({"action":"load_kit"}), r#"{"status":"error","reason":"missing_kit_id"}"#);
    check(json!({"action":"invoke_agent"}), r#"{"status":"error","reason":"missing_agent_id"}"#);
    check(json!({"action":"query_symbols"}), r#"{"status":"error","reason":"missing_query"}"#);
    check(json!({"action":"query_symbols","ids":{"a":1}}), r#"{"status":"error","reason":"ids must be a list"}"#);
    check(
        json!({"action":"recurse_graph","depth":-1}),
        r#"{"status":"error","reason":"depth must be a whole number"}"#,
    );
    check(json!({"action":"emit_feedback","type":"x","target":"A"}), r#"{"status":"error","reason":"missing_reason"}"#);
    check(json!({"action":"emit_feedback"}), r#"{"status":"error","reason":"missing_type"}"#);
    check(json!({"action":"dispatch_task"}), r#"{"status":"error","reason":"missing_task"}"#);
}

#[test]
fn an_unknown_action_comes_back_with_the_nearest_known_one() {
    check(json!({"action":"nope"}), r#"{"status":"unknown_action","payload":{"action":"nope"}}"#);
    check(
        json!({"action":"load_symbols"}),
        r#"{"status":"unknown_action","payload":{"action":"load_symbols"},"nearest":"load_symbol"}"#,
    );
}

#[test]
fn the_mark_is_seen_in_status_and_traits() {
    for (symbol, expected) in [
        (json!({"status":"VALIDATED"}), true),
        (json!({"traits":["x","Validated"]}), true),
        (json!({"traits":"validated"}), true),
        (json!({"traits":[1]}), false),
        (json!(7), false),
    ] {
        assert_eq!(marked(&symbol), expected, "{symbol}");
    }
}

#[test]
fn the_prompt_teaches_exactly_the_table() {
    let taught = include_str!("../../../../prompts/shared/thought_syntax.txt");
    let names: Vec<&str> = taught.lines().filter_map(|line| line.strip_prefix("- ")?.split(':').next()).collect();
    assert_eq!(names, TABLE.map(|row| row.name));
}
