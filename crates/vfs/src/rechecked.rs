//! An open file whose writer is asked again: a right that was taken away is gone from files that are open. The tree
//! wraps every file that takes commands, messages or versions in it; it uses the traits of the tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::{Access, AccessControl, Answer, Caller, Handle};
use acheron_base::{Error, Result};

/// A handle for which the access control is asked at each write, and when what was written is completed.
pub(super) struct RecheckedHandle {
    pub inner: Box<dyn Handle>,
    pub access: Arc<dyn AccessControl>,
    pub caller: Caller,
    pub action: Access,
    pub path: String,
    /// What was written takes effect later, when it is complete: a message or a version, not a command.
    pub completed_later: bool,
    /// The file itself has nobody to tell of a refusal.
    pub tells_refusals: bool,
    /// Something was written that is not complete.
    pub wrote: AtomicBool,
}

impl RecheckedHandle {
    /// Refuses, and lets nothing of the whole be kept.
    fn check(&self) -> Result<()> {
        let may = self.access.check(&self.caller, self.action, &self.path);
        may.inspect_err(|error| self.inner.refuse(error))
    }

    /// Checks before something that completes what was written.
    fn check_completion(&self) -> Result<()> {
        match self.completed_later && self.wrote.swap(false, Ordering::SeqCst) {
            true => self.check(),
            false => Ok(()),
        }
    }

    /// Has the host show a refusal of the file itself.
    fn told(&self, answer: Answer<()>) -> Answer<()> {
        if !self.tells_refusals {
            return answer;
        }
        let (access, caller, path) = (self.access.clone(), self.caller.clone(), self.path.clone());
        answer.then(move |outcome| outcome.inspect_err(|error| access.tell_refusal(&caller, &path, error)))
    }

    fn completing<T: Send + 'static>(&self, work: impl FnOnce() -> Answer<T>) -> Answer<T> {
        match self.check_completion() {
            Ok(()) => work(),
            Err(error) => Answer::refuse(error),
        }
    }
}

impl Handle for RecheckedHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        self.completing(|| self.inner.read(offset, size))
    }

    fn length(&self) -> Answer<Option<u64>> {
        self.inner.length()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Answer<()> {
        if let Err(error) = self.check() {
            return Answer::refuse(error);
        }
        self.wrote.store(true, Ordering::SeqCst);
        self.told(self.inner.write(offset, data))
    }

    fn flush(&self, by_opener: bool) -> Answer<()> {
        self.completing(|| self.told(self.inner.flush(by_opener)))
    }

    fn sync(&self) -> Answer<()> {
        self.completing(|| self.told(self.inner.sync()))
    }

    fn truncate(&self, size: u64) -> Answer<()> {
        if let Err(error) = self.check() {
            return Answer::refuse(error);
        }
        self.wrote.store(true, Ordering::SeqCst);
        self.told(self.inner.truncate(size))
    }

    fn readable(&self) -> Answer<()> {
        self.inner.readable()
    }

    fn poll_input(&self) -> Answer<()> {
        self.completing(|| self.inner.poll_input())
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
        _ = self.check_completion(); // nobody is left to be told; the refusal alone counts
        self.inner.closed();
    }
}
