//! Files of fixed text, and of text that changes now and then.

use parking_lot::RwLock;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::{Answer, Caller, ChangeNotifier, File, Handle, Kind, Open, STARTED, Stat, slice};
use acheron_base::Result;

/// A file of fixed text.
pub fn text(bytes: impl Into<Bytes>) -> Page {
    Page::new(bytes, STARTED)
}

/// Text that its owner may replace. The kernel keeps the bytes until the bell rings, so reading it again costs nothing;
/// who has it open sees the new text too. A clone is the same page.
#[derive(Clone)]
pub struct Page(Arc<Paper>);

struct Paper {
    now: RwLock<Arc<Version>>,
    notifier: ChangeNotifier,
}

struct Version {
    bytes: Bytes,
    modified: SystemTime,
}

impl Page {
    pub fn new(bytes: impl Into<Bytes>, modified: SystemTime) -> Self {
        let version = Version { bytes: bytes.into(), modified };
        Page(Arc::new(Paper { now: RwLock::new(Arc::new(version)), notifier: ChangeNotifier::default() }))
    }

    pub fn set(&self, bytes: impl Into<Bytes>, modified: SystemTime) {
        let version = Version { bytes: bytes.into(), modified };
        *self.0.now.write() = Arc::new(version);
        self.0.notifier.bytes();
    }

    pub fn bytes(&self) -> Bytes {
        self.version().bytes.clone()
    }

    fn version(&self) -> Arc<Version> {
        self.0.now.read().clone()
    }
}

impl File for Page {
    fn kind(&self) -> Kind {
        Kind::Text
    }

    fn stat(&self) -> Stat {
        let version = self.version();
        Stat { size: version.bytes.len() as u64, modified: version.modified }
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        Some(&self.0.notifier)
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(Reader(self.clone())))
    }
}

struct Reader(Page);

impl Handle for Reader {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(slice(&self.0.bytes(), offset, size))
    }
}
