//! The tools on the tree of this process, with the rights of the caller.
//!
//! Same as through the mount, without the kernel: the same opens, handles and errors. A waiting read is a future and
//! costs no thread.

use std::sync::Arc;

use async_trait::async_trait;

use super::perform::{EntryKind, ListedEntry, ReadBytes, ToolBackend};
use super::tagged::{job_of, tagged};
use super::{FileWrite, cannot_be_made};
use acheron_base::{Code, Error, Result, blocking};
use acheron_vfs::{Answer, Caller, Dir, Handle, Node, Open, Resolved, Tree};

/// Called when a call starts to wait for an event (`true`) and when the wait has ended (`false`).
pub type Parked = Arc<dyn Fn(bool) + Send + Sync>;

pub struct TreeTools {
    pub tree: Tree,
    pub caller: Caller,
    /// Generates correlation ids.
    pub id: Arc<dyn Fn() -> String + Send + Sync>,
    pub parked: Parked,
}

impl TreeTools {
    async fn wait<T: Send + 'static>(&self, answer: Answer<T>, wait: bool) -> Result<T> {
        match answer.poll_once() {
            Answer::Later(future) if wait => {
                let _parked = Parking::begin(&self.parked);
                future.await
            }
            other => other.ready_or_busy().await,
        }
    }

    /// Opens the file for writing; creates it and its directories if requested and allowed.
    async fn open(&self, call: &FileWrite, how: Open) -> Result<Box<dyn Handle>> {
        // On the way there may be a directory that must be read first.
        let (tree, caller, wanted) = (self.tree.clone(), self.caller.clone(), call.path.clone());
        let Resolved { path, node, lacking } = blocking(move || tree.resolve(&caller, &wanted)).await?;
        let missing = match node {
            Ok(node) => return self.tree.open(&self.caller, &node, &path, how),
            Err(missing) => missing,
        };
        // Checked first: a hidden path must look the same as a missing one.
        self.tree.may_change(&self.caller, &path)?;
        let (_, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let Some((above, mut dir)) = lacking else { return Err(missing) };
        let dirs: Vec<&str> =
            path.match_indices('/').map(|(at, _)| &path[..at]).filter(|dir| dir.len() > above.len()).collect();
        if !dirs.is_empty() {
            if !call.create_parents {
                return Err(missing);
            }
            dir = self.make_dirs(dir, &dirs).await?;
        }
        match dir.create(&self.caller, name, how) {
            Err(error) if error.code == Code::Os(libc::EPERM) => Err(cannot_be_made(&call.path)),
            made => Ok(made?.1),
        }
    }

    /// Creates directories, each inside the one before: all of them, or none if one is not allowed. Returns the last.
    async fn make_dirs(&self, above: Arc<dyn Dir>, paths: &[&str]) -> Result<Arc<dyn Dir>> {
        for path in paths {
            self.tree.may_change(&self.caller, path)?;
        }
        let mut dir = above;
        for path in paths {
            let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
            let made = match dir.make_dir(&self.caller, name).wait().await {
                Err(error) if error.code == Code::AlreadyExists => self.tree.find(&self.caller, path)?.1, // by another caller
                made => made?,
            };
            let Node::Dir(made) = made else {
                return Err(Error::new(Code::Os(libc::ENOTDIR), format!("`{path}` is not a directory")));
            };
            dir = made;
            // A long path must not keep the thread, and its call can be cancelled.
            tokio::task::yield_now().await;
        }
        Ok(dir)
    }

    async fn put(&self, handle: &dyn Handle, content: &[u8], call: &FileWrite) -> Result<()> {
        self.wait(handle.write(0, content), call.wait_until_ready).await?;
        self.wait(handle.flush(true), call.wait_until_ready).await
    }

    /// Writes `bytes`, whatever the content of `call` is, and leaves the file open: a handle that was opened for reading, too,
    /// reads the answer to what it wrote. Returns the job that the write started, if any.
    pub async fn begin(&self, call: &FileWrite, bytes: &[u8], how: Open) -> Result<(Option<String>, Box<dyn Handle>)> {
        let text = std::str::from_utf8(bytes).ok();
        let tagged = text.and_then(|text| tagged(&call.path, text, &(self.id)()));
        let content = tagged.as_ref().map_or(bytes, |(content, _)| content.as_bytes());
        let handle = self.open(call, how).await?;
        if let Err(error) = self.put(&*handle, content, call).await {
            handle.closed();
            return Err(error);
        }
        let link = tagged.and_then(|(_, link)| self.tree.find(&self.caller, &link).ok());
        Ok((link.and_then(|(path, _)| job_of(&path)), handle))
    }
}

fn shown(entry: acheron_vfs::Entry) -> ListedEntry {
    let name = entry.path.rsplit('/').next().unwrap_or_default().to_owned();
    match entry.node {
        Node::Dir(_) => ListedEntry { name, kind: EntryKind::Directory, size: 0 },
        Node::File(file) => ListedEntry { name, kind: EntryKind::File, size: file.stat().size },
        Node::Link(_) => ListedEntry { name, kind: EntryKind::Link, size: 0 },
    }
}

/// Reports the end of the wait on drop.
struct Parking<'a>(&'a Parked);

impl<'a> Parking<'a> {
    fn begin(parked: &'a Parked) -> Self {
        parked(true);
        Parking(parked)
    }
}

impl Drop for Parking<'_> {
    fn drop(&mut self) {
        (self.0)(false);
    }
}

#[async_trait]
impl ToolBackend for TreeTools {
    async fn read(&self, path: &str, max: usize, wait: bool) -> Result<ReadBytes> {
        const CHUNK: usize = 128 * 1024;

        let (tree, caller, path) = (self.tree.clone(), self.caller.clone(), path.to_owned());
        let handle = blocking(move || tree.open_path(&caller, &path, Open::READ)).await?;
        let mut bytes = Vec::new();
        let read = async {
            // One byte more than requested shows whether there are more.
            while bytes.len() <= max {
                let size = CHUNK.min(max + 1 - bytes.len());
                let chunk = self.wait(handle.read(bytes.len() as u64, size), wait).await?;
                if chunk.is_empty() {
                    break;
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(())
        };
        let read: Result<()> = read.await;
        handle.closed();
        read?;
        let more = bytes.len() > max;
        bytes.truncate(max);
        Ok(ReadBytes { bytes, more })
    }

    async fn write(&self, call: &FileWrite) -> Result<Option<String>> {
        let how = if call.append { Open::APPEND } else { Open::WRITE };
        let (job, handle) = self.begin(call, call.content.as_bytes(), how).await?;
        handle.closed();
        Ok(job)
    }

    async fn list(&self, path: &str, most: usize) -> Result<Vec<ListedEntry>> {
        let (tree, caller, path) = (self.tree.clone(), self.caller.clone(), path.to_owned());
        // A directory of the machine may have a million names.
        blocking(move || Ok(tree.list_first(&caller, &path, most)?.into_iter().map(shown).collect())).await
    }
}
