//! Open files and open directories, by the number that the kernel was given.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;

use super::watch::Watch;
use acheron_base::{Code, Error, Result};
use acheron_vfs::{Dir, Handle, Kind, Node, Open};

/// A file that is open.
pub struct Opened {
    pub handle: Box<dyn Handle>,
    pub kind: Kind,
    pub how: Open,
    /// The process that opened it.
    pub opener: u32,
    /// There once somebody has polled it.
    pub watch: OnceLock<Arc<Watch>>,
}

/// A directory that is open: who reads it in pieces sees it as it was at the start.
pub struct Listed {
    dir: Arc<dyn Dir>,
    names: Mutex<Option<Names>>,
}

pub type Names = Arc<Vec<(String, Node)>>;

impl Listed {
    pub fn new(dir: Arc<dyn Dir>) -> Self {
        Listed { dir, names: Mutex::default() }
    }

    pub fn dir(&self) -> &Arc<dyn Dir> {
        &self.dir
    }

    /// The names, anew if they are read from the start.
    pub fn names(&self, offset: u64) -> Names {
        let mut names = self.names.lock();
        match &*names {
            Some(names) if offset > 0 => names.clone(),
            _ => names.insert(Arc::new(self.dir.list())).clone(),
        }
    }
}

/// Things that are open.
pub struct Table<T> {
    open: DashMap<u64, Arc<T>>,
    next: AtomicU64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { open: DashMap::new(), next: AtomicU64::new(1) }
    }
}

impl<T> Table<T> {
    pub fn add(&self, thing: T) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.insert(number, Arc::new(thing));
        number
    }

    pub fn get(&self, number: u64) -> Result<Arc<T>> {
        let thing = self.open.get(&number).map(|it| it.clone());
        thing.ok_or_else(|| Error::new(Code::Os(libc::EBADF), "that file is not open"))
    }

    pub fn remove(&self, number: u64) -> Option<Arc<T>> {
        self.open.remove(&number).map(|(_, thing)| thing)
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }
}
