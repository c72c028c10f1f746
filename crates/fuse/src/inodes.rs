//! Inode numbers, and the nodes that the kernel knows under them. A number is derived from the path, so it is the same
//! in every run: rights that were granted on a number stay valid. The server uses it; it knows nothing of requests.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use super::notices::{Notice, Notices};
use super::passthrough::MIRRORED;
use acheron_base::{Code, Error, Result};
use acheron_vfs::{ChangeKind, ChangeNotifier, Dir, Listener, Node};

pub const ROOT: u64 = 1;

/// A node that the kernel knows.
#[derive(Clone)]
pub struct KnownNode {
    pub path: Arc<str>,
    pub node: Node,
}

struct Inode {
    known: KnownNode,
    /// The length that was counted when the file was last opened, for a file that does not know it.
    length: u64,
    /// The number of lookups that the kernel has not forgotten yet.
    lookups: u64,
    /// Receives the changes of the node.
    listener: Option<Arc<dyn Listener>>,
    /// The name led to another node when the file was last opened, so the kernel may have cached the bytes of that one.
    replaced: bool,
}

impl Inode {
    /// Puts another node in the place of the one that is known, which it returns.
    fn replace(&mut self, node: &Node) -> Option<Node> {
        if same(&self.known.node, node) {
            return None;
        }
        self.replaced = true;
        Some(std::mem::replace(&mut self.known.node, node.clone()))
    }
}

pub struct Inodes {
    table: DashMap<u64, Inode>,
    /// The numbers of the known entries of each directory, by the hash of its path.
    entries: DashMap<u64, HashSet<u64>>,
    notices: Arc<Notices>,
    /// For the listeners, which must not keep this alive.
    me: Weak<Inodes>,
}

impl Inodes {
    pub fn new(root: Node, notices: Arc<Notices>) -> Arc<Self> {
        let inodes =
            Arc::new_cyclic(|me| Inodes { table: DashMap::new(), entries: DashMap::new(), notices, me: me.clone() });
        inodes.record(ROOT, "/".into(), root);
        inodes
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn get(&self, ino: u64) -> Result<KnownNode> {
        let inode = self.table.get(&ino);
        inode.map(|it| it.known.clone()).ok_or_else(|| Error::new(Code::Os(libc::ESTALE), "the file no longer exists"))
    }

    /// The number of the node at `path`: the first one from its hash upwards that nothing else has.
    ///
    /// To the kernel, a directory and a file that follow each other under one name are two inodes.
    pub fn number(&self, path: &str, node: &Node) -> u64 {
        if path == "/" {
            return ROOT;
        }
        let mut number = hash(path, shape(node));
        loop {
            // The other half of the numbers is for mirrored files.
            number &= !MIRRORED;
            let other = self.table.get(&number).is_some_and(|it| {
                &*it.known.path != path || shape(&it.known.node) != shape(node) // almost never
            });
            if number > ROOT && !other {
                return number;
            }
            number = number.wrapping_add(1);
        }
    }

    /// Records that the kernel is told of `node` at `path`; returns its number.
    pub fn remember(&self, path: &str, node: &Node) -> u64 {
        let number = self.number(path, node);
        self.record(number, path.into(), node.clone());
        number
    }

    fn record(&self, number: u64, path: Arc<str>, node: Node) {
        // No notifier is called and no node is dropped while the table is locked: both are code of the tree.
        let before = match self.table.entry(number) {
            Entry::Occupied(mut entry) => {
                entry.get_mut().lookups += 1;
                match entry.get_mut().replace(&node) {
                    Some(before) => Some(before),
                    None => return,
                }
            }
            Entry::Vacant(entry) => {
                let known = KnownNode { path: path.clone(), node: node.clone() };
                entry.insert(Inode { known, length: 0, lookups: 1, listener: None, replaced: false });
                None
            }
        };
        if before.is_none() {
            self.entries.entry(parent(&path)).or_default().insert(number);
        }
        if before.as_ref().is_some_and(|before| same_notifier(before.notifier(), node.notifier())) {
            return;
        }
        if let (Some(Node::Dir(_)), Node::Dir(dir)) = (before, &node) {
            self.replace_below(&path, dir);
        }
        self.listen(number, path, &node);
    }

    fn listen(&self, number: u64, path: Arc<str>, node: &Node) {
        let listener = node.notifier().map(|notifier| {
            let listener: Arc<dyn Listener> = Arc::new(InodeListener { number, path, inodes: self.me.clone() });
            notifier.listen(&listener);
            listener
        });
        let replaced = self.table.get_mut(&number).map(|mut inode| std::mem::replace(&mut inode.listener, listener));
        drop(replaced);
    }

    /// Another directory stands at `path`: every number below it leads into that one from now on.
    ///
    /// With the entry of a directory the kernel drops the entries in it, except those in use. It finds these again in the
    /// new directory, which has the same number, and would not look their names up before they expire.
    fn replace_below(&self, path: &str, dir: &Arc<dyn Dir>) {
        let known: Vec<u64> = match self.entries.get(&hash(path, b'd')) {
            Some(entries) => entries.iter().copied().collect(),
            None => return,
        };
        for number in known {
            let Ok(KnownNode { path: at, node: before }) = self.get(number) else { continue };
            let Some(name) = at.strip_prefix(path).and_then(|rest| rest.strip_prefix('/')) else { continue };
            match dir.lookup(name).filter(|node| shape(node) == shape(&before)) {
                Some(node) => {
                    let replaced = self.table.get_mut(&number).and_then(|mut inode| inode.replace(&node));
                    if replaced.is_none() {
                        continue;
                    }
                    self.notices.post(Notice::Inode(number));
                    if let Node::Dir(dir) = &node {
                        self.replace_below(&at, dir);
                    }
                    self.listen(number, at, &node);
                }
                None => {
                    let (parent, name) = (hash(path, b'd') & !MIRRORED, name.to_owned());
                    self.notices.post(Notice::Entry { parent, name, path: at.to_string() });
                }
            }
        }
    }

    /// The kernel has forgotten the inode `times` times.
    pub fn forget(&self, number: u64, times: u64) {
        if number == ROOT {
            return;
        }
        if let Entry::Occupied(mut entry) = self.table.entry(number) {
            let inode = entry.get_mut();
            inode.lookups = inode.lookups.saturating_sub(times);
            if inode.lookups == 0 {
                let gone = entry.remove();
                self.leave(number, &gone.known.path);
                drop(gone);
            }
        }
    }

    fn leave(&self, number: u64, path: &str) {
        if let Entry::Occupied(mut entries) = self.entries.entry(parent(path)) {
            entries.get_mut().remove(&number);
            if entries.get().is_empty() {
                entries.remove();
            }
        }
    }

    /// The length that was last counted; 0 if none was.
    pub fn length(&self, number: u64) -> u64 {
        self.table.get(&number).map_or(0, |inode| inode.length)
    }

    /// Records the length that was counted; returns whether it is another one than before.
    pub fn set_length(&self, number: u64, length: u64) -> bool {
        let before = self.table.get_mut(&number).map(|mut inode| std::mem::replace(&mut inode.length, length));
        before.is_some_and(|before| before != length)
    }

    /// Whether the kernel may use the bytes that it has cached: not if they may be those of another node.
    pub fn cache_is_valid(&self, number: u64) -> bool {
        self.table.get_mut(&number).is_none_or(|mut inode| !std::mem::replace(&mut inode.replaced, false))
    }
}

/// Turns the changes of one inode into notices.
struct InodeListener {
    number: u64,
    path: Arc<str>,
    inodes: Weak<Inodes>,
}

impl Listener for InodeListener {
    fn changed(&self, change: &ChangeKind) {
        let Some(inodes) = self.inodes.upgrade() else { return };
        inodes.notices.post(Notice::Inode(self.number));
        if let ChangeKind::Name(name) = change {
            let path = join(&self.path, name);
            for shape in SHAPES {
                inodes.notices.post(Notice::Inode(hash(&path, shape) & !MIRRORED));
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

/// The hash of the directory in which `path` is an entry.
fn parent(path: &str) -> u64 {
    hash(path.rsplit_once('/').map_or("", |(parent, _)| parent), b'd')
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

fn same_notifier(one: Option<&ChangeNotifier>, other: Option<&ChangeNotifier>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => std::ptr::eq(one, other),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
