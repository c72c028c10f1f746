//! Where in a reply an answer may be: fenced blocks, the whole message, and any object or array in the text, in this
//! order. What a model thinks aloud is never an answer.

use std::ops::Range;

use serde_json::Value;

use super::strict_json;

/// How many places of a text are tried; a bound on the work that a hostile reply can cause.
const PLACES: usize = 256;
/// How many bytes may be read to try them, all together.
const READ: usize = 64 << 20;

#[derive(Debug, PartialEq)]
pub(super) struct Candidate {
    pub from: &'static str,
    pub start: usize,
    pub value: Result<Value, String>,
}

pub(super) fn of(reply: &str) -> Vec<Candidate> {
    let thoughts = thoughts(reply);
    let thought = |at: usize| {
        let after = thoughts.partition_point(|range| range.end <= at);
        thoughts.get(after).filter(|range| range.start <= at)
    };
    let mut all = Vec::new();
    let mut fences: Vec<Fence> = fences(reply).into_iter().filter(|fence| thought(fence.start).is_none()).collect();
    fences.sort_by_key(|fence| !fence.labelled);
    for fence in fences.iter().take(PLACES) {
        let value = strict_json::parse(reply[fence.inner.clone()].trim());
        // A block of something else is no failed answer.
        if fence.labelled || value.is_ok() {
            let value = value.map_err(|why| format!("the fenced block is not JSON: {why}"));
            all.push(Candidate { from: "fence", start: fence.inner.start, value });
        }
    }
    let start = thoughts.iter().take_while(|range| reply[..range.start].trim().is_empty()).last();
    let start = start.map_or(0, |range| range.end);
    if let Ok(value) = strict_json::parse(reply[start..].trim()) {
        all.push(Candidate { from: "message", start, value: Ok(value) });
        return all;
    }
    all.extend(scan(reply, &thought));
    all
}

fn scan<'a>(reply: &str, thought: &dyn Fn(usize) -> Option<&'a Range<usize>>) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut at = 0;
    // Each place may be read to the end of the reply in vain.
    for _ in 0..PLACES.min(READ / reply.len().max(1)) {
        let Some(next) = reply[at..].find(['{', '[']).map(|offset| at + offset) else { break };
        if let Some(range) = thought(next) {
            at = range.end;
            continue;
        }
        match strict_json::prefix(&reply[next..]) {
            Ok((value, length)) => {
                found.push(Candidate { from: "text", start: next, value: Ok(value) });
                // Not into it: a part of a wrong answer is not a right one.
                at = next + length;
            }
            // Meant as JSON, and worth saying what is wrong with it.
            Err(why) if why.contains(strict_json::TWICE) => {
                found.push(Candidate { from: "text", start: next, value: Err(why) });
                at = next + 1;
            }
            Err(_) => at = next + 1,
        }
    }
    found
}

struct Fence {
    start: usize,
    inner: Range<usize>,
    labelled: bool,
}

/// Fenced blocks as CommonMark has them: opened and closed by a line of their own. JSON cannot hold such a line within
/// a string, so backticks in a string close nothing.
fn fences(reply: &str) -> Vec<Fence> {
    let mut found = Vec::new();
    let mut open: Option<(&str, usize, usize, bool)> = None;
    let mut at = 0;
    for line in reply.split_inclusive('\n') {
        let bare = line.trim();
        let ticks = bare.len() - bare.trim_start_matches('`').len();
        match open {
            None if ticks >= 3 && !bare[ticks..].contains('`') => {
                let label = bare[ticks..].trim().to_ascii_lowercase();
                open =
                    Some((&bare[..ticks], at, at + line.len(), matches!(label.as_str(), "json" | "jsonc" | "json5")));
            }
            Some((fence, start, inner, labelled)) if ticks >= fence.len() && bare.len() == ticks => {
                found.push(Fence { start, inner: inner..at, labelled });
                open = None;
            }
            _ => {}
        }
        at += line.len();
    }
    if let Some((_, start, inner, labelled)) = open {
        // Cut off before the closing line: what is there may still be whole.
        found.push(Fence { start, inner: inner..reply.len(), labelled });
    }
    found
}

/// `<think>…</think>` and its like, where they begin a line; what comes before a closing one that was never opened.
fn thoughts(reply: &str) -> Vec<Range<usize>> {
    const TAGS: [(&str, &str); 3] =
        [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let mut open: Option<(usize, &str)> = None;
    for line in reply.split_inclusive('\n') {
        let mut inner = 0;
        if open.is_none() {
            let bare = line.trim_start();
            if let Some((tag, close)) = TAGS.iter().find(|(tag, _)| bare.starts_with(tag)) {
                inner = line.len() - bare.len() + tag.len();
                open = Some((at + line.len() - bare.len(), close));
            } else if let Some((_, close)) = TAGS.iter().find(|(_, close)| bare.starts_with(close))
                && found.is_empty()
            {
                found.push(0..at + line.len() - bare.len() + close.len());
            }
        }
        if let Some((start, close)) = open
            && let Some(end) = line[inner..].find(close)
        {
            found.push(start..at + inner + end + close.len());
            open = None;
        }
        at += line.len();
    }
    if let Some((start, _)) = open {
        found.push(start..reply.len());
    }
    found
}

/// The value as one of the wanted types, if it is that value and only its notation differs.
pub(super) fn amend(value: &Value, wanted: &[String]) -> Option<Value> {
    let wants = |kind: &str| wanted.iter().any(|one| one == kind);
    let Value::String(text) = value else { return None };
    let number = || serde_json::from_str::<serde_json::Number>(text).ok().filter(|n| n.to_string() == *text);
    match text.as_str() {
        "true" if wants("boolean") => Some(Value::Bool(true)),
        "false" if wants("boolean") => Some(Value::Bool(false)),
        _ if wants("number") => number().map(Value::Number),
        _ if wants("integer") => number().filter(|number| !number.is_f64()).map(Value::Number),
        _ => None,
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
