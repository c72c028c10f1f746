//! Inode numbers of mirrored files, and the names under which they were found. A number belongs to a file and not to a
//! name, so two hard links are one file and a renamed file keeps its number. A name may have become wrong since: its
//! user checks whether it still leads to the file. The passthrough uses it; it touches no disk.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::file_requests::OpenMirrorFile;
use acheron_base::host_dir::{FileInfo, HostDir, Id};
use acheron_vfs::Listing;

/// Set in the number of every mirrored file, and in no other.
pub const MIRRORED: u64 = 1 << 63;

/// The number of names that are remembered per file.
const NAMES: usize = 8;

/// A directory of the machine at a path of the tree.
pub struct View {
    pub host_dir: Arc<HostDir>,
    /// Nodes of the tree that replace names of its root.
    pub overlay: Arc<Listing>,
    /// Its path in the tree.
    pub path: String,
    /// The number of its root.
    pub root: u64,
}

impl View {
    /// The path in the tree of the file at `path` below the view.
    pub fn path_of(&self, path: &Path) -> String {
        format!("{}/{}", self.path, path.display()).trim_end_matches('/').to_owned()
    }
}

#[derive(Default)]
pub struct MirrorInodes(Mutex<InodesState>);

#[derive(Default)]
struct InodesState {
    views: HashMap<String, Arc<View>>,
    files: HashMap<u64, MirrorInode>,
    /// From parent and name to the file.
    names: HashMap<(u64, OsString), u64>,
}

struct MirrorInode {
    view: Arc<View>,
    info: FileInfo,
    /// Its attributes when it was last opened.
    seen: Option<FileInfo>,
    /// The newest last; empty for the root of a view.
    names: Vec<(u64, OsString)>,
    lookups: u64,
    open: Vec<Weak<OpenMirrorFile>>,
}

/// A file with the attributes that the kernel was told, and the paths below its view where it may be.
pub struct KnownFile {
    pub view: Arc<View>,
    pub info: FileInfo,
    pub paths: Vec<PathBuf>,
    pub open: Option<Arc<OpenMirrorFile>>,
}

impl MirrorInodes {
    fn state(&self) -> MutexGuard<'_, InodesState> {
        self.0.lock()
    }

    /// Records that the kernel is told of the root of the view at `path`; returns its number. Another directory at that
    /// path is another view.
    pub fn root(&self, path: &str, host_dir: &Arc<HostDir>, overlay: &Arc<Listing>) -> u64 {
        let info = *host_dir.info();
        let mut state = self.state();
        let view = match state.views.get(path) {
            Some(view) if Arc::ptr_eq(&view.host_dir, host_dir) => view.clone(),
            _ => {
                let root = number(path, info.id);
                let view = View { host_dir: host_dir.clone(), overlay: overlay.clone(), path: path.to_owned(), root };
                let view = Arc::new(view);
                state.views.insert(path.to_owned(), view.clone());
                view
            }
        };
        let root = view.root;
        let file = state.files.entry(root).or_insert_with(|| MirrorInode::new(view.clone(), info));
        file.view = view;
        file.lookups += 1;
        root
    }

    /// Records that the kernel is told of `name` in `parent`; returns the number of the file.
    pub fn remember(&self, view: &Arc<View>, parent: u64, name: &OsStr, info: &FileInfo) -> u64 {
        let number = number(&view.path, info.id);
        let mut state = self.state();
        let file = state.files.entry(number).or_insert_with(|| MirrorInode::new(view.clone(), *info));
        file.lookups += 1;
        file.info = *info;
        state.name(parent, name, number);
        number
    }

    /// The kernel has forgotten the inode `times` times.
    pub fn forget(&self, number: u64, times: u64) {
        let mut state = self.state();
        let Some(file) = state.files.get_mut(&number) else { return };
        file.lookups = file.lookups.saturating_sub(times);
        if file.lookups > 0 || file.view.root == number {
            return;
        }
        if let Some(gone) = state.files.remove(&number) {
            for name in gone.names {
                state.names.remove(&name);
            }
        }
    }

    pub fn gone(&self, parent: u64, name: &OsStr) {
        self.state().unname(parent, name);
    }

    pub fn moved(&self, from: (u64, &OsStr), to: (u64, &OsStr), exchanged: bool) {
        let mut state = self.state();
        let (one, other) = (state.unname(from.0, from.1), state.unname(to.0, to.1));
        if let Some(one) = one {
            state.name(to.0, to.1, one);
        }
        if let (Some(other), true) = (other, exchanged) {
            state.name(from.0, from.1, other);
        }
    }

    pub fn opened(&self, number: u64, held: &Arc<OpenMirrorFile>) {
        if let Some(file) = self.state().files.get_mut(&number) {
            file.open.retain(|it| it.strong_count() > 0);
            file.open.push(Arc::downgrade(held));
        }
    }

    /// Whether the kernel may use the bytes that it has cached: not if the file has changed since it was last opened.
    pub fn cache_is_valid(&self, number: u64, now: &FileInfo) -> bool {
        let mut state = self.state();
        let Some(file) = state.files.get_mut(&number) else { return false };
        let stamp = |info: &FileInfo| (info.size, info.modified, info.changed);
        let before = file.seen.replace(*now);
        before.is_some_and(|before| before.same(now) && stamp(&before) == stamp(now))
    }

    pub fn get(&self, number: u64) -> Option<KnownFile> {
        let state = self.state();
        let file = state.files.get(&number)?;
        let paths = match file.view.root == number {
            true => vec![PathBuf::new()],
            false => file.names.iter().rev().filter_map(|(parent, name)| state.path(*parent, name)).collect(),
        };
        let open = file.open.iter().find_map(Weak::upgrade);
        Some(KnownFile { view: file.view.clone(), info: file.info, paths, open })
    }

    pub fn views(&self) -> Vec<Arc<View>> {
        self.state().views.values().cloned().collect()
    }

    /// The numbers of all files of a view that the kernel knows.
    pub fn all_of(&self, view: &Arc<View>) -> Vec<u64> {
        let state = self.state();
        state.files.iter().filter(|(_, file)| Arc::ptr_eq(&file.view, view)).map(|(number, _)| *number).collect()
    }

    pub fn len(&self) -> usize {
        self.state().files.len()
    }
}

impl InodesState {
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

    /// The path below its view, by the newest names of the directories above.
    fn path(&self, parent: u64, name: &OsStr) -> Option<PathBuf> {
        let mut names = vec![name];
        let mut at = parent;
        // Names that were exchanged from outside may form a cycle.
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

impl MirrorInode {
    fn new(view: Arc<View>, info: FileInfo) -> MirrorInode {
        MirrorInode { view, info, seen: None, names: Vec::new(), lookups: 0, open: Vec::new() }
    }
}

/// The number of a file in the view at `path`. It is the same in every run, because rights may have been granted on it.
pub fn number(path: &str, id: Id) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, id).hash(&mut hasher);
    hasher.finish() | MIRRORED
}

#[cfg(test)]
mod tests;
