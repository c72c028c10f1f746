//! The text that an operator writes to `decision`.

use serde::Deserialize;
use serde_json::Value;

use acheron_base::{Error, Result, quoted};

/// The forms of an answer, for messages and templates.
pub const FORMS: &str = "allow | deny: reason | allow for 10m | allow always";

/// The longest answer, in bytes.
const LONGEST: usize = 4096;

/// The longest time for which something can be allowed.
const LONGEST_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// How long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// For what was asked, once.
    Once,
    /// For everything like it, for so many milliseconds.
    For(u64),
    /// For everything like it, until it is revoked.
    Always,
}

/// What a person says to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may be done.
    Allow(Span),
    /// It may not be done; the agent is told the reason.
    Deny(String),
}

/// An answer, and what it was given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenAnswer {
    /// The answer.
    pub answer: Answer,
    /// The hash of what the person was shown: the answer does not count for anything else.
    pub sha256: Option<String>,
}

/// An answer as an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerObject {
    decision: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    sha256: Option<String>,
}

impl GivenAnswer {
    /// Reads `allow`, `deny: reason`, `allow for 10m`, `allow always`, or an object with one of these as `decision`.
    pub fn parse(text: &str) -> Result<GivenAnswer> {
        if text.len() > LONGEST {
            return Err(Error::too_large(format!("a decision has at most {LONGEST} bytes")));
        }
        let text = text.trim();
        if !text.starts_with('{') {
            return Ok(GivenAnswer { answer: Answer::parse(text)?, sha256: None });
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| Error::invalid(format!("a decision: {error}")))?;
        let object: AnswerObject =
            serde_json::from_value(value).map_err(|error| Error::invalid(format!("a decision: {error}")))?;
        let answer = match (Answer::parse(&object.decision)?, object.reason) {
            (Answer::Deny(said), Some(reason)) if said.is_empty() => Answer::Deny(one_line(&reason)),
            (Answer::Allow(_), Some(_)) => return Err(Error::invalid("only a denial has a reason")),
            (answer, _) => answer,
        };
        Ok(GivenAnswer { answer, sha256: object.sha256 })
    }
}

impl Answer {
    fn parse(text: &str) -> Result<Answer> {
        match text {
            "allow" => return Ok(Answer::Allow(Span::Once)),
            "allow always" => return Ok(Answer::Allow(Span::Always)),
            "deny" => return Ok(Answer::Deny(String::new())),
            _ => (),
        }
        if let Some(time) = text.strip_prefix("allow for ") {
            return Ok(Answer::Allow(Span::For(milliseconds(time)?)));
        }
        text.strip_prefix("deny:").map(|reason| Answer::Deny(one_line(reason))).ok_or_else(|| unknown(text))
    }

    /// The answer as it is written.
    pub fn text(&self) -> String {
        match self {
            Answer::Allow(Span::Once) => "allow".to_owned(),
            Answer::Allow(Span::Always) => "allow always".to_owned(),
            Answer::Allow(Span::For(ms)) => format!("allow for {}s", ms / 1000),
            Answer::Deny(reason) if reason.is_empty() => "deny".to_owned(),
            Answer::Deny(reason) => format!("deny: {reason}"),
        }
    }
}

fn unknown(text: &str) -> Error {
    Error::invalid(format!("{} is not a decision; write one of: {FORMS}", quoted(text)))
}

/// A reason is shown in one line.
fn one_line(text: &str) -> String {
    text.trim().replace(char::is_control, " ")
}

/// `90s`, `10m`, `2h`, `1d`.
fn milliseconds(text: &str) -> Result<u64> {
    let wrong = || Error::invalid(format!("{} is not a time; write 90s, 10m, 2h or 1d, at most 30d", quoted(text)));
    let unit = match text.as_bytes().last() {
        Some(b's') => 1000,
        Some(b'm') => 60 * 1000,
        Some(b'h') => 60 * 60 * 1000,
        Some(b'd') => 24 * 60 * 60 * 1000,
        _ => return Err(wrong()),
    };
    let digits = &text[..text.len() - 1];
    let count: u64 = match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse().map_err(|_| wrong())?,
        false => return Err(wrong()),
    };
    count.checked_mul(unit).filter(|ms| (1..=LONGEST_MS).contains(ms)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests;
