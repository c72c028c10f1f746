//! The history of a chat: input, reply and cost of every turn.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use super::budget::Spent;
use super::chat_session::ChatSession;
use super::transcript::TurnSource;
use acheron_base::{Clock, ConfinedDir, Error, Result};
use acheron_vfs::{Log, line};

const FILE: &str = "history.ndjson";
const OLDER: &str = "history.ndjson.1";
const CHARGED: &str = "charged.json";
/// The size at which the file is rotated.
const LIMIT: u64 = 4 << 20;
/// The number of turns of one conversation that a model may be shown again, and of all of them together.
const RECENT: usize = 32;
const MOST_RECENT: usize = 128;

/// One turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub seq: u64,
    pub ts_ms: u64,
    pub job_id: String,
    pub source: TurnSource,
    /// The conversation that it belongs to; the agent's main one otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<ChatSession>,
    pub input: String,
    pub reply: Option<String>,
    pub error: Option<Error>,
    pub spent: Spent,
    /// The usage up to and including this turn.
    pub total: Spent,
    /// No turn, but the way back to an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewound: Option<Rewound>,
}

/// A way back: the turns after `to` no longer count, or count again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewound {
    pub id: String,
    /// The last turn that counts.
    pub to: u64,
    /// The way back that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
}

/// The total after turn `seq`, with charges since, as earlier versions kept it beside the history.
#[derive(Clone, Debug, Deserialize)]
struct Charged {
    seq: u64,
    total: Spent,
}

#[derive(Clone)]
pub struct History(Arc<HistoryInner>);

struct HistoryInner {
    dir: Arc<ConfinedDir>,
    log: Log,
    state: Mutex<HistoryState>,
}

#[derive(Default)]
struct HistoryState {
    recent: Vec<HistoryEntry>,
    seq: u64,
    total: Spent,
    /// The length of the file, and the time of its first entry.
    length: u64,
    first_ms: Option<u64>,
    /// The time of the last entry of the rotated file.
    older_ms: Option<u64>,
    last_ms: Option<u64>,
    /// The last way back, and the turns that do not count since: until the next turn they can come back.
    rewound: Option<Rewound>,
    dropped: Vec<HistoryEntry>,
}

impl History {
    /// Opens the history. An incomplete last line is dropped.
    pub fn open(dir: Arc<ConfinedDir>, clock: Clock) -> Result<History> {
        let log = Log::new(2 * LIMIT as usize, clock);
        let mut state = HistoryState::default();
        for name in [OLDER, FILE] {
            let Some(bytes) = dir.read_if_exists(name)? else { continue };
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            if whole < bytes.len() {
                dir.write(name, &bytes[..whole])?;
            }
            log.append(&bytes[..whole]);
            for text in bytes[..whole].split(|byte| *byte == b'\n').filter(|text| !text.is_empty()) {
                if let Ok(entry) = serde_json::from_slice(text) {
                    state.take(entry);
                }
            }
            match name == OLDER {
                true => {
                    log.rotate();
                    (state.older_ms, state.first_ms) = (state.last_ms, None);
                }
                false => state.length = whole as u64,
            }
        }
        let charged = dir.read_if_exists(CHARGED)?;
        let charged = charged.and_then(|bytes| serde_json::from_slice::<Charged>(&bytes).ok());
        // Otherwise a later turn has counted it in.
        if let Some(charged) = charged.filter(|charged| charged.seq == state.seq) {
            state.total = charged.total;
        }
        Ok(History(Arc::new(HistoryInner { dir, log, state: Mutex::new(state) })))
    }

    fn state(&self) -> MutexGuard<'_, HistoryState> {
        self.0.state.lock()
    }

    /// Appends a turn; it is on disk on return. Fills in the number.
    pub fn add(&self, mut entry: HistoryEntry) -> Result<()> {
        let mut state = self.state();
        entry.seq = state.seq + 1;
        let bytes = line(&entry);
        if state.length > LIMIT {
            self.turn_over(&mut state)?;
        }
        self.0.dir.append(FILE, &bytes)?;
        state.length += bytes.len() as u64;
        self.0.log.append(&bytes);
        state.take(entry);
        Ok(())
    }

    fn turn_over(&self, state: &mut HistoryState) -> Result<()> {
        self.0.dir.rename(FILE, OLDER)?;
        self.0.log.rotate();
        (state.length, state.older_ms, state.first_ms) = (0, state.last_ms, None);
        Ok(())
    }

    /// Deletes turns older than `before_ms`, by whole files: a file that starts before that time is rotated, and the
    /// rotated file is deleted once all of it is older. The last turn stays, because it has the total cost.
    pub fn forget(&self, before_ms: u64) -> Result<()> {
        let mut state = self.state();
        if state.first_ms.is_some_and(|first| first < before_ms) {
            self.turn_over(&mut state)?;
        }
        if state.first_ms.is_some() && state.older_ms.is_some_and(|last| last < before_ms) {
            self.0.dir.remove(OLDER)?;
            self.0.log.drop_older();
            state.older_ms = None;
        }
        Ok(())
    }

    /// The time of the last turn.
    pub fn last_ms(&self) -> Option<u64> {
        self.state().last_ms
    }

    /// Whether the turn is in the history.
    pub fn has(&self, job_id: &str) -> bool {
        self.state().recent.iter().any(|entry| entry.job_id == job_id)
    }

    /// Inputs and replies of one conversation, oldest first, without failed turns.
    pub fn exchanges(&self, session: Option<&ChatSession>) -> Vec<(String, String)> {
        let state = self.state();
        let own = state.recent.iter().filter(|entry| same(entry.session.as_ref(), session));
        own.filter_map(|entry| Some((entry.input.clone(), entry.reply.clone()?))).collect()
    }

    /// The number of the last entry.
    pub fn seq(&self) -> u64 {
        self.state().seq
    }

    /// The turns after `to` that count, with their inputs.
    pub fn after(&self, to: u64) -> Vec<(u64, String)> {
        let state = self.state();
        state.recent.iter().filter(|entry| entry.seq > to).map(|entry| (entry.seq, entry.input.clone())).collect()
    }

    /// Whether the way back of this id is the last entry, so that it can be undone.
    pub fn can_restore(&self, id: &str) -> bool {
        self.state().rewound.as_ref().is_some_and(|rewound| rewound.id == id && rewound.undoes.is_none())
    }

    /// Appends a way back, or its undoing, unless it is there already.
    pub fn rewind(&self, rewound: Rewound, ts_ms: u64, total: Spent) -> Result<()> {
        if self.state().rewound.as_ref().is_some_and(|known| known.id == rewound.id) {
            return Ok(());
        }
        let (job_id, source) = (rewound.id.clone(), TurnSource::Chat);
        let (input, reply, error, spent) = (String::new(), None, None, Spent::default());
        self.add(HistoryEntry {
            seq: 0,
            ts_ms,
            job_id,
            source,
            session: None,
            input,
            reply,
            error,
            spent,
            total,
            rewound: Some(rewound),
        })
    }

    pub fn last(&self) -> Option<HistoryEntry> {
        self.state().recent.last().cloned()
    }

    /// The usage up to the last turn, as the history has it. The ledger begins with it, and knows what came since.
    pub fn total(&self) -> Spent {
        self.state().total
    }

    pub fn log(&self) -> &Log {
        &self.0.log
    }
}

impl HistoryState {
    fn take(&mut self, entry: HistoryEntry) {
        (self.seq, self.total) = (entry.seq, entry.total);
        self.first_ms.get_or_insert(entry.ts_ms);
        self.last_ms = Some(entry.ts_ms);
        match &entry.rewound {
            Some(rewound) if rewound.undoes.is_some() => self.recent.append(&mut self.dropped),
            Some(rewound) => {
                let kept = self.recent.iter().take_while(|known| known.seq <= rewound.to).count();
                self.dropped = self.recent.split_off(kept);
            }
            None => self.dropped.clear(),
        }
        self.rewound = entry.rewound.clone();
        if entry.rewound.is_some() {
            return;
        }
        let own = |other: &HistoryEntry| same(other.session.as_ref(), entry.session.as_ref());
        // A conversation pushes out its own turns before those of others.
        let oldest = match self.recent.iter().filter(|other| own(other)).count() {
            RECENT.. => self.recent.iter().position(own),
            _ => (self.recent.len() >= MOST_RECENT).then_some(0),
        };
        if let Some(oldest) = oldest {
            self.recent.remove(oldest);
        }
        self.recent.push(entry);
    }
}

/// Whether two turns are of one conversation.
fn same(one: Option<&ChatSession>, other: Option<&ChatSession>) -> bool {
    one.map(|session| &session.id) == other.map(|session| &session.id)
}

#[cfg(test)]
mod tests;
