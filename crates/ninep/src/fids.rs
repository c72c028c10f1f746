//! The fids of one connection: what a client has walked to, and what it has opened. Used by the requests; uses the traits of
//! the tree.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use acheron_base::{Code, Error, Result};
use acheron_vfs::{Caller, Dir, Handle, Kind, Node};

/// The number of fids of one connection.
const MOST: usize = 8192;

/// What a fid stands for.
pub struct Fid {
    pub caller: Caller,
    /// From the root, without links.
    pub path: Arc<str>,
    pub node: Node,
    /// Set once it is open.
    pub opened: OnceLock<Opened>,
}

/// An open fid.
pub enum Opened {
    File(Arc<OpenedFile>),
    Dir(Arc<OpenedDir>),
}

pub struct OpenedFile {
    pub handle: Box<dyn Handle>,
    pub kind: Kind,
    /// Whether its reads and writes wait.
    pub patient: bool,
    /// Whether something was written that only a close completes.
    pub unsent: AtomicBool,
}

impl OpenedFile {
    pub fn new(handle: Box<dyn Handle>, kind: Kind, patient: bool) -> OpenedFile {
        OpenedFile { handle, kind, patient, unsent: AtomicBool::new(false) }
    }

    /// Something is written to it.
    pub fn wrote(&self) {
        let completed_by_close = matches!(self.kind, Kind::Message | Kind::Item);
        self.unsent.store(completed_by_close, Ordering::SeqCst);
    }
}

pub type Names = Arc<Vec<(String, Node)>>;

/// The names of a directory as they were when its reader began.
#[derive(Default)]
pub struct OpenedDir(pub Mutex<Option<Names>>);

impl Fid {
    pub fn new(caller: Caller, path: Arc<str>, node: Node) -> Fid {
        Fid { caller, path, node, opened: OnceLock::new() }
    }

    pub fn dir(&self) -> Result<Arc<dyn Dir>> {
        match &self.node {
            Node::Dir(dir) => Ok(dir.clone()),
            _ => Err(Error::new(Code::Os(libc::ENOTDIR), format!("`{}` is not a directory", self.path))),
        }
    }

    pub fn file(&self) -> Result<Arc<OpenedFile>> {
        match self.opened.get() {
            Some(Opened::File(file)) => Ok(file.clone()),
            Some(Opened::Dir(_)) => Err(Error::new(Code::Os(libc::EISDIR), format!("`{}` is a directory", self.path))),
            None => Err(not_open()),
        }
    }

    /// The path of a name in this directory.
    pub fn child(&self, name: &str) -> String {
        join(&self.path, name)
    }
}

/// The path of `name` in the directory `path`.
pub fn join(path: &str, name: &str) -> String {
    let above = if path == "/" { "" } else { path };
    format!("{above}/{name}")
}

/// The fids by their numbers, which the client chooses.
#[derive(Default)]
pub struct Fids(Mutex<HashMap<u32, Arc<Fid>>>);

impl Fids {
    pub fn get(&self, number: u32) -> Result<Arc<Fid>> {
        self.0.lock().get(&number).cloned().ok_or_else(unknown)
    }

    /// Refuses a number that stands for something.
    pub fn add(&self, number: u32, fid: Fid) -> Result<()> {
        let mut fids = self.0.lock();
        if fids.contains_key(&number) {
            return Err(Error::new(Code::Os(libc::EBADF), "the fid is in use"));
        }
        if fids.len() >= MOST {
            return Err(Error::busy(format!("a connection has at most {MOST} fids")));
        }
        fids.insert(number, Arc::new(fid));
        Ok(())
    }

    /// Lets a number stand for something else.
    pub fn replace(&self, number: u32, fid: Fid) {
        self.0.lock().insert(number, Arc::new(fid));
    }

    pub fn remove(&self, number: u32) -> Result<Arc<Fid>> {
        self.0.lock().remove(&number).ok_or_else(unknown)
    }

    /// Ends all of them because the connection or the session has ended. What is incomplete is refused: half a message that
    /// a broken connection left is no message.
    pub fn abandon(&self) {
        let fids = std::mem::take(&mut *self.0.lock());
        for fid in fids.into_values() {
            if let Some(Opened::File(file)) = fid.opened.get() {
                if file.unsent.load(Ordering::SeqCst) {
                    file.handle.refuse(&Error::interrupted("the connection ended before the file was closed"));
                }
                file.handle.closed();
            }
        }
    }
}

impl Drop for Fids {
    fn drop(&mut self) {
        self.abandon();
    }
}

fn unknown() -> Error {
    Error::new(Code::Os(libc::EBADF), "there is no such fid")
}

fn not_open() -> Error {
    Error::new(Code::Os(libc::EBADF), "the fid is not open")
}
