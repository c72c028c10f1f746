//! What is told to the kernel without being asked: that a copy is old, that a file can be read.
//!
//! One thread says it all and holds no lock while it does. Said from a request being served it would deadlock past
//! `kill -9`: the kernel waits for a page that the same thread should fill. Knows nothing of nodes.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fuser::{INodeNo, Notifier, PollHandle};

/// Something to tell. What is already in the queue need not be said twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// Bytes and attributes of an inode are old.
    Inode(u64),
    /// `name` in directory `parent` leads elsewhere, or nowhere.
    Entry { parent: u64, name: String, path: String },
    /// A poller may look again.
    Poll(u64),
}

/// Where notices go: the kernel, or a test.
pub trait Announce: Send + Sync {
    fn announce(&self, notice: &Notice);
}

impl Announce for Notifier {
    fn announce(&self, notice: &Notice) {
        // An inode or a handle that the kernel has dropped meanwhile is no fault, and nobody is there to hear of others.
        let _ = match notice {
            Notice::Inode(ino) => self.inval_inode(INodeNo(*ino), 0, 0),
            Notice::Entry { parent, name, .. } => self.inval_entry(INodeNo(*parent), OsStr::new(name)),
            Notice::Poll(handle) => self.poll(PollHandle(*handle)),
        };
    }
}

#[derive(Default)]
pub struct Notices {
    queue: Mutex<Queue>,
    came: Condvar,
    /// Notices that were not said to their end.
    unsaid: AtomicUsize,
    protected: Mutex<Vec<String>>,
    /// Who hears what need not be queued; nobody before the session has begun, and after it is over.
    kernel: Mutex<Option<Arc<dyn Announce>>>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    queued: HashSet<Notice>,
    over: bool,
}

enum Item {
    Say(Notice),
    Then(Box<dyn FnOnce() + Send>),
}

impl Notices {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    pub fn post(&self, notice: Notice) {
        let mut queue = self.queue();
        if queue.over || !queue.queued.insert(notice.clone()) {
            return;
        }
        self.unsaid.fetch_add(1, Ordering::SeqCst);
        queue.items.push_back(Item::Say(notice));
        self.came.notify_one();
    }

    /// A poller may look again. This waits for nobody, so it is said on the spot, unless something else must be said first:
    /// who was woken must not find anything old.
    pub fn poll(&self, handle: u64) {
        let kernel = self.kernel();
        match kernel.filter(|_| self.unsaid.load(Ordering::SeqCst) == 0) {
            Some(kernel) => kernel.announce(&Notice::Poll(handle)),
            None => self.post(Notice::Poll(handle)),
        }
    }

    fn kernel(&self) -> Option<Arc<dyn Announce>> {
        self.kernel.lock().clone()
    }

    /// Does `then` when all that was posted before has been said: at once, if that is so already.
    ///
    /// Whoever is answered this way finds nothing old. Never for an answer that a notice may wait for: that of a read
    /// into the page cache, or of anything that locks a directory.
    pub fn after(&self, then: impl FnOnce() + Send + 'static) {
        if self.unsaid.load(Ordering::SeqCst) > 0 {
            let mut queue = self.queue();
            if !queue.over {
                queue.items.push_back(Item::Then(Box::new(then)));
                self.came.notify_one();
                return;
            }
        }
        then();
    }

    /// Something is mounted on `path`: its entry, and those above it, are never said to be old, for the kernel would
    /// take away what is mounted there.
    pub fn protect(&self, path: &str) {
        self.protected.lock().push(path.to_owned());
    }

    pub fn unprotect(&self, path: &str) {
        let mut protected = self.protected.lock();
        if let Some(at) = protected.iter().position(|it| it == path) {
            protected.swap_remove(at);
        }
    }

    fn is_protected(&self, path: &str) -> bool {
        let protected = self.protected.lock();
        protected.iter().any(|it| it.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    /// Ends the thread that says the notices, when it has said what is there.
    pub fn stop(&self) {
        self.queue().over = true;
        self.came.notify_all();
        // It holds the device open.
        drop(self.kernel.lock().take());
    }

    /// Says every notice until it is stopped.
    fn run(&self, kernel: &dyn Announce) {
        loop {
            let mut queue = self.queue();
            let item = loop {
                match queue.items.pop_front() {
                    Some(item) => break item,
                    None if queue.over => return,
                    None => self.came.wait(&mut queue),
                }
            };
            match item {
                Item::Say(notice) => {
                    queue.queued.remove(&notice);
                    drop(queue);
                    match &notice {
                        Notice::Entry { path, .. } if self.is_protected(path) => (),
                        notice => kernel.announce(notice),
                    }
                    self.unsaid.fetch_sub(1, Ordering::SeqCst);
                }
                Item::Then(then) => {
                    drop(queue);
                    then();
                }
            }
        }
    }
}

/// Starts the thread.
pub fn start(notices: Arc<Notices>, kernel: impl Announce + 'static) -> std::io::Result<()> {
    let kernel: Arc<dyn Announce> = Arc::new(kernel);
    *notices.kernel.lock() = Some(kernel.clone());
    std::thread::Builder::new().name("notices".to_owned()).spawn(move || notices.run(&*kernel)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Said(Arc<Mutex<Vec<String>>>);

    impl Announce for Said {
        fn announce(&self, notice: &Notice) {
            self.0.lock().push(format!("{notice:?}"));
        }
    }

    fn entry(path: &str) -> Notice {
        Notice::Entry { parent: 1, name: path.rsplit('/').next().unwrap().to_owned(), path: path.to_owned() }
    }

    #[test]
    fn what_is_queued_already_is_said_once_and_in_order() {
        let (notices, said) = (Notices::default(), Said::default());
        for ino in [1, 2, 1, 3, 2] {
            notices.post(Notice::Inode(ino));
        }
        let then = said.clone();
        notices.after(move || then.0.lock().push("then".to_owned()));
        notices.post(Notice::Poll(9));
        notices.stop();
        notices.run(&said);
        assert_eq!(*said.0.lock(), ["Inode(1)", "Inode(2)", "Inode(3)", "then", "Poll(9)"]);
    }

    #[test]
    fn a_poller_is_told_on_the_spot_but_not_before_what_it_might_find_old() {
        let (notices, said) = (Notices::default(), Said::default());
        notices.poll(1);
        *notices.kernel.lock() = Some(Arc::new(said.clone()));
        notices.stop();
        notices.run(&said);
        assert_eq!(*said.0.lock(), ["Poll(1)"], "before the session it waits for it");

        let (notices, said) = (Notices::default(), Said::default());
        *notices.kernel.lock() = Some(Arc::new(said.clone()));
        notices.poll(2);
        notices.post(Notice::Inode(3));
        notices.poll(4);
        assert_eq!(*said.0.lock(), ["Poll(2)"]);
        notices.stop();
        notices.run(&said);
        assert_eq!(*said.0.lock(), ["Poll(2)", "Inode(3)", "Poll(4)"]);
        assert!(notices.kernel().is_none(), "nothing holds the device open when the session is over");
    }

    #[test]
    fn with_nothing_to_say_it_is_done_at_once() {
        let (notices, said) = (Notices::default(), Said::default());
        let then = said.clone();
        notices.after(move || then.0.lock().push("then".to_owned()));
        assert_eq!(*said.0.lock(), ["then"]);
    }

    #[test]
    fn what_something_is_mounted_on_or_under_is_never_said_to_be_old() {
        let (notices, said) = (Notices::default(), Said::default());
        notices.protect("/a/b");
        for path in ["/a", "/a/b", "/a/bc", "/a/b/c"] {
            notices.post(entry(path));
        }
        notices.stop();
        notices.run(&said);
        let said = said.0.lock().join(" ");
        assert!(said.contains("/a/bc") && said.contains("/a/b/c"));
        assert_eq!(said.matches("Entry").count(), 2);
        notices.unprotect("/a/b");
        assert!(!notices.is_protected("/a"));
    }
}
