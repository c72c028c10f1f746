//! An answer as a chat completion.

use serde_json::{Value, json};

use super::answer::{AnswerCall, AnswerEnd, AnswerPart, StopReason, WholeAnswer};
use super::usage::TokenUsage;
use super::writer::{AnswerIdentity, data};

pub struct ChatWriter {
    identity: AnswerIdentity,
    calls: u64,
}

impl ChatWriter {
    pub fn new(identity: AnswerIdentity) -> ChatWriter {
        ChatWriter { identity, calls: 0 }
    }

    fn chunk(&self, choices: Value) -> Value {
        let AnswerIdentity { id, model, created, .. } = &self.identity;
        let id = format!("chatcmpl-{id}");
        json!({"id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": choices})
    }

    fn delta(&self, delta: Value, out: &mut Vec<u8>) {
        data(&self.chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])), out);
    }

    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.delta(json!({"role": "assistant", "content": ""}), out);
    }

    pub fn part(&mut self, part: &AnswerPart, out: &mut Vec<u8>) {
        let delta = match part {
            AnswerPart::Thought(text) => json!({"reasoning_content": text}),
            AnswerPart::Text(text) => json!({"content": text}),
            AnswerPart::CallBegin { id, name } => {
                self.calls += 1;
                let function = json!({"name": name, "arguments": ""});
                json!({"tool_calls": [{"index": self.calls - 1, "id": id, "type": "function", "function": function}]})
            }
            AnswerPart::CallArguments(text) => {
                json!({"tool_calls": [{"index": self.calls.saturating_sub(1), "function": {"arguments": text}}]})
            }
        };
        self.delta(delta, out);
    }

    pub fn end(&mut self, end: &AnswerEnd, out: &mut Vec<u8>) {
        data(&self.chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason(end.reason)}])), out);
        if self.identity.wants_usage {
            let mut last = self.chunk(json!([]));
            last["usage"] = usage(&end.usage);
            data(&last, out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

fn reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::End => "stop",
        StopReason::Length => "length",
        StopReason::Calls => "tool_calls",
        StopReason::Filtered => "content_filter",
    }
}

fn usage(usage: &TokenUsage) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input.saturating_add(output),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read}})
}

pub fn whole(identity: &AnswerIdentity, answer: &WholeAnswer) -> Value {
    let call = |call: &AnswerCall| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
    let content = Some(&answer.text).filter(|text| !text.is_empty() || answer.calls.is_empty());
    let mut message = json!({"role": "assistant", "content": content});
    if !answer.thoughts.is_empty() {
        message["reasoning_content"] = answer.thoughts.as_str().into();
    }
    if !answer.calls.is_empty() {
        message["tool_calls"] = answer.calls.iter().map(call).collect();
    }
    let choices = json!([{"index": 0, "message": message, "finish_reason": reason(answer.end.reason)}]);
    let AnswerIdentity { id, model, created, .. } = identity;
    json!({"id": format!("chatcmpl-{id}"), "object": "chat.completion", "created": created, "model": model,
        "choices": choices, "usage": usage(&answer.end.usage)})
}
