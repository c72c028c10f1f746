//! A database in a temporary directory, for unit tests.

use std::ops::Deref;

use tempfile::TempDir;

use acheron_store::Store;

/// A store whose directory is deleted on drop.
pub(crate) struct TestStore {
    store: Store,
    dir: TempDir,
}

impl TestStore {
    pub(crate) fn new() -> TestStore {
        let dir = tempfile::tempdir().unwrap();
        TestStore { store: super::open(dir.path()).unwrap(), dir }
    }

    /// Closes and reopens the database, as a restart of the host does.
    pub(crate) fn again(self) -> TestStore {
        self.store.close();
        TestStore { store: super::open(self.dir.path()).unwrap(), dir: self.dir }
    }
}

impl Deref for TestStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}
