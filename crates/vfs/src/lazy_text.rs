//! Fixed text that is made when somebody first asks for it or for its size.

use std::sync::LazyLock;

use bytes::Bytes;

use super::{Answer, Caller, File, Handle, Kind, Open, STARTED, Stat, slice};
use acheron_base::Result;

type Make = Box<dyn FnOnce() -> Bytes + Send>;

/// A file of fixed text that `make` makes, once. It must not wait for anything: the size is asked for by every listing.
pub fn lazy_text(make: impl FnOnce() -> Bytes + Send + 'static) -> LazyTextFile {
    LazyTextFile(LazyLock::new(Box::new(make)))
}

/// See [`lazy_text`]. The kernel caches the bytes.
pub struct LazyTextFile(LazyLock<Bytes, Make>);

impl File for LazyTextFile {
    fn kind(&self) -> Kind {
        Kind::Text
    }

    fn stat(&self) -> Stat {
        Stat { size: self.0.len() as u64, modified: STARTED }
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        Ok(Box::new(LazyTextReader(self.0.clone())))
    }
}

struct LazyTextReader(Bytes);

impl Handle for LazyTextReader {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        Answer::ok(slice(&self.0, offset, size))
    }
}
