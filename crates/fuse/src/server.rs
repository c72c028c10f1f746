//! The state that a session and its mount share, and the frame around every request. All request modules use it; it
//! uses the tree, the inodes, the handles, parking and the notices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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
use super::request_counts::{Operation, RequestCounts};
use super::turns::{self, Turns};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, Mirrored, Node, Tree};

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
    pub request_counts: RequestCounts,
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
            request_counts: RequestCounts::default(),
            runtime,
            mirrors: Mirrors::default(),
            mirroring,
        }
    }

    /// Serves one request. If that panics, its reply is dropped, which answers `EIO`, and the mount stays up.
    pub fn request(&self, operation: Operation, serve: impl FnOnce()) {
        self.request_counts.count(operation);
        let _runtime = self.runtime.enter();
        if catch_unwind(AssertUnwindSafe(|| self.turns.serve_request(serve))).is_err() {
            tracing::error!(?operation, "a request could not be server");
        }
    }

    pub fn caller(&self, req: &Request) -> Caller {
        self.identify.caller(req.uid(), req.gid(), req.pid())
    }

    pub fn attributes(&self, ino: u64, node: &Node) -> FileAttr {
        attributes::attributes(ino, node, self.owner, &self.tree)
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
        req: &Request,
        how: AnswerMode,
        answer: Answer<T>,
        reply: impl Responder<T>,
    ) {
        let outcome = match answer.poll_once() {
            Answer::Now(outcome) => outcome,
            Answer::Soon(future) => {
                let wait = if how.begun { Wait::Change } else { Wait::Fetch };
                return self.parking.park(req.unique().0, wait, future, reply);
            }
            // A caller in another pid namespace (pid 0) could not be interrupted.
            Answer::Later(future) if how.patient && req.pid() != 0 => {
                return self.parking.park(req.unique().0, Wait::Event, future, reply);
            }
            Answer::Later(_) => Err(Error::busy("not ready yet")),
        };
        turns::run_local();
        reply.respond(outcome);
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
