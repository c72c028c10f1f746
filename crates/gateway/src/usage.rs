//! The usage that a server reports, from a whole answer or from an event of a stream.

use serde::Serialize;
use serde_json::Value;

use super::Dialect;

/// Token counts; `None` where the server has said nothing yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenUsage {
    /// All of the input, cached parts included.
    pub input: Option<u64>,
    /// All of the output, reasoning included.
    pub output: Option<u64>,
    /// The part of the input that the server had in its cache, and the part that it put there.
    pub cache_read: u64,
    pub cache_write: u64,
}

impl TokenUsage {
    /// The usage in a whole answer.
    pub fn of(dialect: Dialect, answer: &Value) -> TokenUsage {
        let mut usage = TokenUsage::default();
        match dialect {
            Dialect::Chat => usage.add_chat(&answer["usage"]),
            Dialect::Responses => usage.add_responses(&answer["usage"]),
            Dialect::Messages => usage.add_messages(&answer["usage"]),
            Dialect::Gemini => usage.add_gemini(&answer["usageMetadata"]),
        }
        usage
    }

    /// Adds what an event of a stream says; later events say more than earlier ones.
    pub fn add_event(&mut self, dialect: Dialect, event: &Value) {
        match dialect {
            Dialect::Chat => self.add_chat(&event["usage"]),
            Dialect::Responses => self.add_responses(&event["response"]["usage"]),
            Dialect::Messages => {
                self.add_messages(&event["message"]["usage"]);
                self.add_messages(&event["usage"]);
            }
            Dialect::Gemini => self.add_gemini(&event["usageMetadata"]),
        }
    }

    fn add_chat(&mut self, usage: &Value) {
        self.input = usage["prompt_tokens"].as_u64().or(self.input);
        self.output = usage["completion_tokens"].as_u64().or(self.output);
        self.cache_read = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(self.cache_read);
    }

    fn add_responses(&mut self, usage: &Value) {
        self.input = usage["input_tokens"].as_u64().or(self.input);
        self.output = usage["output_tokens"].as_u64().or(self.output);
        self.cache_read = usage["input_tokens_details"]["cached_tokens"].as_u64().unwrap_or(self.cache_read);
    }

    /// Anthropic counts cached input apart from the rest.
    fn add_messages(&mut self, usage: &Value) {
        self.output = usage["output_tokens"].as_u64().or(self.output);
        let Some(fresh) = usage["input_tokens"].as_u64() else { return };
        let part = |key: &str, known: u64| usage[key].as_u64().unwrap_or(known);
        self.cache_write = part("cache_creation_input_tokens", self.cache_write);
        self.cache_read = part("cache_read_input_tokens", self.cache_read);
        self.input = Some(fresh.saturating_add(self.cache_write).saturating_add(self.cache_read));
    }

    /// Google counts reasoning apart from the rest.
    fn add_gemini(&mut self, usage: &Value) {
        self.input = usage["promptTokenCount"].as_u64().or(self.input);
        self.cache_read = usage["cachedContentTokenCount"].as_u64().unwrap_or(self.cache_read);
        let (said, thought) = (usage["candidatesTokenCount"].as_u64(), usage["thoughtsTokenCount"].as_u64());
        if said.is_some() || thought.is_some() {
            self.output = Some(said.unwrap_or(0).saturating_add(thought.unwrap_or(0)));
        }
    }
}
