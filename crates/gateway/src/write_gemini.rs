//! An answer in Google's language.

use serde_json::{Value, json};

use super::answer::{AnswerCall, AnswerEnd, AnswerPart, StopReason, WholeAnswer};
use super::usage::TokenUsage;
use super::writer::{AnswerIdentity, data, object};

/// Calls are sent whole: this language has no fragments of them.
pub struct GeminiWriter {
    identity: AnswerIdentity,
    call: Option<AnswerCall>,
}

impl GeminiWriter {
    pub fn new(identity: AnswerIdentity) -> GeminiWriter {
        GeminiWriter { identity, call: None }
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(call) = self.call.take() {
            data(&event(&self.identity, &[call_part(&call)], None), out);
        }
    }

    pub fn part(&mut self, part: &AnswerPart, out: &mut Vec<u8>) {
        match part {
            AnswerPart::CallArguments(text) => {
                if let Some(call) = &mut self.call {
                    call.arguments.push_str(text);
                }
            }
            AnswerPart::CallBegin { id, name } => {
                self.flush(out);
                self.call = Some(AnswerCall { id: id.clone(), name: name.clone(), arguments: String::new() });
            }
            AnswerPart::Text(text) => {
                self.flush(out);
                data(&event(&self.identity, &[json!({"text": text})], None), out);
            }
            AnswerPart::Thought(text) => {
                self.flush(out);
                data(&event(&self.identity, &[json!({"text": text, "thought": true})], None), out);
            }
        }
    }

    pub fn end(&mut self, end: &AnswerEnd, out: &mut Vec<u8>) {
        self.flush(out);
        data(&event(&self.identity, &[], Some(end)), out);
    }
}

fn call_part(call: &AnswerCall) -> Value {
    json!({"functionCall": {"id": call.id, "name": call.name, "args": object(&call.arguments)}})
}

fn event(identity: &AnswerIdentity, parts: &[Value], end: Option<&AnswerEnd>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut event = json!({"modelVersion": identity.model, "responseId": identity.id});
    if let Some(end) = end {
        candidate["finishReason"] = match end.reason {
            StopReason::End | StopReason::Calls => "STOP",
            StopReason::Length => "MAX_TOKENS",
            StopReason::Filtered => "SAFETY",
        }
        .into();
        event["usageMetadata"] = usage(&end.usage);
    }
    event["candidates"] = json!([candidate]);
    event
}

fn usage(usage: &TokenUsage) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    json!({"promptTokenCount": input, "cachedContentTokenCount": usage.cache_read, "candidatesTokenCount": output,
        "totalTokenCount": input.saturating_add(output)})
}

pub fn whole(identity: &AnswerIdentity, answer: &WholeAnswer) -> Value {
    let words = Some(&answer.text).filter(|text| !text.is_empty()).map(|text| json!({"text": text}));
    let parts: Vec<Value> = words.into_iter().chain(answer.calls.iter().map(call_part)).collect();
    event(identity, &parts, Some(&answer.end))
}
