//! The file that is kept: each flush of a writer makes a version.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::{Answer, Bell, Caller, File, Handle, Kind, Open, Stat, slice};
use crate::error::{Error, Result};

/// Keeps versions.
pub trait Keep: Send + Sync + 'static {
    fn stat(&self) -> Stat;

    fn bell(&self) -> Option<&Bell> {
        None
    }

    /// The bytes as they are at this moment, even if the answer is fetched later.
    fn latest(&self) -> Answer<Bytes>;

    /// Whether this caller may write at all; asked at the opening, where a refusal is heard.
    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    /// Makes `bytes` the newest version.
    fn keep(&self, caller: &Caller, bytes: Bytes) -> Answer<()>;

    fn limit(&self) -> usize {
        super::control::LIMIT
    }
}

/// A file of versions. Reading shows the latest; writing makes one more, which is safe when `close` or `fsync` returns.
pub struct Item(Arc<dyn Keep>);

impl Item {
    pub fn new(keep: Arc<dyn Keep>) -> Self {
        Item(keep)
    }
}

impl File for Item {
    fn kind(&self) -> Kind {
        Kind::Item
    }

    fn stat(&self) -> Stat {
        self.0.stat()
    }

    fn bell(&self) -> Option<&Bell> {
        self.0.bell()
    }

    fn open(&self, caller: &Caller, how: Open) -> Result<Box<dyn Handle>> {
        if how.write {
            self.0.may(caller)?;
        }
        let draft = match (how.write, how.truncate) {
            (false, _) => Draft::None,
            (true, true) => Draft::Changed(Vec::new()),
            (true, false) => Draft::Opened(Mutex::new(Some(self.0.latest()))),
        };
        let (keep, caller) = (self.0.clone(), caller.clone());
        Ok(Box::new(Version {
            keep,
            caller,
            append: how.append,
            draft: Arc::new(Mutex::new(draft)),
            seen: Arc::default(),
        }))
    }
}

struct Version {
    keep: Arc<dyn Keep>,
    caller: Caller,
    append: bool,
    draft: Arc<Mutex<Draft>>,
    seen: Arc<Mutex<Option<Bytes>>>,
}

/// What the writer has made of the bytes.
enum Draft {
    /// Only reads.
    None,
    /// What stood there at the opening, not looked at yet.
    Opened(Mutex<Option<Answer<Bytes>>>),
    /// The same as a version that is kept.
    Same(Vec<u8>),
    Changed(Vec<u8>),
}

impl Version {
    /// Changes the draft, once the bytes that it begins with are there.
    fn change(&self, change: impl FnOnce(&mut Vec<u8>) -> Result<()> + Send + 'static) -> Answer<()> {
        let mut draft = self.draft.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = match &mut *draft {
            Draft::None => return Answer::refuse(Error::forbidden("the file was not opened for writing")),
            Draft::Same(bytes) | Draft::Changed(bytes) => {
                let mut bytes = std::mem::take(bytes);
                let outcome = change(&mut bytes);
                *draft = Draft::Changed(bytes);
                return Answer::Now(outcome);
            }
            Draft::Opened(latest) => latest.get_mut().unwrap_or_else(PoisonError::into_inner).take(),
        };
        let draft = self.draft.clone();
        begun.unwrap_or_else(|| Answer::refuse(Error::busy("the file is being opened"))).and(move |latest| {
            let mut bytes = latest.to_vec();
            let outcome = change(&mut bytes);
            *draft.lock().unwrap_or_else(PoisonError::into_inner) = Draft::Changed(bytes);
            outcome
        })
    }

    /// Makes a version of what was changed.
    fn save(&self) -> Answer<()> {
        let mut draft = self.draft.lock().unwrap_or_else(PoisonError::into_inner);
        let Draft::Changed(bytes) = &mut *draft else { return Answer::ok(()) };
        let bytes = std::mem::take(bytes);
        let version = Bytes::from(bytes.clone());
        *draft = Draft::Same(bytes);
        drop(draft);
        self.keep.keep(&self.caller, version)
    }
}

impl Handle for Version {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        if let Draft::Same(bytes) | Draft::Changed(bytes) = &*self.draft.lock().unwrap_or_else(PoisonError::into_inner)
        {
            return Answer::ok(slice(&Bytes::copy_from_slice(bytes), offset, size));
        }
        if offset > 0
            && let Some(seen) = &*self.seen.lock().unwrap_or_else(PoisonError::into_inner)
        {
            return Answer::ok(slice(seen, offset, size));
        }
        let seen = self.seen.clone();
        self.keep.latest().map(move |bytes| {
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes.clone());
            slice(&bytes, offset, size)
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> Answer<()> {
        let (data, append, limit) = (data.to_vec(), self.append, self.keep.limit());
        self.change(move |bytes| {
            let start = match append {
                true => bytes.len(),
                false => usize::try_from(offset).unwrap_or(usize::MAX),
            };
            let end = start.saturating_add(data.len());
            if end > limit {
                return Err(Error::too_large(format!("at most {limit} bytes are kept in one item")));
            }
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(&data);
            Ok(())
        })
    }

    fn truncate(&self, size: u64) -> Result<()> {
        let limit = self.keep.limit();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > limit {
            return Err(Error::too_large(format!("at most {limit} bytes are kept in one item")));
        }
        match self.change(move |bytes| {
            bytes.resize(size, 0);
            Ok(())
        }) {
            Answer::Now(outcome) => outcome,
            // Cutting to nothing needs no bytes; anything else would have to wait for them.
            _ if size == 0 => {
                *self.draft.lock().unwrap_or_else(PoisonError::into_inner) = Draft::Changed(Vec::new());
                Ok(())
            }
            _ => Err(Error::busy("read the file before cutting it")),
        }
    }

    fn flush(&self, by_opener: bool) -> Answer<()> {
        match by_opener {
            true => self.save(),
            false => Answer::ok(()),
        }
    }

    fn sync(&self) -> Answer<()> {
        self.save()
    }

    fn closed(&self) {
        if let Answer::Soon(saved) | Answer::Later(saved) = self.save().looked_at()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(saved);
        }
    }
}
