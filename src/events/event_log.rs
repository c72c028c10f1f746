//! The log of one agent, in memory as far as anybody still looks, on the disk as long as it is kept.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::Event;
use super::wait::Wait;
use crate::state::events as table;
use crate::state::events::Cursor;
use acheron_base::Clock;
use acheron_base::Result;
use acheron_store::{Change, Store, Tx};
use acheron_vfs::{Answer, Log, line};

/// Events that are looked through without a disk.
const RECENT: usize = 4096;
/// How much of the log its file shows.
const SHOWN: usize = 4 << 20;

/// The logs of all agents.
pub struct EventLogs {
    all: Mutex<HashMap<String, Arc<EventLog>>>,
    store: Option<Store>,
    clock: Clock,
}

impl EventLogs {
    /// Without a store nothing outlives the process.
    pub fn new(store: Option<Store>, clock: Clock) -> Self {
        EventLogs { all: Mutex::default(), store, clock }
    }

    /// The log of `agent`, as it was left if it was there before.
    pub fn of(&self, agent: &str) -> Result<Arc<EventLog>> {
        let mut all = self.all.lock();
        if let Some(event_log) = all.get(agent) {
            return Ok(event_log.clone());
        }
        let event_log = Arc::new(EventLog::open(agent, self.store.clone(), self.clock.clone())?);
        all.insert(agent.to_owned(), event_log.clone());
        Ok(event_log)
    }

    pub fn forget(&self, agent: &str) {
        self.all.lock().remove(agent);
    }
}

pub struct EventLog {
    pub agent: String,
    pub clock: Clock,
    pub shown: Log,
    store: Option<Store>,
    state: Arc<Mutex<State>>,
    /// Changes with everything that a waiting reader may want to look at again.
    news: Arc<watch::Sender<u64>>,
    /// The event that began the turn under way.
    turn: AtomicU64,
}

struct State {
    recent: VecDeque<Event>,
    /// The last number given, and the last that readers may know of: what is not safe yet did not happen yet.
    given: u64,
    last: u64,
    /// What was last fetched from the disk: a reader who does not want to wait finds it when it comes again.
    older: Option<Arc<Page>>,
    shared: Shared,
}

/// A part of the log that is no longer in memory.
struct Page {
    /// It begins after this event,
    after: u64,
    /// and nothing of what there was until this one is missing, if the page was not too small for it.
    until: u64,
    events: Vec<Event>,
}

impl Page {
    fn is_full(&self) -> bool {
        self.events.len() >= RECENT
    }

    /// Whether nothing lies between it and `first`.
    fn leads_to(&self, first: u64) -> bool {
        self.is_full() || self.until.saturating_add(1) >= first
    }

    /// What it holds and, if that is all there was, what is in memory from `first` on.
    fn and(&self, first: u64, recent: Vec<Event>) -> Vec<Event> {
        match self.is_full() {
            true => self.events.clone(),
            false => self.events.iter().filter(|event| event.seq < first).cloned().chain(recent).collect(),
        }
    }
}

impl State {
    fn show(&mut self, event: Event, shown: &Log) {
        shown.append(&shown_line(&event));
        self.last = event.seq;
        self.recent.push_back(event);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }
}

/// What `next.json` waits for.
#[derive(Clone, Default)]
pub struct Shared {
    pub wait: Option<Wait>,
    /// Which arming it is: what was read for an earlier one does not count for this.
    pub arming: u64,
    pub cursor: u64,
    /// Up to here there was nothing to hear in this arming; the cursor stays behind, for the next may hear other things.
    pub passed: u64,
    pub armed_at_ms: u64,
    pub fired: Vec<usize>,
}

impl EventLog {
    fn open(agent: &str, store: Option<Store>, clock: Clock) -> Result<EventLog> {
        let (mut recent, mut last, mut shared) = (Vec::new(), 0, Shared::default());
        if let Some(store) = &store {
            let (tail, end, cursor) = store.look(|conn| {
                Ok((table::tail(conn, agent, RECENT)?, table::last(conn, agent)?, table::cursor(conn, agent)?))
            })?;
            (recent, last, shared) = (tail, end, restored(cursor));
        }
        let shown = Log::new(SHOWN, clock.clone());
        recent.iter().for_each(|event| shown.append(&shown_line(event)));
        let state = State { recent: recent.into(), given: last, last, older: None, shared };
        let (agent, state) = (agent.to_owned(), Arc::new(Mutex::new(state)));
        let news = Arc::new(watch::Sender::new(0));
        Ok(EventLog { agent, clock, shown, store, state, news, turn: AtomicU64::new(0) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Writes down what happened. Readers hear of it when it is safe, and so does the caller.
    pub fn add(&self, kind: &str, path: &str, payload: Value) -> Answer<u64> {
        self.add_with(kind, path, payload, None, || ())
    }

    /// As [`add`](Self::add), in one with the change that it tells of: neither is kept without the other. `seen` comes
    /// when both are safe, just before the readers hear of it.
    pub fn add_with(
        &self,
        kind: &str,
        path: &str,
        payload: Value,
        change: Option<Change>,
        seen: impl FnOnce() + Send + 'static,
    ) -> Answer<u64> {
        let at_ms = self.clock.now_ms();
        let next = |state: &mut State| {
            state.given += 1;
            Event { seq: state.given, kind: kind.to_owned(), path: path.to_owned(), at_ms, payload }
        };
        let Some(store) = &self.store else {
            seen();
            let mut state = self.state();
            let event = next(&mut state);
            let seq = event.seq;
            state.show(event, &self.shown);
            drop(state);
            self.wake();
            return Answer::ok(seq);
        };
        let mut state = self.state();
        let event = next(&mut state);
        let seq = event.seq;
        let (agent, kept) = (self.agent.clone(), event.clone());
        let (all, shown, news) = (self.state.clone(), self.shown.clone(), self.news.clone());
        let show = move |(): &()| {
            seen();
            all.lock().show(event, &shown);
            news.send_modify(|count| *count += 1);
        };
        // Queued under the lock: what is on the disk, and what is shown, is in the order of the numbers.
        let write = move |tx: &Tx<'_>| {
            change.map_or(Ok(()), |change| change(tx))?;
            table::put(tx, &agent, &kept)
        };
        let safe = store.write_then(write, show);
        drop(state);
        Answer::soon(async move { safe.await.map(|()| seq) })
    }

    /// [`add`](Self::add) by somebody who does not wait for it to be safe.
    pub fn note(&self, kind: &str, path: &str, payload: Value) {
        drop(self.add(kind, path, payload));
    }

    /// Something below `path` changed.
    pub fn changed(&self, path: &str, what: Value) {
        self.note("change", path, what);
    }

    /// Makes everybody who waits look again.
    pub fn wake(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    pub fn listen(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.state().last
    }

    /// The events after `cursor` without a gap: all, or the first of them. Those that are no longer in memory come from
    /// the disk.
    pub fn after(&self, cursor: u64) -> Answer<Vec<Event>> {
        let state = self.state();
        let (first, until) = (state.recent.front().map_or(state.last + 1, |event| event.seq), state.last);
        let recent: Vec<Event> = state.recent.iter().filter(|event| event.seq > cursor).cloned().collect();
        let Some(store) = self.store.clone().filter(|_| cursor.saturating_add(1) < first) else {
            return Answer::ok(recent);
        };
        if let Some(page) = state.older.as_ref().filter(|page| page.after == cursor && page.leads_to(first)) {
            return Answer::ok(page.and(first, recent));
        }
        drop(state);
        let (agent, state) = (self.agent.clone(), self.state.clone());
        let fetch = move |conn: &acheron_store::Connection| {
            let events = table::since(conn, &agent, cursor, RECENT)?;
            let page = Arc::new(Page { after: cursor, until, events });
            state.lock().older = Some(page.clone());
            Ok(page)
        };
        Answer::soon(async move { Ok(store.read(fetch).await?.and(first, recent)) })
    }

    pub fn shared(&self) -> Shared {
        self.state().shared.clone()
    }

    /// Arms the shared wait; safe when the answer is there.
    pub fn arm(&self, wait: Wait) -> Answer<()> {
        let now = self.clock.now_ms();
        let mut state = self.state();
        let cursor = wait.since.unwrap_or(state.shared.cursor);
        let written = json!({ "wait": wait, "fired": [] });
        let since = wait.since;
        let arming = state.shared.arming + 1;
        state.shared = Shared { wait: Some(wait), arming, cursor, passed: 0, armed_at_ms: now, fired: Vec::new() };
        let safe = self.store.as_ref().map(|store| {
            let agent = self.agent.clone();
            store.write(move |tx| table::arm(tx, &agent, &written, since, now))
        });
        drop(state);
        self.wake();
        safe.map_or(Answer::ok(()), Answer::soon)
    }

    /// The reader of `next.json` has heard the event `seq`, or what stands at `fired` among the selectors.
    pub fn heard(&self, arming: u64, seq: Option<u64>, fired: usize) {
        let mut state = self.state();
        let shared = &mut state.shared;
        if shared.arming != arming {
            return; // it was armed again meanwhile
        }
        match seq {
            Some(seq) => shared.cursor = shared.cursor.max(seq),
            None => shared.fired.push(fired),
        }
        let written = json!({ "wait": shared.wait, "fired": shared.fired });
        let (cursor, at) = (shared.cursor, shared.armed_at_ms);
        if let Some(store) = &self.store {
            let agent = self.agent.clone();
            drop(store.write(move |tx| match seq {
                Some(seq) => table::advance(tx, &agent, seq),
                None => table::arm(tx, &agent, &written, Some(cursor), at),
            }));
        }
    }

    /// The reader of `next.json` has found nothing to hear up to the event `seq`.
    pub fn passed(&self, arming: u64, seq: u64) {
        let mut state = self.state();
        if state.shared.arming == arming {
            state.shared.passed = state.shared.passed.max(seq);
        }
    }

    /// A turn begins with the message of that event; only newer ones are news to it.
    pub fn turn_began(&self, seq: u64) {
        self.turn.store(seq, Ordering::SeqCst);
    }

    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::SeqCst)
    }
}

fn restored(cursor: Cursor) -> Shared {
    let written = cursor.wait.unwrap_or_default();
    Shared {
        wait: serde_json::from_value(written["wait"].clone()).ok(),
        cursor: cursor.cursor,
        armed_at_ms: cursor.armed_at_ms.unwrap_or_default(),
        fired: serde_json::from_value(written["fired"].clone()).unwrap_or_default(),
        ..Shared::default()
    }
}

fn shown_line(event: &Event) -> bytes::Bytes {
    let Event { seq, kind, path, at_ms, payload } = event;
    line(&json!({ "seq": seq, "ts_ms": at_ms, "kind": kind, "path": path, "payload": payload }))
}
