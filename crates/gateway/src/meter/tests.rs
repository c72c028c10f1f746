use super::*;
use crate::{AnswerCall, AnswerEnd, AnswerIdentity, AnswerPart, AnswerWriter, StopReason, WholeAnswer, whole_answer};

fn answer() -> WholeAnswer {
    let call =
        |id: &str, arguments: &str| AnswerCall { id: id.into(), name: "run".into(), arguments: arguments.into() };
    let usage = TokenUsage { input: Some(100), output: Some(9), cache_read: 60, cache_write: 0 };
    let end = AnswerEnd { reason: StopReason::Calls, usage };
    let calls = vec![call("c1", "{\"a\":1}"), call("c2", "{}")];
    WholeAnswer { thoughts: "hm".into(), text: "Hello".into(), calls, end }
}

/// An answer as it is streamed in a language.
fn streamed(dialect: Dialect, answer: &WholeAnswer) -> Vec<u8> {
    let identity = AnswerIdentity { id: "1".into(), model: "m".into(), created: 1, input: 100, wants_usage: true };
    let (mut writer, mut out) = (AnswerWriter::new(dialect, identity), Vec::new());
    writer.begin(&mut out);
    answer.parts().iter().for_each(|part| writer.part(part, &mut out));
    writer.end(&answer.end, &mut out);
    out
}

#[test]
fn the_usage_of_every_language_is_read_from_streams_and_from_whole_answers() {
    for dialect in Dialect::ALL {
        let mut meter = StreamMeter::new(dialect);
        let stream = streamed(dialect, &answer());
        for byte in &stream {
            meter.feed(std::slice::from_ref(byte));
        }
        let usage = TokenUsage { cache_write: 0, ..meter.usage() };
        assert_eq!(usage, answer().end.usage, "{dialect:?}: {}", String::from_utf8_lossy(&stream));
        assert_eq!((meter.output(), meter.is_ended(), meter.fault()), (9, true, None), "{dialect:?}");
        let whole = whole_answer(dialect, &AnswerIdentity::default(), &answer());
        assert_eq!(TokenUsage::of(dialect, &whole), answer().end.usage, "{dialect:?}");
    }
}

#[test]
fn an_answer_that_is_cut_off_is_estimated_from_what_has_come() {
    for dialect in Dialect::ALL {
        let (mut writer, mut out) = (AnswerWriter::new(dialect, AnswerIdentity::default()), Vec::new());
        writer.begin(&mut out);
        for _ in 0..400 {
            writer.part(&AnswerPart::Text("word ".to_owned()), &mut out);
        }
        let mut meter = StreamMeter::new(dialect);
        meter.feed(&out);
        assert!((200..1500).contains(&meter.output()), "{dialect:?}: {}", meter.output());
        assert!(!meter.is_ended());
    }
}

#[test]
fn an_error_within_a_stream_is_seen() {
    use crate::{GatewayFault, error_event};
    for dialect in Dialect::ALL {
        let mut meter = StreamMeter::new(dialect);
        meter.feed(&error_event(dialect, GatewayFault::Upstream, "overloaded"));
        assert!(meter.fault().is_some_and(|fault| fault.contains("overloaded")), "{dialect:?}");
    }
}

/// A stream of chat completions with two calls whose fragments are mixed, as each language shows it.
#[test]
fn a_translated_stream_has_text_and_every_call_in_order() {
    let events = [
        r#"{"choices":[{"delta":{"role":"assistant","content":"He"}}]}"#,
        r#"{"choices":[{"delta":{"content":"llo"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"run","arguments":"{\"a\""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"run","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":60}}}"#,
    ];
    let stream: String =
        events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>() + "data: [DONE]\n\n";
    let mut reader = crate::ChatStreamReader::default();
    let mut whole = WholeAnswer { ..WholeAnswer::default() };
    for byte in stream.as_bytes() {
        reader.feed(std::slice::from_ref(byte)).unwrap().iter().for_each(|part| whole.add(part));
    }
    assert!(reader.is_complete());
    let (parts, end) = reader.finish();
    parts.iter().for_each(|part| whole.add(part));
    whole.end = end;
    assert_eq!(whole, WholeAnswer { thoughts: String::new(), ..answer() });
    let shown = |dialect: Dialect| {
        let identity = AnswerIdentity { id: "1".into(), model: "m".into(), ..AnswerIdentity::default() };
        whole_answer(dialect, &identity, &whole)
    };
    let content = &shown(Dialect::Messages)["content"];
    assert_eq!(content[0]["text"], "Hello");
    assert_eq!((&content[1]["input"]["a"], &content[2]["id"]), (&1.into(), &"c2".into()));
    let output = &shown(Dialect::Responses)["output"];
    assert_eq!(output[0]["content"][0]["text"], "Hello");
    assert_eq!((&output[1]["arguments"], &output[2]["call_id"]), (&"{\"a\":1}".into(), &"c2".into()));
}
