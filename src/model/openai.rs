//! The chat completions API of OpenAI and compatible servers (vLLM, llama.cpp, Ollama).

use serde_json::{Value, json};

use super::answer_form::AnswerForm;
use super::remote::{PartialAnswer, ProviderProtocol, RemoteModel, alternating};
use super::server::{ModelServer, OPENAI};
use super::{MessageRole, ModelRequest};
use acheron_http::{Failure, Request};

pub type OpenAi = RemoteModel<ChatCompletions>;

pub struct ChatCompletions;

impl ProviderProtocol for ChatCompletions {
    const NAME: &'static str = "openai";

    fn request(server: &ModelServer, ask: &ModelRequest, form: AnswerForm) -> Request {
        let mut messages = vec![json!({"role": "system", "content": ask.system})];
        messages.extend(alternating(&ask.messages).iter().map(|message| {
            let role = if message.role == MessageRole::User { "user" } else { "assistant" };
            json!({"role": role, "content": message.text})
        }));
        let mut body = json!({
            "model": server.model,
            "messages": messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        // OpenAI renamed the field, and its newer models reject the old name; compatible servers know only the old one.
        let limit = if server.base_url == OPENAI.base_url { "max_completion_tokens" } else { "max_tokens" };
        body[limit] = ask.max_tokens.into();
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
        take(&choice["delta"], answer);
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
        take(message, answer);
        note(body, answer);
        answer.cut |= body["choices"][0]["finish_reason"] == "length";
        Ok(())
    }
}

/// The request with the server's key.
pub fn authorized(server: &ModelServer, mut request: Request) -> Request {
    request.secret = server.key.clone().map(|key| ("authorization", "Bearer ", key));
    request
}

/// Text, reasoning and native tool calls of a message or of a delta.
fn take(message: &Value, answer: &mut PartialAnswer) {
    answer.text(message["content"].as_str().unwrap_or_default());
    let reasoning = message["reasoning_content"].as_str().or_else(|| message["reasoning"].as_str());
    answer.thought(reasoning.unwrap_or_default());
    answer.native_call |= ["tool_calls", "function_call"].iter().any(|key| match &message[*key] {
        Value::Array(calls) => !calls.is_empty(),
        other => other.is_object(),
    });
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
