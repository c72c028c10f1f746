//! What a person reads of a reply: the narrative of its payload, or its words without thoughts, commands and payload.

use serde_json::Value;

use super::command::RequestedCommand;
use super::payload::Payload;
use super::scan::scanned;
use acheron_base::reply_scan::ValuePlace;

/// The text for a person; the whole reply if nothing else is left of it.
pub fn narrative(reply: &str, payload: Option<&Payload>, commands: &[RequestedCommand]) -> String {
    let told = payload.and_then(|payload| payload.value.get("narrative")).and_then(Value::as_str);
    if let Some(told) = told.map(str::trim).filter(|told| !told.is_empty()) {
        return told.to_owned();
    }
    let (text, scan) = scanned(reply);
    let mut gone: Vec<std::ops::Range<usize>> = scan.thoughts.clone();
    gone.extend(commands.iter().map(|asked| asked.span.clone()));
    if let Some(payload) = payload {
        let value = scan.values.iter().find(|value| value.span == payload.span);
        gone.push(match value.map(|value| value.place) {
            Some(ValuePlace::Fence(number)) => scan.fences[number].span.clone(),
            _ => payload.span.clone(),
        });
    }
    gone.sort_by_key(|span| span.start);
    let (mut words, mut at) = (String::new(), 0);
    for span in gone {
        words += text.get(at..span.start).unwrap_or_default();
        at = at.max(span.end);
    }
    words += &reply[at..];
    let words = words.trim();
    if words.is_empty() { reply.trim().to_owned() } else { words.to_owned() }
}
