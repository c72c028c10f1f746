//! Constraints on a single value: its type, its bounds, its allowed words.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::forms::not_among;
use super::{ValueFault, fault};

/// The type of a value as a phrase.
pub(super) fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The types that a schema allows, as phrases; an integer is a number too.
pub(super) fn kinds(schema: &Value) -> Vec<&'static str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![type_phrase(one)],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).map(type_phrase).collect(),
        _ if schema.get("properties").is_some() => vec!["an object"],
        _ => Vec::new(),
    }
}

fn type_phrase(word: &str) -> &'static str {
    match word {
        "null" => "null",
        "boolean" => "true or false",
        "integer" | "number" => "a number",
        "string" => "a string",
        "array" => "an array",
        _ => "an object",
    }
}

pub(super) fn kind(schema: &Map<String, Value>, value: &Value, path: &str, faults: &mut Vec<ValueFault>) {
    let words: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    let fits = |word: &&str| match (*word, value) {
        ("integer", Value::Number(number)) => number.is_i64() || number.is_u64(),
        (word, value) => type_phrase(word) == name_of(value),
    };
    if words.iter().any(fits) {
        return;
    }
    let wanted: Vec<&str> =
        words.iter().map(|word| if *word == "integer" { "a whole number" } else { type_phrase(word) }).collect();
    let given = match value {
        Value::Number(number) if words.contains(&"integer") => number.to_string(),
        value => name_of(value).to_owned(),
    };
    fault(faults, path, format!("must be {}, not {given}", wanted.join(" or ")));
}

pub(super) fn bounds(schema: &Map<String, Value>, value: &Value, path: &str, faults: &mut Vec<ValueFault>) {
    if let Some(only) = schema.get("const").filter(|only| *only != value) {
        fault(faults, path, format!("must be {only}"));
    }
    if let Some(several) = schema.get("enum").and_then(Value::as_array).filter(|several| !several.contains(value)) {
        let words: Vec<&str> = several.iter().filter_map(Value::as_str).collect();
        fault(faults, path, not_among(value, &words));
    }
    let limit = |word: &str| schema.get(word).and_then(Value::as_f64);
    let count = |word: &str| schema.get(word).and_then(Value::as_u64);
    let mut complain = |wrong: bool, message: String| {
        if wrong {
            fault(faults, path, message);
        }
    };
    match value {
        Value::Number(number) => {
            let given = number.as_f64().unwrap_or(f64::NAN);
            for (word, wrong, said) in [
                ("minimum", (|given, limit| given < limit) as fn(f64, f64) -> bool, "at least"),
                ("maximum", |given, limit| given > limit, "at most"),
                ("exclusiveMinimum", |given, limit| given <= limit, "more than"),
                ("exclusiveMaximum", |given, limit| given >= limit, "less than"),
            ] {
                if let Some(limit) = limit(word) {
                    complain(wrong(given, limit), format!("must be {said} {limit}, not {number}"));
                }
            }
        }
        Value::String(text) => {
            let length = text.chars().count() as u64;
            if let Some(least) = count("minLength") {
                let wanted = if least == 1 {
                    "must not be empty".into()
                } else {
                    format!("must have at least {least} characters")
                };
                complain(length < least, wanted);
            }
            if let Some(most) = count("maxLength") {
                complain(length > most, format!("must have at most {most} characters, not {length}"));
            }
            if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
                complain(!matches(pattern, text), format!("must match {pattern}"));
            }
        }
        Value::Array(items) => {
            let length = items.len() as u64;
            if let Some(least) = count("minItems") {
                complain(length < least, format!("must have at least {least} items, not {length}"));
            }
            if let Some(most) = count("maxItems") {
                complain(length > most, format!("must have at most {most} items, not {length}"));
            }
        }
        _ => {}
    }
}

/// Whether a text matches a JSON Schema pattern; a pattern that does not compile matches everything.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    compiled(pattern).is_none_or(|regex| regex.is_match(text))
}

/// More patterns than contracts have; schemas that arrive in calls may bring any number of others.
const MAX_CACHED_PATTERNS: usize = 256;

/// A compiled pattern from a cache: compiling costs a thousand times as much as matching, and most patterns come again
/// with every call.
fn compiled(pattern: &str) -> Option<Arc<Regex>> {
    static CACHE: LazyLock<Mutex<HashMap<String, Option<Arc<Regex>>>>> = LazyLock::new(Mutex::default);
    let mut known = CACHE.lock();
    if let Some(regex) = known.get(pattern) {
        return regex.clone();
    }
    if known.len() >= MAX_CACHED_PATTERNS {
        known.clear();
    }
    let regex = RegexBuilder::new(pattern).size_limit(1 << 20).build().ok().map(Arc::new);
    known.insert(pattern.to_owned(), regex.clone());
    regex
}
