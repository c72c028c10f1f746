//! Changes made to a project from outside, by an editor or by git, become events of the agents that have it.
//!
//! One watch a directory, never across devices: a project that contains the mountpoint must not make the host read its own
//! mount. Nor of the state: every event is written there, so that each would be the next.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::io::Errno;
use serde_json::json;

use crate::spec::ProjectDir;
use acheron_base::host_dir::HostDir;
use acheron_base::{Error, Result};

/// How many directories of a project are watched, also of those that are made later: agents make directories, and all
/// watches of a user are counted together.
const MOST: usize = 8192;
/// Changes within this time are reported together, once per file.
const TOGETHER: Duration = Duration::from_millis(50);
/// Continuous changes are reported after this time.
const AT_MOST: Duration = Duration::from_millis(500);
/// More changes at once are reported as one change of the whole.
const MANY: usize = 200;

/// How long a mount waits for the first scan of all directories together.
const PATIENCE: Duration = Duration::from_millis(300);

/// Receives a change: the project, the path of the tree, and the kind of change.
pub type NotifyChange = Arc<dyn Fn(&str, &str, serde_json::Value) + Send + Sync>;

/// A change on the disk, by its path there.
pub enum DiskChange<'a> {
    File(&'a Path),
    /// An unknown number of paths below the directory.
    Everything(&'a Path),
}

/// Receives a change before listeners are notified.
pub type MarkStale = Arc<dyn Fn(DiskChange<'_>) + Send + Sync>;

/// Watches as long as it is held.
pub struct Watching {
    _watchers: Vec<Arc<parking_lot::Mutex<RecommendedWatcher>>>,
}

/// Watches every directory but what lies in `state`. One that cannot be watched is logged.
///
/// A large place is still being gone through when this returns. What changed in it until then is not known, so when that is
/// done the whole of it counts as changed.
pub fn watch(all: &[ProjectDir], state: &Path, tell: &NotifyChange, stale: &MarkStale) -> Watching {
    let mut watchers = Vec::new();
    let until = Instant::now() + PATIENCE;
    for bound in all {
        match one(bound, state, until, tell.clone(), stale.clone()) {
            Ok(watcher) => watchers.push(watcher),
            Err(error) => tracing::warn!(%error, source = %bound.source.display(), "changes are not noticed"),
        }
    }
    Watching { _watchers: watchers }
}

type SharedWatcher = Arc<parking_lot::Mutex<RecommendedWatcher>>;

fn one(
    bound: &ProjectDir,
    state: &Path,
    until: Instant,
    tell: NotifyChange,
    stale: MarkStale,
) -> Result<SharedWatcher> {
    let root = bound.source.canonicalize()?;
    let bounds = WatchBounds { device: root.metadata()?.dev(), state: state.canonicalize()? };
    let ground = HostDir::open(&root, true).map_err(std::io::Error::from)?;
    let (said, heard) = mpsc::channel::<Event>();
    let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // The receiver is gone: the host goes down.
        _ = event.map(|event| said.send(event));
    });
    let watcher = Arc::new(parking_lot::Mutex::new(watcher.map_err(|err| Error::unavailable(err.to_string()))?));
    let (weak, bound) = (Arc::downgrade(&watcher), bound.clone());
    let (walked, all_walked) = mpsc::channel();
    let listen = move || {
        let mut followed = FollowedDirs { most: MOST, paths: BTreeSet::new() };
        let late = {
            let Some(watcher) = weak.upgrade() else { return };
            followed.all(&bounds, &root, &watcher);
            walked.send(()).is_err()
        };
        if late {
            let whole = BTreeMap::from([(PathBuf::new(), "changed")]);
            spoiled(&root, &whole, &stale);
            told(&bound, &whole, &tell);
        }
        while let Ok(first) = heard.recv() {
            let (mut changes, begun) = (BTreeMap::new(), Instant::now());
            note(&mut changes, &first, &root);
            while let Ok(next) = heard.recv_timeout(TOGETHER) {
                note(&mut changes, &next, &root);
                if changes.len() > MANY * 10 || begun.elapsed() > AT_MOST {
                    break;
                }
            }
            let Some(watcher) = weak.upgrade() else { return };
            let is_directory = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
            let (there, gone): (Vec<PathBuf>, Vec<PathBuf>) =
                changes.keys().map(|path| root.join(path)).partition(is_directory);
            // First those that are gone: one that was moved is the same watch under a new name.
            gone.iter().for_each(|path| followed.forget(path, &watcher));
            there.iter().for_each(|path| _ = followed.add(&bounds, path, &watcher));
            drop(watcher);
            changes.retain(|path, _| stands(&ground, path));
            spoiled(&root, &changes, &stale);
            told(&bound, &changes, &tell);
        }
    };
    std::thread::Builder::new().name("project-watch".to_owned()).spawn(listen)?;
    // A closed channel tells the walker that its caller no longer waits.
    _ = all_walked.recv_timeout(until.saturating_duration_since(Instant::now()));
    Ok(watcher)
}

fn follow(watcher: &parking_lot::Mutex<RecommendedWatcher>, directory: &Path) -> bool {
    let mut watcher = watcher.lock();
    // A directory may be gone again, or the kernel's watches used up: then it is not noticed.
    watcher.watch(directory, RecursiveMode::NonRecursive).is_ok()
}

/// How far a watch goes.
struct WatchBounds {
    device: u64,
    state: PathBuf,
}

impl WatchBounds {
    fn hold(&self, path: &Path) -> bool {
        // A mountpoint has another device than the directory that it stands in; asking it nothing else is safe.
        !path.starts_with(&self.state) && device_of(path) == Some(self.device)
    }

    /// The directory and those below it within the bounds, `most` at most. `.git` is left out: it changes with every
    /// command.
    fn directories(&self, root: &Path, most: usize) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = Some(root.to_owned()).filter(|root| self.hold(root)).into_iter().collect();
        let mut next = 0;
        while next < found.len() && found.len() < most {
            let entries = std::fs::read_dir(&found[next]).into_iter().flatten().flatten();
            next += 1;
            for entry in
                entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git")
            {
                if found.len() < most && self.hold(&entry.path()) {
                    found.push(entry.path());
                }
            }
        }
        found
    }
}

/// The directories that are watched, each once.
struct FollowedDirs {
    most: usize,
    paths: BTreeSet<PathBuf>,
}

impl FollowedDirs {
    /// Watches a project from its top.
    fn all(&mut self, bounds: &WatchBounds, root: &Path, watcher: &parking_lot::Mutex<RecommendedWatcher>) {
        let missed = self.add(bounds, root, watcher);
        if self.paths.len() >= self.most {
            tracing::warn!(source = %root.display(), "only changes in the first {} directories are noticed", self.most);
        }
        if missed > 0 {
            tracing::warn!(
                source = %root.display(),
                missed,
                "changes in some directories are not noticed: raise the limit by `sysctl fs.inotify.max_user_watches=1000000`"
            );
        }
    }

    /// Watches a directory and those below it, as long as there is room; returns how many the kernel refused.
    fn add(&mut self, bounds: &WatchBounds, path: &Path, watcher: &parking_lot::Mutex<RecommendedWatcher>) -> usize {
        let mut missed = 0;
        for directory in bounds.directories(path, self.most) {
            if self.paths.len() >= self.most && !self.paths.contains(&directory) {
                break;
            }
            match follow(watcher, &directory) {
                true => _ = self.paths.insert(directory),
                false => missed += 1,
            }
        }
        missed
    }

    /// Ends the watches of a directory that is gone, and of those below it: one that was moved away would keep its own.
    fn forget(&mut self, path: &Path, watcher: &parking_lot::Mutex<RecommendedWatcher>) {
        let mut watcher = watcher.lock();
        self.paths.retain(|known| {
            let gone = known.starts_with(path);
            if gone {
                // One that was removed has no watch any more.
                _ = watcher.unwatch(known);
            }
            !gone
        });
    }
}

/// The device of a directory, without waiting for the server behind it.
fn device_of(path: &Path) -> Option<u64> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
    let stat = statx(CWD, path, flags, StatxFlags::TYPE).ok()?;
    Some(makedev(stat.stx_dev_major, stat.stx_dev_minor))
}

fn note(changes: &mut BTreeMap<PathBuf, &'static str>, event: &Event, root: &Path) {
    if event.need_rescan() {
        // More happened than the kernel could tell of: the whole has changed.
        changes.insert(PathBuf::new(), "changed");
        return;
    }
    let kind = match event.kind {
        EventKind::Create(_) => "created",
        EventKind::Remove(_) => "removed",
        EventKind::Modify(ModifyKind::Name(_)) => "renamed",
        EventKind::Modify(ModifyKind::Metadata(_)) | EventKind::Access(_) => return,
        _ => "changed",
    };
    for path in event.paths.iter().filter_map(|path| path.strip_prefix(root).ok()) {
        // A file that is created and then written counts as created.
        let known = changes.entry(path.to_owned()).or_insert(kind);
        if kind != "changed" {
            *known = kind;
        }
    }
}

/// Whether a name may be one of the project. A watch is set by a path: if a link took the place of the directory at that
/// moment, what is heard is of another directory.
fn stands(ground: &HostDir, path: &Path) -> bool {
    let above = path.parent().unwrap_or(Path::new(""));
    !matches!(ground.open_path(above), Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV))
}

fn spoiled(root: &Path, changes: &BTreeMap<PathBuf, &'static str>, stale: &MarkStale) {
    match changes.len() > MANY || changes.contains_key(Path::new("")) {
        true => stale(DiskChange::Everything(root)),
        false => changes.keys().for_each(|path| stale(DiskChange::File(&root.join(path)))),
    }
}

fn told(bound: &ProjectDir, changes: &BTreeMap<PathBuf, &'static str>, tell: &NotifyChange) {
    let project = bound.project.as_str();
    if changes.len() > MANY {
        tell(project, &bound.path_of(""), json!({ "what": "changed", "files": changes.len() }));
        return;
    }
    for (path, kind) in changes {
        let path: PathBuf = bound.path().join(path).components().collect();
        tell(project, &path.display().to_string(), json!({ "what": kind }));
    }
}

#[cfg(test)]
mod tests;
