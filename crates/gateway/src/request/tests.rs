use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{AnswerIdentity, AnswerWriter, ChatStreamReader, StreamMeter, normalised, read_chat_answer};

fn read(dialect: Dialect, body: Value) -> GatewayRequest {
    GatewayRequest::read(dialect, None, body.to_string().as_bytes()).unwrap()
}

#[test]
fn only_the_name_of_the_model_and_the_longest_answer_are_changed() {
    let asked = json!({"model": "claude-opus", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 128_000,
        "thinking": {"type": "adaptive"}, "context_management": {"edits": []}, "stream": true});
    let mut request = read(Dialect::Messages, asked.clone());
    assert_eq!((request.model.as_str(), request.stream, request.max_tokens()), ("claude-opus", true, Some(128_000)));
    request.set_model("small");
    request.set_max_tokens(500, true);
    let mut wanted = asked;
    (wanted["model"], wanted["max_tokens"]) = ("small".into(), 500.into());
    assert_eq!(serde_json::from_slice::<Value>(&request.bytes()).unwrap(), wanted);
}

#[test]
fn a_request_of_very_many_values_is_refused_before_it_is_read() {
    let many = |value: &str| format!(r#"{{"messages":[{{"role":"user","content":{value}}}]}}"#).into_bytes();
    for value in [format!("[{}0]", "0,".repeat(1_000_000)), format!("[{}]", "[],".repeat(600_000) + "0")] {
        let refused = GatewayRequest::read(Dialect::Messages, None, &many(&value)).unwrap_err();
        assert_eq!(refused.code, acheron_base::Code::TooLarge, "{refused}");
    }
    // Commas and brackets in a text are no values.
    let text = many(&format!("\"\\\"{}\"", ",[{".repeat(1_000_000)));
    assert!(GatewayRequest::read(Dialect::Messages, None, &text).is_ok());
}

#[test]
fn the_longest_answer_has_another_name_in_every_language() {
    let chat = json!({"messages": [], "max_completion_tokens": 9000});
    let mut chat = read(Dialect::Chat, chat);
    chat.set_max_tokens(10, false);
    assert_eq!(chat.body()["max_completion_tokens"], 10, "the name that the program chose");
    for (modern, name) in [(true, "max_completion_tokens"), (false, "max_tokens")] {
        let mut chat = read(Dialect::Chat, json!({"messages": []}));
        chat.set_max_tokens(10, modern);
        assert_eq!(chat.body()[name], 10);
    }
    let mut responses = read(Dialect::Responses, json!({"input": "hi", "max_output_tokens": 70}));
    assert_eq!(responses.max_tokens(), Some(70));
    responses.set_max_tokens(10, true);
    assert_eq!(responses.body()["max_output_tokens"], 10);
    let mut gemini =
        read(Dialect::Gemini, json!({"contents": [], "generationConfig": {"maxOutputTokens": 5, "topP": 1}}));
    assert_eq!(gemini.max_tokens(), Some(5));
    gemini.set_max_tokens(4, true);
    assert_eq!(gemini.body()["generationConfig"], json!({"maxOutputTokens": 4, "topP": 1}));
}

#[test]
fn reasoning_is_shortened_with_the_answer() {
    let asked = |budget: u32| {
        let thinking = json!({"type": "enabled", "budget_tokens": budget});
        read(Dialect::Messages, json!({"messages": [], "max_tokens": 9000, "thinking": thinking}))
    };
    for (to, wanted) in [
        (5000, json!({"type": "enabled", "budget_tokens": 2500})),
        (1000, json!({"type": "disabled"})),
        (8500, json!({"type": "enabled", "budget_tokens": 8000})),
    ] {
        let mut request = asked(8000);
        request.set_max_tokens(to, true);
        assert_eq!(request.body()["thinking"], wanted);
    }
}

#[test]
fn a_body_that_is_no_request_is_refused_with_a_reason() {
    for (body, why) in [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "has no `messages`"),
        (r#"{"messages": 7}"#, "has no `messages`"),
        (&"[".repeat(5000), "not JSON"),
    ] {
        let error = GatewayRequest::read(Dialect::Chat, None, body.as_bytes()).unwrap_err();
        assert!(error.message.contains(why), "{body}: {}", error.message);
    }
}

#[test]
fn images_are_no_text() {
    let data = "A".repeat(90_000);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let request = read(Dialect::Messages, json!({"messages": [{"role": "user", "content": [image]}]}));
    assert!(request.texts().estimated() < 2000, "{}", request.texts().estimated());
    let long =
        read(Dialect::Messages, json!({"messages": [{"role": "user", "content": data}], "metadata": {"x": data}}));
    assert!((30_000..31_000).contains(&long.texts().estimated()), "{}", long.texts().estimated());
}

/// A request of Claude Code, put into chat completions.
#[test]
fn messages_become_chat_completions() {
    let asked = json!({
    "model": "claude-opus", "max_tokens": 100, "stream": true, "thinking": {"type": "adaptive"},
    "context_management": {}, "metadata": {"user_id": "u"}, "stop_sequences": ["END"], "temperature": 1,
    "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2;"},
               {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "Bash", "description": "Runs.", "input_schema": {"type": "object"}},
              {"type": "web_search_20250305", "name": "web_search"}],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
    "messages": [
        {"role": "user", "content": "run ls"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I run it."},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            {"type": "tool_use", "id": "t2", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}]},
            {"type": "tool_result", "tool_use_id": "t2", "content": "no", "is_error": true},
            {"type": "text", "text": "go on"}]},
    ]});
    let body = Value::Object(read(Dialect::Messages, asked).as_chat().body().clone());
    assert_eq!(
        body,
        json!({
        "model": "claude-opus",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "run ls"},
            {"role": "assistant", "content": "I run it.", "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "Bash", "arguments": "{\"command\":\"ls\"}"}},
                {"id": "t2", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "t1", "content": "a"},
            {"role": "tool", "tool_call_id": "t2", "content": "error: no"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}]},
            {"role": "user", "content": "go on"}],
        "tools": [{"type": "function", "function": {"name": "Bash", "description": "Runs.", "parameters": {"type": "object"}}}],
        "tool_choice": "required", "parallel_tool_calls": false, "temperature": 1, "stop": ["END"],
        "stream": true, "stream_options": {"include_usage": true}})
    );
}

/// A request of Codex, put into chat completions.
#[test]
fn responses_become_chat_completions() {
    let asked = json!({
        "model": "gpt-6", "instructions": "You are Codex.", "store": false, "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "k", "parallel_tool_calls": true, "reasoning": {"effort": "high"},
        "tools": [{"type": "function", "name": "exec_command", "description": "Runs.", "strict": false,
                   "parameters": {"type": "object"}},
                  {"type": "namespace", "name": "mcp__x", "tools": []}, {"type": "web_search"}],
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "zzz"},
            {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": "{\"cmd\":\"ls\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a b"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}]});
    let body = Value::Object(read(Dialect::Responses, asked).as_chat().body().clone());
    assert_eq!(
        body,
        json!({
        "model": "gpt-6",
        "messages": [
            {"role": "system", "content": "You are Codex."},
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "exec_command", "arguments": "{\"cmd\":\"ls\"}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "a b"},
            {"role": "assistant", "content": "done"}],
        "tools": [{"type": "function", "function": {"name": "exec_command", "description": "Runs.",
                   "parameters": {"type": "object"}}}],
        "parallel_tool_calls": true})
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop_oneof![
        Just("messages".to_owned()),
        Just("content".to_owned()),
        Just("type".to_owned()),
        Just("text".to_owned()),
        Just("input".to_owned()),
        Just("contents".to_owned()),
        Just("parts".to_owned()),
        Just("tools".to_owned()),
        Just("role".to_owned()),
        Just("tool_calls".to_owned()),
        Just("choices".to_owned()),
        Just("delta".to_owned()),
        Just("usage".to_owned()),
        Just("error".to_owned()),
        "[a-z]{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![
            Just("user"),
            Just("assistant"),
            Just("tool_use"),
            Just("tool_result"),
            Just("message"),
            Just("image"),
            Just("function_call"),
            Just("data:x"),
            Just("ä<cwd>: /x/y")
        ]
        .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever a program sends: it is read, measured, changed and translated, or refused, and nothing panics.
    #[test]
    fn any_request_is_taken_or_refused(value in any_json(), first in any_json(), number in 0usize..4) {
        let dialect = Dialect::ALL[number];
        let body = json!({"messages": first, "input": first, "contents": first, "system": value, "tools": value,
            "tool_choice": value, "text": value, "generationConfig": value, "thinking": value, "stop_sequences": value});
        if let Ok(mut request) = GatewayRequest::read(dialect, None, body.to_string().as_bytes()) {
            request.texts().estimated();
            request.set_max_tokens(7, true);
            request.set_model("m");
            request.as_chat();
            let once = normalised(request.body());
            let Value::Object(again) = &once else { panic!("it is an object") };
            prop_assert_eq!(&normalised(again), &once, "what is normal stays as it is");
        }
        _ = GatewayRequest::read(dialect, None, value.to_string().as_bytes());
        _ = read_chat_answer(&value);
    }

    /// However a stream is cut, its meter and its translation say the same.
    #[test]
    fn a_stream_is_the_same_however_it_is_cut(events in prop::collection::vec(any_json(), 0..8), cuts in prop::collection::vec(0usize..4000, 0..9), number in 0usize..4) {
        let dialect = Dialect::ALL[number];
        let mut stream: Vec<u8> = Vec::new();
        for event in &events {
            let event = json!({"choices": [{"delta": event, "finish_reason": null}], "usage": event, "type": "x.delta",
                "delta": event, "message": event, "candidates": [event]});
            stream.extend_from_slice(format!("event: x\ndata: {event}\n\n").as_bytes());
        }
        stream.extend_from_slice(b"data: {\"choices\":[{\"delta\":{\"content\":\"end\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % stream.len()).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let run = |pieces: &[&[u8]]| {
            let (mut meter, mut reader) = (StreamMeter::new(dialect), ChatStreamReader::default());
            let (mut writer, mut out) = (AnswerWriter::new(dialect, AnswerIdentity::default()), Vec::new());
            for piece in pieces {
                meter.feed(piece);
                match reader.feed(piece) {
                    Ok(parts) => parts.iter().for_each(|part| writer.part(part, &mut out)),
                    Err(_) => break,
                }
            }
            let (parts, end) = reader.finish();
            parts.iter().for_each(|part| writer.part(part, &mut out));
            writer.end(&end, &mut out);
            (meter.usage(), meter.output(), meter.is_ended(), out)
        };
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let (whole, cut) = (run(&[&stream]), run(&pieces));
        prop_assert_eq!(whole.0, cut.0);
        prop_assert_eq!(whole.1, cut.1);
        prop_assert_eq!(whole.2, cut.2);
        // An event that cannot be read ends the translation; what came before it in the same piece is then lost.
        if ChatStreamReader::default().feed(&stream).is_ok() {
            prop_assert_eq!(String::from_utf8(whole.3).unwrap(), String::from_utf8(cut.3).unwrap());
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), number in 0usize..4) {
        let dialect = Dialect::ALL[number];
        _ = GatewayRequest::read(dialect, None, &bytes);
        StreamMeter::new(dialect).feed(&bytes);
        _ = ChatStreamReader::default().feed(&bytes);
    }
}
