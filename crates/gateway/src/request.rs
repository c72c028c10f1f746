//! A request as a program sends it, and the three things that the gateway may change in it: the name of the model, the longest
//! answer, and nothing else.

use serde_json::{Map, Value, json};

use super::Dialect;
use super::conversation::Conversation;
use super::size::{self, RequestTexts, texts};
use acheron_base::{Error, Result};

/// The shortest reasoning that Anthropic's server accepts, in tokens.
const LEAST_THINKING: u32 = 1024;

/// In Gemini's language the path names the model, and says whether the answer is streamed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeminiTarget {
    pub model: String,
    pub stream: bool,
}

/// A request for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayRequest {
    pub dialect: Dialect,
    /// As the program calls the model.
    pub model: String,
    /// The answer is wanted as a stream of events.
    pub stream: bool,
    body: Map<String, Value>,
}

/// The values of a request: in memory each takes many times what it takes in the body.
const MOST_VALUES: usize = 1_000_000;

impl GatewayRequest {
    /// Reads the body of a request.
    pub fn read(dialect: Dialect, target: Option<&GeminiTarget>, body: &[u8]) -> Result<GatewayRequest> {
        if size::values(body) > MOST_VALUES {
            return Err(Error::too_large(format!("the body of the request has more than {MOST_VALUES} values")));
        }
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| Error::invalid(format!("the body of the request is not JSON: {error}")))?;
        let Value::Object(body) = value else {
            return Err(Error::invalid("the body of the request is not a JSON object"));
        };
        let wanted = match dialect {
            Dialect::Chat | Dialect::Messages => "messages",
            Dialect::Responses => "input",
            Dialect::Gemini => "contents",
        };
        let has = |key: &str| body.get(key).is_some_and(|value| value.is_array() || value.is_string());
        if !has(wanted) {
            return Err(Error::invalid(format!("the body of the request has no `{wanted}`")));
        }
        let (model, stream) = match target {
            Some(target) => (target.model.clone(), target.stream),
            None => {
                let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
                (model.to_owned(), body.get("stream") == Some(&Value::Bool(true)))
            }
        };
        Ok(GatewayRequest { dialect, model, stream, body })
    }

    /// The body as it is to be sent on.
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.body).unwrap_or_default()
    }

    pub fn body(&self) -> &Map<String, Value> {
        &self.body
    }

    /// The longest answer that is asked for, in tokens; `None` if the program leaves that to the server.
    pub fn max_tokens(&self) -> Option<u32> {
        let asked = match self.dialect {
            Dialect::Chat => self.body.get("max_completion_tokens").or_else(|| self.body.get("max_tokens")),
            Dialect::Messages => self.body.get("max_tokens"),
            Dialect::Responses => self.body.get("max_output_tokens"),
            Dialect::Gemini => self.body.get("generationConfig").and_then(|config| config.get("maxOutputTokens")),
        };
        asked.and_then(Value::as_u64).map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    /// Limits the answer. `modern` is for servers whose newest models know `max_completion_tokens` only.
    pub fn set_max_tokens(&mut self, tokens: u32, modern: bool) {
        match self.dialect {
            Dialect::Chat => {
                let known =
                    ["max_completion_tokens", "max_tokens"].into_iter().find(|key| self.body.contains_key(*key));
                let usual = if modern { "max_completion_tokens" } else { "max_tokens" };
                self.body.insert(known.unwrap_or(usual).to_owned(), tokens.into());
            }
            Dialect::Responses => drop(self.body.insert("max_output_tokens".to_owned(), tokens.into())),
            Dialect::Gemini => {
                let config = self.body.entry("generationConfig").or_insert_with(|| json!({}));
                if !config.is_object() {
                    *config = json!({});
                }
                config["maxOutputTokens"] = tokens.into();
            }
            Dialect::Messages => {
                self.body.insert("max_tokens".to_owned(), tokens.into());
                self.shorten_thinking(tokens);
            }
        }
    }

    /// Anthropic's server refuses reasoning that is as long as the whole answer.
    fn shorten_thinking(&mut self, tokens: u32) {
        let Some(thinking) = self.body.get_mut("thinking") else { return };
        let asked = thinking.get("budget_tokens").and_then(Value::as_u64);
        if asked.is_some_and(|asked| asked >= tokens.into()) {
            *thinking = match tokens / 2 {
                half if half >= LEAST_THINKING => json!({"type": "enabled", "budget_tokens": half}),
                _ => json!({"type": "disabled"}),
            };
        }
    }

    /// Replaces the name of the model. In Gemini's language the path has it.
    pub fn set_model(&mut self, name: &str) {
        name.clone_into(&mut self.model);
        if self.dialect != Dialect::Gemini {
            self.body.insert("model".to_owned(), name.into());
        }
    }

    /// What the model reads, for an estimate of its tokens.
    pub fn texts(&self) -> RequestTexts<'_> {
        texts(&self.body)
    }

    /// Whether the program offers tools.
    pub fn has_tools(&self) -> bool {
        self.body.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty())
    }

    /// Whether the program expects the usage at the end of a stream of chat completions.
    pub fn wants_usage(&self) -> bool {
        self.body.get("stream_options").is_some_and(|options| options.get("include_usage") == Some(&Value::Bool(true)))
    }

    /// The conversation that it holds, without what only its own language has.
    pub fn conversation(&self) -> Conversation {
        match self.dialect {
            Dialect::Chat => super::read_chat_request::conversation(&self.body),
            Dialect::Responses => super::read_responses_request::conversation(&self.body),
            Dialect::Messages => super::read_messages_request::conversation(&self.body),
            Dialect::Gemini => super::read_gemini_request::conversation(&self.body),
        }
    }

    /// The same request for a server of chat completions, without a limit of the answer: its name depends on the server.
    pub fn as_chat(&self) -> GatewayRequest {
        let body = super::write_chat_request::body(&self.conversation(), &self.model, self.stream);
        GatewayRequest { dialect: Dialect::Chat, model: self.model.clone(), stream: self.stream, body }
    }
}

#[cfg(test)]
mod tests;
