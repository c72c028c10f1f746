//! A file that grows. Uses only the traits of the tree.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Answer, Caller, File, Handle, Kind, Open, STARTED, Stat};
use acheron_base::{Clock, Result};

/// A bounded, append-only stream of bytes. A clone is the same log.
///
/// A reader sees the newest part, up to half of the limit. When that part is full it becomes the older part, which
/// [`older`](Log::older) shows as a second file (by convention `<name>.1`), and the part before is dropped. Offsets into
/// the whole stream stay valid.
#[derive(Clone)]
pub struct Log(Arc<Mutex<LogState>>);

struct LogState {
    newest: Vec<u8>,
    older: Vec<u8>,
    /// The number of bytes that were dropped.
    dropped: u64,
    /// The number of bytes before `newest`.
    before: u64,
    half: usize,
    modified: SystemTime,
    clock: Clock,
    /// Tells followers; there is none until the first comes.
    growth: Option<watch::Sender<u64>>,
}

impl Log {
    /// A log that holds at most `limit` bytes; `clock` says when it grows.
    pub fn new(limit: usize, clock: Clock) -> Self {
        let (newest, older) = (Vec::new(), Vec::new());
        let (half, growth) = (limit / 2, None);
        let modified = STARTED;
        Log(Arc::new(Mutex::new(LogState { newest, older, dropped: 0, before: 0, half, modified, clock, growth })))
    }

    /// Adds bytes at the end.
    pub fn append(&self, bytes: &[u8]) {
        let mut state = self.0.lock();
        state.newest.extend_from_slice(bytes);
        state.modified = state.clock.now();
        if state.newest.len() > state.half {
            state.rotate();
        }
        if let Some(growth) = &state.growth {
            growth.send_modify(|count| *count += 1);
        }
    }

    /// Makes the newest part the older one, as if it were full.
    pub fn rotate(&self) {
        self.0.lock().rotate();
    }

    /// Drops the older part.
    pub fn drop_older(&self) {
        let mut state = self.0.lock();
        state.dropped += std::mem::take(&mut state.older).len() as u64;
    }

    /// Adds a line.
    pub fn line(&self, line: &str) {
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.append(&bytes);
    }

    /// At most `size` bytes from `offset` of the whole stream, and the offset of the first of them: larger than `offset`
    /// if the bytes there were dropped.
    pub fn from(&self, offset: u64, size: usize) -> (u64, Vec<u8>) {
        let state = self.0.lock();
        let begin = offset.max(state.dropped);
        let all = state.older.iter().chain(&state.newest);
        (begin, all.skip((begin - state.dropped) as usize).take(size).copied().collect())
    }

    /// The first offset that is still held, and the offset after the last byte.
    pub fn range(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.dropped, state.before + state.newest.len() as u64)
    }

    /// The older part as a file.
    pub fn older(&self) -> OlderLog {
        OlderLog(self.clone())
    }
}

impl LogState {
    fn rotate(&mut self) {
        if self.newest.is_empty() {
            return; // the newest part is the older one already
        }
        let full = std::mem::take(&mut self.newest);
        self.dropped += self.older.len() as u64;
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
        Stat { size: state.newest.len() as u64, modified: state.modified }
    }

    fn growth(&self) -> Option<watch::Receiver<u64>> {
        Some(self.0.lock().growth.get_or_insert_with(|| watch::Sender::new(0)).subscribe())
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(self.clone()))
    }
}

impl Handle for Log {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(part(&self.0.lock().newest, offset, size))
    }
}

/// The older part of a [`Log`], as a file.
#[derive(Clone)]
pub struct OlderLog(Log);

impl File for OlderLog {
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

impl Handle for OlderLog {
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
    async fn a_follower_is_told_of_growth() {
        let log = Log::new(8, Clock::at(1));
        log.append(b"a");
        let mut growth = log.growth().unwrap();
        assert!(!growth.has_changed().unwrap());
        log.append(b"b");
        growth.changed().await.unwrap();
    }

    #[tokio::test]
    async fn the_older_part_is_a_second_file_and_offsets_stay_valid() {
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
        log.rotate();
        log.rotate();
        assert_eq!((log.range(), log.from(0, 9)), ((10, 11), (10, b"k".to_vec())));
        log.drop_older();
        assert_eq!((log.range(), log.from(0, 9)), ((11, 11), (11, Vec::new())));
    }
}
