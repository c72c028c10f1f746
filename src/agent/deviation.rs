//! Understands an answer that is one call, though not written as the contract asks: in a fence, after a sentence, bare, in a
//! provider's own form, with its arguments as a string.
//!
//! The rule of acceptance: exactly one object in the whole answer has the shape of a call. With two of them nothing is
//! performed, so that a quoted example never is; and nothing is while any object in the answer is broken.

use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value};

use super::strict_json::{MAX_VALUES, StrictReading, StrictValue};
use crate::agent::tools::ToolCall;
use acheron_base::reply_scan::{ReplyScan, ScanLimits};

/// What is followed: more than the largest file that a call may write.
const LIMITS: ScanLimits = ScanLimits { bytes: 4 << 20, depth: 64, values: 64 };

/// The calls in an answer.
pub(super) enum CallsFound {
    None,
    /// In the form of the contract.
    One(StrictValue),
    Many(usize),
}

pub(super) fn find(text: &str) -> CallsFound {
    let scan = ReplyScan::of(text, LIMITS);
    if scan.full || scan.cut_thought || scan.values.iter().any(|value| value.broken.is_some()) {
        return CallsFound::None;
    }
    let mut calls: Vec<Value> = Vec::new();
    for value in &scan.values {
        let Some(Value::Object(object)) = strict(&text[value.span.clone()]) else { continue };
        match object.get("tool_calls").and_then(Value::as_array) {
            // As written, so that what is wrong with a call is told.
            Some(list) => calls.extend(list.iter().map(|call| shaped(call).unwrap_or_else(|| call.clone()))),
            None => calls.extend(shaped(&Value::Object(object))),
        }
    }
    match (calls.pop(), calls.len()) {
        (None, _) => CallsFound::None,
        (Some(call), 0) => CallsFound::One(StrictValue(call)),
        (Some(_), others) => CallsFound::Many(others + 1),
    }
}

/// A value without repeated keys.
fn strict(text: &str) -> Option<Value> {
    let (mut room, mut reader) = (MAX_VALUES, serde_json::Deserializer::from_str(text));
    let read = StrictReading(&mut room).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    read.ok().map(|value| value.0)
}

/// An object with the name of a tool and arguments, in any of the forms that providers use, in the form of the contract.
pub(super) fn shaped(value: &Value) -> Option<Value> {
    let outer = value.as_object()?;
    let wrapped = ["function", "function_call", "tool_call"].into_iter().find_map(|key| outer.get(key)?.as_object());
    let inner = wrapped.unwrap_or(outer);
    let name = inner.get("name")?.as_str().filter(|name| ToolCall::is_tool(name))?;
    let arguments = ["arguments", "parameters", "input"].into_iter().find_map(|key| inner.get(key))?;
    let arguments = match arguments {
        Value::String(text) => strict(text).filter(Value::is_object)?,
        object => object.is_object().then(|| object.clone())?,
    };
    let mut call = Map::new();
    if let Some(id) = ["id", "call_id"].into_iter().find_map(|key| outer.get(key)) {
        call.insert("id".to_owned(), id.clone());
    }
    call.insert("name".to_owned(), name.into());
    call.insert("arguments".to_owned(), arguments);
    Some(Value::Object(call))
}
