//! The provider's own tool calls: what is offered, what comes back, and what is sent back.

use std::borrow::Cow;
use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Message, MessageRole, ModelAnswer};

/// How a model calls tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelProtocol {
    /// One JSON object with one call, as text: for every model that follows instructions.
    #[default]
    Json,
    /// The tool calls of the provider, several in one answer if the model likes; words without a call are the reply.
    Native,
}

/// A tool that is offered to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedTool {
    pub name: &'static str,
    pub about: &'static str,
    /// The JSON Schema of its arguments.
    pub arguments: Value,
}

/// A call as the model made it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeCall {
    /// The provider's name of the call, to which its result refers.
    pub id: String,
    pub name: String,
    /// As the model wrote them: the text of a JSON object, or not.
    pub arguments: String,
}

/// Longer ids, and ids with other characters, are replaced: providers refuse them.
const LONGEST_ID: usize = 64;

impl NativeCall {
    /// The arguments as an object. What cannot be read as one is shown within one: servers parse what they are sent back.
    pub fn object(&self) -> Map<String, Value> {
        let text = self.arguments.trim();
        match serde_json::from_str(text) {
            _ if text.is_empty() => Map::new(),
            Ok(Value::Object(object)) => object,
            _ => Map::from_iter([("unreadable".to_owned(), text.into())]),
        }
    }

    /// The text of [`NativeCall::object`]; the model's own text if it is one.
    pub fn object_text(&self) -> Cow<'_, str> {
        match serde_json::from_str::<Map<String, Value>>(&self.arguments) {
            Ok(_) => Cow::Borrowed(&self.arguments),
            Err(_) => Value::Object(self.object()).to_string().into(),
        }
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeResult {
    pub id: String,
    pub text: String,
    pub failed: bool,
}

/// An answer as its provider gave it, with the model's reasoning, which is sent back unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAnswer {
    /// The API that it came from; no other understands it.
    pub api: String,
    pub items: Vec<Value>,
}

/// The part of a message that is not text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolMessage {
    /// The model calls.
    Calls { calls: Vec<NativeCall>, kept: Option<KeptAnswer> },
    /// What came of the calls of the message before.
    Results(Vec<NativeResult>),
}

impl Message {
    pub fn calls(text: impl Into<String>, calls: Vec<NativeCall>, kept: Option<KeptAnswer>) -> Message {
        let tools = Some(Box::new(ToolMessage::Calls { calls, kept }));
        Message { role: MessageRole::Assistant, text: text.into(), tools }
    }

    pub fn results(results: Vec<NativeResult>) -> Message {
        let tools = Some(Box::new(ToolMessage::Results(results)));
        Message { role: MessageRole::User, text: String::new(), tools }
    }

    /// Everything in it that a model reads.
    pub fn texts(&self) -> Vec<Cow<'_, str>> {
        let mut texts = vec![Cow::Borrowed(self.text.as_str())];
        match self.tools.as_deref() {
            None => (),
            // Its own calls stand in an answer that was kept.
            Some(ToolMessage::Calls { kept: Some(kept), .. }) => {
                texts.extend(kept.items.iter().map(|item| item.to_string().into()));
            }
            Some(ToolMessage::Calls { calls, .. }) => {
                texts.extend(calls.iter().flat_map(|call| [call.name.as_str().into(), call.arguments.as_str().into()]));
            }
            Some(ToolMessage::Results(results)) => texts.extend(results.iter().map(|result| (&*result.text).into())),
        }
        texts
    }
}

impl ModelAnswer {
    /// Gives every call an id that no other call of the conversation has. `taken` are those of the calls before.
    pub fn name_calls(&mut self, mut taken: HashSet<String>) {
        let plain = |id: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !id.is_empty() && id.len() <= LONGEST_ID && id.chars().all(known)
        };
        for call in &mut self.calls {
            if plain(&call.id) && taken.insert(call.id.clone()) {
                continue;
            }
            let mut number = taken.len() + 1;
            while !taken.insert(format!("call-{number}")) {
                number += 1;
            }
            call.id = format!("call-{number}");
            self.kept = None; // it has the other id
        }
    }

    /// The calls as the text of the other protocol, for people.
    pub fn calls_text(&self) -> String {
        let call = |call: &NativeCall| json!({"id": call.id, "name": call.name, "arguments": call.object()});
        json!({"tool_calls": self.calls.iter().map(call).collect::<Vec<_>>()}).to_string()
    }
}

#[cfg(test)]
mod tests;
