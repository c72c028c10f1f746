//! An answer in Anthropic's language.

use serde_json::{Value, json};

use super::answer::{AnswerEnd, AnswerPart, StopReason, WholeAnswer};
use super::usage::TokenUsage;
use super::writer::{AnswerIdentity, named, object};

pub struct MessagesWriter {
    identity: AnswerIdentity,
    /// The number of the next block.
    next: u64,
    /// The block that grows now.
    open: Option<Block>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Call,
}

impl MessagesWriter {
    pub fn new(identity: AnswerIdentity) -> MessagesWriter {
        MessagesWriter { identity, next: 0, open: None }
    }

    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let AnswerIdentity { id, model, input, .. } = &self.identity;
        let message = json!({"id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": input, "output_tokens": 0}});
        named(&json!({"type": "message_start", "message": message}), out);
    }

    fn start(&mut self, block: Block, content: &Value, out: &mut Vec<u8>) {
        self.stop(out);
        named(&json!({"type": "content_block_start", "index": self.next, "content_block": content}), out);
        self.open = Some(block);
    }

    fn stop(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            named(&json!({"type": "content_block_stop", "index": self.next}), out);
            self.next += 1;
        }
    }

    pub fn part(&mut self, part: &AnswerPart, out: &mut Vec<u8>) {
        let delta = match part {
            AnswerPart::Thought(_) => return, // reasoning needs a signature of Anthropic's
            AnswerPart::Text(text) => {
                if self.open != Some(Block::Text) {
                    self.start(Block::Text, &json!({"type": "text", "text": ""}), out);
                }
                json!({"type": "text_delta", "text": text})
            }
            AnswerPart::CallBegin { id, name } => {
                return self.start(Block::Call, &json!({"type": "tool_use", "id": id, "name": name, "input": {}}), out);
            }
            AnswerPart::CallArguments(_) if self.open != Some(Block::Call) => return,
            AnswerPart::CallArguments(text) => json!({"type": "input_json_delta", "partial_json": text}),
        };
        named(&json!({"type": "content_block_delta", "index": self.next, "delta": delta}), out);
    }

    pub fn end(&mut self, end: &AnswerEnd, out: &mut Vec<u8>) {
        self.stop(out);
        let delta = json!({"stop_reason": reason(end.reason), "stop_sequence": null});
        named(&json!({"type": "message_delta", "delta": delta, "usage": usage(&end.usage)}), out);
        named(&json!({"type": "message_stop"}), out);
    }
}

fn reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::End => "end_turn",
        StopReason::Length => "max_tokens",
        StopReason::Calls => "tool_use",
        StopReason::Filtered => "refusal",
    }
}

/// Anthropic counts cached input apart from the rest.
fn usage(usage: &TokenUsage) -> Value {
    let (read, write) = (usage.cache_read, usage.cache_write);
    let fresh = usage.input.unwrap_or(0).saturating_sub(read).saturating_sub(write);
    json!({"input_tokens": fresh, "cache_read_input_tokens": read, "cache_creation_input_tokens": write,
        "output_tokens": usage.output.unwrap_or(0)})
}

pub fn whole(identity: &AnswerIdentity, answer: &WholeAnswer) -> Value {
    let words = Some(&answer.text).filter(|text| !text.is_empty()).map(|text| json!({"type": "text", "text": text}));
    let calls = answer
        .calls
        .iter()
        .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": object(&call.arguments)}));
    let content: Vec<Value> = words.into_iter().chain(calls).collect();
    json!({"id": format!("msg_{}", identity.id), "type": "message", "role": "assistant", "model": identity.model,
        "content": content, "stop_reason": reason(answer.end.reason), "stop_sequence": null, "usage": usage(&answer.end.usage)})
}
