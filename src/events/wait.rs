//! Decides whether a wait is satisfied. Pure: time, jobs and events are arguments.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::watched::shows_the_log;
use super::{Event, Selector, WatchedPath};
use acheron_base::{Error, Result};

/// The content of `wait.json`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The paths to wait for; the first event at any of them is the answer.
    pub paths: Vec<String>,
    /// The time that a read waits; 0 returns at once.
    #[serde(default = "default_timeout")]
    pub timeout_ms: u64,
    /// Consider only events after this one.
    #[serde(default)]
    pub since: Option<u64>,
}

/// The most selectors of one wait.
const MAX_PATHS: usize = 256;

fn default_timeout() -> u64 {
    60_000
}

impl Wait {
    pub fn check(&self) -> Result<()> {
        match self.paths.len() {
            0 => Err(Error::invalid("paths is empty: name at least one path to wait for")),
            n if n > MAX_PATHS => Err(Error::invalid(format!("{n} paths are too many; the limit is {MAX_PATHS}"))),
            _ => Ok(()),
        }
    }
}

/// An armed wait and its progress.
#[derive(Clone, Debug)]
pub struct Armed {
    pub selectors: Arc<[Selector]>,
    pub cursor: u64,
    pub armed_at_ms: u64,
    /// The indexes of jobs and timers that have fired; each fires once per arming.
    pub fired: BTreeSet<usize>,
    /// The event that started the waiting agent's turn; only messages after it match.
    pub turn: u64,
    /// The paths that have to be looked at while somebody waits.
    pub watched: Arc<[Arc<WatchedPath>]>,
}

/// A match of a wait.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitMatch {
    /// The index of the selector.
    pub selector: usize,
    /// The number of the event; `None` for a job or a timer.
    pub seq: Option<u64>,
    pub body: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WaitOutcome {
    Match(WaitMatch),
    /// Nothing yet; the next timer fires at that time.
    Pending {
        until_ms: Option<u64>,
    },
}

/// Finds the first match: ended jobs and timers, then the log in its order.
///
/// `job` returns the status of a job that has ended, and `None` for any other.
pub fn find_match<'a>(
    armed: &Armed,
    agent: &str,
    events: impl IntoIterator<Item = &'a Event>,
    job: impl Fn(&str) -> Option<Value>,
    now_ms: u64,
) -> WaitOutcome {
    let mut until_ms: Option<u64> = None;
    let waiting = armed.selectors.iter().enumerate().filter(|(i, _)| !armed.fired.contains(i));
    for (i, selector) in waiting {
        let due = match selector {
            Selector::Job(id) => match job(id) {
                Some(status) => {
                    let at = status["updated_at_ms"].as_u64().unwrap_or(now_ms);
                    return found(agent, selector, i, None, &selector.path(agent), at, "job", status);
                }
                None => continue,
            },
            Selector::After(ms) => armed.armed_at_ms.saturating_add(*ms),
            Selector::At(ms) => *ms,
            _ => continue,
        };
        if due <= now_ms {
            let time = json!({ "due_ms": due, "now_ms": now_ms });
            return found(agent, selector, i, None, &selector.path(agent), now_ms, "time", time);
        }
        until_ms = Some(until_ms.map_or(due, |until| until.min(due)));
    }
    for event in events.into_iter().filter(|event| event.seq > armed.cursor) {
        let matches = |selector: &Selector| matches(selector, event, agent, armed.turn);
        if let Some(i) = armed.selectors.iter().position(matches) {
            let name = match event.kind.as_str() {
                kind @ ("job" | "signal" | "chat" | "mail") => kind,
                _ => "change",
            };
            let selector = &armed.selectors[i];
            return found(agent, selector, i, Some(event.seq), &event.path, event.at_ms, name, event.payload.clone());
        }
    }
    WaitOutcome::Pending { until_ms }
}

pub(super) fn matches(selector: &Selector, event: &Event, agent: &str, turn: u64) -> bool {
    match selector {
        Selector::Job(_) | Selector::After(_) | Selector::At(_) => false,
        Selector::Mail => event.kind == "mail" && event.payload["mail"] == "arrived",
        Selector::Chat => event.kind == "chat" && event.seq > turn,
        Selector::Signal(kind, parameter) => {
            event.kind == "signal"
                && event.payload["event_type"] == kind.name()
                && parameter.as_ref().is_none_or(|wanted| event.payload["parameter"] == **wanted)
        }
        Selector::Path(path) => {
            let below =
                event.path.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            let own = path.strip_prefix(&format!("/agents/{agent}/"));
            below || path == "/" || path == &format!("/agents/{agent}") || own.is_some_and(shows_the_log)
        }
    }
}

#[allow(clippy::too_many_arguments)] // the fields of one answer
fn found(
    agent: &str,
    selector: &Selector,
    i: usize,
    seq: Option<u64>,
    event_path: &str,
    at_ms: u64,
    name: &str,
    said: Value,
) -> WaitOutcome {
    let body = json!({
        "configured": true,
        "waiting": false,
        "event_id": seq,
        "source_path": selector.path(agent),
        "event_path": event_path,
        "updated_at_ms": at_ms,
        name: said,
    });
    WaitOutcome::Match(WaitMatch { selector: i, seq, body })
}

impl Armed {
    /// Records that `found` was read to its end.
    pub fn acknowledge(&mut self, found: &WaitMatch) {
        match found.seq {
            Some(seq) => self.cursor = self.cursor.max(seq),
            None => _ = self.fired.insert(found.selector),
        }
    }
}

/// The body of an answer after a timeout.
pub fn timed_out(waited_ms: u64) -> Value {
    json!({ "configured": true, "waiting": true, "timeout": true, "waited_ms": waited_ms })
}

/// The body of `next.json` before the first write to `wait.json`.
pub fn not_configured() -> Value {
    json!({ "configured": false, "waiting": false, "error": "wait_not_configured" })
}

#[cfg(test)]
mod tests;
