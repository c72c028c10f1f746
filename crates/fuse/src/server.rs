//! All that a session and its mount share, and the frame around every request.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use fuser::{Errno, FileAttr, ReplyAttr, ReplyData, ReplyEmpty, ReplyWrite, Request};
use tokio::runtime::Handle as Runtime;

use super::Identify;
use super::attributes::{self, Owner};
use super::handles::{Listed, Opened, Table};
use super::inodes::Inodes;
use super::notices::Notices;
use super::parking::{Parking, Responder, Wait};
use super::passthrough::{self, Mirrors};
use super::traffic::{Asked, Traffic};
use super::turns::{self, Turns};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, Mirrored, Node, Tree};

pub struct Server {
    pub tree: Tree,
    pub who: Arc<dyn Identify>,
    pub owner: Owner,
    pub inodes: Arc<Inodes>,
    pub files: Table<Opened>,
    pub directories: Table<Listed>,
    pub parking: Arc<Parking>,
    pub turns: Arc<Turns>,
    pub notices: Arc<Notices>,
    pub traffic: Traffic,
    pub runtime: Runtime,
    pub mirrors: Mirrors,
    /// Whether directories of this machine are mirrored, so that the kernel must go on asking what files here lack.
    pub mirroring: bool,
}

impl Server {
    pub fn new(tree: Tree, who: Arc<dyn Identify>, owner: Owner, runtime: Runtime, mirroring: bool) -> Self {
        let notices = Arc::new(Notices::default());
        let turns = Turns::new(runtime.clone());
        Server {
            inodes: Inodes::new(Node::Dir(tree.root()), notices.clone()),
            parking: Parking::new(turns.clone()),
            tree,
            who,
            owner,
            files: Table::default(),
            directories: Table::default(),
            turns,
            notices,
            traffic: Traffic::default(),
            runtime,
            mirrors: Mirrors::default(),
            mirroring,
        }
    }

    /// Serves one request. If that panics its reply is dropped, which answers `EIO`, and the mount lives on.
    pub fn request(&self, asked: Asked, serve: impl FnOnce()) {
        self.traffic.count(asked);
        let _runtime = self.runtime.enter();
        if catch_unwind(AssertUnwindSafe(|| self.turns.serving(serve))).is_err() {
            tracing::error!(?asked, "a request could not be served");
        }
    }

    pub fn caller(&self, req: &Request) -> Caller {
        self.who.caller(req.uid(), req.gid(), req.pid())
    }

    pub fn attributes(&self, ino: u64, node: &Node) -> FileAttr {
        attributes::attributes(ino, node, self.owner, &self.tree)
    }

    /// The kernel is told of `node` at `path`; returns what it is told.
    pub fn remember(&self, path: &str, node: &Node) -> FileAttr {
        match mirrored(node) {
            Some(mirrored) => {
                passthrough::of_root(self.mirrors.root(path, &mirrored), self.owner, mirrored.ground.facts().modified)
            }
            None => self.attributes(self.inodes.remember(path, node), node),
        }
    }

    pub fn forget(&self, ino: u64, times: u64) {
        match passthrough::is_real(ino) {
            true => self.mirrors.forget(ino, times),
            false => self.inodes.forget(ino, times),
        }
    }

    /// The number of what stands at `path`.
    pub fn number(&self, path: &str, node: &Node) -> u64 {
        match mirrored(node) {
            Some(mirrored) => passthrough::root_number(path, &mirrored),
            None => self.inodes.number(path, node),
        }
    }

    /// What is said to who asks for extended attributes of a file of the tree.
    pub fn no_attributes(&self) -> Errno {
        if self.mirroring { Errno::EOPNOTSUPP } else { Errno::ENOSYS }
    }

    /// Answers a request now or, if that cannot be, when it can.
    pub fn answer<T: Send + 'static>(&self, req: &Request, how: How, answer: Answer<T>, reply: impl Responder<T>) {
        let outcome = match answer.looked_at() {
            Answer::Now(outcome) => outcome,
            Answer::Soon(future) => {
                let wait = if how.begun { Wait::Do } else { Wait::Fetch };
                return self.parking.park(req.unique().0, wait, future, reply);
            }
            // A caller in another world of processes (pid 0) could not be interrupted.
            Answer::Later(future) if how.patient && req.pid() != 0 => {
                return self.parking.park(req.unique().0, Wait::Happen, future, reply);
            }
            Answer::Later(_) => Err(Error::busy("not ready yet")),
        };
        turns::take_here();
        reply.tell(outcome);
    }
}

fn mirrored(node: &Node) -> Option<Mirrored> {
    match node {
        Node::Dir(dir) => dir.mirrored(),
        _ => None,
    }
}

/// How a request is to be answered.
#[derive(Clone, Copy)]
pub struct How {
    /// The caller is willing to wait for something to happen.
    pub patient: bool,
    /// Something is being done that must not be left half done.
    pub begun: bool,
}

pub fn errno(error: &Error) -> Errno {
    Errno::from_i32(error.errno())
}

impl Responder<Bytes> for ReplyData {
    fn tell(self, outcome: Result<Bytes>) {
        match outcome {
            Ok(bytes) => self.data(&bytes),
            Err(error) => self.error(errno(&error)),
        }
    }
}

impl Responder<()> for ReplyEmpty {
    fn tell(self, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.ok(),
            Err(error) => self.error(errno(&error)),
        }
    }
}

/// A write is answered with all of its length, or an error: `written(0)` makes bash loop.
pub struct Written(pub ReplyWrite, pub u32);

impl Responder<()> for Written {
    fn tell(self, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.0.written(self.1),
            Err(error) => self.0.error(errno(&error)),
        }
    }
}

/// The attributes of a node, looked at when the change is done.
pub struct Changed(pub ReplyAttr, pub Arc<Server>, pub u64);

impl Responder<()> for Changed {
    fn tell(self, outcome: Result<()>) {
        let Changed(reply, served, ino) = self;
        match outcome.and_then(|()| served.inodes.get(ino)) {
            Ok(known) => {
                reply.attr(&attributes::attributes_last(&known.node), &served.attributes(ino, &known.node));
            }
            Err(error) => reply.error(errno(&error)),
        }
    }
}

/// An answer that comes after the notices of what has changed, so that nobody who heard it finds anything old.
pub struct Settled<R>(pub R, pub Arc<Notices>);

impl<T: Send + 'static, R: Responder<T>> Responder<T> for Settled<R> {
    fn tell(self, outcome: Result<T>) {
        let Settled(reply, notices) = self;
        notices.after(move || reply.tell(outcome));
    }
}

/// The answer to a request on a file that somebody polls.
pub struct Watched<R>(pub R, pub Arc<Opened>);

impl<R: Responder<Bytes>> Responder<Bytes> for Watched<R> {
    fn tell(self, outcome: Result<Bytes>) {
        let Watched(reply, opened) = self;
        if let (Ok(bytes), Some(watch)) = (&outcome, opened.watch.get()) {
            watch.was_read(bytes.len(), opened.handle.readable());
        }
        reply.tell(outcome);
    }
}

impl<R: Responder<()>> Responder<()> for Watched<R> {
    fn tell(self, outcome: Result<()>) {
        let Watched(reply, opened) = self;
        if let Some(watch) = opened.watch.get() {
            watch.was_written(opened.handle.readable());
        }
        reply.tell(outcome);
    }
}
