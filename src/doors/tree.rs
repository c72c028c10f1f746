//! The tree as one caller of a door sees it: names, bytes, waits and changes, with the same refusals as on the mount. Here the
//! caller gets the whole refusal, its code and its sentence; on the mount it has a number.
//!
//! A read that waits is a future: dropping it cancels the wait. Nothing that may reach a disk runs on the thread of the caller.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::agent::tools::tree::TreeTools;
use crate::agent::tools::{EntryKind, FileWrite};
use acheron_base::{Code, Error, Ids, Result, blocking};
use acheron_vfs::{Answer, Caller, Dir, Handle, Kind, Node, Open, Tree};

/// The size of one read.
const CHUNK: usize = 128 * 1024;

/// Whether a call may wait for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorWait {
    /// Until the answer is there; a deadline is set by dropping the future.
    UntilReady,
    /// Look only: what is not ready is refused as `busy`.
    Never,
}

pub use DoorWait as Wait;

/// A name of the tree, as `stat(2)` would show it.
#[derive(Clone, Debug)]
pub struct DoorEntry {
    pub name: String,
    /// The path from the root, without links.
    pub path: String,
    pub kind: EntryKind,
    /// The kind of a file.
    pub file: Option<Kind>,
    /// The size, where it is known without reading.
    pub size: u64,
    pub modified: SystemTime,
    /// The target of a link.
    pub target: Option<String>,
}

impl DoorEntry {
    /// Whether the size is that of the bytes; otherwise the length is known only by reading.
    pub fn has_true_size(&self) -> bool {
        // Files whose length is known only by reading show none.
        self.size > 0 || matches!(self.file, Some(Kind::Text | Kind::Log | Kind::Item))
    }
}

/// The tree with the rights of one caller.
#[derive(Clone)]
pub struct DoorTree {
    tree: Tree,
    caller: Caller,
    ids: Ids,
}

/// What a write has started, and the open file that it was written to.
pub struct DoorWrite {
    /// The job that the write started.
    pub job: Option<String>,
    /// Reads the answer to what was written, if it was opened for that.
    pub file: DoorFile,
    written: usize,
}

impl DoorWrite {
    /// The answer to what was written: waits for it.
    pub async fn answer(&self) -> Result<Bytes> {
        self.file.rest(self.written as u64, usize::MAX, Wait::UntilReady).await
    }
}

/// An open file. Dropping it closes it.
pub struct DoorFile {
    handle: Box<dyn Handle>,
    pub entry: DoorEntry,
}

impl Drop for DoorFile {
    fn drop(&mut self) {
        self.handle.closed();
    }
}

impl DoorFile {
    /// At most `size` bytes from `offset`; empty at the end.
    pub async fn read(&self, offset: u64, size: usize, wait: Wait) -> Result<Bytes> {
        settle(self.handle.read(offset, size), wait).await
    }

    /// The bytes from `begin` to the end, at most `most`.
    pub async fn rest(&self, begin: u64, most: usize, wait: Wait) -> Result<Bytes> {
        let mut bytes = Vec::new();
        while bytes.len() < most {
            let chunk = self.read(begin + bytes.len() as u64, CHUNK.min(most - bytes.len()), wait).await?;
            if chunk.is_empty() {
                break;
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.into())
    }

    /// The number of bytes that will be read, where it is known before.
    pub async fn length(&self) -> Result<Option<u64>> {
        match self.entry.has_true_size() {
            true => Ok(Some(self.entry.size)),
            false => self.handle.length().wait().await,
        }
    }
}

async fn settle<T: Send + 'static>(answer: Answer<T>, wait: Wait) -> Result<T> {
    match wait {
        Wait::UntilReady => answer.wait().await,
        Wait::Never => answer.ready_or_busy().await,
    }
}

impl DoorTree {
    pub fn new(tree: Tree, caller: Caller, ids: Ids) -> DoorTree {
        DoorTree { tree, caller, ids }
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The tree itself, to listen for changes.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The three tools of an agent with the rights of this caller.
    pub fn tools(&self) -> TreeTools {
        let ids = self.ids.clone();
        let id = Arc::new(move || ids.id("door"));
        TreeTools { tree: self.tree.clone(), caller: self.caller.clone(), id, parked: Arc::new(|_| ()) }
    }

    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tree, &Caller) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tree, caller) = (self.tree.clone(), self.caller.clone());
        blocking(move || work(&tree, &caller)).await
    }

    /// What stands at a path; links are followed.
    pub async fn stat(&self, path: &str) -> Result<DoorEntry> {
        let path = path.to_owned();
        self.off_thread(move |tree, caller| {
            let (path, node) = tree.find(caller, &path)?;
            Ok(shown(tree, caller, path, &node))
        })
        .await
    }

    /// The names in a directory, sorted; at most `most`.
    pub async fn list(&self, path: &str, most: usize) -> Result<Vec<DoorEntry>> {
        let path = path.to_owned();
        self.off_thread(move |tree, caller| {
            let listed = tree.list_first(caller, &path, most)?;
            Ok(listed.into_iter().map(|entry| shown(tree, caller, entry.path, &entry.node)).collect())
        })
        .await
    }

    /// The names in a directory after `after`, sorted; at most `most`.
    pub async fn list_after(&self, path: &str, after: &str, most: usize) -> Result<Vec<DoorEntry>> {
        let (path, after) = (path.to_owned(), after.to_owned());
        self.off_thread(move |tree, caller| {
            let listed = tree.list_after(caller, &path, &after, most)?;
            Ok(listed.into_iter().map(|entry| shown(tree, caller, entry.path, &entry.node)).collect())
        })
        .await
    }

    /// Opens a file to read it.
    pub async fn open(&self, path: &str) -> Result<DoorFile> {
        let path = path.to_owned();
        self.off_thread(move |tree, caller| {
            let (path, node) = tree.find(caller, &path)?;
            let handle = tree.open(caller, &node, &path, Open::READ)?;
            Ok(DoorFile { handle, entry: shown(tree, caller, path, &node) })
        })
        .await
    }

    /// Changes when the log at a path grows; `None` if it cannot tell.
    pub async fn growth(&self, path: &str) -> Result<Option<tokio::sync::watch::Receiver<u64>>> {
        let path = path.to_owned();
        self.off_thread(move |tree, caller| match tree.find(caller, &path)?.1 {
            Node::File(file) => Ok(file.growth()),
            _ => Ok(None),
        })
        .await
    }

    /// Reads a file from its beginning, at most `most` bytes.
    pub async fn read(&self, path: &str, most: usize, wait: Wait) -> Result<Bytes> {
        self.open(path).await?.rest(0, most, wait).await
    }

    /// Writes to a file as one write and one close; makes it if its directory takes new files. With `answered` the file of a
    /// command or a message stays open, so that its answer can be read.
    pub async fn write(&self, path: &str, bytes: &[u8], append: bool, answered: bool) -> Result<DoorWrite> {
        let call = FileWrite {
            path: path.to_owned(),
            content: String::new(),
            append,
            create_parents: false,
            wait_until_ready: true,
        };
        let how = match (answered, append) {
            (true, _) => Open::BOTH,
            (false, true) => Open::APPEND,
            (false, false) => Open::WRITE,
        };
        let (job, handle) = self.tools().begin(&call, bytes, how).await?;
        // What was made or changed by the write may be gone already.
        let entry = self.stat(path).await.unwrap_or_else(|_| gone(path));
        Ok(DoorWrite { job, file: DoorFile { handle, entry }, written: bytes.len() })
    }

    /// The directory of a path that is to be changed, and the path without links. Rights are asked first: a hidden name is
    /// refused like a missing one.
    async fn place(&self, path: &str) -> Result<(Arc<dyn Dir>, String)> {
        let path = path.to_owned();
        self.off_thread(move |tree, caller| {
            let path = acheron_vfs::normalize(&path)?;
            let (above, name) = path.rsplit_once('/').unwrap_or(("", &path));
            if name.is_empty() {
                return Err(Error::forbidden("the root cannot be changed"));
            }
            let (above, node) = tree.find(caller, above)?;
            let Node::Dir(dir) = node else {
                return Err(Error::new(Code::Os(libc::ENOTDIR), format!("`{above}` is not a directory")));
            };
            let path = format!("{}/{name}", above.trim_end_matches('/'));
            tree.may_change(caller, &path)?;
            Ok((dir, path))
        })
        .await
    }

    /// Does something to a name of a directory, off this thread.
    async fn change<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(&dyn Dir, &Caller, &str) -> Answer<T> + Send + 'static,
    ) -> Result<T> {
        let (dir, path) = self.place(path).await?;
        let caller = self.caller.clone();
        let answer = blocking(move || {
            let name = path.rsplit('/').next().unwrap_or_default();
            Ok(work(&*dir, &caller, name))
        });
        answer.await?.wait().await
    }

    /// Makes a directory.
    pub async fn make_dir(&self, path: &str) -> Result<()> {
        self.change(path, |dir, caller, name| dir.make_dir(caller, name)).await.map(drop)
    }

    /// Removes a file, or an empty directory.
    pub async fn remove(&self, path: &str) -> Result<()> {
        let remove = |dir: &dyn Dir, caller: &Caller, name: &str| match dir.lookup(name) {
            Some(Node::Dir(_)) => dir.remove_dir(caller, name),
            Some(_) => dir.remove(caller, name),
            None => Answer::refuse(Error::not_found(format!("there is no `{name}`"))),
        };
        self.change(path, remove).await
    }

    /// Renames.
    pub async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (dir, from) = self.place(from).await?;
        let (_, to) = self.place(to).await?;
        self.tree.may_move(&self.caller, &from)?;
        let caller = self.caller.clone();
        blocking(move || Ok(dir.rename(&caller, &from, &to))).await?.wait().await
    }
}

fn shown(tree: &Tree, caller: &Caller, path: String, node: &Node) -> DoorEntry {
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let entry = |kind, file, size, modified, target| {
        let modified = tree.shown_time(modified);
        DoorEntry { name, path, kind, file, size, modified, target }
    };
    match node {
        Node::Dir(dir) => entry(EntryKind::Directory, None, 0, dir.modified(), None),
        Node::File(file) => {
            let stat = file.stat();
            entry(EntryKind::File, Some(file.kind()), stat.size, stat.modified, None)
        }
        Node::Link(link) => entry(EntryKind::Link, None, 0, acheron_vfs::STARTED, link.target(caller).ok()),
    }
}

fn gone(path: &str) -> DoorEntry {
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let modified = acheron_vfs::STARTED;
    DoorEntry { name, path: path.to_owned(), kind: EntryKind::File, file: None, size: 0, modified, target: None }
}
