//! The file that grows.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::{Answer, Caller, File, Handle, Kind, Open, STARTED, Stat};
use acheron_base::Clock;
use acheron_base::Result;

/// Bytes that are only ever added to.
///
/// Half of the limit is what a reader sees under the log's own name; when that is full it becomes the older part, shown
/// as `<name>.1`, and the part before is forgotten. Offsets into the whole stream stay true.
#[derive(Clone)]
pub struct Log(Arc<Mutex<State>>);

struct State {
    now: Vec<u8>,
    older: Vec<u8>,
    /// How many bytes were forgotten, and how many came before `now`.
    gone: u64,
    before: u64,
    half: usize,
    modified: SystemTime,
    clock: Clock,
}

impl Log {
    /// `clock` says when it grows.
    pub fn new(limit: usize, clock: Clock) -> Self {
        let (now, older) = (Vec::new(), Vec::new());
        let half = limit / 2;
        Log(Arc::new(Mutex::new(State { now, older, gone: 0, before: 0, half, modified: STARTED, clock })))
    }

    pub fn append(&self, bytes: &[u8]) {
        let mut state = self.0.lock();
        state.now.extend_from_slice(bytes);
        state.modified = state.clock.now();
        if state.now.len() > state.half {
            state.turn_over();
        }
    }

    /// Makes what is shown the older part, as if it were full.
    pub fn turn_over(&self) {
        self.0.lock().turn_over();
    }

    /// Forgets the older part.
    pub fn forget_older(&self) {
        let mut state = self.0.lock();
        state.gone += std::mem::take(&mut state.older).len() as u64;
    }

    pub fn line(&self, line: &str) {
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.append(&bytes);
    }

    /// What is there from `offset` of the whole stream on, and where that begins: later than asked for if the beginning
    /// was forgotten.
    pub fn from(&self, offset: u64, size: usize) -> (u64, Vec<u8>) {
        let state = self.0.lock();
        let begin = offset.max(state.gone);
        let all = state.older.iter().chain(&state.now);
        (begin, all.skip((begin - state.gone) as usize).take(size).copied().collect())
    }

    /// The first offset that is still there, and the one after the last.
    pub fn range(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.gone, state.before + state.now.len() as u64)
    }

    /// The older part as a file.
    pub fn older(&self) -> Older {
        Older(self.clone())
    }
}

impl State {
    fn turn_over(&mut self) {
        if self.now.is_empty() {
            return; // it was done already
        }
        let full = std::mem::take(&mut self.now);
        self.gone += self.older.len() as u64;
        self.before += full.len() as u64;
        self.older = full;
    }
}

impl File for Log {
    fn kind(&self) -> Kind {
        Kind::Log
    }

    fn stat(&self) -> Stat {
        let state = self.0.lock();
        Stat { size: state.now.len() as u64, modified: state.modified }
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(self.clone()))
    }
}

impl Handle for Log {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(part(&self.0.lock().now, offset, size))
    }
}

/// The part of a log that came before what its own name shows.
#[derive(Clone)]
pub struct Older(Log);

impl File for Older {
    fn kind(&self) -> Kind {
        Kind::Log
    }

    fn stat(&self) -> Stat {
        let state = self.0.0.lock();
        Stat { size: state.older.len() as u64, modified: state.modified }
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(self.clone()))
    }
}

impl Handle for Older {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(part(&self.0.0.lock().older, offset, size))
    }
}

fn part(bytes: &[u8], offset: u64, size: usize) -> Bytes {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let end = bytes.len().min(start.saturating_add(size));
    Bytes::copy_from_slice(&bytes[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_older_part_has_a_name_of_its_own_and_offsets_stay_true() {
        let log = Log::new(8, Clock::at(1));
        for word in ["ab", "cd", "e", "fg", "h"] {
            log.append(word.as_bytes());
        }
        assert_eq!(log.read(0, 99).wait().await.unwrap(), "fgh");
        assert_eq!(log.older().read(0, 99).wait().await.unwrap(), "abcde");
        assert_eq!(log.from(4, 99), (4, b"efgh".to_vec()));
        log.append(b"ij");
        assert_eq!(log.range(), (5, 10));
        assert_eq!(log.from(0, 3), (5, b"fgh".to_vec()));
        log.append(b"k");
        assert_eq!(log.range(), (5, 11));
        log.turn_over();
        log.turn_over();
        assert_eq!((log.range(), log.from(0, 9)), ((10, 11), (10, b"k".to_vec())));
        log.forget_older();
        assert_eq!((log.range(), log.from(0, 9)), ((11, 11), (11, Vec::new())));
    }
}
