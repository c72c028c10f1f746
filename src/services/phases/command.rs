//! Commands in a reply: `⟐CMD {"action": …}`, and the entries of `control_signature.emit`.
//!
//! The grammar is narrow on purpose: the marker, optional blanks and one colon, an object, and nothing between. A marker
//! that stands in prose, in a thought or in the string of some object is not a command. Everything that was meant as one
//! and is none gives a diagnostic with its place; the rest goes on.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::scan::{ScanBudget, bounded, thoughts, within};

/// The marker with which a command begins: U+27D0 and three letters.
pub const MARKER: &str = "⟐CMD";
/// The most markers that are looked at in one reply.
const MOST_MARKERS: usize = 1024;

/// Something that the model asked the host to do.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedCommand {
    pub body: Value,
    /// Where it stood in the reply.
    pub span: Range<usize>,
}

/// Something that was meant as a command or a payload, and is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// The byte of the reply at which it begins.
    pub offset: usize,
    pub message: String,
}

/// The commands in a reply, and diagnostics for malformed ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplyCommands {
    pub commands: Vec<RequestedCommand>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Finds the commands that are written with a marker outside any other object.
pub fn marked(reply: &str) -> ReplyCommands {
    let text = bounded(reply);
    let thoughts = thoughts(text);
    let mut found = ReplyCommands::default();
    let mut at = 0;
    let mut seen = 0;
    let mut scan_budget = ScanBudget::default();
    while let Some(place) = next(text, at) {
        if let Some(thought) = within(&thoughts, place) {
            at = thought.end;
            continue;
        }
        if text.as_bytes()[place] == b'{' {
            // An object that is not a command: markers inside it are its own (a payload's emit list, a string).
            at = scan_budget.object(text, place).map_or(place + 1, |(_, end)| end);
            if scan_budget.is_over() {
                break;
            }
            continue;
        }
        seen += 1;
        if seen > MOST_MARKERS || scan_budget.is_over() {
            let message = "too many markers or broken objects; the rest is not read".to_owned();
            found.diagnostics.push(Diagnostic { offset: place, message });
            break;
        }
        at = place + MARKER.len();
        let Some(start) = opening(text, at) else { continue };
        match scan_budget.object(text, start) {
            Ok((body, end)) => {
                found.commands.push(RequestedCommand { body, span: place..end });
                at = end;
            }
            Err(message) => found.diagnostics.push(Diagnostic { offset: place, message }),
        }
    }
    found
}

/// The next marker or brace from `at`.
fn next(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let brace = rest.find('{');
    let marker = rest[..brace.unwrap_or(rest.len())].find(MARKER);
    marker.or(brace).map(|found| at + found)
}

/// Where the object of a marker that ends at `at` begins; none if the marker is only a word.
fn opening(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let after_blank = rest.trim_start();
    let after = after_blank.strip_prefix(':').unwrap_or(after_blank).trim_start();
    after.starts_with('{').then(|| text.len() - after.len())
}

/// The entries of a payload's `control_signature.emit`: `{"⟐CMD": {…}}` or the bare object.
pub fn emitted(payload: &Value, span: &Range<usize>) -> ReplyCommands {
    let mut found = ReplyCommands::default();
    let entries = match payload.pointer("/control_signature/emit") {
        None | Some(Value::Null) => return found,
        Some(Value::Array(entries)) => entries.as_slice(),
        Some(one @ Value::Object(_)) => std::slice::from_ref(one),
        Some(_) => {
            let message = "control_signature.emit must be a list of commands".to_owned();
            found.diagnostics.push(Diagnostic { offset: span.start, message });
            return found;
        }
    };
    for (place, entry) in entries.iter().enumerate() {
        let body = entry.get(MARKER).unwrap_or(entry);
        if body.is_object() {
            found.commands.push(RequestedCommand { body: body.clone(), span: span.clone() });
        } else {
            let message = format!("entry {place} of control_signature.emit is not an object");
            found.diagnostics.push(Diagnostic { offset: span.start, message });
        }
    }
    found
}

/// Both ways together, in order, the same command only once.
pub fn all(marked: ReplyCommands, emitted: ReplyCommands) -> ReplyCommands {
    let mut all = marked;
    let written = all.commands.len();
    for asked in emitted.commands {
        if !all.commands[..written].iter().any(|other| other.body == asked.body) {
            all.commands.push(asked);
        }
    }
    all.diagnostics.extend(emitted.diagnostics);
    all
}

#[cfg(test)]
mod tests;
