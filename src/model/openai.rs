//! The chat completions API of OpenAI and compatible servers (vLLM, llama.cpp, Ollama).

use serde_json::{Value, json};

use super::answer_form::AnswerForm;
use super::call_assembly::CallFragment;
use super::remote::{PartialAnswer, ProviderProtocol, RemoteModel, alternating};
use super::server::{ModelServer, OPENAI};
use super::{KeptAnswer, Message, MessageRole, ModelRequest, NativeCall, OfferedTool, ToolMessage};
use acheron_http::{Failure, Request};

pub type OpenAi = RemoteModel<ChatCompletions>;

pub struct ChatCompletions;

impl ProviderProtocol for ChatCompletions {
    const NAME: &'static str = "openai";

    fn request(server: &ModelServer, ask: &ModelRequest, form: AnswerForm) -> Request {
        let mut messages = vec![json!({"role": "system", "content": ask.system})];
        messages.extend(alternating(&ask.messages).iter().flat_map(sent));
        let mut body = json!({
            "model": server.model,
            "messages": messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        // OpenAI renamed the field, and its newer models reject the old name; compatible servers know only the old one.
        let limit = if server.base_url == OPENAI.base_url { "max_completion_tokens" } else { "max_tokens" };
        body[limit] = ask.max_tokens.into();
        if let Some(tools) = &ask.tools {
            body["tools"] = tools.iter().map(offered).collect();
        }
        if let Some(form) = form.response_format(ask) {
            body["response_format"] = form;
        }
        authorized(server, server.post("/chat/completions", &body))
    }

    fn event(event: &Value, answer: &mut PartialAnswer) -> Result<(), Failure> {
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(PartialAnswer::trouble(error));
        }
        let choice = &event["choices"][0];
        take(&choice["delta"], answer, false);
        note(event, answer);
        // The usage follows before the end of the stream, and some servers close without `[DONE]`.
        answer.complete |= choice["finish_reason"].is_string();
        answer.cut |= choice["finish_reason"] == "length";
        Ok(())
    }

    fn whole(body: &Value, answer: &mut PartialAnswer) -> Result<(), Failure> {
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            return Err(PartialAnswer::trouble(error));
        }
        let message = &body["choices"][0]["message"];
        if !message.is_object() {
            return Err(acheron_base::Error::provider("the answer of the model's server has no message in it").into());
        }
        take(message, answer, true);
        note(body, answer);
        answer.cut |= body["choices"][0]["finish_reason"] == "length";
        Ok(())
    }

    fn kept(items: Vec<Value>, _: &[NativeCall]) -> Vec<Value> {
        items
    }
}

fn offered(tool: &OfferedTool) -> Value {
    let OfferedTool { name, about, arguments } = tool;
    json!({"type": "function", "function": {"name": name, "description": about, "parameters": arguments}})
}

/// A message as the server takes it. Every result is a message of its own.
fn sent(message: &Message) -> Vec<Value> {
    let role = if message.role == MessageRole::User { "user" } else { "assistant" };
    match message.tools.as_deref() {
        None => vec![json!({"role": role, "content": message.text})],
        Some(ToolMessage::Results(results)) => {
            let tool = results.iter().map(|it| json!({"role": "tool", "tool_call_id": it.id, "content": it.text}));
            tool.collect()
        }
        Some(ToolMessage::Calls { calls, kept }) => {
            let call = |call: &NativeCall| {
                let function = json!({"name": call.name, "arguments": call.object_text()});
                json!({"id": call.id, "type": "function", "function": function})
            };
            let content = Some(message.text.as_str()).filter(|text| !text.is_empty());
            let calls: Vec<Value> = calls.iter().map(call).collect();
            let mut sent = json!({"role": role, "content": content, "tool_calls": calls});
            // The reasoning, under the name that the server has for it.
            let own = kept.iter().filter(|kept| kept.api == ChatCompletions::NAME);
            for (key, value) in own.flat_map(KeptAnswer::fields) {
                sent[key] = value.clone();
            }
            vec![sent]
        }
    }
}

impl KeptAnswer {
    /// The keys and values of its objects.
    fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.items.iter().filter_map(Value::as_object).flatten()
    }
}

/// The request with the server's key.
pub fn authorized(server: &ModelServer, mut request: Request) -> Request {
    request.secret = server.secret();
    request
}

/// Text, reasoning and native tool calls of a whole message or of a delta.
fn take(message: &Value, answer: &mut PartialAnswer, whole: bool) {
    answer.text(message["content"].as_str().unwrap_or_default());
    let reasoning = message["reasoning_content"].as_str().or_else(|| message["reasoning"].as_str());
    answer.thought(reasoning.unwrap_or_default());
    keep_reasoning(message, answer);
    for (at, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let number = if whole { Some(at as u64) } else { call["index"].as_u64() };
        add(number, call["id"].as_str().unwrap_or_default(), &call["function"], answer);
    }
    if message["function_call"].is_object() {
        add(Some(0), "", &message["function_call"], answer);
    }
}

/// Adds a fragment of a call. Arguments are text, though some servers send the object itself.
fn add(number: Option<u64>, id: &str, function: &Value, answer: &mut PartialAnswer) {
    let object = function.get("arguments").filter(|arguments| arguments.is_object()).map(Value::to_string);
    let arguments = object.as_deref().or_else(|| function["arguments"].as_str()).unwrap_or_default();
    let name = function["name"].as_str().unwrap_or_default();
    answer.call(CallFragment { number, id, name, arguments });
}

/// Keeps the reasoning of servers that want it back with the calls: `reasoning_content` (DeepSeek) is a text, and
/// `reasoning_details` (OpenRouter) a list whose entries arrive in fragments too.
fn keep_reasoning(message: &Value, answer: &mut PartialAnswer) {
    const DETAILS: &str = "reasoning_details";
    let (text, details) = (message["reasoning_content"].as_str(), message[DETAILS].as_array());
    if !answer.offered || (text.is_none() && details.is_none()) {
        return;
    }
    if answer.items.is_empty() {
        answer.items.push(json!({}));
    }
    let Some(kept) = answer.items.first_mut().and_then(Value::as_object_mut) else { return };
    if let Some(piece) = text
        && let Value::String(text) = kept.entry("reasoning_content").or_insert_with(|| "".into())
    {
        text.push_str(piece);
    }
    if let Some(pieces) = details
        && let Value::Array(all) = kept.entry(DETAILS).or_insert_with(|| json!([]))
    {
        pieces.iter().for_each(|piece| join_detail(all, piece));
    }
}

/// Adds an entry of `reasoning_details`: to the last one if it is a further piece of it.
fn join_detail(all: &mut Vec<Value>, piece: &Value) {
    let same = |last: &Value| {
        let text = ["text", "summary"].iter().any(|key| piece[*key].is_string() && last[*key].is_string());
        text && last["type"] == piece["type"] && last["index"] == piece["index"] && last["signature"].is_null()
    };
    let (Some(last), Some(pieces)) = (all.last_mut().filter(|last| same(last)), piece.as_object()) else {
        return all.push(piece.clone());
    };
    for (key, value) in pieces.iter().filter(|(_, value)| !value.is_null()) {
        match (&mut last[key], value) {
            (Value::String(text), Value::String(more)) if matches!(key.as_str(), "text" | "summary") => {
                text.push_str(more);
            }
            (held, value) => *held = value.clone(),
        }
    }
}

fn note(body: &Value, answer: &mut PartialAnswer) {
    let usage = &body["usage"];
    answer.input = usage["prompt_tokens"].as_u64().or(answer.input);
    answer.output = usage["completion_tokens"].as_u64().or(answer.output);
    answer.cache_read = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(answer.cache_read);
    if let Some(model) = body["model"].as_str().filter(|model| !model.is_empty()) {
        answer.model = Some(model.to_owned());
    }
}
