//! Numbers for names, and what the kernel remembers of them.
//!
//! A number is derived from the path, so it is the same in every run: rights that were given on a number stay right.
//! Knows nothing of requests.

use std::sync::{Arc, Weak};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use super::notices::{Notice, Notices};
use super::passthrough::REAL;
use acheron_base::{Code, Error, Result};
use acheron_vfs::{ChangeKind, ChangeNotifier, Listener, Node};

pub const ROOT: u64 = 1;

/// A node that the kernel knows.
#[derive(Clone)]
pub struct Known {
    pub path: Arc<str>,
    pub node: Node,
}

struct Inode {
    known: Known,
    /// How often the kernel was told of it and has not forgotten.
    lookups: u64,
    /// Whom its bell rings for.
    ear: Option<Arc<dyn Listener>>,
    /// Another node stands behind the name than when the file was last opened, so the kernel's bytes may be of that one.
    replaced: bool,
}

pub struct Inodes {
    table: DashMap<u64, Inode>,
    notices: Arc<Notices>,
    /// The bells' listeners find their way back by this.
    me: Weak<Inodes>,
}

impl Inodes {
    pub fn new(root: Node, notices: Arc<Notices>) -> Arc<Self> {
        let inodes = Arc::new_cyclic(|me| Inodes { table: DashMap::new(), notices, me: me.clone() });
        inodes.know(ROOT, "/".into(), root);
        inodes
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn get(&self, ino: u64) -> Result<Known> {
        let inode = self.table.get(&ino);
        inode.map(|it| it.known.clone()).ok_or_else(|| Error::new(Code::Os(libc::ESTALE), "that file is gone"))
    }

    /// The number of what stands at `path`: the first from its hash on that nothing else has.
    ///
    /// A directory and a file that follow each other under one name are two things to the kernel.
    pub fn number(&self, path: &str, node: &Node) -> u64 {
        if path == "/" {
            return ROOT;
        }
        let mut number = hash(path, shape(node));
        loop {
            // The other half of the numbers is for mirrored files.
            number &= !REAL;
            let other = self.table.get(&number).is_some_and(|it| {
                &*it.known.path != path || shape(&it.known.node) != shape(node) // almost never
            });
            if number > ROOT && !other {
                return number;
            }
            number = number.wrapping_add(1);
        }
    }

    /// The kernel is told of `node` at `path`; returns its number.
    pub fn remember(&self, path: &str, node: &Node) -> u64 {
        let number = self.number(path, node);
        self.know(number, path.into(), node.clone());
        number
    }

    fn know(&self, number: u64, path: Arc<str>, node: Node) {
        // Neither a bell is touched nor a node dropped while the table is locked: both are the tree's own code.
        let before = match self.table.entry(number) {
            Entry::Occupied(mut entry) => {
                let inode = entry.get_mut();
                inode.lookups += 1;
                if same(&inode.known.node, &node) {
                    return;
                }
                inode.replaced = true;
                Some(std::mem::replace(&mut inode.known.node, node.clone()))
            }
            Entry::Vacant(entry) => {
                let known = Known { path: path.clone(), node: node.clone() };
                entry.insert(Inode { known, lookups: 1, ear: None, replaced: false });
                None
            }
        };
        if before.is_some_and(|before| same_bell(before.notifier(), node.notifier())) {
            return;
        }
        let ear = node.notifier().map(|notifier| {
            let ear: Arc<dyn Listener> = Arc::new(Ear { number, path, inodes: self.me.clone() });
            notifier.listen(&ear);
            ear
        });
        let deaf = self.table.get_mut(&number).map(|mut inode| std::mem::replace(&mut inode.ear, ear));
        drop(deaf);
    }

    /// The kernel has dropped what it was told `times` times.
    pub fn forget(&self, number: u64, times: u64) {
        if number == ROOT {
            return;
        }
        if let Entry::Occupied(mut entry) = self.table.entry(number) {
            let inode = entry.get_mut();
            inode.lookups = inode.lookups.saturating_sub(times);
            if inode.lookups == 0 {
                let gone = entry.remove();
                drop(gone);
            }
        }
    }

    /// Whether the kernel may keep the bytes that it has: not if they may be those of another node.
    pub fn bytes_are_good(&self, number: u64) -> bool {
        self.table.get_mut(&number).is_none_or(|mut inode| !std::mem::replace(&mut inode.replaced, false))
    }
}

/// Hears the bell of one inode.
struct Ear {
    number: u64,
    path: Arc<str>,
    inodes: Weak<Inodes>,
}

impl Listener for Ear {
    fn heard(&self, news: &ChangeKind) {
        let Some(inodes) = self.inodes.upgrade() else { return };
        inodes.notices.post(Notice::Inode(self.number));
        if let ChangeKind::Name(name) = news {
            let path = join(&self.path, name);
            for shape in SHAPES {
                inodes.notices.post(Notice::Inode(hash(&path, shape) & !REAL));
            }
            inodes.notices.post(Notice::Entry { parent: self.number, name: name.clone(), path });
        }
    }
}

/// The path of `name` in the directory at `path`.
pub fn join(path: &str, name: &str) -> String {
    match path {
        "/" => format!("/{name}"),
        path => format!("{path}/{name}"),
    }
}

const SHAPES: [u8; 3] = [b'd', b'f', b'l'];

fn shape(node: &Node) -> u8 {
    match node {
        Node::Dir(_) => b'd',
        Node::File(_) => b'f',
        Node::Link(_) => b'l',
    }
}

/// FNV-1a, then mixed: short paths that differ in one letter should differ in all bits.
fn hash(path: &str, shape: u8) -> u64 {
    let hash = path
        .bytes()
        .chain([0, shape])
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    hash ^ (hash >> 29)
}

fn same(one: &Node, other: &Node) -> bool {
    match (one, other) {
        (Node::Dir(one), Node::Dir(other)) => Arc::ptr_eq(one, other),
        (Node::File(one), Node::File(other)) => Arc::ptr_eq(one, other),
        (Node::Link(one), Node::Link(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

fn same_bell(one: Option<&ChangeNotifier>, other: Option<&ChangeNotifier>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => std::ptr::eq(one, other),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acheron_vfs::{Listing, text};

    fn inodes() -> Arc<Inodes> {
        Inodes::new(Node::dir(Listing::default()), Arc::default())
    }

    #[test]
    fn a_number_belongs_to_a_path_and_not_to_a_run() {
        let (one, other) = (inodes(), inodes());
        let node = Node::file(text("x"));
        assert_eq!(one.remember("/a/b", &node), other.number("/a/b", &Node::file(text("y"))));
        assert_ne!(one.number("/a/b", &node), one.number("/a/c", &node));
        assert_ne!(one.number("/a/b", &node), one.number("/a/b", &Node::dir(Listing::default())));
        assert_eq!(one.number("/", &node), ROOT);
    }

    #[test]
    fn paths_with_the_same_hash_get_numbers_of_their_own() {
        let inodes = inodes();
        let node = Node::file(text("x"));
        let taken = hash("/b", b'f') & !REAL;
        inodes.know(taken, "/somewhere/else".into(), node.clone());
        assert_eq!(inodes.remember("/b", &node), taken.wrapping_add(1));
        assert_eq!(inodes.number("/b", &node), taken.wrapping_add(1));
    }

    #[test]
    fn what_the_kernel_forgets_is_forgotten() {
        let inodes = inodes();
        let node = Node::file(text("x"));
        let number = inodes.remember("/a", &node);
        inodes.remember("/a", &node);
        inodes.forget(number, 1);
        assert_eq!(&*inodes.get(number).unwrap().path, "/a");
        inodes.forget(number, 1);
        assert_eq!(inodes.get(number).err().unwrap().errno(), libc::ESTALE);
        inodes.forget(ROOT, 99);
        assert_eq!(inodes.len(), 1);
    }

    #[test]
    fn the_bytes_of_a_replaced_node_are_not_kept() {
        let inodes = inodes();
        let number = inodes.remember("/a", &Node::file(text("x")));
        assert!(inodes.bytes_are_good(number));
        inodes.remember("/a", &Node::file(text("y")));
        assert!(!inodes.bytes_are_good(number));
        assert!(inodes.bytes_are_good(number));
    }
}
