//! `thoughts/`: what a model thinks along the way, for observers. Never part of the chat.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::protocol;
use super::transcript::Record;
use crate::model::{Piece, Said};
use acheron_base::Clock;
use acheron_vfs::{Listing, Log, line, live, text};

/// How much of the history its file shows; the same again is in `history.ndjson.1`.
const SHOWN: usize = 4 << 20;
/// A thought under way is shown up to here.
const LONGEST: usize = 1 << 20;

const README: &str = "\
# thoughts

What the model thinks, round by round. Nobody is spoken to here.

- `latest.txt` is the thought under way, or the last one. `history.ndjson` has them all: `tail -f` follows a turn.
- `status.json` tells whose turn it is.
";

/// One thought, as a line of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    pub seq: u64,
    pub ts_ms: u64,
    pub job_id: String,
    pub round: u64,
    /// `thinking` if the model parts its reasoning from its answer, else `text`.
    pub source: &'static str,
    pub content: String,
}

/// What of an answer is thought: the reasoning, else all of it.
pub fn thought(said: &Said) -> (&'static str, &str) {
    match (&said.thoughts, protocol::thoughts(&said.text).0) {
        (Some(thoughts), _) => ("thinking", thoughts),
        (None, Some(thoughts)) => ("thinking", thoughts),
        (None, None) => ("text", &said.text),
    }
}

#[derive(Clone)]
pub struct Thoughts(Arc<Inner>);

struct Inner {
    log: Log,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seq: u64,
    job_id: Option<String>,
    round: u64,
    updated_at_ms: u64,
    thinking: bool,
    latest: String,
    /// The thought under way is reasoning that the model parts from its answer.
    reasoned: bool,
}

impl State {
    fn grow(&mut self, piece: &str) {
        if self.latest.len() < LONGEST {
            self.latest.push_str(piece);
        }
    }
}

impl Thoughts {
    pub fn new(clock: Clock) -> Self {
        Thoughts(Arc::new(Inner { log: Log::new(2 * SHOWN, clock), state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// A round begins.
    pub fn begin(&self, job_id: &str, round: u64, now_ms: u64) {
        let mut state = self.state();
        (state.job_id, state.round, state.updated_at_ms) = (Some(job_id.to_owned()), round, now_ms);
        (state.thinking, state.reasoned) = (true, false);
        state.latest.clear();
    }

    /// A piece of the thought under way.
    pub fn hear(&self, piece: &Piece) {
        let mut state = self.state();
        match piece {
            Piece::Again => (state.latest, state.reasoned) = (String::new(), false),
            // Reasoning that comes apart is the thought; the answer that follows it is not.
            Piece::Thought(piece) => {
                if !std::mem::replace(&mut state.reasoned, true) {
                    state.latest.clear();
                }
                state.grow(piece);
            }
            Piece::Text(piece) if !state.reasoned => state.grow(piece),
            Piece::Text(_) => (),
        }
    }

    /// A round has ended with this answer. Returns the number of the thought.
    pub fn end(&self, said: &Said, now_ms: u64) -> u64 {
        let mut state = self.state();
        state.seq += 1;
        let seq = state.seq;
        self.show(&mut state, said, now_ms);
        seq
    }

    /// The turn is over.
    pub fn rest(&self) {
        self.state().thinking = false;
    }

    /// Thinks again what a transcript of an earlier life tells.
    pub fn restore(&self, records: &[Record]) {
        let mut state = self.state();
        state.round = 0;
        for record in records {
            match record {
                Record::Began { job_id, .. } => state.job_id = Some(job_id.clone()),
                Record::Said { at_ms, seq, said, .. } => {
                    state.round += 1;
                    state.seq = *seq;
                    self.show(&mut state, said, *at_ms);
                }
                _ => (),
            }
        }
    }

    fn show(&self, state: &mut State, said: &Said, ts_ms: u64) {
        let (source, content) = thought(said);
        let job_id = state.job_id.clone().unwrap_or_default();
        let frame = Frame { seq: state.seq, ts_ms, job_id, round: state.round, source, content: content.to_owned() };
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
        let said = |text: &str, thoughts: Option<&str>| Said {
            text: text.to_owned(),
            thoughts: thoughts.map(str::to_owned),
            ..Said::default()
        };
        assert_eq!(thought(&said("{}", Some("hm"))), ("thinking", "hm"));
        assert_eq!(thought(&said("<think> hm </think>{}", None)), ("thinking", "hm"));
        assert_eq!(thought(&said("{}", None)), ("text", "{}"));
    }

    #[test]
    fn a_thought_is_seen_while_it_grows_and_kept_when_it_ends() {
        let thoughts = Thoughts::new(Clock::at(1));
        thoughts.begin("job-1", 1, 5);
        thoughts.hear(&Piece::Thought("a".into()));
        thoughts.hear(&Piece::Again);
        thoughts.hear(&Piece::Text("x".into()));
        thoughts.hear(&Piece::Thought("h".into()));
        thoughts.hear(&Piece::Text("{}".into()));
        assert_eq!(thoughts.state().latest, "h");
        let said = Said { thoughts: Some("hm".into()), ..Said::default() };
        assert_eq!(thoughts.end(&said, 7), 1);
        let (_, lines) = thoughts.0.log.from(0, 1000);
        assert_eq!(
            String::from_utf8(lines).unwrap(),
            "{\"seq\":1,\"ts_ms\":7,\"job_id\":\"job-1\",\"round\":1,\"source\":\"thinking\",\"content\":\"hm\"}\n"
        );
    }
}
