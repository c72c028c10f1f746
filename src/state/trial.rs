//! A database in a temporary directory, for unit tests.

use std::ops::Deref;

use acheron_store::Store;
use tempfile::TempDir;

/// A store whose directory is deleted on drop.
pub(crate) struct Trial {
    store: Store,
    dir: TempDir,
}

impl Trial {
    pub(crate) fn new() -> Trial {
        let dir = tempfile::tempdir().unwrap();
        Trial { store: super::open(dir.path()).unwrap(), dir }
    }

    /// Closes and reopens the database, as a restart of the host does.
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
