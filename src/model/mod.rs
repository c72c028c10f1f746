//! What answers an agent: one trait, and the kinds of it.
//!
//! Knows nothing of the tree, of tools or of turns. A model is given messages and gives back text; no tool of a
//! provider's own is ever offered to it, and why the provider stopped is not even kept.

pub mod anthropic;
pub mod kind;
pub mod openai;
pub mod remote;
pub mod replay;
pub mod script;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use acheron_base::Result;

/// Whatever can answer.
#[async_trait]
pub trait Model: Send + Sync {
    /// How it is called in transcripts and in `status.json`.
    fn name(&self) -> String;

    /// Answers once. `watch` hears the answer while it is being made. Dropping the future drops the request.
    async fn answer(&self, ask: &Ask, watch: &mut (dyn FnMut(Piece) + Send)) -> Result<Said>;

    /// What it had said in a turn that is being continued after a restart. Only a script needs to know.
    fn resume(&self, _said: &[String]) {}
}

/// A question to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The contract under which it works.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The longest answer that is wanted.
    pub max_tokens: u32,
}

impl Ask {
    /// The text of the last message, empty if there is none.
    pub fn last(&self) -> &str {
        self.messages.last().map_or("", |message| &message.text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub text: String,
}

impl Message {
    pub fn user(text: impl Into<String>) -> Self {
        Message { role: Role::User, text: text.into() }
    }

    pub fn assistant(text: impl Into<String>) -> Self {
        Message { role: Role::Assistant, text: text.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
}

/// A part of an answer under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    Thought(String),
    /// The connection was lost, and what was heard so far counts for nothing.
    Again,
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub text: String,
    /// The model's reasoning, where the provider gives it apart from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thoughts: Option<String>,
    /// The model used a provider's own way of calling tools, which was not offered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native_call: bool,
    pub usage: Usage,
    /// As the provider names what answered.
    pub model: String,
}

/// Tokens taken and given, as the provider counts them; our own estimate where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
}

impl Usage {
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    pub fn plus(self, other: Usage) -> Usage {
        Usage { input: self.input.saturating_add(other.input), output: self.output.saturating_add(other.output) }
    }
}

/// Money for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Prices {
    #[schemars(range(min = 0.0))]
    pub input_per_mtok: f64,
    #[schemars(range(min = 0.0))]
    pub output_per_mtok: f64,
}

impl Prices {
    /// The price of all these tokens. Costs are computed from totals of tokens, never added up as fractions.
    pub fn cost(&self, usage: Usage) -> f64 {
        (usage.input as f64 * self.input_per_mtok + usage.output as f64 * self.output_per_mtok) / 1e6
    }
}

/// How many tokens a text has, guessed from its length on the high side.
///
/// English prose has four bytes a token, JSON and code nearer three. Guessing high means that a context never
/// exceeds the window; the real count comes back with the answer and is what budgets use.
pub fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_sum_is_the_sum_of_the_costs() {
        let prices = Prices { input_per_mtok: 3.0, output_per_mtok: 15.0 };
        let one = Usage { input: 1_000_000, output: 0 };
        let two = Usage { input: 0, output: 2_000_000 };
        assert_eq!(prices.cost(one.plus(two)), 33.0);
    }
}
