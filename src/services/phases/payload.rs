//! The payload of a reply: the first JSON object in it that parses.
//!
//! Fenced or not; thoughts and commands are skipped. A list at the top is not a payload, nor is what is inside it.

use std::ops::Range;

use serde_json::Value;

use super::command::{Diagnostic, RequestedCommand};
use super::scan::{ScanBudget, bounded, joined, thoughts, within};

/// The most candidates that are tried in one reply.
const MOST_CANDIDATES: usize = 64;

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
}

/// Finds the payload of a reply whose commands are known.
pub fn find(reply: &str, commands: &[RequestedCommand]) -> PayloadSearch {
    let text = bounded(reply);
    let mut skip = thoughts(text);
    skip.extend(commands.iter().map(|asked| asked.span.clone()));
    let skip = joined(skip);
    if is_list(text, &skip) {
        return PayloadSearch::default();
    }
    let mut search = PayloadSearch::default();
    let mut at = 0;
    let mut scan_budget = ScanBudget::default();
    while let Some(place) = text[at..].find('{').map(|found| at + found) {
        if let Some(span) = within(&skip, place) {
            at = span.end;
            continue;
        }
        match scan_budget.object(text, place) {
            Ok((value, end)) => {
                search.payload = Some(Payload { value, span: place..end });
                break;
            }
            Err(message) => search.rejected.push(Diagnostic { offset: place, message }),
        }
        if search.rejected.len() >= MOST_CANDIDATES || scan_budget.is_over() {
            break;
        }
        at = place + 1;
    }
    search
}

/// Whether what was said is one JSON list, fenced or not.
fn is_list(text: &str, skip: &[Range<usize>]) -> bool {
    let mut rest = text.trim_start();
    while let Some(span) = within(skip, text.len() - rest.len()) {
        rest = text[span.end..].trim_start();
        if rest.is_empty() {
            return false;
        }
    }
    if let Some(fenced) = rest.strip_prefix("```") {
        rest = fenced.split_once('\n').map_or("", |(_, body)| body).trim_start();
    }
    rest.starts_with('[') && {
        let mut lists = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        matches!(lists.next(), Some(Ok(Value::Array(_))))
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
