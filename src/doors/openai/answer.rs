//! Answers in OpenAI's two languages: whole, as the events of a stream, and as errors. Pure.

use serde::Deserialize;
use serde_json::{Value, json};

use acheron_base::{Code, Error};

/// The end of a turn, as `chat/control/input.json` answers it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TurnEnd {
    pub reply: Option<String>,
    pub error: Option<Error>,
    #[serde(default)]
    pub spent: TurnSpent,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct TurnSpent {
    #[serde(default)]
    pub input: u64,
    #[serde(default)]
    pub output: u64,
    #[serde(default)]
    pub cache_read: u64,
}

/// Which turn it is.
#[derive(Clone, Debug)]
pub struct AnswerHead {
    pub job: String,
    pub model: String,
    /// Seconds since 1970.
    pub created: u64,
}

/// The status and the type of a failure, as the clients' libraries tell them apart.
pub fn kind(error: &Error) -> (u16, &'static str) {
    match error.code {
        Code::InvalidPayload | Code::UnknownOperation => (400, "invalid_request_error"),
        Code::Forbidden => (403, "permission_error"),
        Code::NotFound => (404, "invalid_request_error"),
        Code::TooLarge => (413, "invalid_request_error"),
        Code::BudgetExceeded | Code::QuotaExceeded => (429, "insufficient_quota"),
        Code::Busy => (429, "rate_limit_error"),
        Code::Cancelled | Code::Conflict => (409, "invalid_request_error"),
        Code::Timeout => (504, "server_error"),
        Code::Unavailable => (503, "server_error"),
        _ => (500, "server_error"),
    }
}

/// Whether the same request may succeed a moment later.
pub fn may_retry(error: &Error) -> bool {
    matches!(error.code, Code::Busy | Code::Unavailable)
}

pub fn error(error: &Error) -> Value {
    json!({"error": {"message": error.message, "type": kind(error).1, "param": null, "code": error.code.name()}})
}

fn usage(spent: &TurnSpent) -> Value {
    let prompt = spent.input + spent.cache_read;
    json!({"prompt_tokens": prompt, "completion_tokens": spent.output, "total_tokens": prompt + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cache_read}})
}

/// `/v1/chat/completions`, whole.
pub fn completion(head: &AnswerHead, end: &TurnEnd) -> Value {
    let message = json!({"role": "assistant", "content": end.reply.as_deref().unwrap_or_default(), "refusal": null});
    json!({"id": format!("chatcmpl-{}", head.job), "object": "chat.completion", "created": head.created, "model": head.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"}], "usage": usage(&end.spent)})
}

fn chunk(head: &AnswerHead, choices: Value) -> Value {
    json!({"id": format!("chatcmpl-{}", head.job), "object": "chat.completion.chunk", "created": head.created,
        "model": head.model, "choices": choices})
}

/// The first event of `/v1/chat/completions`.
pub fn first_chunk(head: &AnswerHead) -> String {
    let delta = json!({"role": "assistant", "content": ""});
    data(&chunk(head, json!([{"index": 0, "delta": delta, "finish_reason": null}])))
}

/// The other events.
pub fn last_chunks(head: &AnswerHead, end: &TurnEnd, include_usage: bool) -> String {
    let mut events = String::new();
    for piece in pieces(end.reply.as_deref().unwrap_or_default()) {
        let choice = json!([{"index": 0, "delta": {"content": piece}, "finish_reason": null}]);
        events.push_str(&data(&chunk(head, choice)));
    }
    events.push_str(&data(&chunk(head, json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]))));
    if include_usage {
        let mut last = chunk(head, json!([]));
        last["usage"] = usage(&end.spent);
        events.push_str(&data(&last));
    }
    events.push_str("data: [DONE]\n\n");
    events
}

/// A reply in pieces of some words, as clients expect it.
fn pieces(text: &str) -> Vec<&str> {
    const LEAST: usize = 64;
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let from = rest.char_indices().map(|(at, _)| at).find(|at| *at >= LEAST).unwrap_or(rest.len());
        let end = rest[from..].find(' ').map_or(rest.len(), |at| from + at + 1);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// `/v1/responses`, whole; without its end while it is in progress.
pub fn response(head: &AnswerHead, end: Option<&TurnEnd>) -> Value {
    let mut response = json!({"id": format!("resp_{}", head.job), "object": "response", "created_at": head.created,
        "model": head.model, "status": "in_progress", "error": null, "incomplete_details": null, "instructions": null,
        "metadata": {}, "parallel_tool_calls": false, "temperature": null, "top_p": null, "tool_choice": "auto", "tools": [],
        "conversation": {"id": conversation(&head.model)}, "output": [], "usage": null});
    if let Some(end) = end {
        let TurnSpent { output, cache_read, .. } = end.spent;
        let input = end.spent.input + cache_read;
        response["status"] = "completed".into();
        response["output"] = json!([item(head, end.reply.as_deref())]);
        response["usage"] = json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": cache_read},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input + output});
    }
    response
}

fn item(head: &AnswerHead, reply: Option<&str>) -> Value {
    let (status, content) = match reply {
        Some(text) => ("completed", json!([part(text)])),
        None => ("in_progress", json!([])),
    };
    json!({"id": format!("msg_{}", head.job), "type": "message", "status": status, "role": "assistant", "content": content})
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

/// The first events of `/v1/responses`, and their number.
pub fn first_events(head: &AnswerHead) -> (String, u64) {
    let mut events = Numbered::default();
    events.add("response.created", json!({"response": response(head, None)}));
    events.add("response.in_progress", json!({"response": response(head, None)}));
    (events.text, events.next)
}

/// The other events.
pub fn last_events(head: &AnswerHead, end: &TurnEnd, next: u64) -> String {
    let mut events = Numbered { text: String::new(), next };
    let reply = end.reply.as_deref().unwrap_or_default();
    let id = format!("msg_{}", head.job);
    let at = |mut more: Value| {
        more["item_id"] = id.as_str().into();
        more["output_index"] = 0.into();
        more["content_index"] = 0.into();
        more
    };
    events.add("response.output_item.added", json!({"output_index": 0, "item": item(head, None)}));
    events.add("response.content_part.added", at(json!({"part": part("")})));
    for piece in pieces(reply) {
        events.add("response.output_text.delta", at(json!({"delta": piece, "logprobs": []})));
    }
    events.add("response.output_text.done", at(json!({"text": reply, "logprobs": []})));
    events.add("response.content_part.done", at(json!({"part": part(reply)})));
    events.add("response.output_item.done", json!({"output_index": 0, "item": item(head, Some(reply))}));
    events.add("response.completed", json!({"response": response(head, Some(end))}));
    events.text
}

/// The events of a stream of `/v1/responses` that fails after it began.
pub fn failed_events(head: &AnswerHead, error: &Error, next: u64) -> String {
    let mut events = Numbered { text: String::new(), next };
    let mut failed = response(head, None);
    failed["status"] = "failed".into();
    failed["error"] = json!({"code": error.code.name(), "message": error.message});
    events.add("response.failed", json!({ "response": failed }));
    events.text
}

#[derive(Default)]
struct Numbered {
    text: String,
    next: u64,
}

impl Numbered {
    fn add(&mut self, kind: &str, mut event: Value) {
        event["type"] = kind.into();
        event["sequence_number"] = self.next.into();
        self.next += 1;
        self.text.push_str(&format!("event: {kind}\n{}", data(&event)));
    }
}

/// The one conversation of an agent.
pub fn conversation(agent: &str) -> String {
    format!("conv_{agent}")
}

pub fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_reply_are_the_reply() {
        for text in ["", "short", &"word ".repeat(100), &"ä".repeat(500)] {
            assert_eq!(pieces(text).concat(), text);
        }
    }
}
