//! What readers who follow a turn are shown: pieces of thoughts and of the reply, calls, outcomes. The transcript has the whole;
//! here long values are cut.

use serde_json::{Value, json};

use crate::agent::tools::{ToolCall, shown};
use crate::jobs::Job;
use crate::model::AnswerPiece;

/// The longest text of an argument and of an outcome.
const ARGUMENT: usize = 64 << 10;
const OUTCOME: usize = 16 << 10;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Tells reasoning, words and calls in the pieces of an answer apart.
pub struct ShownPieces {
    /// Text beside calls is the reply; otherwise the answer is a call as JSON, and words before it are reasoning.
    native: bool,
    state: PieceState,
}

enum PieceState {
    /// Too little has come to know what it is.
    Begin(String),
    /// Between the tags; what may be the beginning of the end tag is held back.
    Thinking(String),
    Words,
    /// A call, which is shown when it is made.
    Call,
}

impl ShownPieces {
    pub fn of(native: bool) -> ShownPieces {
        ShownPieces { native, state: PieceState::Begin(String::new()) }
    }

    /// Adds a piece to the steps of the job.
    pub fn add(&mut self, piece: &AnswerPiece, job: &Job) {
        let Some(steps) = job.steps() else { return };
        for (step, text) in self.read(piece) {
            steps.add(json!({ "step": step, "text": text }));
        }
    }

    fn read(&mut self, piece: &AnswerPiece) -> Vec<(&'static str, String)> {
        match piece {
            AnswerPiece::Thought(piece) => vec![("thought", piece.clone())],
            AnswerPiece::Call(_) => Vec::new(),
            AnswerPiece::Again => {
                self.state = PieceState::Begin(String::new());
                Vec::new()
            }
            AnswerPiece::Text(piece) => {
                let mut shown = Vec::new();
                let mut rest = piece.clone();
                // Each pass takes text or changes the state, and a change takes a tag or decides for good.
                while !rest.is_empty() {
                    rest = self.text(rest, &mut shown);
                }
                shown.retain(|(_, text): &(_, String)| !text.is_empty());
                shown
            }
        }
    }

    /// Takes text; returns what has to be read in the next state.
    fn text(&mut self, piece: String, shown: &mut Vec<(&'static str, String)>) -> String {
        match &mut self.state {
            PieceState::Begin(held) => {
                let text = std::mem::take(held) + &piece;
                let begin = text.trim_start();
                if begin.is_empty() || (begin.len() < OPEN.len() && OPEN.starts_with(begin)) {
                    self.state = PieceState::Begin(text);
                } else if let Some(thought) = begin.strip_prefix(OPEN) {
                    self.state = PieceState::Thinking(String::new());
                    return thought.to_owned();
                } else if !self.native && begin.starts_with(['{', '[', '`']) {
                    self.state = PieceState::Call;
                } else {
                    self.state = PieceState::Words;
                    return begin.to_owned();
                }
            }
            PieceState::Thinking(held) => {
                let text = std::mem::take(held) + &piece;
                if let Some((thought, rest)) = text.split_once(CLOSE) {
                    shown.push(("thought", thought.to_owned()));
                    self.state = PieceState::Begin(String::new());
                    return rest.to_owned();
                }
                let kept = (1..CLOSE.len()).rev().find(|length| text.ends_with(&CLOSE[..*length])).unwrap_or_default();
                shown.push(("thought", text[..text.len() - kept].to_owned()));
                self.state = PieceState::Thinking(text[text.len() - kept..].to_owned());
            }
            PieceState::Words => shown.push((if self.native { "text" } else { "thought" }, piece)),
            PieceState::Call => (),
        }
        String::new()
    }
}

/// Adds a call; returns its number. The agent's own words to its chat are shown as words, not as calls.
pub fn call(job: &Job, agent: &str, tool: &ToolCall) -> Option<u64> {
    let path = tool.path().trim_start_matches('/');
    let own = path
        .strip_prefix("agents/self/")
        .or_else(|| path.strip_prefix("agents/")?.strip_prefix(agent)?.strip_prefix('/'));
    if matches!(own, Some("chat/control/reply" | "chat/control/progress")) {
        return None;
    }
    let mut arguments = serde_json::to_value(tool).ok()?["arguments"].take();
    for (_, value) in arguments.as_object_mut().into_iter().flatten() {
        if let Value::String(text) = value {
            cut(text, ARGUMENT);
        }
    }
    Some(job.steps()?.add(json!({ "step": "call", "tool": tool.name(), "arguments": arguments })))
}

/// Adds the outcome of a call.
pub fn outcome(job: &Job, call: Option<u64>, result: &Value, ms: u64) {
    let (Some(call), Some(steps)) = (call, job.steps()) else { return };
    let (ok, mut text) = match (result.get("error"), result.get("content")) {
        (Some(error), _) => {
            let word = |key: &str| error[key].as_str().unwrap_or_default();
            (false, format!("{}: {}", word("code"), word("message")))
        }
        (None, Some(Value::String(content))) => (true, content.clone()),
        _ => (true, shown(result).to_string()),
    };
    cut(&mut text, OUTCOME);
    steps.add(json!({ "step": "outcome", "call": call, "ok": ok, "ms": ms, "text": text }));
}

/// Adds words that the agent says before the end of its turn.
pub fn said(job: &Job, text: &str) {
    if let Some(steps) = job.steps() {
        let mut text = text.trim_end().to_owned();
        cut(&mut text, ARGUMENT);
        steps.add(json!({ "step": "said", "text": text }));
    }
}

/// Cuts a text that is too long, and says so.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push_str(" […]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of a text, however it is cut into pieces.
    fn shown_of(native: bool, text: &str) -> Vec<String> {
        let mut seen = std::collections::BTreeSet::new();
        for size in 1..=text.len() {
            let mut pieces = ShownPieces::of(native);
            let mut all = [String::new(), String::new()];
            let letters: Vec<char> = text.chars().collect();
            for piece in letters.chunks(size) {
                for (step, text) in pieces.read(&AnswerPiece::Text(piece.iter().collect())) {
                    all[usize::from(step == "text")].push_str(&text);
                }
            }
            seen.insert(all.join("|"));
        }
        seen.into_iter().collect()
    }

    #[test]
    fn reasoning_and_words_are_shown_and_calls_are_not_however_they_are_cut() {
        for (native, text, expected) in [
            (false, "let me <b> see", "let me <b> see|"),
            (false, " <think> a </thin b</think>{\"tool_calls\":[]}", " a </thin b|"),
            (false, "\n```json\n{}", "|"),
            (false, "<thin", "|"),
            (true, "<think>hm</think>\nThe {answer}", "hm|The {answer}"),
            (true, "{\"a\":1}", "|{\"a\":1}"),
        ] {
            assert_eq!(shown_of(native, text), [expected], "{text}");
        }
    }
}
