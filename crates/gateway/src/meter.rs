//! Counts what a stream of events costs, while its bytes pass by untouched.

use serde_json::Value;

use super::{Dialect, TokenUsage};
use acheron_base::{sse, tokens};

/// Reads along with a stream. What it cannot read it ignores: the bytes are the program's business.
#[derive(Debug)]
pub struct StreamMeter {
    dialect: Dialect,
    events: sse::Decoder,
    /// The stream is no stream of events, or one of them is too long: nothing more is read.
    lost: bool,
    usage: TokenUsage,
    /// The tokens of the texts that have come, estimated.
    given: u64,
    ended: bool,
    fault: Option<String>,
}

impl StreamMeter {
    pub fn new(dialect: Dialect) -> StreamMeter {
        let (events, usage) = (sse::Decoder::default(), TokenUsage::default());
        StreamMeter { dialect, events, lost: false, usage, given: 0, ended: false, fault: None }
    }

    /// Reads a chunk, cut anywhere.
    pub fn feed(&mut self, chunk: &[u8]) {
        if self.lost {
            return;
        }
        match self.events.feed(chunk) {
            Ok(events) => events.iter().for_each(|event| self.event(&event.data)),
            Err(_) => self.lost = true,
        }
    }

    fn event(&mut self, data: &str) {
        if data.trim() == "[DONE]" {
            self.ended = true;
            return;
        }
        let Ok(event) = serde_json::from_str::<Value>(data) else { return };
        self.usage.add_event(self.dialect, &event);
        let (given, ended) = match self.dialect {
            Dialect::Chat => chat(&event),
            Dialect::Responses => responses(&event),
            Dialect::Messages => messages(&event),
            Dialect::Gemini => gemini(&event),
        };
        (self.given, self.ended) = (self.given.saturating_add(given), self.ended || ended);
        let fault = event.get("error").or_else(|| event["response"].get("error")).filter(|error| !error.is_null());
        if let Some(fault) = fault {
            let said = fault["message"].as_str().or(fault.as_str()).unwrap_or("the server aborted its answer");
            self.fault = Some(said.to_owned());
        }
    }

    /// What the server has reported.
    pub fn usage(&self) -> TokenUsage {
        self.usage
    }

    /// The tokens of the answer so far: as reported, else estimated from what has come.
    pub fn output(&self) -> u64 {
        match self.usage.output {
            // Anthropic reports a first count with the beginning of an answer.
            Some(output) if self.ended => output,
            Some(output) => output.max(self.given),
            None => self.given,
        }
    }

    /// The server has said that its answer is complete.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// The error that the server reported within its stream.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

/// The tokens of a text, rather too many than too few.
fn size(text: &Value) -> u64 {
    text.as_str().filter(|text| !text.is_empty()).map_or(0, tokens::estimate)
}

fn chat(event: &Value) -> (u64, bool) {
    let mut given = 0;
    let mut ended = false;
    for choice in event["choices"].as_array().into_iter().flatten() {
        let delta = &choice["delta"];
        given +=
            ["content", "reasoning_content", "reasoning", "refusal"].iter().map(|key| size(&delta[*key])).sum::<u64>();
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            given += size(&call["function"]["name"]) + size(&call["function"]["arguments"]);
        }
        ended |= choice["finish_reason"].is_string();
    }
    (given, ended)
}

fn responses(event: &Value) -> (u64, bool) {
    let kind = event["type"].as_str().unwrap_or_default();
    let ended = matches!(kind, "response.completed" | "response.incomplete");
    (if kind.ends_with(".delta") { size(&event["delta"]) } else { 0 }, ended)
}

fn messages(event: &Value) -> (u64, bool) {
    let delta = &event["delta"];
    let given = ["text", "thinking", "partial_json"].iter().map(|key| size(&delta[*key])).sum();
    (given, event["type"] == "message_stop")
}

fn gemini(event: &Value) -> (u64, bool) {
    let mut given = 0;
    let mut ended = false;
    for candidate in event["candidates"].as_array().into_iter().flatten() {
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            given += size(&part["text"]);
            if let Some(call) = part.get("functionCall") {
                given += tokens::estimate(&call.to_string());
            }
        }
        ended |= candidate["finishReason"].is_string();
    }
    (given, ended)
}

#[cfg(test)]
mod tests;
