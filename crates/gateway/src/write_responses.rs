//! An answer as OpenAI's responses.

use serde_json::{Value, json};

use super::answer::{AnswerCall, AnswerEnd, AnswerPart, StopReason, WholeAnswer};
use super::usage::TokenUsage;
use super::writer::{AnswerIdentity, named};

pub struct ResponsesWriter {
    identity: AnswerIdentity,
    sequence: u64,
    /// The items that are whole.
    done: Vec<Value>,
    open: Option<OpenItem>,
}

enum OpenItem {
    Message(String),
    Call(AnswerCall),
}

impl ResponsesWriter {
    pub fn new(identity: AnswerIdentity) -> ResponsesWriter {
        ResponsesWriter { identity, sequence: 0, done: Vec::new(), open: None }
    }

    fn event(&mut self, mut event: Value, out: &mut Vec<u8>) {
        event["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        named(&event, out);
    }

    /// The number of the item that grows, or of the next one.
    fn index(&self) -> usize {
        self.done.len()
    }

    fn message_id(&self) -> String {
        format!("msg_{}_{}", self.identity.id, self.index())
    }

    fn call_item(&self, call: &AnswerCall, status: &str) -> Value {
        let id = format!("fc_{}_{}", self.identity.id, self.index());
        json!({"id": id, "type": "function_call", "status": status, "call_id": call.id, "name": call.name,
            "arguments": call.arguments})
    }

    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let response = response(&self.identity, "in_progress", &[], None);
        self.event(json!({"type": "response.created", "response": response}), out);
    }

    pub fn part(&mut self, part: &AnswerPart, out: &mut Vec<u8>) {
        let (index, text) = (
            self.index(),
            match part {
                AnswerPart::Thought(_) => return, // reasoning that is not encrypted cannot be sent back
                AnswerPart::CallBegin { id, name } => return self.begin_call(id, name, out),
                AnswerPart::Text(text) | AnswerPart::CallArguments(text) => text,
            },
        );
        if matches!(part, AnswerPart::CallArguments(_)) {
            let Some(OpenItem::Call(call)) = &mut self.open else { return };
            call.arguments.push_str(text);
            let id = format!("fc_{}_{index}", self.identity.id);
            let kind = "response.function_call_arguments.delta";
            return self.event(json!({"type": kind, "item_id": id, "output_index": index, "delta": text}), out);
        }
        if !matches!(self.open, Some(OpenItem::Message(_))) {
            self.close(out);
            self.begin_message(out);
        }
        let (index, id) = (self.index(), self.message_id());
        if let Some(OpenItem::Message(known)) = &mut self.open {
            known.push_str(text);
        }
        let delta = json!({"type": "response.output_text.delta", "item_id": id, "output_index": index, "content_index": 0,
            "delta": text});
        self.event(delta, out);
    }

    fn begin_message(&mut self, out: &mut Vec<u8>) {
        let (index, id) = (self.index(), self.message_id());
        let item = json!({"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []});
        self.event(json!({"type": "response.output_item.added", "output_index": index, "item": item}), out);
        let part = json!({"type": "output_text", "text": "", "annotations": []});
        let added = json!({"type": "response.content_part.added", "item_id": id, "output_index": index, "content_index": 0,
            "part": part});
        self.event(added, out);
        self.open = Some(OpenItem::Message(String::new()));
    }

    fn begin_call(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        self.close(out);
        let call = AnswerCall { id: id.to_owned(), name: name.to_owned(), arguments: String::new() };
        let (index, item) = (self.index(), self.call_item(&call, "in_progress"));
        self.event(json!({"type": "response.output_item.added", "output_index": index, "item": item}), out);
        self.open = Some(OpenItem::Call(call));
    }

    /// Ends the item that grows.
    fn close(&mut self, out: &mut Vec<u8>) {
        let index = self.index();
        let item = match self.open.take() {
            None => return,
            Some(OpenItem::Message(text)) => {
                let (id, item) = (self.message_id(), message_item(&self.message_id(), &text));
                let at = json!({"item_id": id, "output_index": index, "content_index": 0});
                let mut done = json!({"type": "response.output_text.done", "text": text});
                merge(&mut done, &at);
                self.event(done, out);
                let mut done = json!({"type": "response.content_part.done", "part": item["content"][0]});
                merge(&mut done, &at);
                self.event(done, out);
                item
            }
            Some(OpenItem::Call(call)) => {
                let item = self.call_item(&call, "completed");
                let done = json!({"type": "response.function_call_arguments.done", "item_id": item["id"],
                    "output_index": index, "arguments": call.arguments});
                self.event(done, out);
                item
            }
        };
        self.event(json!({"type": "response.output_item.done", "output_index": index, "item": item}), out);
        self.done.push(item);
    }

    pub fn end(&mut self, end: &AnswerEnd, out: &mut Vec<u8>) {
        self.close(out);
        let (kind, status) = ending(end.reason);
        let response = response(&self.identity, status, &self.done, Some(end));
        self.event(json!({"type": kind, "response": response}), out);
    }
}

fn merge(event: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        event[key] = value.clone();
    }
}

fn message_item(id: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": content})
}

fn ending(reason: StopReason) -> (&'static str, &'static str) {
    match reason {
        StopReason::End | StopReason::Calls => ("response.completed", "completed"),
        StopReason::Length | StopReason::Filtered => ("response.incomplete", "incomplete"),
    }
}

fn response(identity: &AnswerIdentity, status: &str, output: &[Value], end: Option<&AnswerEnd>) -> Value {
    let AnswerIdentity { id, model, created, .. } = identity;
    let mut response = json!({"id": format!("resp_{id}"), "object": "response", "created_at": created, "model": model,
        "status": status, "output": output, "usage": end.map(|end| usage(&end.usage)), "error": null,
        "incomplete_details": null, "parallel_tool_calls": true, "tools": [], "tool_choice": "auto"});
    match end.map(|end| end.reason) {
        Some(StopReason::Length) => response["incomplete_details"] = json!({"reason": "max_output_tokens"}),
        Some(StopReason::Filtered) => response["incomplete_details"] = json!({"reason": "content_filter"}),
        _ => (),
    }
    response
}

fn usage(usage: &TokenUsage) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cache_read}, "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input.saturating_add(output)})
}

pub fn whole(identity: &AnswerIdentity, answer: &WholeAnswer) -> Value {
    let mut writer = ResponsesWriter::new(identity.clone());
    let mut unseen = Vec::new();
    answer.parts().iter().for_each(|part| writer.part(part, &mut unseen));
    writer.close(&mut unseen);
    response(identity, ending(answer.end.reason).1, &writer.done, Some(&answer.end))
}
