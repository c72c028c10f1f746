//! Commands in a reply: `⟐CMD {"action": …}`, and the entries of `control_signature.emit`.
//!
//! The grammar is narrow on purpose: the marker, optional blanks and one colon, an object, and nothing between. A marker
//! that stands in prose, in code, in a thought or in the string of some object is not a command. Everything that was
//! meant as one and is none gives a diagnostic with its place. After JSON that is broken nothing is a command, since it
//! is not known where it ends.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::scan::{parsed, scanned};
use acheron_base::reply_scan::ValuePlace;

/// The marker with which a command begins: U+27D0 and three letters.
pub const MARKER: &str = "⟐CMD";

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

/// Finds the commands that are written with a marker in the text, outside any other object.
pub fn marked(reply: &str) -> ReplyCommands {
    let (text, scan) = scanned(reply);
    let mut found = ReplyCommands::default();
    let (mut last, mut untrusted) = (0, 0);
    for value in scan.values.iter().filter(|value| value.place == ValuePlace::Text) {
        if value.span.start < untrusted {
            continue;
        }
        let marker = marker_before(text, last..value.span.start).filter(|_| text[value.span.start..].starts_with('{'));
        last = value.span.end;
        match (parsed(text, value), marker) {
            (Ok(body), Some(place)) => {
                found.commands.push(RequestedCommand { body, span: place..value.span.end });
            }
            (Ok(_), None) => (),
            (Err(message), marker) => {
                found.diagnostics.extend(marker.map(|offset| Diagnostic { offset, message }));
                if value.was_meant(text) {
                    untrusted = value.stretch_end;
                }
            }
        }
    }
    if scan.full {
        let message = "too many objects; the rest is not read".to_owned();
        found.diagnostics.push(Diagnostic { offset: last, message });
    }
    found
}

/// Where the marker of an object begins that stands right after `before`; none if there is no marker, or other words
/// between the two.
pub fn marker_before(text: &str, before: Range<usize>) -> Option<usize> {
    let bare = text[before.clone()].trim_end();
    let bare = bare.strip_suffix(':').unwrap_or(bare).trim_end();
    bare.ends_with(MARKER).then(|| before.start + bare.len() - MARKER.len())
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
