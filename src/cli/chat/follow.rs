//! Shows an agent's thoughts and calls during a turn, dimmed, on a terminal.
//!
//! Growing thoughts come from `thoughts/`; calls and their results come from the log of the turn's job.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::plain_text::plain;

/// The style: dimmed on a terminal, plain if colour is not wanted, otherwise none.
pub(super) struct Dim {
    begin: &'static str,
    end: &'static str,
    wanted: bool,
}

impl Dim {
    pub fn new() -> Self {
        let wanted = std::io::stderr().is_terminal();
        match super::super::coloured() {
            true => Dim { begin: "\x1b[2m", end: "\x1b[0m", wanted },
            false => Dim { begin: "", end: "", wanted },
        }
    }

    fn show(&self, text: &str) {
        let text = plain(&text.replace(|c: char| c.is_control() && c != '\n', " "));
        // A closed terminal is not an error.
        _ = write!(std::io::stderr(), "{}{text}{}", self.begin, self.end);
    }
}

/// Follows one turn.
pub(super) struct TurnFollower<'a> {
    dim: &'a Dim,
    thoughts: PathBuf,
    log: PathBuf,
    job: &'a str,
    /// The offsets up to which the two files were shown.
    thought_at: usize,
    log_at: usize,
    live: GrowingThought,
}

/// The growing thought.
#[derive(Default)]
struct GrowingThought {
    round: u64,
    /// The length that was shown.
    shown: usize,
    ended: bool,
}

impl GrowingThought {
    /// The part of the current thought that was not shown yet. A new round starts a new thought.
    fn fresh<'t>(&mut self, round: u64, thought: &'t str) -> &'t str {
        if round != self.round {
            *self = GrowingThought { round, ..GrowingThought::default() };
        }
        if self.ended {
            return "";
        }
        // A restarted thought is shown from the offset of the old one.
        let fresh = thought.get(self.shown..).unwrap_or_default();
        self.shown += fresh.len();
        fresh
    }
}

impl<'a> TurnFollower<'a> {
    /// Starts at the current end: earlier thoughts are not shown.
    pub fn new(dim: &'a Dim, home: &Path, job: &'a str, thought_at: usize) -> TurnFollower<'a> {
        let (thoughts, log) = (home.join("thoughts"), home.join("jobs").join(job).join("log.txt"));
        TurnFollower { dim, thoughts, log, job, thought_at, log_at: 0, live: GrowingThought::default() }
    }

    /// Shows what is new.
    pub fn look(&mut self) {
        if !self.dim.wanted {
            return;
        }
        // The log is read first: the thought of a round is there before the log line of the round.
        let calls = fresh_lines(&self.log, &mut self.log_at);
        for line in fresh_lines(&self.thoughts.join("history.ndjson"), &mut self.thought_at).lines() {
            let frame: Value = serde_json::from_str(line).unwrap_or_default();
            if frame["job_id"] == self.job && frame["source"] == "thinking" {
                self.think(frame["round"].as_u64().unwrap_or_default(), frame["content"].as_str().unwrap_or_default());
                self.end_thought();
            }
        }
        for line in calls.lines() {
            self.end_thought();
            self.dim.show(&format!("{line}\n"));
        }
        let status = super::read_json(self.thoughts.join("status.json"));
        if status["state"] == "thinking" && status["job_id"] == self.job {
            let latest = std::fs::read_to_string(self.thoughts.join("latest.txt")).unwrap_or_default();
            self.think(status["round"].as_u64().unwrap_or_default(), reasoning(&latest));
        }
    }

    fn think(&mut self, round: u64, thought: &str) {
        let fresh = self.live.fresh(round, thought.trim_end());
        if !fresh.is_empty() {
            self.dim.show(fresh);
        }
    }

    /// Starts a new line.
    fn end_thought(&mut self) {
        if self.live.shown > 0 && !std::mem::replace(&mut self.live.ended, true) {
            self.dim.show("\n");
        }
    }
}

/// The reasoning in a partial answer: a call is shown when it is made.
fn reasoning(latest: &str) -> &str {
    let text = latest.trim_start();
    let text = text.strip_prefix("<think>").map_or(text, |rest| rest.split("</think>").next().unwrap_or_default());
    let text = text.trim_start();
    if text.starts_with(['{', '[', '`']) { "" } else { text }
}

/// The complete lines of a file after `at`.
fn fresh_lines(file: &Path, at: &mut usize) -> String {
    let bytes = std::fs::read(file).unwrap_or_default();
    let fresh = bytes.get(*at..).unwrap_or_default();
    let whole = fresh.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    *at += whole;
    String::from_utf8_lossy(&fresh[..whole]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thought_is_shown_piece_by_piece_and_a_call_is_not() {
        for (latest, wanted) in [
            ("let me", "let me"),
            ("<think>\nlet me see", "let me see"),
            ("<think>let me see</think>{\"tool_calls\":[", "let me see"),
            ("{\"tool_calls\":[", ""),
            (" ```json", ""),
        ] {
            assert_eq!(reasoning(latest), wanted);
        }
        let mut live = GrowingThought::default();
        let mut shown = String::new();
        for (round, thought) in [(1, "let"), (1, "let me"), (1, "let me"), (2, "ah"), (2, "ah.")] {
            shown += live.fresh(round, thought);
        }
        assert_eq!(shown, "let meah.");
        live.ended = true;
        assert_eq!(live.fresh(2, "ah. more"), "");
    }
}
