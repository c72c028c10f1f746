//! JSON-RPC messages as lines.

use serde_json::{Map, Value, json};

use acheron_base::{Code, Error};

/// One message of the other side.
#[derive(Clone, Debug, PartialEq)]
pub enum AcpMessage {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// The answer to one of our requests; its id is one of ours or nonsense.
    Answer {
        id: Option<u64>,
        outcome: Result<Value, AcpFault>,
    },
}

/// A refusal in the terms of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcpFault {
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// The code of our own error, which clients may show.
    pub reason: Option<&'static str>,
}

impl AcpFault {
    pub const PARSE: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const UNKNOWN_METHOD: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    pub const NOT_FOUND: i64 = -32002;

    pub fn new(code: i64, message: impl Into<String>) -> AcpFault {
        AcpFault { code, message: message.into(), reason: None }
    }

    pub fn invalid(message: impl Into<String>) -> AcpFault {
        AcpFault::new(AcpFault::INVALID_PARAMS, message)
    }

    fn shown(&self) -> Value {
        let mut shown = json!({ "code": self.code, "message": self.message });
        if let Some(reason) = self.reason {
            shown["data"] = json!({ "code": reason });
        }
        shown
    }
}

impl From<&Error> for AcpFault {
    fn from(error: &Error) -> AcpFault {
        let code = match error.code {
            Code::NotFound => AcpFault::NOT_FOUND,
            Code::InvalidPayload | Code::TooLarge => AcpFault::INVALID_PARAMS,
            Code::UnknownOperation => AcpFault::UNKNOWN_METHOD,
            _ => AcpFault::INTERNAL,
        };
        AcpFault { code, message: error.message.clone(), reason: Some(error.code.name()) }
    }
}

impl AcpMessage {
    /// Reads one line. An error says what to answer: to the id that could still be read, or to none.
    pub fn read(line: &[u8]) -> Result<AcpMessage, (Value, AcpFault)> {
        let value: Value = serde_json::from_slice(line)
            .map_err(|err| (Value::Null, AcpFault::new(AcpFault::PARSE, format!("this line is not JSON: {err}"))))?;
        let wrong = |id: Value, said: &str| Err((id, AcpFault::new(AcpFault::INVALID_REQUEST, said)));
        let Value::Object(mut object) = value else { return wrong(Value::Null, "a message is a JSON object") };
        let (id, params) = (object.remove("id"), object.remove("params").unwrap_or_default());
        match (object.remove("method"), id) {
            (Some(Value::String(method)), Some(id @ (Value::String(_) | Value::Number(_)))) => {
                Ok(AcpMessage::Request { id, method, params })
            }
            (Some(Value::String(method)), None) => Ok(AcpMessage::Notification { method, params }),
            (Some(_), _) => wrong(Value::Null, "`method` is a string and `id` a string or a number"),
            (None, Some(id)) => match outcome(&mut object) {
                Some(outcome) => Ok(AcpMessage::Answer { id: id.as_u64(), outcome }),
                None => wrong(Value::Null, "a message has `method`, `result` or `error`"),
            },
            (None, None) => wrong(Value::Null, "a message has `method`, or `id` with `result` or `error`"),
        }
    }
}

fn outcome(object: &mut Map<String, Value>) -> Option<Result<Value, AcpFault>> {
    match (object.remove("result"), object.remove("error")) {
        (_, Some(error)) if !error.is_null() => {
            let message = one_line(error["message"].as_str().unwrap_or("no reason was given"), 500);
            Some(Err(AcpFault::new(error["code"].as_i64().unwrap_or(AcpFault::INTERNAL), message)))
        }
        (Some(result), _) => Some(Ok(result)),
        _ => None,
    }
}

pub fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub fn answer(id: &Value, outcome: Result<Value, AcpFault>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(fault) => json!({ "jsonrpc": "2.0", "id": id, "error": fault.shown() }),
    }
}

/// Foreign text in one line of at most `most` characters, without control characters.
pub fn one_line(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        for c in (count > 0).then_some(' ').into_iter().chain(word.chars()) {
            if count == most {
                out.push('…');
                return out;
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

/// Cuts a stream into lines that are bounded.
#[derive(Debug, Default)]
pub struct AcpLines {
    line: Vec<u8>,
    too_long: bool,
}

/// One line of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum AcpLine {
    Whole(Vec<u8>),
    /// It was longer than [`crate::LONGEST_MESSAGE`] and is lost.
    TooLong,
}

impl AcpLines {
    /// The lines that end in these bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<AcpLine> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let content = piece.strip_suffix(b"\n").unwrap_or(piece);
            if !self.too_long && self.line.len() + content.len() > crate::LONGEST_MESSAGE {
                // Told at once: its end may never come.
                lines.push(AcpLine::TooLong);
                (self.too_long, self.line) = (true, Vec::new());
            }
            if !self.too_long {
                self.line.extend_from_slice(content);
            }
            if content.len() < piece.len() {
                let (line, lost) = (std::mem::take(&mut self.line), std::mem::take(&mut self.too_long));
                if !lost && !line.iter().all(u8::is_ascii_whitespace) {
                    lines.push(AcpLine::Whole(line));
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests;
