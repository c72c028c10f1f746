//! `events/`: the directory of an agent's events, with the control files that wait and signal.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::next::NextFile;
use super::wait::{Armed, Wait};
use super::waiter::{Waiter, selectors};
use super::{EventLog, Signal, sources};
use crate::jobs::Jobs;
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, CommandContext, CommandSink, Control, FixedReply, Listing, Reply, line, live, text};

const README: &str = "\
# events

The events of this agent in order, and files that wait for them.

- `control/wait.json` takes `{\"paths\": [\"/agents/self/events/sources/user.json\"], \"timeout_ms\": 60000, \"since\": 0}`;
  then `next.json` waits for the first of them, until one was read; `{}` ends the wait. A handle opened for reading and writing has its own wait: write the wait, then read the events from the same handle.
- `control/signal.json` takes `{\"event_type\": \"user\", \"parameter\": \"go\", \"payload\": {}}`; `\"to\"` names another agent.
- `sources/` has a file for everything that can be waited for, not listed, and reading one waits:
  `cat sources/time/after/1000.json` sleeps a second, `cat sources/user/go.json` waits for the signal `go`.
- `log.ndjson` is the log; `tail -f` follows it. `status.json` shows the armed wait.

A path is a job's `status.json` (the end of the job), `/agents/self/chat/control/input`, a file of `sources/`, or any
other path that can change: a change at or below it. A path that never changes is refused, with what to wait for instead.
";

const CONTROL: &str = "\
- `wait.json`: what `next.json` waits for, `{\"paths\": [\"/agents/self/events/sources/user.json\"]}`; `{}` ends the wait.
- `signal.json`: sends a signal to this agent or another.
";

/// Finds the event log of another agent, if `caller` may send it a signal.
pub type FindEventLog = dyn Fn(&Caller, &str) -> Result<Arc<EventLog>> + Send + Sync;

/// Checks whether `caller` may wait for events at a path.
pub type CheckPath = dyn Fn(&Caller, &str) -> Result<()> + Send + Sync;

/// The `events/` of one agent.
pub fn directory(
    event_log: &Arc<EventLog>,
    jobs: &Arc<Jobs>,
    reach: Arc<FindEventLog>,
    may: Arc<CheckPath>,
) -> Listing {
    let refusal: Arc<Mutex<Option<Error>>> = Arc::default();
    let (state, last) = (event_log.clone(), refusal.clone());
    let waits = WaitFile { event_log: event_log.clone(), jobs: jobs.clone(), may, refusal: refusal.clone() };
    let signals = SignalFile { event_log: event_log.clone(), reach, refusal };
    let control = Listing::default()
        .file("README.md", text(CONTROL))
        .file("wait.json", Control::new(Arc::new(waits)))
        .file("signal.json", Control::new(Arc::new(signals)));
    Listing::default()
        .file("README.md", text(README))
        .file("status.json", live(move |_| Ok(line(&status(&state, &last)))))
        .file("next.json", NextFile { event_log: event_log.clone(), jobs: jobs.clone() })
        .file("log.ndjson", event_log.shown.clone())
        .file("log.ndjson.1", event_log.shown.older())
        .dir("sources", sources::directory(event_log, jobs))
        .dir("control", control)
}

fn status(event_log: &EventLog, refusal: &Mutex<Option<Error>>) -> Value {
    let shared = event_log.shared();
    let error = refusal.lock().clone();
    json!({
        "state": if error.is_some() { "refused" } else { "idle" },
        "configured": shared.wait.is_some(),
        "wait": shared.wait.as_deref(),
        "cursor": shared.cursor,
        "last_event": event_log.last(),
        "error": error,
    })
}

struct WaitFile {
    event_log: Arc<EventLog>,
    jobs: Arc<Jobs>,
    may: Arc<CheckPath>,
    refusal: Arc<Mutex<Option<Error>>>,
}

impl WaitFile {
    fn parse(&self, caller: &Caller, value: Value) -> Result<(Wait, Vec<super::Selector>)> {
        let mut wait: Wait =
            serde_json::from_value(value).map_err(|err| Error::invalid(format!("not a wait: {err}")))?;
        let selectors = selectors(&self.event_log.agent, &self.jobs, &wait)?;
        // Resolve the paths now: `last` may be another job by the time of the read.
        wait.paths = selectors.iter().map(|selector| selector.path(&self.event_log.agent)).collect();
        for path in &wait.paths {
            (self.may)(caller, path)?;
        }
        Ok((wait, selectors))
    }
}

/// A wait that takes the armed one away.
fn disarms(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

impl CommandSink for WaitFile {
    fn template(&self) -> Bytes {
        line(&json!({ "paths": ["/agents/self/events/sources/user.json"], "timeout_ms": 60000 }))
    }

    fn expects(&self) -> String {
        "wait.json takes a JSON object, such as {\"paths\": [\"/agents/self/events/sources/user.json\"]}".to_owned()
    }

    fn mark(&self) -> u64 {
        self.event_log.last()
    }

    fn submit(&self, asked: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        if commands.last().is_some_and(disarms) {
            *self.refusal.lock() = None;
            return self.event_log.disarm().map(|()| Vec::new());
        }
        let commands = commands.into_iter().filter(|value| !disarms(value));
        let parsed: Result<Vec<_>> = commands.map(|value| self.parse(&asked.caller, value)).collect();
        // Several waits in one write: each replaces the previous one.
        let (wait, selectors) = match parsed.map(|mut waits| waits.pop()) {
            Ok(Some(wait)) => wait,
            Ok(None) => return Answer::ok(Vec::new()),
            Err(error) => return Answer::refuse(error),
        };
        *self.refusal.lock() = None;
        if !selectors.iter().any(|selector| matches!(selector, super::Selector::Path(_))) {
            return begin(
                &self.event_log,
                &self.jobs,
                wait,
                selectors,
                Arc::default(),
                asked.how.read.then_some(asked.mark),
            );
        }
        let (event_log, jobs, caller) = (self.event_log.clone(), self.jobs.clone(), asked.caller.clone());
        let mark = asked.how.read.then_some(asked.mark);
        Answer::soon(async move {
            let watched = event_log.watch(&caller, &selectors).await?;
            begin(&event_log, &jobs, wait, selectors, watched, mark).wait().await
        })
    }

    fn refused(&self, _asked: &CommandContext, error: &Error) {
        *self.refusal.lock() = Some(error.clone());
    }
}

/// Arms the shared wait, or a private one of a handle that reads, which was opened at the event `mark`.
fn begin(
    event_log: &Arc<EventLog>,
    jobs: &Arc<Jobs>,
    wait: Wait,
    selectors: Vec<super::Selector>,
    watched: Arc<[Arc<super::WatchedPath>]>,
    mark: Option<u64>,
) -> Answer<Vec<Arc<dyn Reply>>> {
    let Some(mark) = mark else { return event_log.arm(wait, watched).map(|()| Vec::new()) };
    let armed = Armed {
        selectors: selectors.into(),
        cursor: wait.since.unwrap_or(mark),
        armed_at_ms: event_log.clock.now_ms(),
        fired: BTreeSet::new(),
        turn: event_log.turn(),
        watched,
    };
    Answer::ok(vec![Arc::new(Waiter::new(event_log, jobs, armed, Some(wait.timeout_ms)))])
}

struct SignalFile {
    event_log: Arc<EventLog>,
    reach: Arc<FindEventLog>,
    refusal: Arc<Mutex<Option<Error>>>,
}

impl CommandSink for SignalFile {
    fn template(&self) -> Bytes {
        line(&json!({ "event_type": "user", "parameter": "go", "payload": {} }))
    }

    fn expects(&self) -> String {
        "signal.json takes a JSON object, such as {\"event_type\": \"user\"}".to_owned()
    }

    fn submit(&self, asked: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        let checked = commands.into_iter().map(|value| {
            let signal = Signal::parse(value)?;
            let event_log = match &signal.to {
                Some(other) if *other != self.event_log.agent && other != "self" => (self.reach)(&asked.caller, other)?,
                _ => self.event_log.clone(),
            };
            Ok((signal, event_log))
        });
        let checked = match checked.collect::<Result<Vec<_>>>() {
            Ok(checked) => checked,
            Err(error) => return Answer::refuse(error),
        };
        *self.refusal.lock() = None;
        let sent: Vec<_> =
            checked.into_iter().map(|(signal, event_log)| signal.send(&event_log, &asked.caller)).collect();
        Answer::soon(async move {
            let mut replies: Vec<Arc<dyn Reply>> = Vec::new();
            for signal in sent {
                replies.push(Arc::new(FixedReply(signal.wait().await?)));
            }
            Ok(replies)
        })
    }

    fn refused(&self, _asked: &CommandContext, error: &Error) {
        *self.refusal.lock() = Some(error.clone());
    }
}
