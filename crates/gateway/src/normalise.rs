//! A request without what differs from run to run: ids, dates, times, the working directory, session ids, the billing header.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::read_messages_request::BILLING;

/// Keys whose values say who asks, not what is asked.
const VOLATILE_KEYS: [&str; 12] = [
    "metadata",
    "user",
    "prompt_cache_key",
    "safety_identifier",
    "client_metadata",
    "previous_response_id",
    "session_id",
    "conversation",
    "encrypted_content",
    "thoughtSignature",
    "signature",
    "labels",
];

/// The words that stand for what was taken out.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let all = [
        // Codex writes the kind of an id before it: `msg_0198c2f4-…`.
        (r"\b(?:[a-z]{1,12}_)?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "<id>"),
        (
            r"\b(?:call|toolu|msg|resp|fc|rs|req|chatcmpl|session|ses|sess|item|chat)[_-][A-Za-z0-9]{1,}(?:_\d+)*\b",
            "<id>",
        ),
        (r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?", "<date>"),
        (
            r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}|\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*),? \d{4}\b",
            "<date>",
        ),
        (r"\b\d{1,2}/\d{1,2}/\d{4}\b", "<date>"),
        (r"\b\d{1,2}:\d{2}:\d{2}(?: ?[AP]M)?\b", "<time>"),
        (r"\b1[6-9]\d{8}(?:\d{3})?\b", "<time>"),
        (r"\b[0-9a-f]{16,}\b", "<hex>"),
        (r"\b\d+(?:\.\d+)? ?(?:ms|milliseconds|seconds|secs|s)\b", "<duration>"),
        (r"/tmp/[^\s\x22'<>,;`)\]]*", "<tmp>"),
    ];
    all.into_iter().filter_map(|(pattern, word)| Some((Regex::new(pattern).ok()?, word))).collect()
});

/// A path after words that name the working directory.
static WORKING_DIR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:working directory|current directory|<cwd>|\bcwd\b|workspace)[^/\n]{0,40}?(/[^\s\x22'<>,;`)\]]+)",
    )
    .ok()
});

/// The request without its volatile parts. Two runs of a program over the same files give the same value.
pub fn normalised(body: &Map<String, Value>) -> Value {
    let mut dirs = Vec::new();
    collect_dirs(&Value::Object(body.clone()), &mut dirs);
    // A directory within another is replaced first.
    dirs.sort_by_key(|dir| std::cmp::Reverse(dir.len()));
    dirs.dedup();
    object(body, &dirs)
}

fn collect_dirs(value: &Value, dirs: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let found = WORKING_DIR.iter().flat_map(|pattern| pattern.captures_iter(text));
            let found =
                found.filter_map(|found| found.get(1)).map(|dir| dir.as_str().trim_end_matches(['/', '.']).to_owned());
            dirs.extend(found.filter(|dir| dir.len() > 1));
        }
        Value::Array(all) => all.iter().for_each(|each| collect_dirs(each, dirs)),
        Value::Object(all) => all.values().for_each(|each| collect_dirs(each, dirs)),
        _ => (),
    }
}

fn object(all: &Map<String, Value>, dirs: &[String]) -> Value {
    let kept = all.iter().filter(|(key, _)| !VOLATILE_KEYS.contains(&key.as_str()));
    kept.map(|(key, value)| (key.clone(), each(value, dirs))).collect::<Map<_, _>>().into()
}

fn each(value: &Value, dirs: &[String]) -> Value {
    match value {
        Value::String(text) => text_without(text, dirs).into(),
        Value::Array(all) => {
            let billing = |value: &&Value| value["text"].as_str().is_some_and(|text| text.starts_with(BILLING));
            all.iter().filter(|value| !billing(value)).map(|value| each(value, dirs)).collect()
        }
        Value::Object(all) => object(all, dirs),
        other => other.clone(),
    }
}

fn text_without(text: &str, dirs: &[String]) -> String {
    let mut text = text.to_owned();
    for dir in dirs {
        text = text.replace(dir.as_str(), "<cwd>");
    }
    for (pattern, word) in PATTERNS.iter() {
        if let std::borrow::Cow::Owned(changed) = pattern.replace_all(&text, *word) {
            text = changed;
        }
    }
    text
}

#[cfg(test)]
mod tests;
