//! The directories of the tree that are a view: its `fs`, and `projects/<p>/fs` for an agent that works in one.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use parking_lot::Mutex;

use super::{HostState, fs_of};
use crate::host::mirror::Mirror;
use crate::services::views::View;
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, ChangeNotifier, Dir, Handle, Listing, NameQuery, Node, Open};

/// The mounted view, opened when it is first asked, and again when it was mounted anew.
pub struct ViewDir {
    view: Arc<View>,
    open: Mutex<Option<(u64, Mirror)>>,
}

impl ViewDir {
    pub fn new(view: Arc<View>) -> ViewDir {
        ViewDir { view, open: Mutex::default() }
    }

    fn mirror(&self) -> Result<Mirror> {
        let (at, generation): (PathBuf, u64) = (self.view.mounted()?, self.view.record().generation);
        let mut open = self.open.lock();
        match &*open {
            Some((known, mirror)) if *known == generation => Ok(mirror.clone()),
            _ => {
                let mirror = Mirror::open(&at, false)?;
                *open = Some((generation, mirror.clone()));
                Ok(mirror)
            }
        }
    }
}

impl Dir for ViewDir {
    fn lookup(&self, name: &str) -> Option<Node> {
        self.mirror().ok()?.lookup(name)
    }

    fn list(&self) -> Vec<(String, Node)> {
        self.mirror().map(|mirror| mirror.list()).unwrap_or_default()
    }

    fn first(&self, most: usize) -> Vec<(String, Node)> {
        self.mirror().map(|mirror| mirror.first(most)).unwrap_or_default()
    }

    fn is_quick(&self, _query: NameQuery) -> bool {
        false
    }

    fn modified(&self) -> SystemTime {
        acheron_vfs::STARTED
    }

    fn make_dir(&self, caller: &Caller, name: &str) -> Answer<Node> {
        match self.mirror() {
            Ok(mirror) => mirror.make_dir(caller, name),
            Err(error) => Answer::refuse(error),
        }
    }

    fn remove_dir(&self, caller: &Caller, name: &str) -> Answer<()> {
        match self.mirror() {
            Ok(mirror) => mirror.remove_dir(caller, name),
            Err(error) => Answer::refuse(error),
        }
    }

    fn create(&self, caller: &Caller, name: &str, how: Open) -> Result<(Node, Box<dyn Handle>)> {
        self.mirror()?.create(caller, name, how)
    }

    fn remove(&self, caller: &Caller, name: &str) -> Answer<()> {
        match self.mirror() {
            Ok(mirror) => mirror.remove(caller, name),
            Err(error) => Answer::refuse(error),
        }
    }
}

/// `projects/<p>`: the same for all, but for `fs`, which is the view of an agent that works in one.
pub struct ProjectHome {
    pub listing: Arc<Listing>,
    pub host: Weak<HostState>,
    pub project: String,
}

impl Dir for ProjectHome {
    fn lookup(&self, name: &str) -> Option<Node> {
        self.listing.lookup(name)
    }

    fn lookup_for(&self, caller: &Caller, name: &str) -> Option<Node> {
        if name == "fs"
            && let Some(host) = self.host.upgrade()
            && let Some(own) = fs_of(&host, caller, &self.project)
        {
            // A view that is not there is no reason to show the project itself.
            return own.inspect_err(|error: &Error| tracing::warn!(%error, "an agent has no view")).ok();
        }
        self.listing.lookup(name)
    }

    fn list(&self) -> Vec<(String, Node)> {
        self.listing.list()
    }

    fn is_quick(&self, query: NameQuery) -> bool {
        self.listing.is_quick(query)
    }

    fn modified(&self) -> SystemTime {
        self.listing.modified()
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        self.listing.notifier()
    }
}
