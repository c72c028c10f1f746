//! Numbers for the files of a mirrored directory, and the names by which they were found.
//!
//! A number belongs to a file and not to a name, so two links are one file and a renamed one stays what it was. Names may
//! have become wrong since: whoever uses them looks whether they still lead to the file. Knows nothing of disks.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use super::bytes::Held;
use acheron_base::host_dir::{Facts, HostDir, Id};
use acheron_vfs::Listing;

/// Set in the number of every mirrored file, and of nothing else.
pub const REAL: u64 = 1 << 63;

/// How many names of one file are remembered.
const NAMES: usize = 8;

/// One directory of this machine, where it stands in the tree.
pub struct View {
    pub ground: Arc<HostDir>,
    /// What stands over names of it.
    pub over: Arc<Listing>,
    /// Its path in the tree.
    pub path: String,
    /// The number of its root.
    pub root: u64,
}

impl View {
    /// The path of the tree of what lies at `path` below it.
    pub fn path_of(&self, path: &Path) -> String {
        format!("{}/{}", self.path, path.display()).trim_end_matches('/').to_owned()
    }
}

#[derive(Default)]
pub struct Table(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    views: HashMap<String, Arc<View>>,
    files: HashMap<u64, File>,
    /// Parent and name → file.
    names: HashMap<(u64, OsString), u64>,
}

struct File {
    view: Arc<View>,
    facts: Facts,
    /// As it was when it was last opened.
    seen: Option<Facts>,
    /// The newest last. None for the root of a view.
    names: Vec<(u64, OsString)>,
    lookups: u64,
    open: Vec<Weak<Held>>,
}

/// A file as it was when the kernel was told of it, and the paths below its view under which it may be.
pub struct Known {
    pub view: Arc<View>,
    pub facts: Facts,
    pub paths: Vec<PathBuf>,
    pub open: Option<Arc<Held>>,
}

impl Table {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }

    /// The number of the root of the view at `path`, which the kernel is told of; another directory there is another view.
    pub fn root(&self, path: &str, ground: &Arc<HostDir>, over: &Arc<Listing>) -> u64 {
        let facts = *ground.facts();
        let mut inner = self.inner();
        let view = match inner.views.get(path) {
            Some(view) if Arc::ptr_eq(&view.ground, ground) => view.clone(),
            _ => {
                let root = number(path, facts.id);
                let view = View { ground: ground.clone(), over: over.clone(), path: path.to_owned(), root };
                let view = Arc::new(view);
                inner.views.insert(path.to_owned(), view.clone());
                view
            }
        };
        let root = view.root;
        let file = inner.files.entry(root).or_insert_with(|| File::new(view.clone(), facts));
        file.view = view;
        file.lookups += 1;
        root
    }

    /// The kernel is told that `name` in `parent` leads to the file of these facts; returns its number.
    pub fn told(&self, view: &Arc<View>, parent: u64, name: &OsStr, facts: &Facts) -> u64 {
        let number = number(&view.path, facts.id);
        let mut inner = self.inner();
        let file = inner.files.entry(number).or_insert_with(|| File::new(view.clone(), *facts));
        file.lookups += 1;
        file.facts = *facts;
        inner.name(parent, name, number);
        number
    }

    /// The kernel has dropped what it was told `times` times.
    pub fn forget(&self, number: u64, times: u64) {
        let mut inner = self.inner();
        let Some(file) = inner.files.get_mut(&number) else { return };
        file.lookups = file.lookups.saturating_sub(times);
        if file.lookups > 0 || file.view.root == number {
            return;
        }
        if let Some(gone) = inner.files.remove(&number) {
            for name in gone.names {
                inner.names.remove(&name);
            }
        }
    }

    pub fn gone(&self, parent: u64, name: &OsStr) {
        self.inner().unname(parent, name);
    }

    pub fn moved(&self, from: (u64, &OsStr), to: (u64, &OsStr), exchanged: bool) {
        let mut inner = self.inner();
        let (one, other) = (inner.unname(from.0, from.1), inner.unname(to.0, to.1));
        if let Some(one) = one {
            inner.name(to.0, to.1, one);
        }
        if let (Some(other), true) = (other, exchanged) {
            inner.name(from.0, from.1, other);
        }
    }

    pub fn opened(&self, number: u64, held: &Arc<Held>) {
        if let Some(file) = self.inner().files.get_mut(&number) {
            file.open.retain(|it| it.strong_count() > 0);
            file.open.push(Arc::downgrade(held));
        }
    }

    /// Whether the kernel may keep the bytes that it has: not if the file has changed since it was last opened.
    pub fn bytes_are_good(&self, number: u64, now: &Facts) -> bool {
        let mut inner = self.inner();
        let Some(file) = inner.files.get_mut(&number) else { return false };
        let stamp = |facts: &Facts| (facts.size, facts.modified, facts.changed);
        let before = file.seen.replace(*now);
        before.is_some_and(|before| before.same(now) && stamp(&before) == stamp(now))
    }

    pub fn get(&self, number: u64) -> Option<Known> {
        let inner = self.inner();
        let file = inner.files.get(&number)?;
        let paths = match file.view.root == number {
            true => vec![PathBuf::new()],
            false => file.names.iter().rev().filter_map(|(parent, name)| inner.path(*parent, name)).collect(),
        };
        let open = file.open.iter().find_map(Weak::upgrade);
        Some(Known { view: file.view.clone(), facts: file.facts, paths, open })
    }

    pub fn views(&self) -> Vec<Arc<View>> {
        self.inner().views.values().cloned().collect()
    }

    /// Every number that the kernel knows of a view.
    pub fn all_of(&self, view: &Arc<View>) -> Vec<u64> {
        let inner = self.inner();
        inner.files.iter().filter(|(_, file)| Arc::ptr_eq(&file.view, view)).map(|(number, _)| *number).collect()
    }

    pub fn len(&self) -> usize {
        self.inner().files.len()
    }
}

impl Inner {
    fn name(&mut self, parent: u64, name: &OsStr, number: u64) {
        let key = (parent, name.to_owned());
        let before = self.names.insert(key.clone(), number);
        if before == Some(number) {
            return;
        }
        if let Some(file) = before.and_then(|before| self.files.get_mut(&before)) {
            file.names.retain(|it| *it != key);
        }
        let Some(file) = self.files.get_mut(&number) else { return };
        file.names.push(key);
        if file.names.len() > NAMES {
            let oldest = file.names.remove(0);
            self.names.remove(&oldest);
        }
    }

    fn unname(&mut self, parent: u64, name: &OsStr) -> Option<u64> {
        let key = (parent, name.to_owned());
        let number = self.names.remove(&key)?;
        if let Some(file) = self.files.get_mut(&number) {
            file.names.retain(|it| *it != key);
        }
        Some(number)
    }

    /// The path of a name below its view, by the newest names of the directories above it.
    fn path(&self, parent: u64, name: &OsStr) -> Option<PathBuf> {
        let mut names = vec![name];
        let mut at = parent;
        // Names that were exchanged from outside may lead in a circle.
        for _ in 0..1024 {
            let file = self.files.get(&at)?;
            if file.view.root == at {
                return Some(names.into_iter().rev().collect());
            }
            let (above, name) = file.names.last()?;
            names.push(name);
            at = *above;
        }
        None
    }
}

impl File {
    fn new(view: Arc<View>, facts: Facts) -> File {
        File { view, facts, seen: None, names: Vec::new(), lookups: 0, open: Vec::new() }
    }
}

/// The number of a file in the view at `path`: the same in every run, for rights may have been given on it.
pub fn number(path: &str, id: Id) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, id).hash(&mut hasher);
    hasher.finish() | REAL
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        table: Table,
        view: Arc<View>,
        facts: Facts,
        _place: tempfile::TempDir,
    }

    fn scene() -> Scene {
        let place = tempfile::tempdir().unwrap();
        let ground = Arc::new(HostDir::open(place.path(), false).unwrap());
        let facts = *ground.facts();
        let table = Table::default();
        table.root("/p", &ground, &Arc::default());
        let view = table.views().remove(0);
        Scene { table, view, facts, _place: place }
    }

    impl Scene {
        fn told(&self, parent: u64, name: &str, inode: u64) -> u64 {
            let facts = Facts { id: Id { device: 1, inode }, ..self.facts };
            self.table.told(&self.view, parent, OsStr::new(name), &facts)
        }

        fn paths(&self, number: u64) -> String {
            let known = self.table.get(number);
            known.map_or("gone".to_owned(), |known| {
                known.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
            })
        }
    }

    #[test]
    fn a_file_is_followed_under_all_its_names() {
        let scene = scene();
        let root = scene.view.root;
        let dir = scene.told(root, "dir", 10);
        let file = scene.told(dir, "a", 11);
        assert_eq!(scene.told(root, "hard", 11), file);
        assert_eq!(scene.paths(file), "hard dir/a");
        scene.table.moved((root, OsStr::new("dir")), (root, OsStr::new("moved")), false);
        assert_eq!(scene.paths(file), "hard moved/a");
        scene.table.gone(root, OsStr::new("hard"));
        assert_eq!(scene.paths(file), "moved/a");
        let other = scene.told(root, "other", 12);
        scene.table.moved((root, OsStr::new("other")), (dir, OsStr::new("a")), true);
        assert_eq!((scene.paths(other), scene.paths(file)), ("moved/a".to_owned(), "other".to_owned()));
        scene.table.moved((dir, OsStr::new("a")), (root, OsStr::new("other")), false);
        assert_eq!((scene.paths(other), scene.paths(file)), ("other".to_owned(), String::new()));
    }

    #[test]
    fn what_the_kernel_forgets_is_forgotten_with_its_names() {
        let scene = scene();
        let root = scene.view.root;
        let file = scene.told(root, "a", 11);
        scene.told(root, "a", 11);
        scene.table.forget(file, 1);
        assert_eq!(scene.paths(file), "a");
        scene.table.forget(file, 1);
        scene.table.forget(root, 99);
        assert_eq!((scene.paths(file).as_str(), scene.table.len()), ("gone", 1));
        assert!(scene.table.inner().names.is_empty());
        for name in 0..100 {
            scene.told(root, &name.to_string(), 12);
        }
        assert_eq!(scene.table.inner().names.len(), NAMES);
    }

    #[test]
    fn bytes_are_kept_while_the_file_is_the_same() {
        let scene = scene();
        let file = scene.told(scene.view.root, "a", 11);
        let same = Facts { id: Id { device: 1, inode: 11 }, ..scene.facts };
        assert!(!scene.table.bytes_are_good(file, &same));
        assert!(scene.table.bytes_are_good(file, &same));
        let changed = Facts { changed: std::time::SystemTime::UNIX_EPOCH, ..same };
        assert!(!scene.table.bytes_are_good(file, &changed));
        assert!(scene.table.bytes_are_good(file, &changed));
        let another = Facts { born: std::time::SystemTime::UNIX_EPOCH, ..changed };
        assert!(!scene.table.bytes_are_good(file, &another));
    }
}
