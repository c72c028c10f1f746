//! `next.json`: the shared reader of an agent's events.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::EventLog;
use super::wait::{Armed, WaitMatch, not_configured};
use super::waiter::{Waiter, armed_selectors};
use crate::jobs::Jobs;
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

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(NextReader { event_log: self.event_log.clone(), jobs: self.jobs.clone(), pass: Arc::default() }))
    }
}

struct NextReader {
    event_log: Arc<EventLog>,
    jobs: Arc<Jobs>,
    pass: Arc<Mutex<ReadPass>>,
}

#[derive(Default)]
struct ReadPass {
    bytes: Option<Bytes>,
    /// Acknowledged when the last byte has been read.
    found: Option<(Waiter, WaitMatch)>,
}

impl NextReader {
    fn waiter(&self) -> Result<Option<Waiter>> {
        let shared = self.event_log.shared();
        let Some(wait) = shared.wait else { return Ok(None) };
        let armed = Armed {
            selectors: armed_selectors(&self.event_log.agent, &wait)?,
            cursor: shared.cursor.max(shared.passed),
            armed_at_ms: shared.armed_at_ms,
            fired: shared.fired.into_iter().collect(),
            turn: self.event_log.turn(),
        };
        Ok(Some(Waiter::shared(&self.event_log, &self.jobs, armed, &wait, shared.arming)))
    }
}

impl ReadPass {
    fn part(&mut self, offset: u64, size: usize) -> Bytes {
        let Some(bytes) = &self.bytes else { return Bytes::new() };
        let part = slice(bytes, offset, size);
        if offset.saturating_add(part.len() as u64) >= bytes.len() as u64
            && let Some((waiter, found)) = self.found.take()
        {
            waiter.acknowledge(&found);
        }
        part
    }
}

impl Handle for NextReader {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let mut pass = self.pass.lock();
        if offset > 0 && pass.bytes.is_some() {
            return Answer::ok(pass.part(offset, size));
        }
        drop(pass);
        let waiter = match self.waiter() {
            Ok(Some(waiter)) => waiter,
            Ok(None) => {
                let mut pass = self.pass.lock();
                pass.bytes = Some(line(&not_configured()));
                return Answer::ok(pass.part(offset, size));
            }
            Err(error) => return Answer::refuse(error),
        };
        let pass = self.pass.clone();
        Answer::later(async move {
            let (found, body) = waiter.next().await?;
            let mut pass = pass.lock();
            pass.bytes = Some(line(&body));
            pass.found = found.map(|found| (waiter, found));
            Ok(pass.part(offset, size))
        })
    }

    fn readable(&self) -> Answer<()> {
        match self.waiter() {
            Ok(Some(waiter)) => Answer::later(async move { waiter.next().await.map(|_| ()) }),
            _ => Answer::ok(()),
        }
    }
}
