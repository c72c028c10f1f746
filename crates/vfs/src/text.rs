//! Files of fixed text, and of text that changes occasionally. Uses only the traits of the tree.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::RwLock;

use super::{Answer, Caller, ChangeNotifier, File, Handle, Kind, Open, STARTED, Stat, slice};
use acheron_base::Result;

/// A file of fixed text.
pub fn text(bytes: impl Into<Bytes>) -> TextFile {
    TextFile::new(bytes, STARTED)
}

/// Text that its owner may replace. The kernel caches the bytes until they change, so reading it again costs nothing;
/// an open handle reads the new text too. A clone is the same file.
#[derive(Clone)]
pub struct TextFile(Arc<Shared>);

struct Shared {
    current: RwLock<Arc<TextVersion>>,
    notifier: ChangeNotifier,
}

struct TextVersion {
    bytes: Bytes,
    modified: SystemTime,
}

impl TextFile {
    /// A file with these bytes and this modification time.
    pub fn new(bytes: impl Into<Bytes>, modified: SystemTime) -> Self {
        let version = TextVersion { bytes: bytes.into(), modified };
        TextFile(Arc::new(Shared { current: RwLock::new(Arc::new(version)), notifier: ChangeNotifier::default() }))
    }

    /// Replaces the bytes and notifies the listeners.
    pub fn set(&self, bytes: impl Into<Bytes>, modified: SystemTime) {
        let version = TextVersion { bytes: bytes.into(), modified };
        *self.0.current.write() = Arc::new(version);
        self.0.notifier.bytes();
    }

    /// The current bytes.
    pub fn bytes(&self) -> Bytes {
        self.version().bytes.clone()
    }

    fn version(&self) -> Arc<TextVersion> {
        self.0.current.read().clone()
    }
}

impl File for TextFile {
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
        Ok(Box::new(TextReader(self.clone())))
    }
}

struct TextReader(TextFile);

impl Handle for TextReader {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(slice(&self.0.bytes(), offset, size))
    }
}
