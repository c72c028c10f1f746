//! A conversation without the forms of any one language: what translation keeps.

use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    pub system: String,
    pub turns: Vec<ConversationTurn>,
    pub tools: Vec<FunctionTool>,
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may make several calls at once, if the program says so.
    pub parallel_calls: Option<bool>,
    pub temperature: Option<Value>,
    pub top_p: Option<Value>,
    pub stop: Vec<String>,
    /// The form of the answer, as chat completions write it.
    pub response_format: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConversationTurn {
    System(String),
    User(Vec<ContentPart>),
    Assistant { text: String, calls: Vec<super::AnswerCall> },
    Result(CallResult),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ContentPart {
    Text(String),
    /// An address, which may be a `data:` URL.
    Image(String),
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallResult {
    pub id: String,
    pub text: String,
    pub failed: bool,
    /// Images beside the text.
    pub images: Vec<String>,
}

/// A function that the model may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionTool {
    pub name: String,
    pub about: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ToolChoice {
    Auto,
    None,
    Any,
    Named(String),
}

impl Conversation {
    /// Adds the words of the user; what follows directly on other words of the user is part of them.
    pub(crate) fn user(&mut self, parts: Vec<ContentPart>) {
        match self.turns.last_mut() {
            _ if parts.is_empty() => (),
            Some(ConversationTurn::User(known)) => known.extend(parts),
            _ => self.turns.push(ConversationTurn::User(parts)),
        }
    }

    /// Adds words or calls of the model; what follows directly on another part of its answer belongs to it.
    pub(crate) fn assistant(&mut self, more: &str, calls: Vec<super::AnswerCall>) {
        match self.turns.last_mut() {
            _ if more.is_empty() && calls.is_empty() => (),
            Some(ConversationTurn::Assistant { text, calls: known }) => {
                text.push_str(more);
                known.extend(calls);
            }
            _ => self.turns.push(ConversationTurn::Assistant { text: more.to_owned(), calls }),
        }
    }

    pub(crate) fn add_system(&mut self, text: &str) {
        if !self.system.is_empty() && !text.is_empty() {
            self.system.push_str("\n\n");
        }
        self.system.push_str(text);
    }
}

impl ContentPart {
    /// The text of several parts, one line each.
    pub fn text_of(parts: &[ContentPart]) -> String {
        let text = |part: &ContentPart| match part {
            ContentPart::Text(text) => Some(text.clone()),
            ContentPart::Image(_) => None,
        };
        parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }
}

/// The texts of a content that is a string or a list of parts with `text`.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str().or(part.as_str())).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
