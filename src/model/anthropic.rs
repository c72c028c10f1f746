//! The Anthropic Messages API.

use serde_json::{Value, json};

use super::answer_form::AnswerForm;
use super::call_assembly::CallFragment;
use super::remote::{PartialAnswer, ProviderProtocol, RemoteModel, alternating};
use super::server::ModelServer;
use super::{Message, MessageRole, ModelRequest, NativeCall, NativeResult, OfferedTool, ToolMessage};
use acheron_http::{Failure, Request};

pub type Anthropic = RemoteModel<MessagesApi>;

pub struct MessagesApi;

impl ProviderProtocol for MessagesApi {
    const NAME: &'static str = "anthropic";

    fn request(server: &ModelServer, ask: &ModelRequest, _: AnswerForm) -> Request {
        let mut messages: Vec<Value> = alternating(&ask.messages).iter().map(sent).collect();
        // The next request begins with all of this one: what ends at a mark is kept by the provider for it.
        if let Some(last) = messages.last_mut() {
            match last["content"].as_array_mut() {
                Some(blocks) => blocks.iter_mut().last().into_iter().for_each(mark),
                None => last["content"] = cached(last["content"].take()),
            }
        }
        let system = if ask.system.is_empty() { json!("") } else { cached(json!(ask.system)) };
        let mut body = json!({
            "model": server.model,
            "max_tokens": ask.max_tokens,
            "system": system,
            "messages": messages,
            "stream": true,
        });
        if let Some(tools) = &ask.tools {
            body["tools"] = tools.iter().map(offered).collect();
        }
        let mut request = server.post("/messages", &body);
        request.headers.push(("anthropic-version".into(), "2023-06-01".to_owned()));
        request.secret = server.secret();
        request
    }

    fn event(event: &Value, answer: &mut PartialAnswer) -> Result<(), Failure> {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => note(&event["message"], answer),
            "content_block_start" => block(&event["content_block"], event["index"].as_u64(), answer),
            "content_block_delta" => delta(&event["delta"], event["index"].as_u64(), answer),
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
        for (at, each) in blocks.iter().enumerate() {
            block(each, Some(at as u64), answer);
        }
        note(body, answer);
        Ok(())
    }

    /// All blocks, if one of them is the model's reasoning; the calls as they are known now.
    fn kept(mut items: Vec<Value>, calls: &[NativeCall]) -> Vec<Value> {
        let reasoning = |item: &Value| matches!(item["type"].as_str(), Some("thinking" | "redacted_thinking"));
        let mut calls = calls.iter();
        for item in items.iter_mut().filter(|item| item["type"] == "tool_use") {
            let Some(call) = calls.next() else { return Vec::new() };
            *item = tool_use(call);
        }
        items.retain(|item| item["type"] != "text" || item["text"] != "");
        if calls.next().is_some() || !items.iter().any(reasoning) { Vec::new() } else { items }
    }
}

fn offered(tool: &OfferedTool) -> Value {
    let OfferedTool { name, about, arguments } = tool;
    json!({"name": name, "description": about, "input_schema": arguments})
}

/// A message as the server takes it.
fn sent(message: &Message) -> Value {
    let role = if message.role == MessageRole::User { "user" } else { "assistant" };
    let content = match message.tools.as_deref() {
        None => message.text.as_str().into(),
        Some(ToolMessage::Results(results)) => results.iter().map(tool_result).collect(),
        Some(ToolMessage::Calls { kept: Some(kept), .. }) if kept.api == MessagesApi::NAME => {
            kept.items.iter().cloned().collect()
        }
        Some(ToolMessage::Calls { calls, .. }) => {
            let words = Some(&message.text).filter(|text| !text.trim().is_empty());
            let words = words.map(|text| json!({"type": "text", "text": text}));
            words.into_iter().chain(calls.iter().map(tool_use)).collect::<Value>()
        }
    };
    json!({"role": role, "content": content})
}

fn tool_use(call: &NativeCall) -> Value {
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.object()})
}

fn tool_result(result: &NativeResult) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": result.id, "content": result.text});
    if result.failed {
        block["is_error"] = true.into();
    }
    block
}

/// A text at whose end the provider's cache is marked.
fn cached(text: Value) -> Value {
    let mut block = json!({"type": "text", "text": text});
    mark(&mut block);
    json!([block])
}

/// Marks a block as the end of what the provider may keep. Reasoning must not be marked.
fn mark(block: &mut Value) {
    if matches!(block["type"].as_str(), Some("text" | "tool_use" | "tool_result")) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// A content block, which is whole or will grow.
fn block(block: &Value, number: Option<u64>, answer: &mut PartialAnswer) {
    match block["type"].as_str().unwrap_or_default() {
        "text" => answer.text(block["text"].as_str().unwrap_or_default()),
        "thinking" => answer.thought(block["thinking"].as_str().unwrap_or_default()),
        "tool_use" => {
            let word = |key: &str| block[key].as_str().unwrap_or_default();
            // In a stream the object is empty, and its text follows.
            let input = block["input"].as_object().filter(|input| !input.is_empty()).cloned();
            let arguments = input.map(|input| Value::Object(input).to_string()).unwrap_or_default();
            answer.call(CallFragment { number, id: word("id"), name: word("name"), arguments: &arguments });
        }
        "redacted_thinking" => (),
        "server_tool_use" => return answer.native_call = true,
        _ => return,
    }
    answer.item(block.clone());
}

/// A piece of a content block.
fn delta(delta: &Value, number: Option<u64>, answer: &mut PartialAnswer) {
    let piece = |key: &str| delta[key].as_str().unwrap_or_default();
    match delta["type"].as_str().unwrap_or_default() {
        "text_delta" => {
            answer.text(piece("text"));
            grow(answer, "text", "text", piece("text"));
        }
        "thinking_delta" => {
            answer.thought(piece("thinking"));
            grow(answer, "thinking", "thinking", piece("thinking"));
        }
        "signature_delta" => grow(answer, "thinking", "signature", piece("signature")),
        "input_json_delta" => {
            answer.call(CallFragment { number, arguments: piece("partial_json"), ..Default::default() });
        }
        _ => (),
    }
}

/// Adds to the last block if it is of that kind: blocks come one after another.
fn grow(answer: &mut PartialAnswer, kind: &str, key: &str, piece: &str) {
    if !answer.items.last().is_some_and(|last| last["type"] == kind) {
        answer.item(json!({"type": kind, key: ""}));
    }
    let Some(last) = answer.items.last_mut() else { return };
    match &mut last[key] {
        Value::String(text) => text.push_str(piece),
        absent => *absent = piece.into(),
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
