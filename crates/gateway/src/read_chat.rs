//! The answer of a server of chat completions, as parts.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answer::{AnswerCall, AnswerEnd, AnswerPart, StopReason, WholeAnswer};
use super::{Dialect, TokenUsage};
use acheron_base::{Error, Result, sse};

/// Reads a stream of chat completions.
///
/// Only the first call is passed on while it grows: the fragments of others may be mixed with it, and follow at the end.
#[derive(Debug, Default)]
pub struct ChatStreamReader {
    events: sse::Decoder,
    /// The number of the first call.
    first: Option<u64>,
    others: BTreeMap<u64, AnswerCall>,
    end: AnswerEnd,
    finished: bool,
    done: bool,
}

impl ChatStreamReader {
    /// The parts that a chunk completes. An error is the server's own, or that of a stream that cannot be read.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Vec<AnswerPart>> {
        let mut parts = Vec::new();
        for event in self.events.feed(chunk)? {
            if event.data.trim() == "[DONE]" {
                self.done = true;
                continue;
            }
            let value: Value = serde_json::from_str(&event.data).map_err(|error| {
                Error::provider(format!("the stream of the model's server has an event that is not JSON: {error}"))
            })?;
            self.event(&value, &mut parts)?;
        }
        Ok(parts)
    }

    fn event(&mut self, event: &Value, parts: &mut Vec<AnswerPart>) -> Result<()> {
        fault(event)?;
        self.end.usage.add_event(Dialect::Chat, event);
        let choice = &event["choices"][0];
        let delta = &choice["delta"];
        let text = |key: &str| delta[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        parts.extend(text("reasoning_content").or_else(|| text("reasoning")).map(AnswerPart::Thought));
        parts.extend(text("content").or_else(|| text("refusal")).map(AnswerPart::Text));
        for (at, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
            self.call(call, call["index"].as_u64().unwrap_or(at as u64), parts);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.end.reason = reason_of(reason);
            self.finished = true;
        }
        Ok(())
    }

    fn call(&mut self, fragment: &Value, number: u64, parts: &mut Vec<AnswerPart>) {
        let AnswerCall { id, name, arguments } = call_of(fragment);
        if *self.first.get_or_insert(number) != number {
            let held = self.others.entry(number).or_default();
            held.id.push_str(&id);
            held.name.push_str(&name);
            held.arguments.push_str(&arguments);
            return;
        }
        if !name.is_empty() {
            parts.push(AnswerPart::CallBegin { id, name });
        }
        if !arguments.is_empty() {
            parts.push(AnswerPart::CallArguments(arguments));
        }
    }

    /// Whether the server has ended its answer; a stream without this was cut off.
    pub fn is_complete(&self) -> bool {
        self.finished || self.done
    }

    /// The parts that were held back, and the end.
    pub fn finish(&mut self) -> (Vec<AnswerPart>, AnswerEnd) {
        let calls: Vec<AnswerCall> = std::mem::take(&mut self.others).into_values().collect();
        if self.first.is_some() && self.end.reason == StopReason::End {
            self.end.reason = StopReason::Calls; // some servers say `stop`
        }
        (WholeAnswer { calls, ..WholeAnswer::default() }.parts(), self.end)
    }
}

/// Reads a whole answer.
pub fn read_chat_answer(body: &Value) -> Result<WholeAnswer> {
    fault(body)?;
    let choice = &body["choices"][0];
    let message = &choice["message"];
    if !message.is_object() {
        return Err(Error::provider("the answer of the model's server has no message in it"));
    }
    let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let calls: Vec<AnswerCall> = message["tool_calls"].as_array().into_iter().flatten().map(call_of).collect();
    let reason = match reason_of(choice["finish_reason"].as_str().unwrap_or_default()) {
        StopReason::End if !calls.is_empty() => StopReason::Calls,
        reason => reason,
    };
    let end = AnswerEnd { reason, usage: TokenUsage::of(Dialect::Chat, body) };
    Ok(WholeAnswer { thoughts: text("reasoning_content"), text: text("content"), calls, end })
}

fn fault(value: &Value) -> Result<()> {
    match value.get("error").filter(|error| !error.is_null()) {
        None => Ok(()),
        Some(error) => {
            let said = error["message"].as_str().or(error.as_str()).unwrap_or("no reason given");
            Err(Error::provider(format!("the model's server aborted: {said}")))
        }
    }
}

fn call_of(call: &Value) -> AnswerCall {
    let function = &call["function"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Arguments are text, though some servers send the object itself.
    let arguments = match &function["arguments"] {
        object @ Value::Object(_) => object.to_string(),
        other => word(other),
    };
    AnswerCall { id: word(&call["id"]), name: word(&function["name"]), arguments }
}

fn reason_of(word: &str) -> StopReason {
    match word {
        "length" => StopReason::Length,
        "tool_calls" | "function_call" => StopReason::Calls,
        "content_filter" => StopReason::Filtered,
        _ => StopReason::End,
    }
}
