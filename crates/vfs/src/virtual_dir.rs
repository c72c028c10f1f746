//! A directory whose names are worked out when they are asked for.

use std::sync::Arc;
use std::time::SystemTime;

use super::{ChangeNotifier, Dir, Node, STARTED};

type Find = dyn Fn(&str) -> Option<Node> + Send + Sync;
type Names = dyn Fn() -> Vec<String> + Send + Sync;

/// Names that follow from something else: a table, a grammar.
///
/// `find` may know more names than `names` lists: the selectors under `events/sources` are without number.
pub struct Virtual {
    find: Box<Find>,
    names: Box<Names>,
    notifier: Option<Arc<ChangeNotifier>>,
    modified: Box<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Virtual {
    pub fn new(
        names: impl Fn() -> Vec<String> + Send + Sync + 'static,
        find: impl Fn(&str) -> Option<Node> + Send + Sync + 'static,
    ) -> Self {
        Virtual { find: Box::new(find), names: Box::new(names), notifier: None, modified: Box::new(|| STARTED) }
    }

    /// Whoever changes the names rings this bell.
    pub fn notifying(mut self, notifier: Arc<ChangeNotifier>) -> Self {
        self.notifier = Some(notifier);
        self
    }

    pub fn modified_at(mut self, when: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.modified = Box::new(when);
        self
    }
}

impl Dir for Virtual {
    fn lookup(&self, name: &str) -> Option<Node> {
        (self.find)(name)
    }

    fn list(&self) -> Vec<(String, Node)> {
        let mut names = (self.names)();
        names.sort();
        names.into_iter().filter_map(|name| (self.find)(&name).map(|node| (name, node))).collect()
    }

    fn modified(&self) -> SystemTime {
        (self.modified)()
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        self.notifier.as_deref()
    }
}
