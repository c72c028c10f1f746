//! Language models: one trait and its implementations.
//!
//! A model takes messages and returns text; if tools are offered to it, also calls of them ([`native`]). The provider's stop
//! reason is not kept. Used by `agent`, `gateway`, `services` and `host`. Uses `acheron-http`; it knows no tree, no tools and no turns.

mod answer_form;
pub mod anthropic;
mod call_assembly;
pub mod config;
mod gateway_only;
mod guide;
pub mod native;
pub mod openai;
pub mod remote;
pub mod replay;
pub mod responses;
pub mod script;
pub mod server;
mod size;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use acheron_base::Result;

pub use native::{KeptAnswer, ModelProtocol, NativeCall, NativeResult, OfferedTool, ToolMessage};
pub use size::{MESSAGE_TOKENS, counted};

/// A language model, or something that takes the place of one.
#[async_trait]
pub trait Model: Send + Sync {
    /// The name in transcripts and in `status.json`.
    fn name(&self) -> String;

    /// Answers once. `watch` receives the answer while it is generated. Dropping the future cancels the request.
    async fn answer(&self, ask: &ModelRequest, watch: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer>;

    /// Whether somebody counts what it is asked. A script is free: nothing is lost when a crash forgets a request.
    fn is_billed(&self) -> bool {
        true
    }

    /// The answers of an interrupted turn that continues after a restart. Only scripts and recordings use them.
    fn resume(&self, _said: &[ModelAnswer]) {}
}

/// A request to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The token limit of the answer.
    pub max_tokens: u32,
    /// The JSON Schema of the answer, for servers that can be asked for one.
    #[serde(skip)]
    pub schema: Option<Arc<Value>>,
    /// The tools that are offered to the model. Without any, a call in the provider's own form is only noted.
    #[serde(skip)]
    pub tools: Option<Arc<[OfferedTool]>>,
}

impl ModelRequest {
    /// The text of the last message, empty if there is none; the results of calls, one line each.
    pub fn last(&self) -> String {
        let texts = self.messages.last().map(Message::texts).unwrap_or_default();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: MessageRole,
    pub text: String,
    /// Calls of tools, or their results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Box<ToolMessage>>,
}

impl Message {
    pub fn user(text: impl Into<String>) -> Self {
        Message { role: MessageRole::User, text: text.into(), tools: None }
    }

    pub fn assistant(text: impl Into<String>) -> Self {
        Message { role: MessageRole::Assistant, text: text.into(), tools: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    User,
    Assistant,
}

/// A part of an answer that is being generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPiece {
    Text(String),
    Thought(String),
    /// A part of the arguments of a call.
    Call(String),
    /// The connection was lost: the pieces so far are void.
    Again,
}

/// A complete answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    pub text: String,
    /// The model's reasoning, if the provider returns it separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thoughts: Option<String>,
    /// The model used the provider's native tool calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native_call: bool,
    /// The calls of the tools that were offered, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<NativeCall>,
    /// The whole answer, if there is reasoning in it that its provider wants back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptAnswer>,
    /// The answer was cut at its token limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    pub usage: Usage,
    /// The provider's name of the model that answered.
    pub model: String,
}

/// Token counts as the provider reports them; an estimate if it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// The part of the input that the provider had in its cache, and the part that it put there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    pub fn new(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }
}

/// Prices per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Prices {
    #[schemars(range(min = 0.0))]
    pub input_per_mtok: f64,
    #[schemars(range(min = 0.0))]
    pub output_per_mtok: f64,
    /// For input that the provider had in its cache, and for input that it put there; by default that of other input.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_per_mtok: Option<f64>,
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_per_mtok: Option<f64>,
}

impl Prices {
    /// The price of these tokens. Costs are computed from token totals, never summed as fractions.
    pub fn cost(&self, usage: Usage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
        let parts = [
            (fresh, self.input_per_mtok),
            (usage.cache_read, self.cache_read_per_mtok.unwrap_or(self.input_per_mtok)),
            (usage.cache_write, self.cache_write_per_mtok.unwrap_or(self.input_per_mtok)),
            (usage.output, self.output_per_mtok),
        ];
        parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum::<f64>() / 1e6
    }
}

/// Estimates the number of tokens in a text from its length.
///
/// English prose has four bytes per token, JSON and code about three, base64 fewer than two. What has to fit into a window is
/// counted ([`ModelRequest::counted`]); budgets use the count that comes with the answer.
pub fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_sum_is_the_sum_of_the_costs() {
        let prices = Prices { input_per_mtok: 3.0, output_per_mtok: 15.0, ..Prices::default() };
        let (one, two) = (Usage::new(1_000_000, 0), Usage::new(0, 2_000_000));
        assert_eq!(prices.cost(one.plus(two)), 33.0);
        let cached = Usage { cache_read: 500_000, cache_write: 250_000, ..one };
        assert_eq!(prices.cost(cached), 3.0);
        let cheap = Prices { cache_read_per_mtok: Some(0.5), cache_write_per_mtok: Some(4.0), ..prices };
        assert_eq!(cheap.cost(cached), 0.75 + 0.25 + 1.0);
    }
}
