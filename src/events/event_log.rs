//! The event log of one agent: recent events in memory, all retained events in the store.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::commit::{Commit, commit};
use super::wait::Wait;
use super::waiter::armed_selectors;
use super::watched::WatchedPaths;
use super::{Event, Selector, WatchedPath};
use crate::state::events as table;
use crate::state::events::{Cursor, PageLimits};
use crate::state::quota::{QuotaKind, Quotas};
use acheron_base::{Clock, Error, Result};
use acheron_store::{Store, Written};
use acheron_vfs::{Answer, Log, Tree, WeakTree, line};

/// The events kept in memory, and a page of older ones.
const MAX_RECENT: PageLimits = PageLimits { events: 4096, bytes: 8 << 20 };
/// The size of `log.ndjson` in bytes.
const LOG_BYTES: usize = 4 << 20;

/// The logs of all agents.
pub struct EventLogs {
    all: Mutex<HashMap<String, Arc<EventLog>>>,
    /// The events of all agents in one order: `meta/events.ndjson`.
    pub everything: Log,
    store: Store,
    clock: Clock,
    /// The limits of what agents keep.
    pub quotas: Arc<Quotas>,
    /// The tree whose paths are waited for.
    tree: Arc<OnceLock<WeakTree>>,
    /// Changes whenever any of them grows.
    grown: Arc<watch::Sender<u64>>,
}

impl EventLogs {
    pub fn new(store: Store, clock: Clock) -> Self {
        let everything = Log::new(2 * LOG_BYTES, clock.clone());
        let (quotas, tree, grown) = (Arc::default(), Arc::default(), Arc::new(watch::Sender::new(0)));
        EventLogs { all: Mutex::default(), everything, store, clock, quotas, tree, grown }
    }

    /// Fills the log of all agents with the newest events of the store. Blocks.
    pub fn restore(&self) -> Result<()> {
        let limits = PageLimits { bytes: LOG_BYTES / 2, ..MAX_RECENT };
        let newest = self.store.look(|conn| table::newest(conn, limits))?;
        let lines = newest.iter().flat_map(|(agent, event)| named_line(agent, event));
        self.everything.append(&lines.collect::<Vec<u8>>());
        Ok(())
    }

    /// Takes what was deleted from the store out of the log of all agents, too. Blocks.
    pub fn reread(&self) -> Result<()> {
        self.everything.rotate();
        self.everything.drop_older();
        self.restore()
    }

    /// Sets the tree, which is built after the logs.
    pub fn set_tree(&self, tree: &Tree) {
        _ = self.tree.set(tree.downgrade()); // there is only one
    }

    /// The log of `agent`, restored from the store at the first request.
    pub fn of(&self, agent: &str) -> Result<Arc<EventLog>> {
        let mut all = self.all.lock();
        if let Some(event_log) = all.get(agent) {
            return Ok(event_log.clone());
        }
        let mut event_log = EventLog::open(agent, self.store.clone(), self.clock.clone(), self.quotas.clone())?;
        (event_log.tree, event_log.everything) = (self.tree.clone(), Some(self.everything.clone()));
        event_log.any_grown = self.grown.clone();
        let event_log = Arc::new(event_log);
        all.insert(agent.to_owned(), event_log.clone());
        Ok(event_log)
    }

    /// Changes whenever there is another event of any agent.
    pub fn listen(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }

    pub fn forget(&self, agent: &str) {
        self.all.lock().remove(agent);
    }

    /// Old events were deleted: what they took is free.
    pub fn pruned(&self) {
        for event_log in self.all.lock().values() {
            *event_log.signal_bytes.lock() = None;
        }
    }
}

pub struct EventLog {
    pub agent: String,
    pub clock: Clock,
    pub shown: Log,
    everything: Option<Log>,
    store: Store,
    state: Arc<Mutex<EventLogState>>,
    /// Changes whenever a waiting reader should look again.
    changes: Arc<watch::Sender<u64>>,
    /// The event that started the current turn.
    turn: AtomicU64,
    pub quotas: Arc<Quotas>,
    /// The bytes of signals by their sender; counted when the first arrives.
    signal_bytes: Mutex<Option<HashMap<String, u64>>>,
    tree: Arc<OnceLock<WeakTree>>,
    /// That of all logs together.
    any_grown: Arc<watch::Sender<u64>>,
    pub(super) watched: WatchedPaths,
}

struct EventLogState {
    recent: VecDeque<Event>,
    /// The length of each of them as it is shown, and of all.
    lengths: VecDeque<usize>,
    bytes: usize,
    /// The last event that readers may see: an event is visible only once it is durable.
    last: u64,
    /// The page read last from the store: a reader that does not wait finds it at the next attempt.
    older: Option<Arc<EventPage>>,
    shared: SharedWait,
}

/// A part of the log that is no longer in memory.
struct EventPage {
    /// The page starts after this event.
    after: u64,
    /// The page has all events up to this one, unless it is full.
    until: u64,
    events: Vec<Event>,
    /// A limit was reached: there may be more events after the last.
    full: bool,
}

impl EventPage {
    /// Whether no event is missing between the page and `first`.
    fn leads_to(&self, first: u64) -> bool {
        self.full || self.until.saturating_add(1) >= first
    }

    /// The events of the page, followed by `recent` if the page is not full; `recent` starts at `first`.
    fn and(&self, first: u64, recent: Vec<Event>) -> Vec<Event> {
        match self.full {
            true => self.events.clone(),
            false => self.events.iter().filter(|event| event.seq < first).cloned().chain(recent).collect(),
        }
    }
}

impl EventLogState {
    fn show(&mut self, event: Event, shown: &Log) {
        let line = shown_line(&event);
        shown.append(&line);
        self.last = event.seq;
        self.keep(event, line.len());
    }

    /// Keeps an event in memory, and drops the oldest beyond the limits.
    fn keep(&mut self, event: Event, length: usize) {
        self.recent.push_back(event);
        self.lengths.push_back(length);
        self.bytes += length;
        while self.recent.len() > MAX_RECENT.events || self.bytes > MAX_RECENT.bytes && self.recent.len() > 1 {
            self.recent.pop_front();
            self.bytes -= self.lengths.pop_front().unwrap_or(0);
        }
    }
}

/// The armed wait of `next.json`, shared by all its readers.
#[derive(Clone)]
pub struct SharedWait {
    pub wait: Option<Arc<Wait>>,
    /// The paths of the wait, parsed when it was armed; an error only if an earlier version stored them.
    pub selectors: Result<Arc<[Selector]>>,
    /// Counts the armings: reads for an earlier arming do not change this one.
    pub arming: u64,
    pub cursor: u64,
    /// No event up to here matched in this arming; the cursor stays behind, because the next arming may match others.
    pub passed: u64,
    pub armed_at_ms: u64,
    pub fired: Vec<usize>,
    /// An event of this arming was delivered: only the reader that had it waits for more.
    pub delivered: bool,
    /// The paths that have to be looked at; none after a restart, until they are read.
    pub watched: Option<Arc<[Arc<WatchedPath>]>>,
}

impl EventLog {
    fn open(agent: &str, store: Store, clock: Clock, quotas: Arc<Quotas>) -> Result<EventLog> {
        let (recent, last, cursor) = store.look(|conn| {
            Ok((table::tail(conn, agent, MAX_RECENT)?, table::last(conn, agent)?, table::cursor(conn, agent)?))
        })?;
        let shared = restored(agent, cursor);
        let shown = Log::new(LOG_BYTES, clock.clone());
        let (older, lengths, bytes) = (None, VecDeque::new(), 0);
        let mut state = EventLogState { recent: VecDeque::new(), lengths, bytes, last, older, shared };
        recent.into_iter().for_each(|event| state.show(event, &shown));
        state.last = last;
        let (agent, state) = (agent.to_owned(), Arc::new(Mutex::new(state)));
        let (changes, any_grown) = (Arc::new(watch::Sender::new(0)), Arc::new(watch::Sender::new(0)));
        let (turn, signal_bytes) = (AtomicU64::new(0), Mutex::default());
        let (tree, watched, everything) = (Arc::default(), WatchedPaths::default(), None);
        Ok(EventLog {
            agent,
            clock,
            shown,
            everything,
            store,
            state,
            changes,
            turn,
            quotas,
            signal_bytes,
            tree,
            any_grown,
            watched,
        })
    }

    /// Whether the tree is built.
    pub fn has_tree(&self) -> bool {
        self.tree.get().is_some()
    }

    /// The tree whose paths are waited for.
    pub(super) fn tree(&self) -> Result<Tree> {
        let tree = self.tree.get().and_then(WeakTree::upgrade);
        tree.ok_or_else(|| Error::unavailable("the tree is not there yet, or not any more"))
    }

    fn state(&self) -> MutexGuard<'_, EventLogState> {
        self.state.lock()
    }

    /// Appends an event. It becomes visible to readers, and the answer resolves, when it is durable.
    pub fn add(self: &Arc<Self>, kind: &str, path: &str, payload: Value) -> Answer<u64> {
        let (log, kind, path) = (self.clone(), kind.to_owned(), path.to_owned());
        Answer::soon(self.commit(move |commit| commit.emit(&log, &kind, &path, payload)))
    }

    /// Appends a signal of `from`, if there is room for it: what one sender fills, others are not refused for.
    pub fn signal(self: &Arc<Self>, from: &str, path: &str, payload: Value) -> Answer<u64> {
        let (log, from, path) = (self.clone(), from.to_owned(), path.to_owned());
        Answer::soon(self.commit(move |commit| {
            let mut senders = log.signal_bytes.lock();
            let senders = match &mut *senders {
                Some(senders) => senders,
                none => none.insert(table::signal_bytes(commit.tx(), &log.agent)?),
            };
            let (used, more) = (senders.entry(from).or_default(), payload.to_string().len() as u64);
            log.quotas.check(QuotaKind::Signals, *used, more)?;
            *used += more;
            commit.emit(&log, "signal", &path, payload)
        }))
    }

    /// Makes a change of the state together with the events about it.
    pub fn commit<T, F>(&self, work: F) -> Written<T>
    where
        T: Send + 'static,
        F: FnOnce(&Commit<'_>) -> Result<T> + Send + 'static,
    {
        commit(&self.store, work)
    }

    /// Shows a durable event to readers.
    pub(super) fn show(&self, event: Event) {
        if let Some(everything) = &self.everything {
            everything.append(&named_line(&self.agent, &event));
        }
        self.state().show(event, &self.shown);
        self.wake();
        self.any_grown.send_modify(|count| *count += 1);
    }

    /// Like [`add`](Self::add), without waiting until the event is durable.
    pub fn note(self: &Arc<Self>, kind: &str, path: &str, payload: Value) {
        drop(self.add(kind, path, payload));
    }

    /// Appends an event about a change at or below `path`.
    pub fn changed(self: &Arc<Self>, path: &str, what: Value) {
        self.note("change", path, what);
    }

    /// Wakes all waiting readers.
    pub fn wake(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub fn listen(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.state().last
    }

    /// The events after `cursor` without a gap: all of them, or the first page. Older events come from the store.
    pub fn after(&self, cursor: u64) -> Answer<Vec<Event>> {
        let state = self.state();
        let (first, until) = (state.recent.front().map_or(state.last + 1, |event| event.seq), state.last);
        let recent: Vec<Event> = state.recent.iter().filter(|event| event.seq > cursor).cloned().collect();
        if cursor.saturating_add(1) >= first {
            return Answer::ok(recent);
        }
        if let Some(page) = state.older.as_ref().filter(|page| page.after == cursor && page.leads_to(first)) {
            return Answer::ok(page.and(first, recent));
        }
        drop(state);
        let (agent, state, store) = (self.agent.clone(), self.state.clone(), self.store.clone());
        let fetch = move |conn: &acheron_store::Connection| {
            let (events, full) = table::since(conn, &agent, cursor, MAX_RECENT)?;
            let page = Arc::new(EventPage { after: cursor, until, events, full });
            state.lock().older = Some(page.clone());
            Ok(page)
        };
        Answer::soon(async move { Ok(store.read(fetch).await?.and(first, recent)) })
    }

    pub fn shared(&self) -> SharedWait {
        self.state().shared.clone()
    }

    /// Arms the shared wait; durable when the answer resolves.
    pub fn arm(&self, wait: Wait, watched: Arc<[Arc<WatchedPath>]>) -> Answer<()> {
        let now = self.clock.now_ms();
        let mut state = self.state();
        // Events before the first arming are only in the log: nothing waited for them.
        let since = wait.since.or_else(|| state.shared.wait.is_none().then_some(state.last));
        let cursor = since.unwrap_or(state.shared.cursor);
        let written = json!({ "wait": wait, "fired": [] });
        let arming = state.shared.arming + 1;
        let selectors = armed_selectors(&self.agent, &wait);
        let (wait, fired) = (Some(Arc::new(wait)), Vec::new());
        let (delivered, watched) = (false, Some(watched));
        state.shared =
            SharedWait { wait, selectors, arming, cursor, passed: 0, armed_at_ms: now, fired, delivered, watched };
        let agent = self.agent.clone();
        let safe = self.store.write(move |tx| table::arm(tx, &agent, &written, since, now));
        drop(state);
        self.wake();
        Answer::soon(safe)
    }

    /// Keeps the watched paths of an arming that a restart has left without.
    pub fn watches(&self, arming: u64, watched: &Arc<[Arc<WatchedPath>]>) {
        let shared = &mut self.state().shared;
        if shared.arming == arming {
            shared.watched = Some(watched.clone());
        }
    }

    /// Takes the shared wait away, as if none had ever been armed. Events up to now are only in the log.
    pub fn disarm(&self) -> Answer<()> {
        let mut state = self.state();
        let (arming, cursor) = (state.shared.arming + 1, state.last);
        state.shared = SharedWait { arming, ..restored(&self.agent, Cursor { cursor, ..Cursor::default() }) };
        let agent = self.agent.clone();
        let safe = self.store.write(move |tx| table::arm(tx, &agent, &Value::Null, Some(cursor), 0));
        drop(state);
        self.wake();
        Answer::soon(safe)
    }

    /// Records that a reader of `next.json` has the event `seq`, or the job or timer at index `fired`.
    pub fn acknowledge(&self, arming: u64, seq: Option<u64>, fired: usize) {
        let mut state = self.state();
        let shared = &mut state.shared;
        if shared.arming != arming {
            return; // it was armed again meanwhile
        }
        match seq {
            Some(seq) => shared.cursor = shared.cursor.max(seq),
            None if shared.fired.contains(&fired) => return, // two readers had the same one
            None => shared.fired.push(fired),
        }
        let first = !std::mem::replace(&mut shared.delivered, true);
        let written = json!({ "wait": shared.wait.as_deref(), "fired": shared.fired, "delivered": true });
        let (cursor, at) = (shared.cursor, shared.armed_at_ms);
        let agent = self.agent.clone();
        drop(self.store.write(move |tx| match seq {
            Some(seq) if !first => table::advance(tx, &agent, seq),
            _ => table::arm(tx, &agent, &written, Some(cursor), at),
        }));
    }

    /// Records that no event up to `seq` matched.
    pub fn skip_to(&self, arming: u64, seq: u64) {
        let mut state = self.state();
        if state.shared.arming == arming {
            state.shared.passed = state.shared.passed.max(seq);
        }
    }

    /// Records the event that started a turn; a wait in that turn matches only newer messages.
    pub fn turn_began(&self, seq: u64) {
        self.turn.store(seq, Ordering::SeqCst);
    }

    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::SeqCst)
    }
}

fn restored(agent: &str, cursor: Cursor) -> SharedWait {
    let written = cursor.wait.unwrap_or_default();
    let wait: Option<Wait> = serde_json::from_value(written["wait"].clone()).ok();
    SharedWait {
        selectors: wait.as_ref().map_or_else(|| Ok([].into()), |wait| armed_selectors(agent, wait)),
        wait: wait.map(Arc::new),
        arming: 0,
        cursor: cursor.cursor,
        passed: 0,
        armed_at_ms: cursor.armed_at_ms.unwrap_or_default(),
        fired: serde_json::from_value(written["fired"].clone()).unwrap_or_default(),
        delivered: written["delivered"] == true,
        watched: None,
    }
}

fn shown_line(event: &Event) -> bytes::Bytes {
    let Event { seq, kind, path, at_ms, payload } = event;
    line(&json!({ "seq": seq, "ts_ms": at_ms, "kind": kind, "path": path, "payload": payload }))
}

/// A line of the log of all agents.
fn named_line(agent: &str, event: &Event) -> bytes::Bytes {
    let Event { seq, kind, path, at_ms, payload } = event;
    line(&json!({ "agent": agent, "seq": seq, "ts_ms": at_ms, "kind": kind, "path": path, "payload": payload }))
}
