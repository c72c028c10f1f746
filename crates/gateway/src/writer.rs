//! Writes an answer in the language of the program that asked: as events while it is generated, or as a whole.

use serde_json::Value;

use super::answer::{AnswerEnd, AnswerPart, WholeAnswer};
use super::write_chat::ChatWriter;
use super::write_gemini::GeminiWriter;
use super::write_messages::MessagesWriter;
use super::write_responses::ResponsesWriter;
use super::{Dialect, write_chat, write_gemini, write_messages, write_responses};

/// What an answer is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerIdentity {
    /// A word that no other answer has, without a prefix.
    pub id: String,
    /// The name of the model, as the program is to see it.
    pub model: String,
    /// In seconds since 1970.
    pub created: u64,
    /// The input in tokens, for languages that tell it before the answer begins.
    pub input: u64,
    /// Chat completions tell the usage in a stream only to those who ask for it.
    pub wants_usage: bool,
}

/// Writes the events of one answer.
pub enum AnswerWriter {
    Chat(ChatWriter),
    Responses(ResponsesWriter),
    Messages(MessagesWriter),
    Gemini(GeminiWriter),
}

impl AnswerWriter {
    pub fn new(dialect: Dialect, identity: AnswerIdentity) -> AnswerWriter {
        match dialect {
            Dialect::Chat => AnswerWriter::Chat(ChatWriter::new(identity)),
            Dialect::Responses => AnswerWriter::Responses(ResponsesWriter::new(identity)),
            Dialect::Messages => AnswerWriter::Messages(MessagesWriter::new(identity)),
            Dialect::Gemini => AnswerWriter::Gemini(GeminiWriter::new(identity)),
        }
    }

    /// The events before the first part.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        match self {
            AnswerWriter::Chat(writer) => writer.begin(out),
            AnswerWriter::Responses(writer) => writer.begin(out),
            AnswerWriter::Messages(writer) => writer.begin(out),
            AnswerWriter::Gemini(_) => (),
        }
    }

    pub fn part(&mut self, part: &AnswerPart, out: &mut Vec<u8>) {
        match self {
            AnswerWriter::Chat(writer) => writer.part(part, out),
            AnswerWriter::Responses(writer) => writer.part(part, out),
            AnswerWriter::Messages(writer) => writer.part(part, out),
            AnswerWriter::Gemini(writer) => writer.part(part, out),
        }
    }

    /// The events after the last part.
    pub fn end(&mut self, end: &AnswerEnd, out: &mut Vec<u8>) {
        match self {
            AnswerWriter::Chat(writer) => writer.end(end, out),
            AnswerWriter::Responses(writer) => writer.end(end, out),
            AnswerWriter::Messages(writer) => writer.end(end, out),
            AnswerWriter::Gemini(writer) => writer.end(end, out),
        }
    }
}

/// A whole answer.
pub fn whole_answer(dialect: Dialect, identity: &AnswerIdentity, answer: &WholeAnswer) -> Value {
    match dialect {
        Dialect::Chat => write_chat::whole(identity, answer),
        Dialect::Responses => write_responses::whole(identity, answer),
        Dialect::Messages => write_messages::whole(identity, answer),
        Dialect::Gemini => write_gemini::whole(identity, answer),
    }
}

/// An event without a name.
pub(crate) fn data(event: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("data: {event}\n\n").as_bytes());
}

/// An event with the name that its `type` has.
pub(crate) fn named(event: &Value, out: &mut Vec<u8>) {
    let name = event["type"].as_str().unwrap_or_default();
    out.extend_from_slice(format!("event: {name}\ndata: {event}\n\n").as_bytes());
}

/// The arguments of a call as an object. What is none is shown within one: programs parse what they are sent.
pub(crate) fn object(arguments: &str) -> Value {
    match serde_json::from_str(arguments.trim()) {
        Ok(object @ Value::Object(_)) => object,
        _ if arguments.trim().is_empty() => serde_json::json!({}),
        _ => serde_json::json!({"unreadable": arguments}),
    }
}
