//! Files that are worked out when they are read: live ones, and those that wait.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::{Answer, Caller, File, Handle, Kind, Open, STARTED, Stat, slice};
use acheron_base::Result;

type Source = dyn Fn(&Caller) -> Answer<Bytes> + Send + Sync;

/// A file whose bytes are made for each pass of a reader.
///
/// A pass begins with a read at offset 0; what it shows is kept until the next one, so that nobody sees two versions in
/// one pass.
pub struct Shown {
    kind: Kind,
    source: Arc<Source>,
    modified: Box<dyn Fn() -> SystemTime + Send + Sync>,
}

/// A fresh snapshot at each pass.
pub fn live(source: impl Fn(&Caller) -> Result<Bytes> + Send + Sync + 'static) -> Shown {
    shown(Kind::Live, move |caller| Answer::Now(source(caller)))
}

/// Parks its reader until the answer is there. The source is asked again by each pass, so it must be a level: what has
/// already happened answers at once.
pub fn waiting(source: impl Fn(&Caller) -> Answer<Bytes> + Send + Sync + 'static) -> Shown {
    shown(Kind::Waiting, source)
}

fn shown(kind: Kind, source: impl Fn(&Caller) -> Answer<Bytes> + Send + Sync + 'static) -> Shown {
    Shown { kind, source: Arc::new(source), modified: Box::new(|| STARTED) }
}

impl Shown {
    /// A file that is fetched, from a disk or a database, and never waits for anything to happen.
    pub fn fetched(source: impl Fn(&Caller) -> Answer<Bytes> + Send + Sync + 'static) -> Shown {
        shown(Kind::Live, source)
    }

    pub fn modified_at(mut self, when: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.modified = Box::new(when);
        self
    }
}

impl File for Shown {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn stat(&self) -> Stat {
        Stat { size: 0, modified: (self.modified)() }
    }

    fn open(&self, caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(Pass { source: self.source.clone(), caller: caller.clone(), seen: Arc::default() }))
    }
}

struct Pass {
    source: Arc<Source>,
    caller: Caller,
    /// What this pass shows.
    seen: Arc<Mutex<Option<Bytes>>>,
}

impl Handle for Pass {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        if offset > 0
            && let Some(seen) = &*self.seen.lock()
        {
            return Answer::ok(slice(seen, offset, size));
        }
        let seen = self.seen.clone();
        (self.source)(&self.caller).map(move |bytes| {
            *seen.lock() = Some(bytes.clone());
            slice(&bytes, offset, size)
        })
    }

    fn keeps(&self) -> usize {
        self.seen.lock().as_ref().map_or(0, Bytes::len)
    }

    fn let_go(&self) {
        *self.seen.lock() = None;
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
        let handle = file.open(&Caller::named("operator"), Open::READ).unwrap();
        assert_eq!(handle.read(0, 1).wait().await.unwrap(), "1");
        assert_eq!(handle.read(1, 9).wait().await.unwrap(), "0");
        assert_eq!(handle.read(2, 9).wait().await.unwrap(), "");
        assert_eq!(handle.read(0, 9).wait().await.unwrap(), "11");
    }
}
