//! Files of fixed text, and of text that changes now and then.

use std::sync::{PoisonError, RwLock};
use std::time::SystemTime;

use bytes::Bytes;

use super::{Answer, Bell, Caller, File, Handle, Kind, Open, STARTED, Stat, slice};
use crate::error::Result;

/// A file of fixed text.
pub fn text(bytes: impl Into<Bytes>) -> Page {
    Page::new(bytes, *STARTED)
}

/// Text that its owner may replace. The kernel keeps the bytes until the bell rings, so reading it again costs nothing;
/// who has it open sees the new text too.
pub struct Page {
    now: RwLock<std::sync::Arc<Version>>,
    bell: Bell,
}

struct Version {
    bytes: Bytes,
    modified: SystemTime,
}

impl Page {
    pub fn new(bytes: impl Into<Bytes>, modified: SystemTime) -> Self {
        let version = Version { bytes: bytes.into(), modified };
        Page { now: RwLock::new(std::sync::Arc::new(version)), bell: Bell::default() }
    }

    pub fn set(&self, bytes: impl Into<Bytes>, modified: SystemTime) {
        let version = Version { bytes: bytes.into(), modified };
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = std::sync::Arc::new(version);
        self.bell.bytes();
    }

    pub fn bytes(&self) -> Bytes {
        self.version().bytes.clone()
    }

    fn version(&self) -> std::sync::Arc<Version> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl File for std::sync::Arc<Page> {
    fn kind(&self) -> Kind {
        Kind::Text
    }

    fn stat(&self) -> Stat {
        let version = self.version();
        Stat { size: version.bytes.len() as u64, modified: version.modified }
    }

    fn bell(&self) -> Option<&Bell> {
        Some(&self.bell)
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(Reader(self.clone())))
    }
}

/// A page that nobody else holds cannot change.
impl File for Page {
    fn kind(&self) -> Kind {
        Kind::Text
    }

    fn stat(&self) -> Stat {
        let version = self.version();
        Stat { size: version.bytes.len() as u64, modified: version.modified }
    }

    fn bell(&self) -> Option<&Bell> {
        Some(&self.bell)
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(Fixed(self.bytes())))
    }
}

struct Reader(std::sync::Arc<Page>);

impl Handle for Reader {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(slice(&self.0.bytes(), offset, size))
    }
}

struct Fixed(Bytes);

impl Handle for Fixed {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(slice(&self.0, offset, size))
    }
}
