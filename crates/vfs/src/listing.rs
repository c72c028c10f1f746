//! The directory that most trees are made of: an ordered map of names. Uses only the traits of the tree.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::SystemTime;

use parking_lot::RwLock;

use super::{ChangeNotifier, Dir, File, Link, MANY_NAMES, NameQuery, Node, STARTED};
use acheron_base::Clock;

/// An ordered map from names to nodes. Names may be added and removed while the tree is served.
pub struct Listing {
    entries: RwLock<Entries>,
    notifier: ChangeNotifier,
    /// Says when names come and go; a listing without one keeps its first time.
    clock: Option<Clock>,
}

struct Entries {
    nodes: BTreeMap<String, Node>,
    /// Nodes that are found by name and not listed.
    unlisted: BTreeMap<String, Node>,
    modified: SystemTime,
}

impl Default for Listing {
    fn default() -> Self {
        Listing {
            entries: RwLock::new(Entries { nodes: BTreeMap::new(), unlisted: BTreeMap::new(), modified: STARTED }),
            notifier: ChangeNotifier::default(),
            clock: None,
        }
    }
}

impl Listing {
    /// A listing that records by this clock when names are added and removed.
    pub fn timed(clock: &Clock) -> Self {
        Listing { clock: Some(clock.clone()), ..Listing::default() }
    }

    fn now(&self) -> Option<SystemTime> {
        self.clock.as_ref().map(Clock::now)
    }

    /// Adds a file.
    pub fn file(self, name: &str, file: impl File + 'static) -> Self {
        self.with(name, Node::file(file))
    }

    /// Adds a directory.
    pub fn dir(self, name: &str, dir: impl Dir + 'static) -> Self {
        self.with(name, Node::dir(dir))
    }

    /// Adds a link.
    pub fn link(self, name: &str, link: impl Link + 'static) -> Self {
        self.with(name, Node::link(link))
    }

    /// Adds a node, before the tree is served.
    pub fn with(self, name: &str, node: Node) -> Self {
        let mut entries = self.entries.write();
        entries.nodes.insert(name.to_owned(), node);
        drop(entries);
        self
    }

    /// Adds a node that is there for whoever names it, and not listed: a file that may wait for ever is no trap for programs
    /// that read all they find.
    pub fn unlisted(self, name: &str, node: Node) -> Self {
        let mut entries = self.entries.write();
        entries.unlisted.insert(name.to_owned(), node);
        drop(entries);
        self
    }

    /// Adds or replaces `name` while the tree is served.
    pub fn put(&self, name: &str, node: Node) {
        let mut entries = self.entries.write();
        entries.nodes.insert(name.to_owned(), node);
        entries.modified = self.now().unwrap_or(entries.modified);
        drop(entries);
        self.notifier.name(name);
    }

    /// Removes `name` while the tree is served. Returns whether it was there.
    pub fn take(&self, name: &str) -> bool {
        let mut entries = self.entries.write();
        let there = entries.nodes.remove(name).is_some();
        entries.modified = self.now().unwrap_or(entries.modified);
        drop(entries);
        self.notifier.name(name);
        there
    }

    /// The names in order.
    pub fn names(&self) -> Vec<String> {
        self.entries.read().nodes.keys().cloned().collect()
    }
}

impl Dir for Listing {
    fn lookup(&self, name: &str) -> Option<Node> {
        let entries = self.entries.read();
        entries.nodes.get(name).or_else(|| entries.unlisted.get(name)).cloned()
    }

    fn list(&self) -> Vec<(String, Node)> {
        let entries = self.entries.read();
        entries.nodes.iter().map(|(name, node)| (name.clone(), node.clone())).collect()
    }

    fn is_quick(&self, query: NameQuery) -> bool {
        let nodes = &self.entries.read().nodes;
        query == NameQuery::One || nodes.len() <= MANY_NAMES && nodes.values().all(Node::has_quick_stat)
    }

    fn modified(&self) -> SystemTime {
        self.entries.read().modified
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        Some(&self.notifier)
    }
}

/// Collects the smallest of many elements and never holds more than are wanted. A directory with very many names uses it
/// for [`Dir::first`].
pub struct Smallest<T> {
    kept: BinaryHeap<T>,
    most: usize,
}

impl<T: Ord> Smallest<T> {
    /// Collects at most `most` elements.
    pub fn new(most: usize) -> Self {
        Smallest { kept: BinaryHeap::new(), most }
    }

    /// Whether `one` would be kept now.
    pub fn wants<Q: Ord + ?Sized>(&self, one: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.kept.len() < self.most || self.kept.peek().is_some_and(|largest| one < largest.borrow())
    }

    /// Adds an element, which may displace the largest.
    pub fn take(&mut self, one: T) {
        self.kept.push(one);
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

    /// The elements in order.
    pub fn sorted(self) -> Vec<T> {
        self.kept.into_sorted_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    #[test]
    fn names_are_listed_in_order() {
        let listing = Listing::default().file("b", text("")).file("a", text(""));
        listing.put("0", Node::file(text("")));
        assert_eq!(listing.names(), ["0", "a", "b"]);
        assert!(listing.take("a"));
        assert!(!listing.take("a"));
        assert!(listing.lookup("a").is_none());
    }

    #[test]
    fn the_smallest_elements_are_kept_in_order() {
        let first = |most| {
            let mut names = Smallest::new(most);
            (0..100).for_each(|n| names.take(n * 7 % 100));
            names.sorted()
        };
        assert_eq!(first(3), [0, 1, 2]);
        assert_eq!((first(200).len(), first(0).len()), (100, 0));
    }
}
