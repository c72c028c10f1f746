//! The memory that the open files of each caller hold: unfinished commands, drafts, answers that are partly read.
//!
//! Each buffer has a limit of its own; this module limits all buffers of one caller together, so that no caller fills the
//! memory by opening many files. A caller above the limit is refused; others are not affected. [`Tree`](super::Tree) uses
//! it for every open file; it uses only the traits of the tree.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Answer, Caller, Handle, Identity, Kind};
use acheron_base::{Error, Result};

/// The limit for all open files of one caller, in bytes.
pub const MOST: usize = 128 << 20;

/// An answer of at most this length is always given: it may explain the refusal.
const SMALL: usize = 64 << 10;

/// Counts the bytes that open files hold, per caller.
#[derive(Default)]
pub struct OpenFileBuffers {
    held: Mutex<HashMap<Identity, usize>>,
    refused: AtomicU64,
}

impl OpenFileBuffers {
    /// The number of bytes held for all callers.
    pub fn total(&self) -> usize {
        self.held.lock().values().sum()
    }

    /// The number of requests that were refused because their caller was above the limit.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Wraps `handle` so that its buffers count for `caller`. Text files and logs buffer nothing and are returned as they
    /// are.
    pub fn counted(self: &Arc<Self>, caller: &Caller, kind: Kind, handle: Box<dyn Handle>) -> Box<dyn Handle> {
        if matches!(kind, Kind::Text | Kind::Log) {
            return handle;
        }
        let count = HandleCount { all: self.clone(), identity: caller.identity.clone(), counted: AtomicUsize::new(0) };
        Box::new(CountedHandle { inner: Arc::from(handle), count: Arc::new(count) })
    }

    fn change(&self, identity: &Identity, before: usize, after: usize) {
        let mut held = self.held.lock();
        let bytes = held.entry(identity.clone()).or_default();
        *bytes = (*bytes + after).saturating_sub(before);
        if *bytes == 0 {
            held.remove(identity);
        }
    }
}

/// The bytes that one handle holds.
struct HandleCount {
    all: Arc<OpenFileBuffers>,
    identity: Identity,
    counted: AtomicUsize,
}

impl HandleCount {
    fn set(&self, bytes: usize) {
        let before = self.counted.swap(bytes, Ordering::SeqCst);
        if before != bytes {
            self.all.change(&self.identity, before, bytes);
        }
    }

    /// Counts the buffer of a handle after a read. Refuses the answer if the read made the buffer grow above the limit.
    fn after_read(&self, handle: &dyn Handle, before: usize, bytes: Bytes) -> Result<Bytes> {
        let now = handle.buffered_bytes();
        self.set(now);
        // A reader that continues in its buffer holds no more than before.
        if now > before + SMALL
            && let Err(error) = self.check_room(0)
        {
            handle.discard_buffer();
            self.set(handle.buffered_bytes());
            return Err(error);
        }
        Ok(bytes)
    }

    /// Refuses if the caller would hold too much with `more` bytes.
    fn check_room(&self, more: usize) -> Result<()> {
        let held = self.all.held.lock().get(&self.identity).copied().unwrap_or(0);
        if held + more <= MOST {
            return Ok(());
        }
        self.all.refused.fetch_add(1, Ordering::Relaxed);
        Err(Error::budget_exceeded(format!(
            "the open files of {} hold {held} of {MOST} bytes of unfinished commands and unread answers: finish or close \
             some",
            self.identity
        )))
    }
}

impl Drop for HandleCount {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A handle whose buffers are counted.
struct CountedHandle {
    inner: Arc<dyn Handle>,
    count: Arc<HandleCount>,
}

impl CountedHandle {
    /// Counts again once the answer is there.
    fn count_after<T: Send + 'static>(&self, answer: Answer<T>) -> Answer<T> {
        if let Answer::Now(_) = answer {
            self.count.set(self.inner.buffered_bytes());
            return answer;
        }
        let (inner, count) = (self.inner.clone(), self.count.clone());
        answer.then(move |outcome| {
            count.set(inner.buffered_bytes());
            outcome
        })
    }

    /// Writes if there is room for `more` bytes. A write that is refused here leaves a hole, so nothing of the whole may be
    /// kept.
    fn write_within_limit(&self, more: usize, write: impl FnOnce() -> Answer<()>) -> Answer<()> {
        match self.count.check_room(more) {
            Ok(()) => self.count_after(write()),
            Err(error) => {
                self.inner.refuse(&error);
                self.count_after(Answer::refuse(error))
            }
        }
    }
}

impl Handle for CountedHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let before = self.inner.buffered_bytes();
        match self.inner.read(offset, size) {
            Answer::Now(read) => Answer::Now(read.and_then(|bytes| self.count.after_read(&*self.inner, before, bytes))),
            later => {
                let (inner, count) = (self.inner.clone(), self.count.clone());
                later.and(move |bytes| count.after_read(&*inner, before, bytes))
            }
        }
    }

    /// A caller above the limit learns the length by reading.
    fn length(&self) -> Answer<Option<u64>> {
        let (inner, count) = (self.inner.clone(), self.count.clone());
        self.inner.length().map(move |length| {
            count.set(inner.buffered_bytes());
            if inner.buffered_bytes() > SMALL && count.check_room(0).is_err() {
                inner.discard_buffer();
                count.set(inner.buffered_bytes());
                return None;
            }
            length
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> Answer<()> {
        self.write_within_limit(data.len(), || self.inner.write(offset, data))
    }

    fn flush(&self, by_opener: bool) -> Answer<()> {
        self.count_after(self.inner.flush(by_opener))
    }

    fn sync(&self) -> Answer<()> {
        self.count_after(self.inner.sync())
    }

    fn truncate(&self, size: u64) -> Answer<()> {
        let more = usize::try_from(size).unwrap_or(usize::MAX).saturating_sub(self.inner.buffered_bytes());
        self.write_within_limit(more, || self.inner.truncate(size))
    }

    fn readable(&self) -> Answer<()> {
        self.inner.readable()
    }

    fn poll_input(&self) -> Answer<()> {
        self.inner.poll_input()
    }

    fn buffered_bytes(&self) -> usize {
        self.inner.buffered_bytes()
    }

    fn discard_buffer(&self) {
        self.inner.discard_buffer();
    }

    fn refuse(&self, error: &Error) {
        self.inner.refuse(error);
    }

    fn closed(&self) {
        self.inner.closed();
    }
}

#[cfg(test)]
mod tests;
