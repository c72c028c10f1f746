//! Recognises a call that a model has written as text, in the forms of several models. Pure; `native` uses it.

use serde_json::Value;

use super::deviation::{self, CallsFound};
use crate::agent::tools::ToolCall;

/// How the templates of models begin a call.
const MARKS: [&str; 10] = [
    "<tool_call>",
    "<tool_calls>",
    "[TOOL_CALLS]",
    "[TOOL_CALL]",
    "<function=",
    "<function_call>",
    "<function_calls>",
    "<invoke name=",
    "<|python_tag|>",
    "<|tool_call",
];

/// Whether `words` are a call and nothing else, or have one in the form of a model's template. An example in a reply, in a
/// fence among other words, is not.
pub fn is_written_call(words: &str) -> bool {
    is_call(unfenced(words))
        || outside_fences(words).any(|line| {
            let line = line.trim_start();
            MARKS.iter().any(|mark| line.get(..mark.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(mark)))
        })
}

fn is_call(text: &str) -> bool {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(all)) => !all.is_empty() && all.iter().all(|one| deviation::shaped(one).is_some()),
        Ok(Value::Object(_)) => !matches!(deviation::find(text), CallsFound::None) || has_bare_call(text),
        _ => false,
    }
}

/// A call without arguments, which the contract takes as well.
fn has_bare_call(text: &str) -> bool {
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text) else { return false };
    let name = object.get("name").and_then(Value::as_str);
    name.is_some_and(ToolCall::is_tool) || object.contains_key("tool_calls")
}

/// The text in the fence that is around all of it, or the text itself.
fn unfenced(words: &str) -> &str {
    let inside = words.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inside.and_then(|rest| rest.split_once('\n')) {
        Some((language, inside)) if !language.contains(['{', '[']) && !inside.contains("```") => inside.trim(),
        _ => words,
    }
}

/// The lines that are in no fence.
fn outside_fences(words: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    words.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

#[cfg(test)]
mod tests;
