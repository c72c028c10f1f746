//! The state that a session and its mount share, and the frame around every request. All request modules use it; it
//! uses the tree, the inodes, the handles, parking and the notices.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fuser::{Errno, FileAttr, ReplyAttr, ReplyData, ReplyEmpty, ReplyWrite, Request};
use tokio::runtime::Handle as Runtime;

use super::Identify;
use super::attributes::{self, Owner};
use super::handles::{HandleTable, OpenDir, OpenFile};
use super::inodes::Inodes;
use super::notices::Notices;
use super::parking::{Parking, Responder, Wait};
use super::passthrough::{self, Mirrors};
use super::pool::Pool;
use super::request_counts::{Operation, RequestCounts};
use super::request_times::{RequestTimes, place_of};
use super::scratch::ScratchFiles;
use super::turns::{self, Turns};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, Identity, Mirrored, Node, Tree};

thread_local! {
    /// The thread whose request this thread serves; 0 for none.
    static SERVED: Cell<u32> = const { Cell::new(0) };
}

pub struct Server {
    pub tree: Tree,
    pub identify: Arc<dyn Identify>,
    pub owner: Owner,
    pub inodes: Arc<Inodes>,
    pub files: HandleTable<OpenFile>,
    pub directories: HandleTable<OpenDir>,
    pub parking: Arc<Parking>,
    pub turns: Arc<Turns>,
    pub notices: Arc<Notices>,
    pub scratch: Arc<ScratchFiles>,
    pub request_counts: RequestCounts,
    pub request_times: RequestTimes,
    /// For requests that wait for a disk or take long.
    pub pool: Arc<Pool<Option<Identity>>>,
    pub runtime: Runtime,
    pub mirrors: Mirrors,
    /// Whether directories of the machine are mirrored, so that the kernel must keep asking for attributes that files
    /// of the tree lack.
    pub mirroring: bool,
}

impl Server {
    pub fn new(tree: Tree, identify: Arc<dyn Identify>, owner: Owner, runtime: Runtime, mirroring: bool) -> Self {
        let notices = Arc::new(Notices::default());
        let turns = Turns::new(runtime.clone());
        Server {
            inodes: Inodes::new(Node::Dir(tree.root()), notices.clone()),
            parking: Parking::new(turns.clone()),
            tree,
            identify,
            owner,
            files: HandleTable::default(),
            directories: HandleTable::default(),
            turns,
            notices,
            scratch: Arc::default(),
            request_counts: RequestCounts::default(),
            request_times: RequestTimes::default(),
            pool: Arc::default(),
            runtime,
            mirrors: Mirrors::default(),
            mirroring,
        }
    }

    /// Serves one request about `ino`. If that panics, its reply is dropped, which answers `EIO`, and the mount stays up.
    pub fn request(&self, operation: Operation, req: &Request, ino: u64, serve: impl FnOnce()) {
        self.request_counts.count(operation);
        SERVED.set(req.pid());
        let (begun, _runtime) = (Instant::now(), self.runtime.enter());
        if catch_unwind(AssertUnwindSafe(|| self.turns.serve_request(serve))).is_err() {
            tracing::error!(?operation, "a request could not be served");
        }
        self.request_times.count(operation, begun.elapsed(), || self.place(ino));
    }

    /// The part of the tree that `ino` belongs to.
    fn place(&self, ino: u64) -> String {
        match passthrough::is_mirrored(ino) {
            true => "a mirrored directory".to_owned(),
            false => self.inodes.get(ino).map_or_else(|_| String::new(), |known| place_of(&known.path)),
        }
    }

    /// Runs `work` on the pool, where waiting for a disk delays no other request. Called by the thread that serves the
    /// request.
    pub fn in_pool(self: &Arc<Self>, work: impl FnOnce(Arc<Server>) + Send + 'static) {
        let (server, caller) = (self.clone(), self.identify.known(SERVED.get()));
        self.pool.run(caller, move || {
            let runtime = server.runtime.clone();
            let _runtime = runtime.enter();
            work(server);
        });
    }

    /// Runs `work` now if it is quick, else on the pool.
    pub fn now_or_in_pool(self: &Arc<Self>, quick: bool, work: impl FnOnce(Arc<Server>) + Send + 'static) {
        match quick {
            true => work(self.clone()),
            false => self.in_pool(work),
        }
    }

    pub fn caller(&self, req: impl Into<Requester>) -> Caller {
        let Requester { uid, gid, tid, .. } = req.into();
        self.identify.caller(uid, gid, tid)
    }

    pub fn attributes(&self, ino: u64, node: &Node) -> FileAttr {
        let counted = attributes::is_counted(node).then(|| self.inodes.length(ino));
        let attributes = attributes::attributes(ino, node, self.owner, &self.tree);
        counted.map_or(attributes, |length| attributes::with_length(attributes, length))
    }

    /// Records that the kernel is told of `node` at `path`; returns its attributes.
    pub fn remember(&self, path: &str, node: &Node) -> FileAttr {
        match mirrored(node) {
            Some(mirrored) => {
                passthrough::of_root(self.mirrors.root(path, &mirrored), self.owner, mirrored.host_dir.info().modified)
            }
            None => self.attributes(self.inodes.remember(path, node), node),
        }
    }

    pub fn forget(&self, ino: u64, times: u64) {
        match passthrough::is_mirrored(ino) {
            true => self.mirrors.forget(ino, times),
            false => self.inodes.forget(ino, times),
        }
    }

    /// The inode number of the node at `path`.
    pub fn number(&self, path: &str, node: &Node) -> u64 {
        match mirrored(node) {
            Some(mirrored) => passthrough::root_number(path, &mirrored),
            None => self.inodes.number(path, node),
        }
    }

    /// The error for extended attributes of a file of the tree.
    pub fn no_attributes(&self) -> Errno {
        if self.mirroring { Errno::EOPNOTSUPP } else { Errno::ENOSYS }
    }

    /// Answers a request now, or parks it until its answer is there.
    pub fn answer<T: Send + 'static>(
        &self,
        req: impl Into<Requester>,
        how: AnswerMode,
        answer: Answer<T>,
        reply: impl Responder<T>,
    ) {
        let Requester { unique, tid, .. } = req.into();
        let outcome = match answer.poll_once() {
            Answer::Now(outcome) => outcome,
            Answer::Soon(future) => {
                let wait = if how.begun { Wait::Change } else { Wait::Fetch };
                return self.parking.park(unique, wait, future, reply);
            }
            // A caller in another pid namespace (pid 0) could not be interrupted.
            Answer::Later(future) if how.patient && tid != 0 => {
                return self.parking.park(unique, Wait::Event, future, reply);
            }
            Answer::Later(_) => Err(Error::busy("not ready yet")),
        };
        turns::run_local();
        reply.respond(outcome);
    }
}

/// The caller of a request, as the kernel reports it, and the number of the request.
#[derive(Clone, Copy)]
pub struct Requester {
    pub uid: u32,
    pub gid: u32,
    pub tid: u32,
    unique: u64,
}

impl From<&Request> for Requester {
    fn from(req: &Request) -> Requester {
        Requester { uid: req.uid(), gid: req.gid(), tid: req.pid(), unique: req.unique().0 }
    }
}

fn mirrored(node: &Node) -> Option<Mirrored> {
    match node {
        Node::Dir(dir) => dir.mirrored(),
        _ => None,
    }
}

/// How a request is answered.
#[derive(Clone, Copy)]
pub struct AnswerMode {
    /// The caller accepts to wait for an event.
    pub patient: bool,
    /// A change is in progress that must not be interrupted.
    pub begun: bool,
}

pub fn errno(error: &Error) -> Errno {
    Errno::from_i32(error.errno())
}

impl Responder<Bytes> for ReplyData {
    fn respond(self, outcome: Result<Bytes>) {
        match outcome {
            Ok(bytes) => self.data(&bytes),
            Err(error) => self.error(errno(&error)),
        }
    }
}

impl Responder<()> for ReplyEmpty {
    fn respond(self, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.ok(),
            Err(error) => self.error(errno(&error)),
        }
    }
}

/// A write is answered with its whole length or with an error: `written(0)` makes bash loop.
pub struct WriteReply(pub ReplyWrite, pub u32);

impl Responder<()> for WriteReply {
    fn respond(self, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.0.written(self.1),
            Err(error) => self.0.error(errno(&error)),
        }
    }
}

/// The attributes of a node, read when the change is done.
pub struct ChangedAttributes(pub ReplyAttr, pub Arc<Server>, pub u64);

impl Responder<()> for ChangedAttributes {
    fn respond(self, outcome: Result<()>) {
        let ChangedAttributes(reply, server, ino) = self;
        match outcome.and_then(|()| server.inodes.get(ino)) {
            Ok(known) => {
                reply.attr(&attributes::attribute_ttl(&known.node), &server.attributes(ino, &known.node));
            }
            Err(error) => reply.error(errno(&error)),
        }
    }
}

/// An answer that is sent after the notices of all changes, so that the kernel has nothing stale when the caller gets
/// it.
pub struct AfterNotices<R>(pub R, pub Arc<Notices>);

impl<T: Send + 'static, R: Responder<T>> Responder<T> for AfterNotices<R> {
    fn respond(self, outcome: Result<T>) {
        let AfterNotices(reply, notices) = self;
        notices.after(move || reply.respond(outcome));
    }
}

/// The answer to a request on a polled file.
pub struct PolledReply<R>(pub R, pub Arc<OpenFile>);

impl<R: Responder<Bytes>> Responder<Bytes> for PolledReply<R> {
    fn respond(self, outcome: Result<Bytes>) {
        let PolledReply(reply, opened) = self;
        if let (Ok(bytes), Some(watch)) = (&outcome, opened.poll_watch.get()) {
            watch.was_read(bytes.len(), opened.handle.readable());
        }
        reply.respond(outcome);
    }
}

impl<R: Responder<()>> Responder<()> for PolledReply<R> {
    fn respond(self, outcome: Result<()>) {
        let PolledReply(reply, opened) = self;
        if let Some(watch) = opened.poll_watch.get() {
            watch.was_written(opened.handle.readable());
        }
        reply.respond(outcome);
    }
}
