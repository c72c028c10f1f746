//! The payload of a reply: the first JSON object in it, fenced or not.
//!
//! Thoughts and commands are skipped. A list is not a payload, nor is what is inside it. An object that does not parse is
//! no payload, and nothing inside it or after it in the same stretch of text is one.

use std::ops::Range;

use serde_json::Value;

use super::command::{Diagnostic, RequestedCommand, marker_before};
use super::scan::{parsed, scanned, within};
use acheron_base::reply_scan::{Broken, FoundValue, ReplyScan, ValuePlace};

/// The most candidates that are reported for one reply.
const MOST_REJECTED: usize = 64;

/// An object, and where it stood.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    pub value: Value,
    pub span: Range<usize>,
}

/// The payload that was found, and the candidates that were rejected before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PayloadSearch {
    pub payload: Option<Payload>,
    pub rejected: Vec<Diagnostic>,
    /// Why there is no payload.
    pub missing: Option<NoPayload>,
}

/// Why a reply has no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPayload {
    /// Nothing was said.
    Empty,
    /// The reply ends in the middle of an object.
    CutObject,
    /// The reply ends in the middle of a thought.
    CutThought,
    /// Words only.
    PlainText,
    CommandsOnly,
    /// JSON, but no object that can be read.
    Unreadable,
}

/// Finds the payload of a reply whose commands are known.
pub fn find(reply: &str, commands: &[RequestedCommand]) -> PayloadSearch {
    let (text, scan) = scanned(reply);
    let taken: Vec<Range<usize>> = commands.iter().map(|asked| asked.span.clone()).collect();
    let mut search = PayloadSearch::default();
    // An object between backticks is an example wherever there is another one.
    for in_span in [false, true] {
        search.look(text, &scan, &taken, in_span);
        if search.payload.is_some() {
            return search;
        }
    }
    search.missing = Some(missing(text, &scan, commands, &search.rejected));
    search
}

impl PayloadSearch {
    fn look(&mut self, text: &str, scan: &ReplyScan, taken: &[Range<usize>], in_span: bool) {
        let (mut last, mut untrusted) = (0, 0);
        for value in &scan.values {
            let before = last.min(value.span.start)..value.span.start;
            last = value.span.end;
            if within(taken, value.span.start).is_some()
                || value.span.start < untrusted
                || (value.place == ValuePlace::CodeSpan) != in_span
            {
                continue;
            }
            let commanded = marker_before(text, before).is_some();
            match parsed(text, value) {
                // What stands after a marker in code is the text of a command.
                Ok(read) if read.is_object() && !commanded => {
                    self.payload = Some(Payload { value: read, span: value.span.clone() });
                    return;
                }
                Ok(_) => (),
                Err(message) => {
                    if !commanded && self.rejected.len() < MOST_REJECTED {
                        self.rejected.push(Diagnostic { offset: value.span.start, message });
                    }
                    if value.was_meant(text) {
                        untrusted = value.stretch_end;
                    }
                }
            }
        }
    }
}

fn missing(text: &str, scan: &ReplyScan, commands: &[RequestedCommand], rejected: &[Diagnostic]) -> NoPayload {
    let said = {
        let mut said = text.to_owned();
        scan.thoughts.iter().rev().for_each(|thought| said.replace_range(thought.clone(), ""));
        !said.trim().is_empty()
    };
    let cut = |value: &FoundValue| value.broken == Some(Broken::Unclosed) && value.span.end == text.len();
    let meant = |value: &&FoundValue| value.was_meant(text);
    match () {
        () if scan.cut_thought => NoPayload::CutThought,
        () if !said => NoPayload::Empty,
        () if scan.values.last().is_some_and(cut) => NoPayload::CutObject,
        () if !rejected.is_empty() && scan.values.iter().any(|value| meant(&value)) => NoPayload::Unreadable,
        () if !commands.is_empty() => NoPayload::CommandsOnly,
        () if scan.values.iter().any(|value| meant(&value)) => NoPayload::Unreadable,
        () => NoPayload::PlainText,
    }
}

/// The name of the next phase, as the payload has it.
pub enum NextPhase {
    /// Nothing, null or an empty string: the run is complete.
    None,
    Phase(String),
    /// Something that is not a name at all, shown as JSON.
    Strange(String),
}

pub fn wish(payload: &Value) -> NextPhase {
    match payload.get("next_phase") {
        None | Some(Value::Null | Value::Bool(false)) => NextPhase::None,
        Some(Value::String(name)) if name.trim().is_empty() => NextPhase::None,
        Some(Value::String(name)) => NextPhase::Phase(name.clone()),
        Some(other) => {
            let mut shown = other.to_string();
            shown.truncate(shown.floor_char_boundary(80));
            NextPhase::Strange(shown)
        }
    }
}

#[cfg(test)]
mod tests;
