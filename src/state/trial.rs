//! A database in a directory of its own, for tests.

use std::ops::Deref;

use acheron_store::Store;
use tempfile::TempDir;

/// The directory goes with it.
pub(crate) struct Trial {
    store: Store,
    dir: TempDir,
}

impl Trial {
    pub(crate) fn new() -> Trial {
        let dir = tempfile::tempdir().unwrap();
        Trial { store: super::open(dir.path()).unwrap(), dir }
    }

    /// As after a restart of the host.
    pub(crate) fn again(self) -> Trial {
        self.store.close();
        Trial { store: super::open(self.dir.path()).unwrap(), dir: self.dir }
    }
}

impl Deref for Trial {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}
