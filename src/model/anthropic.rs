//! The Anthropic Messages API.

use serde_json::{Value, json};

use super::remote::{ModelServer, PartialAnswer, ProviderProtocol, RemoteModel, alternating};
use super::{MessageRole, ModelRequest};
use acheron_http::{Failure, Request};

pub type Anthropic = RemoteModel<MessagesApi>;

pub struct MessagesApi;

impl ProviderProtocol for MessagesApi {
    const NAME: &'static str = "anthropic";
    const KEY_VARIABLE: &'static str = "ANTHROPIC_API_KEY";
    const BASE_URL_VARIABLE: &'static str = "ANTHROPIC_BASE_URL";
    const BASE_URL: &'static str = "https://api.anthropic.com";

    fn request(server: &ModelServer, ask: &ModelRequest) -> Request {
        let messages: Vec<_> = alternating(&ask.messages)
            .iter()
            .map(|message| {
                let role = if message.role == MessageRole::User { "user" } else { "assistant" };
                json!({"role": role, "content": message.text})
            })
            .collect();
        let body = json!({
            "model": server.model,
            "max_tokens": ask.max_tokens,
            "system": ask.system,
            "messages": messages,
            "stream": true,
        });
        let mut request = Request::post(format!("{}/v1/messages", server.base_url), &body);
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

/// A content block, or a delta of one.
fn block(block: &Value, answer: &mut PartialAnswer) {
    match block["type"].as_str().unwrap_or_default() {
        "text" | "text_delta" => answer.text(block["text"].as_str().unwrap_or_default()),
        "thinking" | "thinking_delta" => answer.thought(block["thinking"].as_str().unwrap_or_default()),
        "tool_use" | "server_tool_use" => answer.native_call = true,
        _ => (),
    }
}

/// Token counts and the model's name. Tokens written to or read from a cache count as input.
fn note(message: &Value, answer: &mut PartialAnswer) {
    let usage = &message["usage"];
    if let Some(input) = usage["input_tokens"].as_u64() {
        let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
        answer.input = Some(input + cached.iter().filter_map(|key| usage[*key].as_u64()).sum::<u64>());
    }
    answer.output = usage["output_tokens"].as_u64().or(answer.output);
    if let Some(model) = message["model"].as_str() {
        answer.model = Some(model.to_owned());
    }
}
