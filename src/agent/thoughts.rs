//! `thoughts/`: the reasoning of the model, for observers. It is never part of the chat.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::json;

use super::protocol;
use super::transcript::TranscriptRecord;
use crate::model::{AnswerPiece, ModelAnswer};
use acheron_base::Clock;
use acheron_vfs::{Listing, Log, line, live, text};

/// The size of `history.ndjson`; `history.ndjson.1` has the same size.
const LOG_BYTES: usize = 4 << 20;
/// The size limit of the current thought in bytes.
const MAX_THOUGHT: usize = 1 << 20;

const README: &str = "\
# thoughts

The model's reasoning, round by round. It is not part of the chat.

- `latest.txt` is the current thought, or the last one. `history.ndjson` has them all: `tail -f` follows a turn.
- `status.json` shows the current turn.
";

/// One thought, a line of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    pub seq: u64,
    pub ts_ms: u64,
    pub job_id: String,
    pub round: u64,
    /// `thinking` if the model separates its reasoning from its answer, otherwise `text`.
    pub source: &'static str,
    pub content: String,
}

/// The thought in an answer: its reasoning, or the whole answer. Words beside the reasoning that are no call are a part of it:
/// they are shown nowhere else.
pub fn thought(said: &ModelAnswer) -> (&'static str, Cow<'_, str>) {
    let (tagged, rest) = protocol::thoughts(&said.text);
    let words = rest.trim();
    if !said.calls.is_empty() {
        return match (said.thoughts.as_deref().or(tagged), words) {
            (Some(thoughts), "") => ("thinking", thoughts.into()),
            (Some(thoughts), words) => ("thinking", format!("{thoughts}\n\n{words}").into()),
            (None, "") => ("text", said.calls_text().into()),
            (None, words) => ("text", words.into()),
        };
    }
    match said.thoughts.as_deref().or(tagged) {
        Some(thoughts) if words.is_empty() || protocol::read(said).is_ok() => ("thinking", thoughts.into()),
        Some(thoughts) => ("thinking", format!("{thoughts}\n\n{words}").into()),
        None => ("text", said.text.as_str().into()),
    }
}

#[derive(Clone)]
pub struct Thoughts(Arc<ThoughtsInner>);

struct ThoughtsInner {
    log: Log,
    state: Mutex<ThoughtsState>,
}

#[derive(Default)]
struct ThoughtsState {
    seq: u64,
    job_id: Option<String>,
    round: u64,
    updated_at_ms: u64,
    thinking: bool,
    latest: String,
    /// The current thought is reasoning that the model separates from its answer.
    reasoned: bool,
}

impl ThoughtsState {
    fn grow(&mut self, piece: &str) {
        if self.latest.len() < MAX_THOUGHT {
            self.latest.push_str(piece);
        }
    }
}

impl Thoughts {
    pub fn new(clock: Clock) -> Self {
        Thoughts(Arc::new(ThoughtsInner { log: Log::new(2 * LOG_BYTES, clock), state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, ThoughtsState> {
        self.0.state.lock()
    }

    /// Starts a round.
    pub fn begin(&self, job_id: &str, round: u64, now_ms: u64) {
        let mut state = self.state();
        (state.job_id, state.round, state.updated_at_ms) = (Some(job_id.to_owned()), round, now_ms);
        (state.thinking, state.reasoned) = (true, false);
        state.latest.clear();
    }

    /// Adds a piece to the current thought.
    pub fn add_piece(&self, piece: &AnswerPiece) {
        let mut state = self.state();
        match piece {
            AnswerPiece::Again => (state.latest, state.reasoned) = (String::new(), false),
            // Separate reasoning is the thought; the answer that follows is not.
            AnswerPiece::Thought(piece) => {
                if !std::mem::replace(&mut state.reasoned, true) {
                    state.latest.clear();
                }
                state.grow(piece);
            }
            AnswerPiece::Text(piece) if !state.reasoned => state.grow(piece),
            AnswerPiece::Text(_) | AnswerPiece::Call(_) => (),
        }
    }

    /// Ends a round with this answer. Returns the number of the thought.
    pub fn end(&self, said: &ModelAnswer, now_ms: u64) -> u64 {
        let mut state = self.state();
        state.seq += 1;
        let seq = state.seq;
        self.show(&mut state, said, now_ms);
        seq
    }

    /// Ends the turn.
    pub fn end_turn(&self) {
        self.state().thinking = false;
    }

    /// Restores the thoughts of a transcript from an earlier run.
    pub fn restore(&self, records: &[TranscriptRecord]) {
        let mut state = self.state();
        state.round = 0;
        for record in records {
            match record {
                TranscriptRecord::Began { job_id, .. } => state.job_id = Some(job_id.clone()),
                TranscriptRecord::Said { at_ms, seq, said, .. } => {
                    state.round += 1;
                    state.seq = *seq;
                    self.show(&mut state, said, *at_ms);
                }
                _ => (),
            }
        }
    }

    fn show(&self, state: &mut ThoughtsState, said: &ModelAnswer, ts_ms: u64) {
        let (source, content) = thought(said);
        let job_id = state.job_id.clone().unwrap_or_default();
        let frame = Frame { seq: state.seq, ts_ms, job_id, round: state.round, source, content: content.into_owned() };
        state.latest = frame.content.clone();
        state.updated_at_ms = ts_ms;
        self.0.log.append(&line(&frame));
    }

    pub fn directory(&self) -> Listing {
        let (latest, status) = (self.clone(), self.clone());
        let latest = live(move |_| {
            let mut text = latest.state().latest.clone();
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            Ok(text.into())
        });
        let status = live(move |_| {
            let state = status.state();
            Ok(line(&json!({
                "state": if state.thinking { "thinking" } else { "idle" },
                "job_id": state.job_id,
                "round": state.round,
                "seq": state.seq,
                "updated_at_ms": state.updated_at_ms,
            })))
        });
        Listing::default()
            .file("README.md", text(README))
            .file("latest.txt", latest)
            .file("history.ndjson", self.0.log.clone())
            .file("history.ndjson.1", self.0.log.older())
            .file("status.json", status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_the_thought_where_there_is_any() {
        let said = |text: &str, thoughts: Option<&str>| ModelAnswer {
            text: text.to_owned(),
            thoughts: thoughts.map(str::to_owned),
            ..ModelAnswer::default()
        };
        let list = r#"{"tool_calls":[{"name":"file_list"}]}"#;
        assert_eq!(thought(&said(list, Some("hm"))), ("thinking", "hm".into()));
        assert_eq!(thought(&said(&format!("<think> hm </think>{list}"), None)), ("thinking", "hm".into()));
        assert_eq!(thought(&said("{}", None)), ("text", "{}".into()));
        assert_eq!(thought(&said("All is well.", Some("hm"))), ("thinking", "hm\n\nAll is well.".into()));
    }

    #[test]
    fn a_thought_is_seen_while_it_grows_and_kept_when_it_ends() {
        let thoughts = Thoughts::new(Clock::at(1));
        thoughts.begin("job-1", 1, 5);
        thoughts.add_piece(&AnswerPiece::Thought("a".into()));
        thoughts.add_piece(&AnswerPiece::Again);
        thoughts.add_piece(&AnswerPiece::Text("x".into()));
        thoughts.add_piece(&AnswerPiece::Thought("h".into()));
        thoughts.add_piece(&AnswerPiece::Text("{}".into()));
        assert_eq!(thoughts.state().latest, "h");
        let said = ModelAnswer { thoughts: Some("hm".into()), ..ModelAnswer::default() };
        assert_eq!(thoughts.end(&said, 7), 1);
        let (_, lines) = thoughts.0.log.from(0, 1000);
        assert_eq!(
            String::from_utf8(lines).unwrap(),
            "{\"seq\":1,\"ts_ms\":7,\"job_id\":\"job-1\",\"round\":1,\"source\":\"thinking\",\"content\":\"hm\"}\n"
        );
    }
}
