//! The wikis of the host, each opened once however many agents read it, and one watcher for all of them: the system has
//! few to give.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use notify::event::{CreateKind, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;

use super::wiki::Wiki;
use acheron_base::{Clock, ConfinedDir, Result};

/// A folder that is new is looked at once more after this long: something may have come into it before it was watched.
const SETTLING: Duration = Duration::from_millis(100);

#[derive(Default)]
pub struct Wikis(Arc<Mutex<OpenWikis>>);

/// A wiki that is open or is being opened; opening it, which lists all of it, keeps no other wiki.
type WikiSlot = Arc<Mutex<Weak<Wiki>>>;

#[derive(Default)]
struct OpenWikis {
    wikis: HashMap<PathBuf, WikiSlot>,
    watcher: Option<RecommendedWatcher>,
}

impl Wikis {
    /// The wiki in a folder, whose index is in a file.
    pub fn open(&self, place: ConfinedDir, index: &Path, clock: &Clock) -> Result<Arc<Wiki>> {
        // For knowing it again and for hearing of changes; what is read is read by what was opened.
        let folder = place.path().canonicalize()?;
        let slot = self.slot(&folder);
        let mut held = slot.lock();
        if let Some(wiki) = held.upgrade() {
            return Ok(wiki);
        }
        let wiki = Wiki::open(place, index, clock)?;
        *held = Arc::downgrade(&wiki);
        Ok(wiki)
    }

    /// The slot of a folder, which is watched from now on.
    fn slot(&self, folder: &Path) -> WikiSlot {
        let mut open = self.0.lock();
        if let Some(slot) = open.wikis.get(folder) {
            return slot.clone();
        }
        // One that is being opened is locked or has another owner.
        let unused = |slot: &WikiSlot| Arc::strong_count(slot) == 1 && slot.lock().strong_count() == 0;
        let gone: Vec<PathBuf> =
            open.wikis.iter().filter(|(_, slot)| unused(slot)).map(|(path, _)| path.clone()).collect();
        for path in gone {
            open.wikis.remove(&path);
            if let Some(watcher) = &mut open.watcher {
                _ = watcher.unwatch(&path); // it may be gone from the disk too
            }
        }
        // Watched before it is read, so that nothing falls between.
        if let Err(error) = self.watch(&mut open, folder) {
            tracing::warn!(%error, "edits of {} by others are not noticed", folder.display());
        }
        open.wikis.entry(folder.to_owned()).or_default().clone()
    }

    /// Watches the folder that is now where the one of this wiki was.
    pub fn watch_again(&self, wiki: &Wiki) {
        let Ok(folder) = wiki.place().path().canonicalize() else { return };
        let mut open = self.0.lock();
        if let Some(watcher) = &mut open.watcher {
            _ = watcher.unwatch(&folder); // it went with the lost one
        }
        if let Err(error) = self.watch(&mut open, &folder) {
            tracing::warn!(%error, "edits of {} by others are not noticed", folder.display());
        }
    }

    /// The folders that are lost, for `health.json`. One that is being opened is left out rather than waited for.
    pub fn faults(&self) -> Vec<String> {
        let Some(open) = self.0.try_lock() else { return Vec::new() };
        let wikis = open.wikis.values().filter_map(|slot| slot.try_lock()?.upgrade());
        let lost = wikis.filter(|wiki| wiki.is_lost());
        let sentence =
            |wiki: Arc<Wiki>| format!("recall: the folder of a wiki, {}, is gone", wiki.place().path().display());
        let mut lost: Vec<String> = lost.map(sentence).collect();
        lost.sort();
        lost
    }

    fn watch(&self, open: &mut OpenWikis, folder: &Path) -> notify::Result<()> {
        if open.watcher.is_none() {
            let (tell, heard) = channel();
            let config = notify::Config::default().with_follow_symlinks(false);
            open.watcher = Some(RecommendedWatcher::new(move |event| news(event, &tell), config)?);
            let wikis = Arc::downgrade(&self.0);
            std::thread::Builder::new().name("recall".to_owned()).spawn(move || follow(&heard, &wikis))?;
        }
        match &mut open.watcher {
            Some(watcher) => watcher.watch(folder, RecursiveMode::Recursive),
            None => Ok(()),
        }
    }
}

/// A path that changed, and whether a folder may have come with it. No path: everything may have changed.
type PathChange = (Option<PathBuf>, bool);

fn news(event: notify::Result<notify::Event>, tell: &Sender<PathChange>) {
    let Ok(event) = event else { return };
    if event.need_rescan() {
        _ = tell.send((None, false)); // the receiver is gone
    }
    if event.kind.is_access() {
        return; // reads are not changes, and the write was reported already
    }
    let came = matches!(
        event.kind,
        EventKind::Create(CreateKind::Folder | CreateKind::Any) | EventKind::Modify(ModifyKind::Name(_))
    );
    for path in event.paths {
        _ = tell.send((Some(path), came));
    }
}

/// Brings what is heard to the wikis, a burst at a time.
fn follow(heard: &Receiver<PathChange>, wikis: &Weak<Mutex<OpenWikis>>) {
    let mut settling = BTreeSet::new();
    loop {
        let first = match settling.is_empty() {
            true => heard.recv().ok(),
            false => match heard.recv_timeout(SETTLING) {
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    refresh(wikis, &std::mem::take(&mut settling));
                    continue;
                }
                Ok(first) => Some(first),
            },
        };
        let Some(first) = first else { return };
        let mut changed = BTreeSet::new();
        for (path, came) in std::iter::once(first).chain(heard.try_iter()) {
            if came && path.as_ref().is_some_and(|path| path.is_dir()) {
                settling.insert(path.clone());
            }
            changed.insert(path);
        }
        refresh(wikis, &changed);
    }
}

fn refresh(wikis: &Weak<Mutex<OpenWikis>>, changed: &BTreeSet<Option<PathBuf>>) {
    let Some(open) = wikis.upgrade() else { return };
    let open: Vec<(PathBuf, WikiSlot)> = {
        let open = open.lock();
        open.wikis.iter().map(|(path, slot)| (path.clone(), slot.clone())).collect()
    };
    for (folder, slot) in open {
        // A wiki that is being opened is waited for: what changed since may have been read already.
        let wiki = slot.lock().upgrade();
        let Some(wiki) = wiki else { continue };
        for path in changed {
            match path.as_ref().map(|path| path.strip_prefix(&folder)) {
                None => wiki.rescan(""),
                // The folder itself was moved or removed, or its attributes were changed.
                Some(Ok(below)) if below.as_os_str().is_empty() => {
                    if wiki.is_in_place() {
                        wiki.rescan("");
                    }
                }
                Some(Ok(below)) => below.to_str().into_iter().for_each(|below| wiki.refresh(below)),
                Some(Err(_)) => {}
            }
        }
    }
}
