//! `agents/<id>/timeline.ndjson`: turns, calls, approvals, promotes, denials and money of one agent in one order.
//!
//! A timeline is no second record: it shows the lines of the audit that are about its agent, which are written in the commit of
//! the thing that they tell of. So whatever notes a line with an `agent` (`src/state/audit`) is in the timeline. The host uses
//! it; it uses the audit and the tree.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::state::audit::{AuditSize, read, timeline_line};
use acheron_base::{Clock, Result};
use acheron_store::Store;
use acheron_vfs::Log;

/// The size of one timeline in bytes, its older part included.
const LOG_BYTES: usize = 512 << 10;
/// The newest bytes of the audit that are looked through at the start; `acheron log` shows what is older.
const RESTORED: u64 = 8 << 20;
/// The most names that lines are kept of: refusals name whoever asked.
const NAMES: usize = 4096;
/// The kind of the line after which nothing of an agent is shown any more.
pub const REMOVED: &str = "removed";

/// The timelines of all agents.
pub struct Timelines {
    clock: Clock,
    all: Mutex<TimelineLogs>,
    /// Changes whenever the audit grows.
    grown: watch::Sender<u64>,
}

#[derive(Default)]
struct TimelineLogs {
    by_agent: HashMap<String, Log>,
    /// The last line that was looked at.
    last: u64,
}

impl Timelines {
    /// Shows what the audit has, and what it gets from now on. Blocks.
    pub fn open(store: &Store, audit: &AuditSize, clock: &Clock) -> Result<Arc<Timelines>> {
        let timelines =
            Arc::new(Timelines { clock: clock.clone(), all: Mutex::default(), grown: watch::Sender::new(0) });
        let told = timelines.clone();
        audit.follow(move |lines| {
            told.show(&mut told.all.lock(), lines);
            told.grown.send_modify(|count| *count += 1);
        });
        // A line that comes meanwhile waits for the lock; if it was read here, too, its number tells.
        let mut all = timelines.all.lock();
        let (begin, end) = audit.range();
        let from = begin.max(end.saturating_sub(RESTORED));
        let text = store.look(|conn| read::bytes(conn, from, usize::try_from(end - from).unwrap_or(usize::MAX)))?;
        let text = String::from_utf8_lossy(&text);
        // In the middle of a line, the rest of it is none.
        timelines.show(&mut all, &text);
        drop(all);
        Ok(timelines)
    }

    fn show(&self, all: &mut TimelineLogs, lines: &str) {
        for line in lines.lines().filter_map(timeline_line) {
            if line.seq <= all.last {
                continue;
            }
            all.last = line.seq;
            if line.kind == REMOVED {
                all.by_agent.remove(line.agent);
            } else if let Some(log) = self.log(all, line.agent) {
                log.line(&line.shown);
            }
        }
    }

    fn log<'a>(&self, all: &'a mut TimelineLogs, agent: &str) -> Option<&'a Log> {
        if all.by_agent.len() >= NAMES && !all.by_agent.contains_key(agent) {
            return None;
        }
        let log = all.by_agent.entry(agent.to_owned());
        Some(log.or_insert_with(|| Log::new(LOG_BYTES, self.clock.clone())))
    }

    /// The timeline of an agent that is there.
    pub fn of(&self, agent: &str) -> Log {
        let mut all = self.all.lock();
        all.by_agent.entry(agent.to_owned()).or_insert_with(|| Log::new(LOG_BYTES, self.clock.clone())).clone()
    }

    /// Changes whenever there is more.
    pub fn listen(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }
}
