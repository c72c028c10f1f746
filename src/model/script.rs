//! A model with prepared answers.
//!
//! A script has one line of NDJSON per answer, used in order. A JSON string is the raw text of an answer. An object has
//! `answer` (a string, or an object that is serialised) and may have `when`, a regular expression on the last message:
//! the first line that matches and is unused, or has `"repeat": true`, answers. Captures replace `$1` or `${name}` in
//! the answer; a capture whose name ends in `_json` comes from a JSON string and is unescaped. Empty lines and lines
//! that begin with `#` are ignored.
//!
//! If tools are offered, an answer that is an object with `tool_calls` makes these calls, with its `text` beside them; any
//! other answer is words. So one script serves both protocols.

use async_trait::async_trait;
use parking_lot::Mutex;
use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::Value;

use super::{AnswerPiece, Model, ModelAnswer, ModelRequest, NativeCall, Usage, tokens};
use acheron_base::{Error, Result};

/// The size limit of a compiled regular expression.
const MAX_REGEX_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct ScriptLine {
    answer: Value,
    when: Option<Regex>,
    repeat: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptEntry {
    answer: Value,
    when: Option<String>,
    #[serde(default)]
    repeat: bool,
}

#[derive(Debug)]
pub struct Script {
    name: String,
    lines: Vec<ScriptLine>,
    used: Mutex<Vec<bool>>,
}

impl Script {
    /// Parses a script; `name` appears in error messages.
    pub fn read(name: &str, text: &str) -> Result<Script> {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
            .map(|(number, line)| {
                read_line(line).map_err(|why| Error::invalid(format!("{name}, line {}: {why}", number + 1)))
            })
            .collect::<Result<Vec<_>>>()?;
        let used = Mutex::new(vec![false; lines.len()]);
        Ok(Script { name: name.to_owned(), lines, used })
    }

    /// The next answer to this message.
    fn next(&self, message: &str) -> Option<String> {
        let mut used = self.used.lock();
        for (line, used) in self.lines.iter().zip(used.iter_mut()) {
            if *used && !line.repeat {
                continue;
            }
            let captures = match &line.when {
                None => None,
                Some(when) => match when.captures(message) {
                    None => continue,
                    captures => captures,
                },
            };
            *used = true;
            return Some(answer_text(&line.answer, captures.as_ref()));
        }
        None
    }
}

fn read_line(line: &str) -> Result<ScriptLine, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if value.is_string() {
        return Ok(ScriptLine { answer: value, when: None, repeat: false });
    }
    let written: ScriptEntry = serde_json::from_value(value).map_err(|error| error.to_string())?;
    if !written.answer.is_string() && !written.answer.is_object() {
        return Err("answer is a string or an object".to_owned());
    }
    let when = written.when.map(|when| regex::RegexBuilder::new(&when).size_limit(MAX_REGEX_BYTES).build()).transpose();
    Ok(ScriptLine { answer: written.answer, when: when.map_err(|error| error.to_string())?, repeat: written.repeat })
}

/// The text of an answer, with captures filled in.
fn answer_text(answer: &Value, captures: Option<&Captures>) -> String {
    match answer {
        Value::String(text) => filled(text, captures),
        other => filled_in(other, captures).to_string(),
    }
}

/// The words and the calls of an answer in the form of the contract.
fn native_calls(text: &str) -> Option<(String, Vec<NativeCall>)> {
    let answer: Value = serde_json::from_str(text).ok()?;
    let call = |call: &Value| {
        let word = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
        let arguments = call["arguments"].as_str().map_or_else(|| call["arguments"].to_string(), str::to_owned);
        NativeCall { id: word("id"), name: word("name"), arguments }
    };
    let calls = answer["tool_calls"].as_array()?.iter().map(call).collect();
    Some((answer["text"].as_str().unwrap_or_default().to_owned(), calls))
}

/// Whether a line has given this answer. Calls without an id have got one since.
fn is_answer(text: &str, said: &ModelAnswer) -> bool {
    if said.calls.is_empty() {
        return text == said.text;
    }
    let same = |one: &NativeCall, other: &NativeCall| one.name == other.name && one.arguments == other.arguments;
    native_calls(text).is_some_and(|(words, calls)| {
        words == said.text
            && calls.len() == said.calls.len()
            && calls.iter().zip(&said.calls).all(|(one, other)| same(one, other))
    })
}

fn filled_in(value: &Value, captures: Option<&Captures>) -> Value {
    match value {
        Value::String(text) => Value::String(filled(text, captures)),
        Value::Array(all) => all.iter().map(|each| filled_in(each, captures)).collect(),
        Value::Object(all) => {
            Value::Object(all.iter().map(|(key, each)| (key.clone(), filled_in(each, captures))).collect())
        }
        other => other.clone(),
    }
}

fn filled(text: &str, captures: Option<&Captures>) -> String {
    let Some(captures) = captures.filter(|captures| captures.len() > 1) else { return text.to_owned() };
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, tail) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some(both) => both,
            None => after.split_at(after.bytes().take_while(u8::is_ascii_digit).count()),
        };
        let known = match name.parse::<usize>() {
            Ok(number) => captures.get(number),
            Err(_) => captures.name(name),
        };
        match known {
            Some(found) => {
                out.push_str(&unescaped(name, found.as_str()));
                rest = tail;
            }
            None => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Removes one layer of JSON escapes for each `_json` suffix of the name.
fn unescaped(mut name: &str, text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(shorter) = name.strip_suffix("_json") {
        text = serde_json::from_str(&format!("\"{text}\"")).unwrap_or(text);
        name = shorter;
    }
    text
}

#[async_trait]
impl Model for Script {
    fn name(&self) -> String {
        format!("script:{}", self.name)
    }

    async fn answer(&self, ask: &ModelRequest, watch: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        let Some(text) = self.next(&ask.last()) else {
            return Err(Error::provider(format!("the script {} has no answer left for this message", self.name)));
        };
        watch(AnswerPiece::Text(text.clone()));
        let asked = ask.texts().map(|text| tokens(&text)).sum::<u64>();
        let usage = Usage::new(asked, tokens(&text));
        let calls = ask.tools.as_ref().and_then(|_| native_calls(&text));
        let (text, calls) = calls.unwrap_or((text, Vec::new()));
        let native_call = !calls.is_empty();
        Ok(ModelAnswer { text, calls, native_call, usage, model: self.name(), ..ModelAnswer::default() })
    }

    fn is_billed(&self) -> bool {
        false
    }

    /// Marks the lines that gave these answers as used. A line with captures may have given any answer.
    fn resume(&self, said: &[ModelAnswer]) {
        let mut used = self.used.lock();
        for said in said {
            let gave = |line: &ScriptLine| {
                line.when.as_ref().is_some_and(|when| when.captures_len() > 1)
                    || is_answer(&answer_text(&line.answer, None), said)
            };
            if let Some(at) = (0..used.len()).find(|&at| !used[at] && !self.lines[at].repeat && gave(&self.lines[at])) {
                used[at] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests;
