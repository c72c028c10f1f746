//! The directory that most of the tree is made of.

use parking_lot::RwLock;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::SystemTime;

use super::{ChangeNotifier, Dir, File, Link, Node, STARTED};
use acheron_base::Clock;

/// Names put there by hand, listed in order. They may come and go while the tree is served.
pub struct Listing {
    entries: RwLock<Entries>,
    notifier: ChangeNotifier,
    /// Says when names come and go; a listing without one keeps its first time.
    clock: Option<Clock>,
}

struct Entries {
    nodes: BTreeMap<String, Node>,
    modified: SystemTime,
}

impl Default for Listing {
    fn default() -> Self {
        Listing {
            entries: RwLock::new(Entries { nodes: BTreeMap::new(), modified: STARTED }),
            notifier: ChangeNotifier::default(),
            clock: None,
        }
    }
}

impl Listing {
    /// A listing whose names come and go while the tree is served: its time is the last change by this clock.
    pub fn timed(clock: &Clock) -> Self {
        Listing { clock: Some(clock.clone()), ..Listing::default() }
    }

    /// The time of a change.
    fn now(&self) -> Option<SystemTime> {
        self.clock.as_ref().map(Clock::now)
    }

    pub fn file(self, name: &str, file: impl File + 'static) -> Self {
        self.with(name, Node::file(file))
    }

    pub fn dir(self, name: &str, dir: impl Dir + 'static) -> Self {
        self.with(name, Node::dir(dir))
    }

    pub fn link(self, name: &str, link: impl Link + 'static) -> Self {
        self.with(name, Node::link(link))
    }

    pub fn with(self, name: &str, node: Node) -> Self {
        let mut entries = self.entries.write();
        entries.nodes.insert(name.to_owned(), node);
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

    /// Takes `name` away while the tree is served; says whether it was there.
    pub fn take(&self, name: &str) -> bool {
        let mut entries = self.entries.write();
        let there = entries.nodes.remove(name).is_some();
        entries.modified = self.now().unwrap_or(entries.modified);
        drop(entries);
        self.notifier.name(name);
        there
    }

    pub fn names(&self) -> Vec<String> {
        self.entries.read().nodes.keys().cloned().collect()
    }
}

impl Dir for Listing {
    fn lookup(&self, name: &str) -> Option<Node> {
        self.entries.read().nodes.get(name).cloned()
    }

    fn list(&self) -> Vec<(String, Node)> {
        let entries = self.entries.read();
        entries.nodes.iter().map(|(name, node)| (name.clone(), node.clone())).collect()
    }

    fn modified(&self) -> SystemTime {
        self.entries.read().modified
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        Some(&self.notifier)
    }
}

/// The smallest of many; no more than are wanted are ever held.
pub struct Smallest<T> {
    kept: BinaryHeap<T>,
    most: usize,
}

impl<T: Ord> Smallest<T> {
    pub fn new(most: usize) -> Self {
        Smallest { kept: BinaryHeap::new(), most }
    }

    /// Whether this would be among them, as far as they are known.
    pub fn wants<Q: Ord + ?Sized>(&self, one: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.kept.len() < self.most || self.kept.peek().is_some_and(|largest| one < largest.borrow())
    }

    pub fn take(&mut self, one: T) {
        self.kept.push(one);
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

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
    fn the_smallest_of_many_come_in_order() {
        let first = |most| {
            let mut names = Smallest::new(most);
            (0..100).for_each(|n| names.take(n * 7 % 100));
            names.sorted()
        };
        assert_eq!(first(3), [0, 1, 2]);
        assert_eq!((first(200).len(), first(0).len()), (100, 0));
    }
}
