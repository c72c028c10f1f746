//! A database in a temporary directory, for unit tests.

use std::ops::Deref;
use std::path::Path;

use tempfile::TempDir;

use acheron_base::{Clock, Random};
use acheron_store::Store;

/// A store whose directory is deleted on drop.
pub(crate) struct TestStore {
    store: Store,
    dir: TempDir,
}

impl TestStore {
    pub(crate) fn new() -> TestStore {
        let dir = tempfile::tempdir().unwrap();
        TestStore { store: open_in(dir.path()).unwrap(), dir }
    }

    /// Closes and reopens the database, as a restart of the host does.
    pub(crate) fn again(self) -> TestStore {
        self.store.close();
        TestStore { store: open_in(self.dir.path()).unwrap(), dir: self.dir }
    }
}

/// The database of a directory that the test keeps.
pub(crate) fn open_in(dir: &Path) -> acheron_base::Result<Store> {
    super::open(dir, &Clock::at(1), &Random::seeded(1)).map(|(store, _)| store)
}

impl Deref for TestStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}
