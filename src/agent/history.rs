//! What was said to an agent and what it replied, turn by turn, and what all its turns have cost.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::budget::Spent;
use super::transcript::Source;
use acheron_base::ConfinedDir;
use acheron_base::{Error, Result};
use acheron_vfs::{Log, line};

const FILE: &str = "history.ndjson";
const OLDER: &str = "history.ndjson.1";
const CHARGED: &str = "charged.json";
/// A file longer than this becomes the older one.
const LIMIT: u64 = 4 << 20;
/// How many turns may be shown to a model again.
const RECENT: usize = 32;

/// One turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub seq: u64,
    pub ts_ms: u64,
    pub job_id: String,
    pub source: Source,
    pub input: String,
    pub reply: Option<String>,
    pub error: Option<Error>,
    pub spent: Spent,
    /// What this and all turns before it have used.
    pub total: Spent,
}

/// The total after the turn of that number and what was charged since. The next turn counts it in.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Charged {
    seq: u64,
    total: Spent,
}

#[derive(Clone)]
pub struct History(Arc<Inner>);

struct Inner {
    place: Arc<ConfinedDir>,
    log: Log,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    recent: Vec<Entry>,
    seq: u64,
    total: Spent,
    /// How long the file is, and when its first entry was written.
    length: u64,
    first_ms: Option<u64>,
    /// When the last entry of the older file was written.
    older_ms: Option<u64>,
}

impl History {
    /// The history as it was left. A torn last line is forgotten.
    pub fn open(place: Arc<ConfinedDir>) -> Result<History> {
        let log = Log::new(2 * LIMIT as usize);
        let mut state = State::default();
        for name in [OLDER, FILE] {
            let Some(bytes) = place.read_if_exists(name)? else { continue };
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            if whole < bytes.len() {
                place.write(name, &bytes[..whole])?;
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
                    (state.older_ms, state.first_ms) = (state.last_ms(), None);
                }
                false => state.length = whole as u64,
            }
        }
        let charged = place.read_if_exists(CHARGED)?;
        let charged = charged.and_then(|bytes| serde_json::from_slice::<Charged>(&bytes).ok());
        // Otherwise a later turn has counted it in.
        if let Some(charged) = charged.filter(|charged| charged.seq == state.seq) {
            state.total = charged.total;
        }
        Ok(History(Arc::new(Inner { place, log, state: Mutex::new(state) })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Writes a turn down; on the disk when this returns. Numbers and totals are filled in here.
    pub fn add(&self, mut entry: Entry) -> Result<()> {
        let mut state = self.state();
        entry.seq = state.seq + 1;
        entry.total = state.total.plus(&entry.spent);
        let bytes = line(&entry);
        if state.length > LIMIT {
            self.turn_over(&mut state)?;
        }
        self.0.place.append(FILE, &bytes)?;
        state.length += bytes.len() as u64;
        self.0.log.append(&bytes);
        state.take(entry);
        Ok(())
    }

    fn turn_over(&self, state: &mut State) -> Result<()> {
        self.0.place.rename(FILE, OLDER)?;
        self.0.log.rotate();
        (state.length, state.older_ms, state.first_ms) = (0, state.last_ms(), None);
        Ok(())
    }

    /// Forgets turns from before a moment, by whole files: one that begins before it becomes the older one, and the
    /// older one goes when all of it lies before. The last turn stays, since it knows what all have cost.
    pub fn forget(&self, before_ms: u64) -> Result<()> {
        let mut state = self.state();
        if state.first_ms.is_some_and(|first| first < before_ms) {
            self.turn_over(&mut state)?;
        }
        if state.first_ms.is_some() && state.older_ms.is_some_and(|last| last < before_ms) {
            self.0.place.remove(OLDER)?;
            self.0.log.drop_older();
            state.older_ms = None;
        }
        Ok(())
    }

    /// Whether that turn is in it already.
    pub fn has(&self, job_id: &str) -> bool {
        self.state().recent.iter().any(|entry| entry.job_id == job_id)
    }

    /// What was said and replied, oldest first; turns that failed are left out.
    pub fn exchanges(&self) -> Vec<(String, String)> {
        let state = self.state();
        state.recent.iter().filter_map(|entry| Some((entry.input.clone(), entry.reply.clone()?))).collect()
    }

    pub fn last(&self) -> Option<Entry> {
        self.state().recent.last().cloned()
    }

    /// Adds what others have used in this agent's name; on the disk when this returns.
    pub fn charge(&self, spent: &Spent) -> Result<()> {
        let mut state = self.state();
        let charged = Charged { seq: state.seq, total: state.total.plus(spent) };
        self.0.place.write(CHARGED, &line(&charged))?;
        state.total = charged.total;
        Ok(())
    }

    pub fn total(&self) -> Spent {
        self.state().total
    }

    pub fn log(&self) -> &Log {
        &self.0.log
    }
}

impl State {
    fn last_ms(&self) -> Option<u64> {
        self.recent.last().map(|entry| entry.ts_ms)
    }

    fn take(&mut self, entry: Entry) {
        (self.seq, self.total) = (entry.seq, entry.total);
        self.first_ms.get_or_insert(entry.ts_ms);
        self.recent.push(entry);
        if self.recent.len() > RECENT {
            self.recent.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(job_id: &str, reply: Option<&str>) -> Entry {
        let spent = Spent { rounds: 2, ..Spent::default() };
        let (input, reply) = ("hi".to_owned(), reply.map(str::to_owned));
        let (job_id, total) = (job_id.to_owned(), Spent::default());
        Entry { seq: 0, ts_ms: 1, job_id, source: Source::Chat, input, reply, error: None, spent, total }
    }

    #[test]
    fn totals_and_numbers_outlive_the_host() {
        let dir = tempfile::tempdir().unwrap();
        let place = Arc::new(ConfinedDir::open(dir.path()).unwrap());
        let history = History::open(place.clone()).unwrap();
        history.add(entry("job-1", Some("hello"))).unwrap();
        history.add(entry("job-2", None)).unwrap();
        place.append(FILE, b"{\"seq\":").unwrap();
        let again = History::open(place).unwrap();
        again.add(entry("job-3", Some("bye"))).unwrap();
        let last = again.last().unwrap();
        assert_eq!((last.seq, last.total.rounds), (3, 6));
        assert_eq!(again.exchanges(), [("hi".to_owned(), "hello".to_owned()), ("hi".to_owned(), "bye".to_owned())]);
        assert!(again.has("job-2") && !again.has("job-9"));
    }

    #[test]
    fn old_turns_are_forgotten_by_whole_files_and_the_costs_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let place = Arc::new(ConfinedDir::open(dir.path()).unwrap());
        let at = |ts_ms: u64| Entry { ts_ms, ..entry(&format!("job-{ts_ms}"), Some("x")) };
        let kept = |place: &ConfinedDir| {
            let lines = |name: &str| place.read_text(name).map_or(0, |text| text.lines().count());
            (lines(OLDER), lines(FILE))
        };
        let history = History::open(place.clone()).unwrap();
        for ts_ms in [10, 20] {
            history.add(at(ts_ms)).unwrap();
        }
        history.forget(5).unwrap();
        assert_eq!(kept(&place), (0, 2), "nothing is that old");
        history.forget(15).unwrap();
        assert_eq!(kept(&place), (2, 0), "a part is");
        let history = History::open(place.clone()).unwrap();
        history.forget(30).unwrap();
        assert_eq!(kept(&place), (2, 0), "all of it is, but the last turn knows the costs");
        history.add(at(40)).unwrap();
        history.forget(30).unwrap();
        assert_eq!(kept(&place), (0, 1));
        let again = History::open(place).unwrap().last().unwrap();
        assert_eq!((again.seq, again.total.rounds), (3, 6));
    }

    #[test]
    fn what_is_charged_outlives_the_host_and_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let place = Arc::new(ConfinedDir::open(dir.path()).unwrap());
        let rounds = |history: &History| history.total().rounds;
        let history = History::open(place.clone()).unwrap();
        history.add(entry("job-1", None)).unwrap();
        history.charge(&Spent { rounds: 5, ..Spent::default() }).unwrap();
        let again = History::open(place.clone()).unwrap();
        assert_eq!(rounds(&again), 7);
        again.add(entry("job-2", None)).unwrap();
        assert_eq!(rounds(&again), 9);
        assert_eq!(rounds(&History::open(place).unwrap()), 9);
    }
}
