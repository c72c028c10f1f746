//! An answer without the forms of any one language: as parts, one after another, and as a whole.

use super::TokenUsage;

/// A part of an answer, in the order in which it is generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// Reasoning, which only the language of the server can give back; other languages leave it out.
    Thought(String),
    Text(String),
    CallBegin {
        id: String,
        name: String,
    },
    /// More of the arguments of the call that began last.
    CallArguments(String),
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerCall {
    pub id: String,
    pub name: String,
    /// The text of a JSON object, as the model wrote it.
    pub arguments: String,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    #[default]
    End,
    /// It was cut at its token limit.
    Length,
    /// It ends with calls.
    Calls,
    /// The server refused to go on.
    Filtered,
}

/// The end of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerEnd {
    pub reason: StopReason,
    pub usage: TokenUsage,
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WholeAnswer {
    pub thoughts: String,
    pub text: String,
    pub calls: Vec<AnswerCall>,
    pub end: AnswerEnd,
}

impl WholeAnswer {
    pub fn add(&mut self, part: &AnswerPart) {
        match part {
            AnswerPart::Thought(text) => self.thoughts.push_str(text),
            AnswerPart::Text(text) => self.text.push_str(text),
            AnswerPart::CallBegin { id, name } => {
                self.calls.push(AnswerCall { id: id.clone(), name: name.clone(), arguments: String::new() });
            }
            AnswerPart::CallArguments(text) => {
                if let Some(call) = self.calls.last_mut() {
                    call.arguments.push_str(text);
                }
            }
        }
    }

    /// The same answer as parts.
    pub fn parts(&self) -> Vec<AnswerPart> {
        let mut parts = Vec::new();
        if !self.thoughts.is_empty() {
            parts.push(AnswerPart::Thought(self.thoughts.clone()));
        }
        if !self.text.is_empty() {
            parts.push(AnswerPart::Text(self.text.clone()));
        }
        for call in &self.calls {
            parts.push(AnswerPart::CallBegin { id: call.id.clone(), name: call.name.clone() });
            parts.push(AnswerPart::CallArguments(call.arguments.clone()));
        }
        parts
    }
}
