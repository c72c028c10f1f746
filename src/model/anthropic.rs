//! The Anthropic Messages API.

use serde_json::{Value, json};

use super::answer_form::AnswerForm;
use super::remote::{PartialAnswer, ProviderProtocol, RemoteModel, alternating};
use super::server::ModelServer;
use super::{MessageRole, ModelRequest};
use acheron_http::{Failure, Request};

pub type Anthropic = RemoteModel<MessagesApi>;

pub struct MessagesApi;

impl ProviderProtocol for MessagesApi {
    const NAME: &'static str = "anthropic";

    fn request(server: &ModelServer, ask: &ModelRequest, _: AnswerForm) -> Request {
        let mut messages: Vec<Value> = alternating(&ask.messages)
            .iter()
            .map(|message| {
                let role = if message.role == MessageRole::User { "user" } else { "assistant" };
                json!({"role": role, "content": message.text})
            })
            .collect();
        // The next request begins with all of this one: what ends at a mark is kept by the provider for it.
        if let Some(last) = messages.last_mut() {
            last["content"] = cached(last["content"].take());
        }
        let system = if ask.system.is_empty() { json!("") } else { cached(json!(ask.system)) };
        let body = json!({
            "model": server.model,
            "max_tokens": ask.max_tokens,
            "system": system,
            "messages": messages,
            "stream": true,
        });
        let mut request = server.post("/messages", &body);
        request.headers.push(("anthropic-version", "2023-06-01".to_owned()));
        request.secret = server.key.clone().map(|key| ("x-api-key", "", key));
        request
    }

    fn event(event: &Value, answer: &mut PartialAnswer) -> Result<(), Failure> {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => note(&event["message"], answer),
            "content_block_start" => block(&event["content_block"], answer),
            "content_block_delta" => block(&event["delta"], answer),
            "message_delta" => note(event, answer),
            "message_stop" => answer.finished = true,
            "error" => return Err(PartialAnswer::trouble(&event["error"])),
            _ => (), // pings, and what may come to be
        }
        Ok(())
    }

    fn whole(body: &Value, answer: &mut PartialAnswer) -> Result<(), Failure> {
        if body["type"] == "error" {
            return Err(PartialAnswer::trouble(&body["error"]));
        }
        let Some(blocks) = body["content"].as_array() else {
            return Err(acheron_base::Error::provider("the answer of the model's server has no content in it").into());
        };
        for each in blocks {
            block(each, answer);
        }
        note(body, answer);
        Ok(())
    }
}

/// A text at whose end the provider's cache is marked.
fn cached(text: Value) -> Value {
    json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}])
}

/// A content block, or a delta of one.
fn block(block: &Value, answer: &mut PartialAnswer) {
    match block["type"].as_str().unwrap_or_default() {
        "text" | "text_delta" => answer.text(block["text"].as_str().unwrap_or_default()),
        "thinking" | "thinking_delta" => answer.thought(block["thinking"].as_str().unwrap_or_default()),
        "tool_use" | "server_tool_use" => answer.native_call = true,
        _ => (),
    }
}

/// Token counts, the model's name and the end of the answer. Tokens written to or read from a cache count as input.
fn note(message: &Value, answer: &mut PartialAnswer) {
    let usage = &message["usage"];
    if let Some(input) = usage["input_tokens"].as_u64() {
        let cached = |key: &str| usage[key].as_u64().unwrap_or_default();
        answer.cache_write = cached("cache_creation_input_tokens");
        answer.cache_read = cached("cache_read_input_tokens");
        answer.input = Some(input + answer.cache_write + answer.cache_read);
    }
    let stopped = message["delta"].get("stop_reason").unwrap_or(&message["stop_reason"]);
    answer.cut |= stopped == "max_tokens";
    answer.output = usage["output_tokens"].as_u64().or(answer.output);
    if let Some(model) = message["model"].as_str() {
        answer.model = Some(model.to_owned());
    }
}
