//! A directory whose names are worked out when they are asked for.

use std::sync::Arc;
use std::time::SystemTime;

use super::{Bell, Dir, Node, STARTED};

type Find = dyn Fn(&str) -> Option<Node> + Send + Sync;
type Names = dyn Fn() -> Vec<String> + Send + Sync;

/// Names that follow from something else: a table, a grammar.
///
/// `find` may know more names than `names` lists: the selectors under `events/sources` are without number.
pub struct Virtual {
    find: Box<Find>,
    names: Box<Names>,
    bell: Option<Arc<Bell>>,
    modified: Box<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Virtual {
    pub fn new(
        names: impl Fn() -> Vec<String> + Send + Sync + 'static,
        find: impl Fn(&str) -> Option<Node> + Send + Sync + 'static,
    ) -> Self {
        Virtual { find: Box::new(find), names: Box::new(names), bell: None, modified: Box::new(|| *STARTED) }
    }

    /// Whoever changes the names rings this bell.
    pub fn ringing(mut self, bell: Arc<Bell>) -> Self {
        self.bell = Some(bell);
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

    fn bell(&self) -> Option<&Bell> {
        self.bell.as_deref()
    }
}
