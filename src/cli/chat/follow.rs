//! What an agent thinks and does during a turn, dimmed, for people who look at a terminal.
//!
//! Thoughts are shown while they grow, from `thoughts/`; calls and what became of them from the log of the turn's job.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// How it is shown: dimmed on a terminal, plain where no colour is wanted, not at all elsewhere.
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
        let text = text.replace(|c: char| c.is_control() && c != '\n', " ");
        // Whoever has closed the terminal sees nothing.
        _ = write!(std::io::stderr(), "{}{text}{}", self.begin, self.end);
    }
}

/// Follows one turn.
pub(super) struct Follow<'a> {
    dim: &'a Dim,
    thoughts: PathBuf,
    log: PathBuf,
    job: &'a str,
    /// How far the two files were shown.
    thought_at: usize,
    log_at: usize,
    live: Live,
}

/// The thought that grows.
#[derive(Default)]
struct Live {
    round: u64,
    /// How much of it was shown.
    shown: usize,
    ended: bool,
}

impl Live {
    /// What of a thought, as it is now, has not been shown. A new round begins a new thought.
    fn fresh<'t>(&mut self, round: u64, thought: &'t str) -> &'t str {
        if round != self.round {
            *self = Live { round, ..Live::default() };
        }
        if self.ended {
            return "";
        }
        // A thought that was begun anew is shown from where the old one was.
        let fresh = thought.get(self.shown..).unwrap_or_default();
        self.shown += fresh.len();
        fresh
    }
}

impl<'a> Follow<'a> {
    /// From now on: what was thought before is not shown.
    pub fn new(dim: &'a Dim, home: &Path, job: &'a str, thought_at: usize) -> Follow<'a> {
        let (thoughts, log) = (home.join("thoughts"), home.join("jobs").join(job).join("log.txt"));
        Follow { dim, thoughts, log, job, thought_at, log_at: 0, live: Live::default() }
    }

    /// Shows what there is beyond what was shown.
    pub fn look(&mut self) {
        if !self.dim.wanted {
            return;
        }
        // The log is read first: what was thought in a round is there before the line of the round.
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

    /// What comes next begins a line of its own.
    fn end_thought(&mut self) {
        if self.live.shown > 0 && !std::mem::replace(&mut self.live.ended, true) {
            self.dim.show("\n");
        }
    }
}

/// The part of an answer under way that is reasoning: a call is shown when it is made.
fn reasoning(latest: &str) -> &str {
    let text = latest.trim_start();
    let text = text.strip_prefix("<think>").map_or(text, |rest| rest.split("</think>").next().unwrap_or_default());
    let text = text.trim_start();
    if text.starts_with(['{', '[', '`']) { "" } else { text }
}

/// The whole lines of a file beyond `at`.
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
        let mut live = Live::default();
        let mut shown = String::new();
        for (round, thought) in [(1, "let"), (1, "let me"), (1, "let me"), (2, "ah"), (2, "ah.")] {
            shown += live.fresh(round, thought);
        }
        assert_eq!(shown, "let meah.");
        live.ended = true;
        assert_eq!(live.fresh(2, "ah. more"), "");
    }
}
