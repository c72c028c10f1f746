//! A file with versions: each flush of a writer makes one. Uses only the traits of the tree.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Answer, Caller, ChangeNotifier, File, Handle, Kind, Open, Stat, slice};
use acheron_base::{Error, Result};

/// The storage behind an [`Item`].
pub trait VersionStore: Send + Sync + 'static {
    /// The size and time of the latest version.
    fn stat(&self) -> Stat;

    /// Whether [`stat`](VersionStore::stat) answers from memory.
    fn has_quick_stat(&self) -> bool {
        true
    }

    /// Announces new versions.
    fn notifier(&self) -> Option<&ChangeNotifier> {
        None
    }

    /// The bytes at the time of this call, even if they are fetched later.
    fn latest(&self) -> Answer<Bytes>;

    /// Refuses a caller that may not write at all. Asked when the file is opened, where the error is reported.
    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    /// Refuses a draft that no further write can make a version. Asked at every write, whose error even a shell reports;
    /// it reports none of `close(2)`. The last write was at `_new`: whoever can goes by that alone, for a long file may be
    /// written byte by byte.
    fn check(&self, _caller: &Caller, _draft: &[u8], _new: Range<usize>) -> Result<()> {
        Ok(())
    }

    /// Makes `bytes` the newest version.
    fn save(&self, caller: &Caller, bytes: Bytes) -> Answer<()>;

    /// The length limit of a version, in bytes.
    fn limit(&self) -> usize {
        super::control::LIMIT
    }
}

/// A file with versions. Reading shows the latest; writing makes a new one, which is stored when `close(2)` or `fsync(2)`
/// returns.
pub struct Item(Arc<dyn VersionStore>);

impl Item {
    /// A file whose versions are in `store`.
    pub fn new(store: Arc<dyn VersionStore>) -> Self {
        Item(store)
    }
}

impl File for Item {
    fn kind(&self) -> Kind {
        Kind::Item
    }

    fn stat(&self) -> Stat {
        self.0.stat()
    }

    fn has_quick_stat(&self) -> bool {
        self.0.has_quick_stat()
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        self.0.notifier()
    }

    fn open(&self, caller: &Caller, how: Open) -> Result<Box<dyn Handle>> {
        if how.write {
            self.0.may(caller)?;
        }
        let draft = match (how.write, how.truncate) {
            (false, _) => Draft::None,
            (true, true) => Draft::Truncated { flushed: false },
            (true, false) => Draft::Opened(Mutex::new(Some(self.0.latest()))),
        };
        let (store, caller) = (self.0.clone(), caller.clone());
        Ok(Box::new(ItemHandle {
            store,
            caller,
            append: how.append,
            draft: Arc::new(Mutex::new(draft)),
            seen: Arc::default(),
        }))
    }
}

struct ItemHandle {
    store: Arc<dyn VersionStore>,
    caller: Caller,
    append: bool,
    draft: Arc<Mutex<Draft>>,
    seen: Arc<Mutex<Option<Bytes>>>,
}

/// The next version, as far as it is written.
enum Draft {
    /// The file is only read.
    None,
    /// The version at the time of the opening, not fetched yet.
    Opened(Mutex<Option<Answer<Bytes>>>),
    /// Emptied by the opening, and nothing written yet. A shell flushes once before it writes: that makes no version.
    Truncated {
        flushed: bool,
    },
    /// Equal to a stored version.
    Saved(Vec<u8>),
    Changed(Vec<u8>),
    /// A write failed: the draft is incomplete and is never stored.
    Failed(Error),
}

impl Draft {
    fn changed(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> (Draft, Result<()>) {
        match change(&mut bytes) {
            Ok(()) => (Draft::Changed(bytes), Ok(())),
            Err(error) => (Draft::Failed(error.clone()), Err(error)),
        }
    }
}

impl ItemHandle {
    /// Changes the draft once its first bytes are fetched.
    fn change(&self, change: impl FnOnce(&mut Vec<u8>) -> Result<()> + Send + 'static) -> Answer<()> {
        let mut draft = self.draft.lock();
        let first = match &mut *draft {
            Draft::None => return Answer::refuse(Error::forbidden("the file was not opened for writing")),
            Draft::Failed(error) => return Answer::refuse(error.clone()),
            Draft::Truncated { .. } => {
                let (next, outcome) = Draft::changed(Vec::new(), change);
                *draft = next;
                return Answer::Now(outcome);
            }
            Draft::Saved(bytes) | Draft::Changed(bytes) => {
                let (next, outcome) = Draft::changed(std::mem::take(bytes), change);
                *draft = next;
                return Answer::Now(outcome);
            }
            Draft::Opened(latest) => latest.get_mut().take(),
        };
        // If the bytes are there already, the draft changes before this returns.
        drop(draft);
        let Some(first) = first else { return Answer::refuse(Error::busy("the file is being opened")) };
        let (draft, store) = (self.draft.clone(), self.store.clone());
        first.then(move |latest| {
            let (next, outcome) = match latest {
                Ok(latest) => Draft::changed(latest.to_vec(), change),
                // The writer gets the error and may try again: then the bytes are fetched again.
                Err(error) => (Draft::Opened(Mutex::new(Some(store.latest()))), Err(error)),
            };
            *draft.lock() = next;
            outcome
        })
    }

    /// Stores a changed draft as a version. After a failure the draft stays changed, so that the writer, who gets the
    /// error, can try again.
    fn save(&self) -> Answer<()> {
        let mut draft = self.draft.lock();
        let bytes = match &mut *draft {
            Draft::Changed(bytes) => std::mem::take(bytes),
            Draft::Truncated { .. } => Vec::new(),
            Draft::Failed(error) => return Answer::refuse(error.clone()),
            Draft::None | Draft::Opened(_) | Draft::Saved(_) => return Answer::ok(()),
        };
        let version = Bytes::from(bytes.clone());
        *draft = Draft::Saved(bytes);
        drop(draft);
        let draft = self.draft.clone();
        self.store.save(&self.caller, version).then(move |saved| {
            let mut draft = draft.lock();
            if let (Err(_), Draft::Saved(bytes)) = (&saved, &mut *draft) {
                *draft = Draft::Changed(std::mem::take(bytes));
            }
            saved
        })
    }
}

impl Handle for ItemHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        match &*self.draft.lock() {
            Draft::Saved(bytes) | Draft::Changed(bytes) => {
                return Answer::ok(slice(&Bytes::copy_from_slice(bytes), offset, size));
            }
            Draft::Truncated { .. } => return Answer::ok(Bytes::new()),
            Draft::Failed(error) => return Answer::refuse(error.clone()),
            Draft::None | Draft::Opened(_) => (),
        }
        if offset > 0
            && let Some(seen) = &*self.seen.lock()
        {
            return Answer::ok(slice(seen, offset, size));
        }
        let seen = self.seen.clone();
        self.store.latest().map(move |bytes| {
            *seen.lock() = Some(bytes.clone());
            slice(&bytes, offset, size)
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> Answer<()> {
        let (data, append, limit) = (data.to_vec(), self.append, self.store.limit());
        let (store, caller) = (self.store.clone(), self.caller.clone());
        self.change(move |bytes| {
            let start = match append {
                true => bytes.len(),
                false => usize::try_from(offset).unwrap_or(usize::MAX),
            };
            let end = start.saturating_add(data.len());
            if end > limit {
                return Err(Error::too_large(format!("an item has at most {limit} bytes")));
            }
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(&data);
            store.check(&caller, bytes, start..end)
        })
    }

    fn truncate(&self, size: u64) -> Answer<()> {
        let limit = self.store.limit();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > limit {
            return Answer::refuse(Error::too_large(format!("an item has at most {limit} bytes")));
        }
        self.change(move |bytes| {
            bytes.resize(size, 0);
            Ok(())
        })
    }

    fn flush(&self, by_opener: bool) -> Answer<()> {
        if !by_opener {
            return Answer::ok(());
        }
        if let Draft::Truncated { flushed: flushed @ false } = &mut *self.draft.lock() {
            *flushed = true;
            return Answer::ok(());
        }
        self.save()
    }

    fn sync(&self) -> Answer<()> {
        self.save()
    }

    fn buffered_bytes(&self) -> usize {
        let draft = match &*self.draft.lock() {
            Draft::Saved(bytes) | Draft::Changed(bytes) => bytes.len(),
            Draft::None | Draft::Opened(_) | Draft::Truncated { .. } | Draft::Failed(_) => 0,
        };
        draft + self.seen.lock().as_ref().map_or(0, Bytes::len)
    }

    fn discard_buffer(&self) {
        *self.seen.lock() = None;
    }

    fn refuse(&self, error: &Error) {
        *self.draft.lock() = Draft::Failed(error.clone());
    }

    fn closed(&self) {
        if let Answer::Soon(saved) | Answer::Later(saved) = self.save().poll_once()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(saved);
        }
    }
}

#[cfg(test)]
mod tests;
