//! `events/`: waiting for what happens, and telling.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::next::Next;
use super::wait::{Armed, Wait};
use super::watching::{Watching, selectors};
use super::{Diary, Signal, sources};
use crate::jobs::Book;
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Asked, Caller, Control, Listing, Obey, Reply, Said, line, live, text};

const README: &str = "\
# events

What happens to this agent, in order, and files that wait for it.

- `control/wait.json` takes `{\"paths\": [\"/agents/self/events/sources/user.json\"], \"timeout_ms\": 60000, \"since\": 0}`;
  then `next.json` waits for the first of them. Opened for reading and writing it is private: write the wait, read the events on the same handle.
- `control/signal.json` takes `{\"event_type\": \"user\", \"parameter\": \"go\", \"payload\": {}}`; `\"to\"` names another agent.
- `sources/` has a file for everything that can be waited for, and reading one waits: `cat sources/time/after/1000.json`
  sleeps a second, `cat sources/user/go.json` waits for the signal `go`.
- `log.ndjson` is the log; `tail -f` follows it. `status.json` tells what is armed.

A path is a job's `status.json` (its end), `/agents/self/chat/control/input`, a file of `sources/`, or any other path: a
change of it or below it.
";

const CONTROL: &str = "\
- `wait.json`: what `next.json` waits for, `{\"paths\": [\"/agents/self/events/sources/user.json\"]}`.
- `signal.json`: tells this agent, or another, something.
";

/// Finds the diary of another agent, if `caller` may tell it something.
pub type Reach = dyn Fn(&Caller, &str) -> Result<Arc<Diary>> + Send + Sync;

/// Whether `caller` may know of what happens at a path.
pub type May = dyn Fn(&Caller, &str) -> Result<()> + Send + Sync;

/// The `events/` of one agent.
pub fn directory(diary: &Arc<Diary>, book: &Arc<Book>, reach: Arc<Reach>, may: Arc<May>) -> Listing {
    let refusal: Arc<Mutex<Option<Error>>> = Arc::default();
    let (state, last) = (diary.clone(), refusal.clone());
    let waits = WaitFile { diary: diary.clone(), book: book.clone(), may, refusal: refusal.clone() };
    let signals = SignalFile { diary: diary.clone(), reach, refusal };
    let control = Listing::default()
        .file("README.md", text(CONTROL))
        .file("wait.json", Control::new(Arc::new(waits)))
        .file("signal.json", Control::new(Arc::new(signals)));
    Listing::default()
        .file("README.md", text(README))
        .file("status.json", live(move |_| Ok(line(&status(&state, &last)))))
        .file("next.json", Next { diary: diary.clone(), book: book.clone() })
        .file("log.ndjson", diary.shown.clone())
        .file("log.ndjson.1", diary.shown.older())
        .dir("sources", sources::directory(diary, book))
        .dir("control", control)
}

fn status(diary: &Diary, refusal: &Mutex<Option<Error>>) -> Value {
    let shared = diary.shared();
    let error = refusal.lock().clone();
    json!({
        "state": if error.is_some() { "refused" } else { "idle" },
        "configured": shared.wait.is_some(),
        "wait": shared.wait,
        "cursor": shared.cursor,
        "last_event": diary.last(),
        "error": error,
    })
}

struct WaitFile {
    diary: Arc<Diary>,
    book: Arc<Book>,
    may: Arc<May>,
    refusal: Arc<Mutex<Option<Error>>>,
}

impl WaitFile {
    fn parse(&self, caller: &Caller, value: Value) -> Result<(Wait, Vec<super::Selector>)> {
        let mut wait: Wait =
            serde_json::from_value(value).map_err(|err| Error::invalid(format!("not a wait: {err}")))?;
        let selectors = selectors(&self.diary.agent, &self.book, &wait)?;
        // What is meant is decided now: `last` may be another job when somebody reads.
        wait.paths = selectors.iter().map(|selector| selector.path(&self.diary.agent)).collect();
        for path in &wait.paths {
            (self.may)(caller, path)?;
        }
        Ok((wait, selectors))
    }
}

impl Obey for WaitFile {
    fn template(&self) -> Bytes {
        line(&json!({ "paths": ["/agents/self/events/sources/user.json"], "timeout_ms": 60000 }))
    }

    fn mark(&self) -> u64 {
        self.diary.last()
    }

    fn obey(&self, asked: &Asked, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        let parsed: Result<Vec<_>> = commands.into_iter().map(|value| self.parse(&asked.caller, value)).collect();
        // Several waits in one write: each replaces the one before.
        let (wait, selectors) = match parsed.map(|mut waits| waits.pop()) {
            Ok(Some(wait)) => wait,
            Ok(None) => return Answer::ok(Vec::new()),
            Err(error) => return Answer::refuse(error),
        };
        *self.refusal.lock() = None;
        if !asked.how.read {
            return self.diary.arm(wait).map(|()| Vec::new());
        }
        let armed = Armed {
            selectors,
            cursor: wait.since.unwrap_or(asked.mark),
            armed_at_ms: self.diary.clock.now_ms(),
            fired: BTreeSet::new(),
            turn: self.diary.turn(),
        };
        let watching = Watching::new(&self.diary, &self.book, armed, Some(wait.timeout_ms));
        Answer::ok(vec![Arc::new(watching)])
    }

    fn refused(&self, _asked: &Asked, error: &Error) {
        *self.refusal.lock() = Some(error.clone());
    }
}

struct SignalFile {
    diary: Arc<Diary>,
    reach: Arc<Reach>,
    refusal: Arc<Mutex<Option<Error>>>,
}

impl Obey for SignalFile {
    fn template(&self) -> Bytes {
        line(&json!({ "event_type": "user", "parameter": "go", "payload": {} }))
    }

    fn obey(&self, asked: &Asked, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        let checked = commands.into_iter().map(|value| {
            let signal = Signal::parse(value)?;
            let diary = match &signal.to {
                Some(other) if *other != self.diary.agent && other != "self" => (self.reach)(&asked.caller, other)?,
                _ => self.diary.clone(),
            };
            Ok((signal, diary))
        });
        let checked = match checked.collect::<Result<Vec<_>>>() {
            Ok(checked) => checked,
            Err(error) => return Answer::refuse(error),
        };
        *self.refusal.lock() = None;
        let sent: Vec<_> = checked.into_iter().map(|(signal, diary)| signal.send(&diary, &asked.caller)).collect();
        Answer::soon(async move {
            let mut replies: Vec<Arc<dyn Reply>> = Vec::new();
            for signal in sent {
                replies.push(Arc::new(Said(signal.wait().await?)));
            }
            Ok(replies)
        })
    }

    fn refused(&self, _asked: &Asked, error: &Error) {
        *self.refusal.lock() = Some(error.clone());
    }
}
