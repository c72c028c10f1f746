//! `global/library`: pages for people and agents, kept current when they are edited.

mod skills;
mod source;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::HostState;
use crate::contract::Contract;
use crate::service::{ServiceAccess, static_directory};
use acheron_base::watch::FileWatcher;
use acheron_base::{Clock, Result};
use acheron_vfs::{Dir, Listing, NameQuery, Node, TextFile};

pub use source::{LibraryPage, LibrarySource, embedded};

pub const ABOUT: &str = "The documentation of this tree: an index, topics, and a page for each service.";

/// The library as a directory. It is listed as a service that takes no calls.
pub fn directory(host: &Arc<HostState>) -> Result<impl Dir + use<>> {
    let contract = Contract::plain("library", ABOUT, Vec::new())?;
    let access = host.access.clone();
    let listing = static_directory(&contract, move |caller| access.permissions(caller, "/global/library", &[]));
    let dirs = Mutex::new(BTreeMap::from([(String::new(), Arc::new(listing))]));
    let tree = Arc::new(LibraryTree {
        dirs,
        pages: Mutex::default(),
        following: Mutex::default(),
        clock: host.context.clock.clone(),
    });
    let pages = LibraryPages { source: host.paths.library.clone(), skills: host.paths.skills.clone() };
    tree.show(&pages)?;
    for folder in pages.source.folder().into_iter().chain(pages.skills.iter().map(PathBuf::as_path)) {
        match tree.follow(folder, &pages) {
            // The list of skills tells of a directory that is not there.
            Err(error) if pages.source.folder() != Some(folder) => {
                tracing::warn!(%error, "the directory {} of skills is not watched", folder.display());
            }
            followed => followed?,
        }
    }
    Ok(LibraryRoot { root: tree.dir(""), _tree: tree })
}

/// Where all pages come from.
#[derive(Clone)]
struct LibraryPages {
    source: LibrarySource,
    skills: Vec<PathBuf>,
}

impl LibraryPages {
    fn all(&self) -> Result<Vec<LibraryPage>> {
        let mut pages = self.source.pages()?;
        if !self.skills.is_empty() {
            pages.extend(skills::pages(&self.skills));
        }
        Ok(pages)
    }
}

struct LibraryTree {
    /// Every directory, by its path; the root is the empty one.
    dirs: Mutex<BTreeMap<String, Arc<Listing>>>,
    pages: Mutex<BTreeMap<String, TextFile>>,
    /// Dropped with the tree; its thread ends then.
    following: Mutex<Vec<FileWatcher>>,
    clock: Clock,
}

/// The directory owns the tree and so the watcher of its folder.
struct LibraryRoot {
    root: Arc<Listing>,
    _tree: Arc<LibraryTree>,
}

impl Dir for LibraryRoot {
    fn lookup(&self, name: &str) -> Option<Node> {
        self.root.lookup(name)
    }

    fn list(&self) -> Vec<(String, Node)> {
        self.root.list()
    }

    fn is_quick(&self, query: NameQuery) -> bool {
        self.root.is_quick(query)
    }

    fn notifier(&self) -> Option<&acheron_vfs::ChangeNotifier> {
        self.root.notifier()
    }
}

impl LibraryTree {
    /// Makes the tree show what the source has: pages come, change and go.
    fn show(&self, pages: &LibraryPages) -> Result<()> {
        let wanted: BTreeMap<String, String> = pages.all()?.into_iter().map(|page| (page.path, page.text)).collect();
        let mut pages = self.pages.lock();
        let gone: Vec<String> = pages.keys().filter(|path| !wanted.contains_key(*path)).cloned().collect();
        for path in gone {
            pages.remove(&path);
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", &path));
            self.dir(dir).take(name);
        }
        for (path, text) in wanted {
            match pages.get(&path) {
                Some(page) if page.bytes() == text.as_bytes() => (),
                Some(page) => page.set(text, self.clock.now()),
                None => {
                    let page = TextFile::new(text, self.clock.now());
                    let (dir, name) = path.rsplit_once('/').unwrap_or(("", &path));
                    self.dir(dir).put(name, Node::file(page.clone()));
                    pages.insert(path, page);
                }
            }
        }
        Ok(())
    }

    /// The directory at `path`, made if need be.
    fn dir(&self, path: &str) -> Arc<Listing> {
        if let Some(dir) = self.dirs.lock().get(path) {
            return dir.clone();
        }
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = Arc::new(Listing::timed(&self.clock));
        self.dir(above).put(name, Node::Dir(dir.clone()));
        self.dirs.lock().insert(path.to_owned(), dir.clone());
        dir
    }

    /// Shows the folder again whenever something in it was written.
    fn follow(self: &Arc<Self>, folder: &Path, pages: &LibraryPages) -> Result<()> {
        let (tree, pages) = (Arc::downgrade(self), pages.clone());
        let following = acheron_base::watch::folder(folder, move || {
            let Some(tree) = tree.upgrade() else { return ControlFlow::Break(()) };
            if let Err(error) = tree.show(&pages) {
                tracing::warn!(%error, "the library could not be read again");
            }
            ControlFlow::Continue(())
        })?;
        self.following.lock().push(following);
        Ok(())
    }
}
