//! `next.json`: the shared reader of an agent's events.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::EventLog;
use super::wait::{Armed, WaitMatch, not_configured};
use super::waiter::Waiter;
use crate::jobs::Jobs;
use crate::policy::PrincipalCaller as _;
use acheron_base::Result;
use acheron_vfs::{Answer, Caller, File, Handle, Kind, Open, line, slice};

/// Waits for the paths that were last written to `wait.json`.
pub struct NextFile {
    pub event_log: Arc<EventLog>,
    pub jobs: Arc<Jobs>,
}

impl File for NextFile {
    fn kind(&self) -> Kind {
        Kind::Waiting
    }

    /// The close acknowledges the event.
    fn flushed_by_readers(&self) -> bool {
        true
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(NextReader { event_log: self.event_log.clone(), jobs: self.jobs.clone(), pass: Arc::default() }))
    }
}

struct NextReader {
    event_log: Arc<EventLog>,
    jobs: Arc<Jobs>,
    pass: Arc<Mutex<ReadPass>>,
}

/// One event on its way to the reader.
///
/// A read that returns the last byte does not acknowledge the event: if the host dies now, the answer may not arrive, or
/// the read that looks for the end of the file fails, and the reader drops what it has. A reader that closes the file, or
/// starts to read it again, has the event.
#[derive(Default)]
struct ReadPass {
    bytes: Option<Bytes>,
    found: Option<(Waiter, WaitMatch)>,
    /// The last byte was given out.
    complete: bool,
    /// The arming of which this reader had an event: it stays, and waits for more.
    had: Option<u64>,
}

impl NextReader {
    /// The shared wait and its progress.
    fn armed(&self) -> Result<Option<SharedArming>> {
        let shared = self.event_log.shared();
        let Some(wait) = shared.wait else { return Ok(None) };
        // A program that copies the tree must not wait for what was delivered already.
        let over = shared.delivered && self.pass.lock().had != Some(shared.arming);
        let armed = Armed {
            selectors: shared.selectors?,
            cursor: shared.cursor.max(shared.passed),
            armed_at_ms: shared.armed_at_ms,
            fired: shared.fired.into_iter().collect(),
            turn: self.event_log.turn(),
            watched: shared.watched.clone().unwrap_or_default(),
        };
        let timeout_ms = if over { 0 } else { wait.timeout_ms };
        let is_watched = shared.watched.is_some();
        Ok(Some(SharedArming { armed, arming: shared.arming, timeout_ms, is_watched }))
    }
}

/// The shared wait as one reader finds it.
struct SharedArming {
    armed: Armed,
    arming: u64,
    timeout_ms: u64,
    /// Its paths are being watched; not after a restart.
    is_watched: bool,
}

impl SharedArming {
    /// What is to be waited for, with its paths watched.
    async fn watched(self, event_log: &Arc<EventLog>) -> Result<Armed> {
        if self.is_watched {
            return Ok(self.armed);
        }
        let watched = event_log.watch(&Caller::agent(&event_log.agent), &self.armed.selectors).await?;
        event_log.watches(self.arming, &watched);
        Ok(Armed { watched, ..self.armed })
    }
}

impl ReadPass {
    fn part(&mut self, offset: u64, size: usize) -> Bytes {
        let Some(bytes) = &self.bytes else { return Bytes::new() };
        let part = slice(bytes, offset, size);
        self.complete |= offset.saturating_add(part.len() as u64) >= bytes.len() as u64;
        part
    }

    fn start(&mut self, bytes: Bytes, found: Option<(Waiter, WaitMatch)>) {
        *self = ReadPass { bytes: Some(bytes), found, complete: false, had: self.had };
    }

    /// The reader has what it was given.
    fn end(&mut self) {
        if self.complete
            && let Some((waiter, found)) = self.found.take()
        {
            self.had = waiter.arming();
            waiter.acknowledge(&found);
        }
    }

    /// The match that [`end`](Self::end) will acknowledge for this arming.
    fn unacknowledged(&self, arming: u64) -> Option<&WaitMatch> {
        let (waiter, found) = self.found.as_ref()?;
        (self.complete && waiter.serves(arming)).then_some(found)
    }
}

impl Handle for NextReader {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let mut pass = self.pass.lock();
        if offset > 0 && pass.bytes.is_some() {
            return Answer::ok(pass.part(offset, size));
        }
        pass.end();
        drop(pass);
        let shared = match self.armed() {
            Ok(Some(shared)) => shared,
            Ok(None) => {
                let mut pass = self.pass.lock();
                pass.start(line(&not_configured()), None);
                return Answer::ok(pass.part(offset, size));
            }
            Err(error) => return Answer::refuse(error),
        };
        let (pass, event_log, jobs) = (self.pass.clone(), self.event_log.clone(), self.jobs.clone());
        Answer::later(async move {
            let (timeout_ms, arming) = (shared.timeout_ms, shared.arming);
            let waiter = Waiter::shared(&event_log, &jobs, shared.watched(&event_log).await?, timeout_ms, arming);
            let (found, body) = waiter.next().await?;
            let mut pass = pass.lock();
            pass.start(line(&body), found.map(|found| (waiter, found)));
            Ok(pass.part(offset, size))
        })
    }

    /// Only of the answer that is always the same.
    fn length(&self) -> Answer<Option<u64>> {
        Answer::ok(matches!(self.armed(), Ok(None)).then(|| line(&not_configured()).len() as u64))
    }

    fn flush(&self, _by_opener: bool) -> Answer<()> {
        self.pass.lock().end();
        Answer::ok(())
    }

    /// Does not count the event that this reader has: its next read acknowledges that one.
    fn readable(&self) -> Answer<()> {
        let Ok(Some(mut shared)) = self.armed() else { return Answer::ok(()) };
        if let Some(found) = self.pass.lock().unacknowledged(shared.arming) {
            shared.armed.acknowledge(found);
        }
        // It does not share its progress, because others have not read that event.
        let (event_log, jobs, timeout_ms) = (self.event_log.clone(), self.jobs.clone(), shared.timeout_ms);
        Answer::later(async move {
            let armed = shared.watched(&event_log).await?;
            Waiter::new(&event_log, &jobs, armed, Some(timeout_ms)).next().await.map(|_| ())
        })
    }

    fn closed(&self) {
        self.pass.lock().end();
    }
}
