//! Notifications to the kernel: a cached copy is stale, a file can be read. One thread sends them and holds no lock
//! while it does; only a poll notification may be sent directly, because it never blocks. An invalidation sent from a
//! request being served would deadlock beyond `kill -9`: the kernel waits for a page that the same thread should fill.
//! Inodes, replies and poll watches use it; it knows nothing of nodes.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::sync::Arc;

use fuser::{INodeNo, Notifier, PollHandle};

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, thread};

/// A notification. One that is already queued is not queued again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// The bytes and attributes of an inode are stale.
    Inode(u64),
    /// The attributes of an inode are stale.
    Attributes(u64),
    /// The entry `name` of directory `parent` is stale.
    Entry { parent: u64, name: String, path: String },
    /// A polled file may be readable.
    Poll(u64),
}

/// The receiver of the notices: the kernel, or a test.
pub trait NoticeSink: Send + Sync {
    fn send(&self, notice: &Notice);
}

impl NoticeSink for Notifier {
    fn send(&self, notice: &Notice) {
        // The kernel may have dropped the inode or handle meanwhile, which is no error; no other error could be
        // reported to anyone.
        let _ = match notice {
            Notice::Inode(ino) => self.inval_inode(INodeNo(*ino), 0, 0),
            Notice::Attributes(ino) => self.inval_inode(INodeNo(*ino), -1, 0),
            Notice::Entry { parent, name, .. } => self.inval_entry(INodeNo(*parent), OsStr::new(name)),
            Notice::Poll(handle) => self.poll(PollHandle(*handle)),
        };
    }
}

#[derive(Default)]
pub struct Notices {
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// The number of notices that are not completely sent.
    unsent: AtomicUsize,
    protected: Mutex<Vec<String>>,
    /// The receiver of notices that need no queue; `None` before the session starts and after it ends.
    kernel: Mutex<Option<Arc<dyn NoticeSink>>>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    queued: HashSet<Notice>,
    over: bool,
}

enum Item {
    Send(Notice),
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
        self.unsent.fetch_add(1, Ordering::SeqCst);
        queue.items.push_back(Item::Send(notice));
        self.arrived.notify_one();
    }

    /// Notifies a poller. This never blocks, so it is sent directly, unless another notice must be sent first: a
    /// process that is woken must not find anything stale.
    pub fn poll(&self, handle: u64) {
        self.send_or_post(Notice::Poll(handle));
    }

    /// The attributes of an inode are stale, but not its pages: this never blocks either.
    pub fn attributes(&self, ino: u64) {
        self.send_or_post(Notice::Attributes(ino));
    }

    fn send_or_post(&self, notice: Notice) {
        let kernel = self.kernel();
        match kernel.filter(|_| self.unsent.load(Ordering::SeqCst) == 0) {
            Some(kernel) => kernel.send(&notice),
            None => self.post(notice),
        }
    }

    fn kernel(&self) -> Option<Arc<dyn NoticeSink>> {
        self.kernel.lock().clone()
    }

    /// Calls `then` once everything posted before has been sent; immediately, if that is the case already.
    ///
    /// A caller that is answered this way finds nothing stale. Never use it for an answer that a notice may wait for: a
    /// read into the page cache, or any request that locks a directory.
    pub fn after(&self, then: impl FnOnce() + Send + 'static) {
        if self.unsent.load(Ordering::SeqCst) > 0 {
            let mut queue = self.queue();
            if !queue.over {
                queue.items.push_back(Item::Then(Box::new(then)));
                self.arrived.notify_one();
                return;
            }
        }
        then();
    }

    /// Another file system is mounted on `path`: its entry and those above it are never invalidated, because the kernel
    /// would unmount it.
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

    /// Ends the thread once the queue is empty.
    pub fn stop(&self) {
        self.queue().over = true;
        self.arrived.notify_all();
        // The notifier holds the device open.
        drop(self.kernel.lock().take());
    }

    /// Sends every notice until it is stopped.
    fn run(&self, kernel: &dyn NoticeSink) {
        loop {
            let mut queue = self.queue();
            let item = loop {
                match queue.items.pop_front() {
                    Some(item) => break item,
                    None if queue.over => return,
                    None => self.arrived.wait(&mut queue),
                }
            };
            match item {
                Item::Send(notice) => {
                    queue.queued.remove(&notice);
                    drop(queue);
                    match &notice {
                        Notice::Entry { path, .. } if self.is_protected(path) => (),
                        notice => kernel.send(notice),
                    }
                    self.unsent.fetch_sub(1, Ordering::SeqCst);
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
pub fn start(notices: Arc<Notices>, kernel: impl NoticeSink + 'static) -> std::io::Result<()> {
    let kernel: Arc<dyn NoticeSink> = Arc::new(kernel);
    *notices.kernel.lock() = Some(kernel.clone());
    thread::Builder::new().name("notices".to_owned()).spawn(move || notices.run(&*kernel)).map(drop)
}

#[cfg(test)]
mod tests;
