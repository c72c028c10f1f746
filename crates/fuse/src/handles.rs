//! Open files and directories, by the number that the kernel was given. The request modules use it; it uses the traits
//! of the tree.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use parking_lot::Mutex;

use super::poll_watch::PollWatch;
use acheron_base::{Code, Error, Result};
use acheron_vfs::{Dir, Handle, Kind, MANY_NAMES, NameQuery, Node, Open};

/// An open file.
pub struct OpenFile {
    pub handle: Box<dyn Handle>,
    pub kind: Kind,
    pub how: Open,
    /// The process that opened it.
    pub opener: u32,
    /// The number of bytes of its first pass, if that was counted.
    pub length: OnceLock<u64>,
    /// Present once the file was polled.
    pub poll_watch: OnceLock<Arc<PollWatch>>,
}

/// An open directory. A reader that reads it in parts sees the names as they were at the start.
pub struct OpenDir {
    dir: Arc<dyn Dir>,
    /// Whether the opener is shown a name; `None` for one from whom nothing is hidden.
    shows: Option<Box<ShowsName>>,
    names: Mutex<Option<ListedNames>>,
}

pub type ShowsName = dyn Fn(&str, &Node) -> bool + Send + Sync;
pub type Names = Arc<Vec<(String, Node)>>;

impl OpenDir {
    pub fn new(dir: Arc<dyn Dir>, shows: Option<Box<ShowsName>>) -> Self {
        OpenDir { dir, shows, names: Mutex::default() }
    }

    pub fn dir(&self) -> &Arc<dyn Dir> {
        &self.dir
    }

    /// Whether [`names`](Self::names) and their attributes are at hand. Another request may be listing them right now;
    /// that one is not waited for here.
    pub fn is_quick(&self, offset: u64) -> bool {
        match self.names.try_lock().as_deref() {
            Some(Some(listed)) if offset > 0 => listed.quick,
            Some(_) => self.dir.is_quick(NameQuery::All),
            None => false,
        }
    }

    /// Whether it holds many names.
    pub fn is_long(&self) -> bool {
        self.names.lock().as_ref().is_some_and(|listed| listed.names.len() > MANY_NAMES)
    }

    /// The names; a read from the start lists them again.
    pub fn names(&self, offset: u64) -> Names {
        let mut names = self.names.lock();
        match &*names {
            Some(listed) if offset > 0 => listed.names.clone(),
            _ => {
                let mut all = self.dir.list();
                if let Some(shows) = &self.shows {
                    all.retain(|(name, node)| shows(name, node));
                }
                let quick = all.iter().all(|(_, node)| node.has_quick_stat());
                names.insert(ListedNames { names: Arc::new(all), quick }).names.clone()
            }
        }
    }
}

/// The names of an open directory.
struct ListedNames {
    names: Names,
    /// The attributes of all of them are at hand.
    quick: bool,
}

/// A table of open files or directories by number.
pub struct HandleTable<T> {
    open: DashMap<u64, Arc<T>>,
    next: AtomicU64,
}

impl<T> Default for HandleTable<T> {
    fn default() -> Self {
        HandleTable { open: DashMap::new(), next: AtomicU64::new(1) }
    }
}

impl<T> HandleTable<T> {
    pub fn add(&self, thing: T) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.insert(number, Arc::new(thing));
        number
    }

    pub fn get(&self, number: u64) -> Result<Arc<T>> {
        let thing = self.open.get(&number).map(|it| it.clone());
        thing.ok_or_else(|| Error::new(Code::Os(libc::EBADF), "the file is not open"))
    }

    pub fn remove(&self, number: u64) -> Option<Arc<T>> {
        self.open.remove(&number).map(|(_, thing)| thing)
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }
}
