//! JSON-RPC messages as lines: what a client sends, and what a server may send back.

use serde_json::{Map, Value, json};

use crate::text::one_line;

/// What a server sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// The answer to one of our requests.
    Answer {
        id: u64,
        outcome: Result<Value, RpcError>,
    },
    /// A request that wants an answer with this id.
    Request {
        id: Value,
        method: String,
    },
    Notification {
        method: String,
        params: Value,
    },
}

/// A refusal in the terms of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    pub code: i64,
    /// One line.
    pub message: String,
}

impl RpcError {
    /// The server does not know the method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
}

/// The number of messages that one line may hold: old revisions allow batches.
const MOST_IN_A_BATCH: usize = 1000;

/// The messages of one line; nothing if it is no message at all, as a stray word on standard output.
pub fn read(line: &[u8]) -> Vec<Incoming> {
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(_) => return Vec::new(),
    };
    read_value(value)
}

/// The messages of a JSON value: one, or a batch.
pub fn read_value(value: Value) -> Vec<Incoming> {
    match value {
        Value::Array(several) => several.into_iter().take(MOST_IN_A_BATCH).filter_map(one).collect(),
        value => one(value).into_iter().collect(),
    }
}

fn one(value: Value) -> Option<Incoming> {
    let Value::Object(mut object) = value else { return None };
    let (id, params) = (object.remove("id"), object.remove("params").unwrap_or_default());
    if let Some(Value::String(method)) = object.remove("method") {
        return Some(match id {
            Some(id @ (Value::String(_) | Value::Number(_))) => Incoming::Request { id, method },
            _ => Incoming::Notification { method, params },
        });
    }
    // Our ids are numbers; a server that returns them as text is understood.
    let id = id.and_then(|id| id.as_u64().or_else(|| id.as_str()?.parse().ok()))?;
    let outcome = match (object.remove("result"), object.remove("error")) {
        (_, Some(error)) if !error.is_null() => Err(refusal_of(&error)),
        (Some(result), _) => Ok(result),
        _ => return None,
    };
    Some(Incoming::Answer { id, outcome })
}

fn refusal_of(error: &Value) -> RpcError {
    let message = one_line(error["message"].as_str().unwrap_or("no reason was given"), 500);
    RpcError { code: error["code"].as_i64().unwrap_or(0), message }
}

pub fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub fn notification(method: &str, params: Value) -> Value {
    match params {
        Value::Null => json!({ "jsonrpc": "2.0", "method": method }),
        params => json!({ "jsonrpc": "2.0", "method": method, "params": params }),
    }
}

/// Our answer to a request of the server: a ping is answered, everything else is not offered.
pub fn answer(id: Value, method: &str) -> Value {
    match method {
        "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        other => {
            let error = json!({
                "code": RpcError::METHOD_NOT_FOUND,
                "message": format!("this client does not offer {}", one_line(other, 60)),
            });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

/// The parameters of `initialize`.
pub fn initialize(version: &str) -> Value {
    json!({
        "protocolVersion": crate::PROTOCOL,
        "capabilities": {},
        "clientInfo": { "name": "acheron", "version": version },
    })
}

/// What a revision without `initialize` wants in each request.
pub fn discovered_meta(protocol: &str, version: &str) -> Map<String, Value> {
    let named = |name: &str| format!("io.modelcontextprotocol/{name}");
    [
        (named("protocolVersion"), protocol.into()),
        (named("clientInfo"), json!({ "name": "acheron", "version": version })),
        (named("clientCapabilities"), json!({})),
    ]
    .into_iter()
    .collect()
}

/// The progress that a notification tells, and the token of the call.
pub fn progress(params: &Value) -> Option<(u64, Value)> {
    let token = &params["progressToken"];
    let token = token.as_u64().or_else(|| token.as_str()?.parse().ok())?;
    let mut told = Map::new();
    for key in ["progress", "total"] {
        if let Some(number) = params.get(key).filter(|number| number.is_number()) {
            told.insert(key.to_owned(), number.clone());
        }
    }
    if let Some(message) = params["message"].as_str() {
        told.insert("message".to_owned(), one_line(message, 300).into());
    }
    Some((token, Value::Object(told)))
}

/// Cuts a stream into lines that are bounded.
#[derive(Debug, Default)]
pub struct MessageLines {
    line: Vec<u8>,
    too_long: bool,
}

/// One line of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageLine {
    Whole(Vec<u8>),
    /// It was longer than [`crate::LONGEST_MESSAGE`] and is lost.
    TooLong,
}

impl MessageLines {
    /// The lines that end in these bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<MessageLine> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let content = piece.strip_suffix(b"\n").unwrap_or(piece);
            if !self.too_long && self.line.len() + content.len() > crate::LONGEST_MESSAGE {
                // Told at once: its end may never come.
                lines.push(MessageLine::TooLong);
                self.too_long = true;
                self.line = Vec::new();
            }
            if !self.too_long {
                self.line.extend_from_slice(content);
            }
            if content.len() < piece.len() {
                let line = std::mem::take(&mut self.line);
                let lost = std::mem::take(&mut self.too_long);
                if !lost && !line.iter().all(u8::is_ascii_whitespace) {
                    lines.push(MessageLine::Whole(line));
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let read = |text: &str| format!("{:?}", read(text.as_bytes()));
        assert_eq!(read("Starting server…"), "[]");
        assert_eq!(read(r#"[1, {"id": 1}]"#), "[]");
        assert!(read(r#"{"id": "7", "result": {}}"#).contains("Answer { id: 7, outcome: Ok("));
        assert!(read(r#"{"id": 7, "error": {"code": -1, "message": "no\nway"}}"#).contains("\"no way\""));
        assert!(read(r#"{"id": "x", "method": "ping"}"#).starts_with("[Request"));
        assert!(read(r#"[{"method": "a"}, {"method": "b"}]"#).matches("Notification").count() == 2);
    }

    #[test]
    fn lines_are_bounded_and_the_next_one_is_whole() {
        let mut lines = MessageLines::default();
        assert_eq!(lines.take(b"{\"a\""), []);
        assert_eq!(lines.take(b":1}\n\n{}"), [MessageLine::Whole(b"{\"a\":1}".to_vec())]);
        let long = vec![b'x'; crate::LONGEST_MESSAGE];
        assert_eq!(lines.take(&long), [MessageLine::TooLong]);
        assert_eq!(lines.take(&long), []);
        assert_eq!(lines.take(b"\nok\n"), [MessageLine::Whole(b"ok".to_vec())]);
    }

    #[test]
    fn progress_is_numbers_and_one_line() {
        let told = progress(&json!({ "progressToken": "3", "progress": 1, "total": "x", "message": "a\nb" }));
        assert_eq!(told, Some((3, json!({ "progress": 1, "message": "a b" }))));
        assert_eq!(progress(&json!({ "progress": 1 })), None);
    }
}
