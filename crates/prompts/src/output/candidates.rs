//! Where in a reply an answer may be: fenced blocks, the whole message, and any object or list in the text, in this
//! order. What a model thinks aloud is never an answer.

use serde_json::Value;

use super::lenient::{self, Mended, Unreadable};
use super::strict_json;
use acheron_base::reply_scan::{FoundValue, ReplyScan, ScanLimits, ValuePlace};

/// The largest value, how deep it may be nested, and how many places of a reply are tried: bounds on the work that a
/// hostile reply can cause.
const LIMITS: ScanLimits = ScanLimits { bytes: 4 << 20, depth: 128, values: 256 };
/// The longest stretch of text in which something damaged is read.
const DAMAGED_BYTES: usize = 64 * 1024;

#[derive(Debug, PartialEq)]
pub(super) struct Candidate {
    pub from: &'static str,
    pub start: usize,
    pub value: CandidateValue,
}

#[derive(Debug, PartialEq)]
pub(super) enum CandidateValue {
    /// JSON as it should be.
    Sound(Value),
    Mended(Mended),
    Unreadable(Unreadable),
}

/// The candidates of a reply, those that are trusted most first.
pub(super) fn of(reply: &str) -> Vec<Candidate> {
    let scan = ReplyScan::of(reply, LIMITS);
    let mut blocked = 0;
    let mut all: Vec<(u8, Candidate)> = Vec::new();
    for found in &scan.values {
        if found.span.start < blocked {
            continue; // inside something damaged, or after it, where nothing can be told apart
        }
        let value = read(reply, found);
        blocked = match &value {
            CandidateValue::Sound(_) => blocked,
            CandidateValue::Mended(mended) => found.span.start + mended.length,
            CandidateValue::Unreadable(_) if found.was_meant(reply) => found.stretch_end,
            CandidateValue::Unreadable(_) => blocked,
        };
        let (trust, from) = rank(reply, &scan, found);
        all.push((trust, Candidate { from, start: found.span.start, value }));
    }
    all.sort_by_key(|(trust, _)| *trust);
    all.into_iter().map(|(_, candidate)| candidate).collect()
}

/// How much a place is trusted, and its name.
fn rank(reply: &str, scan: &ReplyScan, found: &FoundValue) -> (u8, &'static str) {
    match found.place {
        ValuePlace::Fence(number) => match scan.fences[number].label.as_str() {
            "json" | "jsonc" | "json5" => (0, "fence"),
            _ => (1, "fence"),
        },
        ValuePlace::Text => {
            let before = scan.thoughts.iter().take_while(|thought| reply[..thought.start].trim().is_empty()).last();
            let before = before.map_or(0, |thought| thought.end);
            let alone = found.span.start >= before
                && reply[before..found.span.start].trim().is_empty()
                && reply[found.span.end..].trim().is_empty();
            (2, if alone { "message" } else { "text" })
        }
        ValuePlace::CodeSpan => (3, "text"),
    }
}

fn read(reply: &str, found: &FoundValue) -> CandidateValue {
    let unreadable = |message: String| CandidateValue::Unreadable(Unreadable { path: String::new(), message });
    let strict = match found.broken {
        None => strict_json::parse(&reply[found.span.clone()]),
        Some(broken) => Err(broken.sentence()),
    };
    match strict {
        Ok(value) => CandidateValue::Sound(value),
        // Two values of one key: nothing can be mended there.
        Err(why) if why.contains(strict_json::TWICE) => unreadable(why),
        Err(why) if found.stretch_end - found.span.start > DAMAGED_BYTES => {
            unreadable(format!("{why}; what is damaged is not read in a text of more than {DAMAGED_BYTES} bytes"))
        }
        Err(_) => match lenient::read(&reply[found.span.start..found.stretch_end]) {
            Ok(mended) => CandidateValue::Mended(mended),
            Err(unreadable) => CandidateValue::Unreadable(unreadable),
        },
    }
}

/// Numbers without a fraction as integers: the same numbers.
pub(super) fn whole_numbers(value: Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT =>
            {
                #[allow(clippy::cast_possible_truncation)]
                Value::from(float as i64)
            }
            _ => Value::Number(number),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(whole_numbers).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, whole_numbers(value))).collect())
        }
        other => other,
    }
}
