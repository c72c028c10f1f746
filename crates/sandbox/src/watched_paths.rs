//! Notices that something has appeared at a path that must be covered. The init uses it, while the program runs.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::path_rules::PathRule;

/// The directories in which a path of a rule, or a directory on the way to it, may appear.
pub(super) struct WatchedPaths {
    events: OwnedFd,
    directories: BTreeMap<i32, PathBuf>,
    wanted: Vec<PathBuf>,
}

impl WatchedPaths {
    /// `None` where there is nothing to watch, or this user has all the watches that it may have.
    pub fn new(rules: &[PathRule]) -> Option<WatchedPaths> {
        let wanted: Vec<PathBuf> = rules.iter().map(|rule| rule.path.clone()).collect();
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok().filter(|_| !wanted.is_empty())?;
        let mut watched = WatchedPaths { events, directories: BTreeMap::new(), wanted };
        watched.watch();
        Some(watched)
    }

    /// Watches the deepest directory that is there, for each path.
    pub fn watch(&mut self) {
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        for path in &self.wanted {
            let mut above = path.ancestors().skip(1);
            let added = above.find_map(|above| Some((inotify::add_watch(&self.events, above, flags).ok()?, above)));
            self.directories.extend(added.map(|(number, above)| (number, above.to_owned())));
        }
    }

    /// Whether something has appeared that concerns a rule.
    pub fn appeared(&self) -> bool {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(self.events.as_fd(), &mut room);
        let mut found = false;
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())).to_owned());
            let path = self.directories.get(&event.wd()).zip(name).map(|(above, name)| above.join(name));
            // Without a path: some were lost, or a directory is gone.
            found |= path.is_none_or(|path| self.wanted.iter().any(|wanted| wanted.starts_with(&path)))
                || event.events().contains(ReadFlags::QUEUE_OVERFLOW);
        }
        found
    }
}

impl AsFd for WatchedPaths {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}
