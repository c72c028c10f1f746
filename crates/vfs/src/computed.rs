//! Files that are computed when they are read: live ones, and those that wait. Uses only the traits of the tree.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Answer, Caller, File, Handle, Kind, Open, STARTED, Stat, slice};
use acheron_base::Result;

type Compute = dyn Fn(&Caller) -> Answer<Bytes> + Send + Sync;

/// A file whose bytes are computed for each pass of a reader.
///
/// A pass begins with a read at offset 0. Its bytes are kept until the next pass, so that no pass shows two versions. The
/// first pass shows the bytes that [`Handle::length`] has counted, if it was asked.
pub struct ComputedFile {
    kind: Kind,
    source: Arc<Compute>,
    modified: Box<dyn Fn() -> SystemTime + Send + Sync>,
}

/// A file that shows a fresh snapshot at each pass.
pub fn live(source: impl Fn(&Caller) -> Result<Bytes> + Send + Sync + 'static) -> ComputedFile {
    computed(Kind::Live, move |caller| Answer::Now(source(caller)))
}

/// A file whose reader waits for the answer. The source is asked again for each pass, so it must be level-triggered: once
/// the event has occurred, it answers immediately.
pub fn waiting(source: impl Fn(&Caller) -> Answer<Bytes> + Send + Sync + 'static) -> ComputedFile {
    computed(Kind::Waiting, source)
}

fn computed(kind: Kind, source: impl Fn(&Caller) -> Answer<Bytes> + Send + Sync + 'static) -> ComputedFile {
    ComputedFile { kind, source: Arc::new(source), modified: Box::new(|| STARTED) }
}

impl ComputedFile {
    /// A file that is fetched from a disk or a database, and never waits for an event.
    pub fn fetched(source: impl Fn(&Caller) -> Answer<Bytes> + Send + Sync + 'static) -> ComputedFile {
        computed(Kind::Live, source)
    }

    /// Sets the source of the modification time.
    pub fn modified_at(mut self, when: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.modified = Box::new(when);
        self
    }
}

impl File for ComputedFile {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn stat(&self) -> Stat {
        Stat { size: 0, modified: (self.modified)() }
    }

    fn open(&self, caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(ComputedHandle { source: self.source.clone(), caller: caller.clone(), seen: Arc::default() }))
    }
}

struct ComputedHandle {
    source: Arc<Compute>,
    caller: Caller,
    seen: Arc<Mutex<Snapshot>>,
}

/// The bytes of the current pass.
#[derive(Default)]
struct Snapshot {
    bytes: Option<Bytes>,
    /// They were counted and not read yet.
    unread: bool,
}

impl Handle for ComputedHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let mut seen = self.seen.lock();
        let is_counted = std::mem::take(&mut seen.unread);
        if (offset > 0 || is_counted)
            && let Some(bytes) = &seen.bytes
        {
            return Answer::ok(slice(bytes, offset, size));
        }
        drop(seen);
        let seen = self.seen.clone();
        (self.source)(&self.caller).map(move |bytes| {
            *seen.lock() = Snapshot { bytes: Some(bytes.clone()), unread: false };
            slice(&bytes, offset, size)
        })
    }

    /// A failure is told by the read.
    fn length(&self) -> Answer<Option<u64>> {
        let answer = (self.source)(&self.caller).poll_once();
        if let Answer::Later(_) = answer {
            return Answer::ok(None);
        }
        let seen = self.seen.clone();
        answer.then(move |bytes| {
            let length = bytes.as_ref().ok().map(|bytes| bytes.len() as u64);
            *seen.lock() = Snapshot { unread: length.is_some(), bytes: bytes.ok() };
            Ok(length)
        })
    }

    fn buffered_bytes(&self) -> usize {
        self.seen.lock().bytes.as_ref().map_or(0, Bytes::len)
    }

    fn discard_buffer(&self) {
        *self.seen.lock() = Snapshot::default();
    }

    fn readable(&self) -> Answer<()> {
        (self.source)(&self.caller).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn one_pass_shows_one_version() {
        let count = AtomicU32::new(10);
        let file = live(move |_| Ok(count.fetch_add(1, Ordering::SeqCst).to_string().into()));
        let handle = file.open(&Caller::named("ada"), Open::READ).unwrap();
        assert_eq!(handle.read(0, 1).wait().await.unwrap(), "1");
        assert_eq!(handle.read(1, 9).wait().await.unwrap(), "0");
        assert_eq!(handle.read(2, 9).wait().await.unwrap(), "");
        assert_eq!(handle.read(0, 9).wait().await.unwrap(), "11");
    }

    #[tokio::test]
    async fn the_first_pass_shows_the_bytes_that_were_counted() {
        let count = AtomicU32::new(9);
        let file = live(move |_| Ok(count.fetch_add(1, Ordering::SeqCst).to_string().into()));
        let handle = file.open(&Caller::named("ada"), Open::READ).unwrap();
        assert_eq!(handle.length().wait().await.unwrap(), Some(1));
        assert_eq!(handle.read(0, 1).wait().await.unwrap(), "9");
        assert_eq!(handle.read(1, 9).wait().await.unwrap(), "");
        assert_eq!(handle.read(0, 9).wait().await.unwrap(), "10");
    }

    #[tokio::test]
    async fn a_file_that_waits_has_no_length_yet() {
        let file = waiting(|_| Answer::later(std::future::pending()));
        let handle = file.open(&Caller::named("ada"), Open::READ).unwrap();
        assert_eq!(handle.length().wait().await.unwrap(), None);
    }
}
