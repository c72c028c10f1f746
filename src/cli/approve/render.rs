//! Requests as text for people: who wants what, completely, and what each answer would do. Pure.

use serde_json::Value;

fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// One line of a list.
pub fn line(request: &Value) -> String {
    format!("{}  {}  {}\n", word(request, "id"), word(request, "agent"), word(request, "summary"))
}

/// A whole request. Nothing is cut: a command that is cut is another command.
pub fn page(request: &Value) -> String {
    let mut page = format!("{}\n  {}\n", word(request, "id"), word(request, "summary"));
    let mut part = |name: &str, value: &Value| {
        let text = match value {
            Value::Null => return,
            Value::String(text) => text.clone(),
            value => format!("{value:#}"),
        };
        page.push_str(&format!("  {name}: {}\n", text.replace('\n', "\n    ")));
    };
    part("arguments", &request["subject"]["arguments"]);
    part("argv", &request["subject"]["argv"]);
    part("directory", &request["subject"]["cwd"]);
    part("runs", &request["subject"]["runs"]);
    for risk in request["risk"].as_array().into_iter().flatten() {
        part("risk", risk);
    }
    part("the model says", &request["stated_reason"]);
    part("asked by the rule", &request["matched_rule"]);
    let jobs = request["jobs"].as_array().map_or(0, Vec::len);
    if jobs > 1 {
        part("calls", &Value::String(format!("{jobs} equal calls wait; one of them is done")));
    }
    for offer in request["offers"].as_array().into_iter().flatten() {
        let writes = if offer["writes"].is_null() { String::new() } else { format!(" ({})", offer["writes"]) };
        page.push_str(&format!("  - {}: {}{writes}\n", word(offer, "answer"), word(offer, "does")));
    }
    page
}

/// What became of a request.
pub fn outcome(status: &Value) -> String {
    let by = status["by"].as_str().map(|by| format!(" by {by}")).unwrap_or_default();
    let answer = status["answer"].as_str().map(|answer| format!(": {answer}")).unwrap_or_default();
    format!("{}{by}{answer}: {}\n", word(status, "state"), word(status, "summary"))
}

/// The answer that a typed line stands for; `None` if it is none.
pub fn typed(line: &str) -> Option<TypedAnswer> {
    let line = line.trim();
    let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
    let answer = |text: &str| Some(TypedAnswer::Answer(text.to_owned()));
    match (key, rest.trim()) {
        ("a" | "y" | "yes", "") => answer("allow"),
        ("d" | "n" | "no", "") => answer("deny"),
        ("d" | "n" | "no", reason) => answer(&format!("deny: {reason}")),
        ("m", "") => answer("allow for 10m"),
        ("m", time) => answer(&format!("allow for {time}")),
        ("w", "") => answer("allow always"),
        ("s", "") => Some(TypedAnswer::Skip),
        ("v", "") => Some(TypedAnswer::View),
        ("q", "") => Some(TypedAnswer::End),
        _ if line.starts_with("allow") || line.starts_with("deny") => answer(line),
        _ => None,
    }
}

/// What a person typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedAnswer {
    Answer(String),
    /// Later, or elsewhere.
    Skip,
    /// Show everything.
    View,
    End,
}

/// The line under a question.
pub const KEYS: &str = "[a]llow  [d]eny [reason]  [m] allow for 10m  al[w]ays  [v]iew  [s]kip  [q]uit";

#[cfg(test)]
mod tests;
