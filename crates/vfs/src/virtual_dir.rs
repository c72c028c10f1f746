//! A directory whose names are computed when they are looked up. Uses only the traits of the tree.

use std::sync::Arc;
use std::time::SystemTime;

use super::{ChangeNotifier, Dir, MANY_NAMES, NameQuery, Node, STARTED};

type Find = dyn Fn(&str) -> Option<Node> + Send + Sync;
type Quick = dyn Fn(NameQuery) -> bool + Send + Sync;
type Names = dyn Fn() -> Vec<String> + Send + Sync;

/// A directory that computes its names, from a table or a grammar for example.
///
/// A lookup may find names that the listing leaves out: a directory of numbers lists none and knows them all.
pub struct VirtualDir {
    find: Box<Find>,
    names: Box<Names>,
    quick: Box<Quick>,
    notifier: Option<Arc<ChangeNotifier>>,
    modified: Box<dyn Fn() -> SystemTime + Send + Sync>,
}

impl VirtualDir {
    /// A directory that lists `names` and looks a name up with `find`. Looking a name up must be quick
    /// ([`Dir::is_quick`]) unless it says otherwise ([`slow`](Self::slow)); listing them need not be.
    pub fn new(
        names: impl Fn() -> Vec<String> + Send + Sync + 'static,
        find: impl Fn(&str) -> Option<Node> + Send + Sync + 'static,
    ) -> Self {
        VirtualDir {
            find: Box::new(find),
            names: Box::new(names),
            quick: Box::new(|query| query == NameQuery::One),
            notifier: None,
            modified: Box::new(|| STARTED),
        }
    }

    /// Sets the source of the number of names: a listing of few is quick.
    pub fn counted(mut self, count: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        self.quick = Box::new(move |query| query == NameQuery::One || count() <= MANY_NAMES);
        self
    }

    /// Looking a name up may wait for a disk.
    pub fn slow(mut self) -> Self {
        self.quick = Box::new(|_| false);
        self
    }

    /// Lets a server cache the names: every change of them must be sent through `notifier`.
    pub fn notifying(mut self, notifier: Arc<ChangeNotifier>) -> Self {
        self.notifier = Some(notifier);
        self
    }

    /// Sets the source of the modification time.
    pub fn modified_at(mut self, when: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.modified = Box::new(when);
        self
    }
}

impl Dir for VirtualDir {
    fn lookup(&self, name: &str) -> Option<Node> {
        (self.find)(name)
    }

    fn list(&self) -> Vec<(String, Node)> {
        let mut names = (self.names)();
        names.sort();
        names.into_iter().filter_map(|name| (self.find)(&name).map(|node| (name, node))).collect()
    }

    fn is_quick(&self, query: NameQuery) -> bool {
        (self.quick)(query)
    }

    fn modified(&self) -> SystemTime {
        (self.modified)()
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        self.notifier.as_deref()
    }
}
