//! The whole tree: every file is found and opened through it. Servers and programs use it; it uses the traits of the
//! tree and the buffers of open files.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use bytes::Bytes;

use super::rechecked::RecheckedHandle;
use super::{Access, Answer, Caller, Dir, File, Handle, Kind, Node, Open, OpenFileBuffers, STARTED};
use acheron_base::{Code, Error, Result};

/// Decides what a caller may do. [`Tree::open`] asks it for every file; an error refuses.
pub trait AccessControl: Send + Sync {
    /// Refuses `action` at `path` unless the caller may do it.
    fn check(&self, caller: &Caller, action: Access, path: &str) -> Result<()>;

    /// Whether the directory `path` exists for this caller when it walks the tree directly. (The view of a process on a
    /// mount may be limited by its mount namespace instead.)
    fn sees(&self, caller: &Caller, path: &str) -> bool;

    /// Whether the file or link `path` exists for this caller. Unlike a directory, it does not lead to anything else.
    fn sees_file(&self, caller: &Caller, path: &str) -> bool {
        self.sees(caller, path)
    }

    /// Whether nothing is hidden from this caller, so that a listing need not ask for each name.
    fn sees_all(&self, _caller: &Caller) -> bool {
        false
    }

    /// A write to `path` was refused, or what was written there is lost. The host can show `error` beside the file, for a
    /// caller that has only a number.
    fn tell_refusal(&self, _caller: &Caller, _path: &str, _error: &Error) {}

    /// Whether something below `path` is denied to this caller, so that `path` must not be moved.
    fn has_denied_below(&self, _caller: &Caller, _path: &str) -> bool {
        false
    }
}

/// A tree of nodes with its access control. A clone is the same tree.
#[derive(Clone)]
pub struct Tree {
    root: Arc<dyn Dir>,
    access: Arc<dyn AccessControl>,
    buffers: Arc<OpenFileBuffers>,
    started: SystemTime,
}

/// A reference to a tree that does not keep it alive. Nodes of a tree hold this one, because the tree holds them.
#[derive(Clone)]
pub struct WeakTree {
    root: Weak<dyn Dir>,
    access: Arc<dyn AccessControl>,
    buffers: Arc<OpenFileBuffers>,
    started: SystemTime,
}

impl WeakTree {
    /// The tree, unless its last owner has dropped it.
    pub fn upgrade(&self) -> Option<Tree> {
        let root = self.root.upgrade()?;
        Some(Tree { root, access: self.access.clone(), buffers: self.buffers.clone(), started: self.started })
    }
}

/// An entry of a listing.
pub struct Entry {
    /// The path from the root.
    pub path: String,
    /// The node there.
    pub node: Node,
}

/// The end of a path, existing or not.
pub struct Resolved {
    /// The path from the root, without links.
    pub path: String,
    /// The node there, or the reason why there is none.
    pub node: Result<Node>,
    /// The directory that lacks the first missing name of the path, and its own path.
    pub lacking: Option<(String, Arc<dyn Dir>)>,
}

/// The limit of links in one path.
const LINKS: usize = 16;

/// The limit of bytes in one path, as the kernel has it. It also limits the work that one path can cause.
const LONGEST: usize = 4096;

impl Tree {
    /// A tree with this root.
    pub fn new(root: Arc<dyn Dir>, access: Arc<dyn AccessControl>) -> Self {
        Tree { root, access, buffers: Arc::default(), started: STARTED }
    }

    /// The same tree, made at this time: what has no time of its own shows it.
    pub fn started_at(self, started: SystemTime) -> Self {
        Tree { started, ..self }
    }

    /// The time that is shown of something that was changed then.
    pub fn shown_time(&self, changed: SystemTime) -> SystemTime {
        if changed == STARTED { self.started } else { changed }
    }

    /// The root directory.
    pub fn root(&self) -> Arc<dyn Dir> {
        self.root.clone()
    }

    /// A reference to this tree that does not keep it alive.
    pub fn downgrade(&self) -> WeakTree {
        let (access, buffers) = (self.access.clone(), self.buffers.clone());
        WeakTree { root: Arc::downgrade(&self.root), access, buffers, started: self.started }
    }

    /// The memory that open files hold.
    pub fn buffers(&self) -> &Arc<OpenFileBuffers> {
        &self.buffers
    }

    /// Opens `node`, which is at `path`, if the caller may.
    #[inline]
    pub fn open(&self, caller: &Caller, node: &Node, path: &str, how: Open) -> Result<Box<dyn Handle>> {
        let Node::File(file) = node else {
            return Err(Error::new(Code::Os(libc::EISDIR), format!("`{path}` is a directory")));
        };
        self.may_open(caller, file.kind(), file.mode(), path, how)?;
        Ok(self.opened(caller, file.kind(), path, how, file.open(caller, how)?))
    }

    /// The handle of a file that was opened or made at `path`: its buffers are counted, and its writer is asked again at
    /// each write.
    pub fn opened(
        &self,
        caller: &Caller,
        kind: Kind,
        path: &str,
        how: Open,
        handle: Box<dyn Handle>,
    ) -> Box<dyn Handle> {
        let takes = matches!(kind, Kind::Control | Kind::Message | Kind::Item);
        let handle: Box<dyn Handle> = match how.write && takes {
            true => Box::new(RecheckedHandle {
                inner: handle,
                access: self.access.clone(),
                caller: caller.clone(),
                action: write_access(kind),
                path: path.to_owned(),
                completed_later: kind != Kind::Control,
                tells_refusals: kind == Kind::Item,
                wrote: AtomicBool::new(false),
            }),
            false => handle,
        };
        self.buffers.counted(caller, kind, handle)
    }

    fn may_open(&self, caller: &Caller, kind: Kind, mode: u16, path: &str, how: Open) -> Result<()> {
        if kind == Kind::Scratch {
            return Ok(()); // its owner may, and what it stands for is asked when it is renamed
        }
        if how.read {
            if mode & 0o400 == 0 {
                return Err(Error::forbidden(format!("`{path}` cannot be read")));
            }
            self.access.check(caller, Access::Read, path)?;
        }
        if how.write {
            if mode & 0o200 == 0 {
                return Err(Error::forbidden(format!("`{path}` cannot be written")));
            }
            self.access.check(caller, write_access(kind), path)?;
        }
        Ok(())
    }

    /// Refuses unless `caller` may write the file at `path`.
    pub fn may_write(&self, caller: &Caller, file: &dyn File, path: &str) -> Result<()> {
        if file.kind() == Kind::Scratch {
            return Ok(());
        }
        self.access.check(caller, write_access(file.kind()), path)
    }

    /// Refuses unless `caller` may do `action` at `path`.
    #[inline]
    pub fn may(&self, caller: &Caller, action: Access, path: &str) -> Result<()> {
        self.access.check(caller, action, path)
    }

    /// Has the host show why something at `path` was refused or is lost.
    pub fn tell_refusal(&self, caller: &Caller, path: &str, error: &Error) {
        self.access.tell_refusal(caller, path, error);
    }

    /// Refuses to move `path` if a rule denies something below it: moved, it would escape the rule.
    pub fn may_move(&self, caller: &Caller, path: &str) -> Result<()> {
        match self.access.has_denied_below(caller, path) {
            true => Err(Error::forbidden(format!("{path} contains something that a rule denies and cannot be moved"))),
            false => Ok(()),
        }
    }

    /// Whether the directory `path` exists for `caller`.
    #[inline]
    pub fn sees(&self, caller: &Caller, path: &str) -> bool {
        self.access.sees(caller, path)
    }

    /// Whether the file or link `path` exists for `caller`.
    #[inline]
    pub fn sees_file(&self, caller: &Caller, path: &str) -> bool {
        self.access.sees_file(caller, path)
    }

    /// Whether nothing is hidden from `caller`.
    #[inline]
    pub fn sees_all(&self, caller: &Caller) -> bool {
        self.access.sees_all(caller)
    }

    /// Whether `node` at `path` exists for `caller`.
    pub fn shows(&self, caller: &Caller, path: &str, node: &Node) -> bool {
        match node {
            Node::Dir(_) => self.access.sees(caller, path),
            _ => self.access.sees_file(caller, path),
        }
    }

    /// Refuses unless `caller` may make, change or remove the name `path`. A server asks before it looks the name up, so
    /// that a hidden name is refused like a missing one.
    pub fn may_change(&self, caller: &Caller, path: &str) -> Result<()> {
        self.access.check(caller, Access::Write, path)
    }

    /// Follows `path` through links to its node. Returns the path without links and the node.
    pub fn find(&self, caller: &Caller, path: &str) -> Result<(String, Node)> {
        let resolve = self.resolve(caller, path)?;
        Ok((resolve.path, resolve.node?))
    }

    /// Follows `path` through links, as far as the caller sees. A hidden step is treated like a missing one, so that the
    /// answer does not reveal it.
    pub fn resolve(&self, caller: &Caller, path: &str) -> Result<Resolved> {
        let mut wanted: Vec<String> = names(path)?.rev().map(str::to_owned).collect();
        let mut at: Vec<(String, Node)> = Vec::new();
        let mut links = 0;
        while let Some(name) = wanted.pop() {
            if name == ".." {
                at.pop();
                continue;
            }
            let dir = match at.last() {
                None => self.root.clone(),
                Some((_, Node::Dir(dir))) => dir.clone(),
                Some((at, _)) => return Err(not_a_directory(at)),
            };
            let here = format!("{}/{name}", at.last().map_or("", |(path, _)| path));
            let Some(node) = dir.lookup_for(caller, &name).filter(|node| self.shows(caller, &here, node)) else {
                let node = Err(not_found(&here));
                let rest: Vec<&str> =
                    wanted.iter().rev().map(String::as_str).take_while(|name| *name != "..").collect();
                let path = [&[here.as_str()], &*rest].concat().join("/");
                let lacking = Some((at.pop().map_or(String::new(), |(path, _)| path), dir));
                return Ok(Resolved { path, node, lacking });
            };
            if let Node::Link(link) = &node {
                links += 1;
                if links > LINKS {
                    return Err(Error::new(Code::Os(libc::ELOOP), format!("`{path}` leads through too many links")));
                }
                let target = link.target(caller)?;
                if target.starts_with('/') {
                    at.clear();
                }
                wanted.extend(target.split('/').rev().filter(|it| !it.is_empty() && *it != ".").map(str::to_owned));
                continue;
            }
            at.push((here, node));
        }
        let (path, node) = at.pop().unwrap_or_else(|| ("/".to_owned(), Node::Dir(self.root.clone())));
        Ok(Resolved { path, node: Ok(node), lacking: None })
    }

    /// Finds and opens the file at `path`.
    pub fn open_path(&self, caller: &Caller, path: &str, how: Open) -> Result<Box<dyn Handle>> {
        let (path, node) = self.find(caller, path)?;
        self.open(caller, &node, &path, how)
    }

    /// Reads the file at `path` to its end, waiting as a reader of the mount would.
    pub async fn read(&self, caller: &Caller, path: &str) -> Result<Bytes> {
        let handle = self.open_path(caller, path, Open::READ)?;
        let read = read_to_end(&*handle, 0, usize::MAX).await;
        handle.closed();
        read
    }

    /// Writes `data` to the file at `path`, as `echo >` would.
    pub async fn write(&self, caller: &Caller, path: &str, data: &[u8]) -> Result<()> {
        let handle = self.open_path(caller, path, Open::WRITE)?;
        let written = async {
            handle.write(0, data).wait().await?;
            handle.flush(true).wait().await
        };
        let written = written.await;
        handle.closed();
        written
    }

    /// Writes `data` to the control file at `path` and reads the reply on the same handle.
    pub async fn ask(&self, caller: &Caller, path: &str, data: &[u8]) -> Result<Bytes> {
        let handle = self.open_path(caller, path, Open::BOTH)?;
        handle.write(0, data).wait().await?;
        handle.flush(true).wait().await?;
        let answer = read_to_end(&*handle, data.len() as u64, usize::MAX).await;
        handle.closed();
        answer
    }

    /// The names in the directory at `path` that the caller may see.
    pub fn list(&self, caller: &Caller, path: &str) -> Result<Vec<Entry>> {
        self.list_first(caller, path, usize::MAX)
    }

    /// The first `most` names in the directory at `path` that the caller may see.
    pub fn list_first(&self, caller: &Caller, path: &str, most: usize) -> Result<Vec<Entry>> {
        let (path, node) = self.find(caller, path)?;
        let Node::Dir(dir) = node else { return Err(not_a_directory(&path)) };
        let under = if path == "/" { "" } else { &path };
        let seen = |(name, node): (String, Node)| {
            let path = format!("{under}/{name}");
            self.shows(caller, &path, &node).then_some(Entry { path, node })
        };
        let first = dir.first(most);
        let cut = first.len() == most;
        let found: Vec<Entry> = first.into_iter().filter_map(seen).collect();
        match cut && found.len() < most {
            // Some of the first are hidden from this caller, so later ones count.
            true => Ok(dir.list().into_iter().filter_map(seen).take(most).collect()),
            false => Ok(found),
        }
    }

    /// The first `most` names after `after` in the directory at `path` that the caller may see: a listing page by page.
    pub fn list_after(&self, caller: &Caller, path: &str, after: &str, most: usize) -> Result<Vec<Entry>> {
        let (path, node) = self.find(caller, path)?;
        let Node::Dir(dir) = node else { return Err(not_a_directory(&path)) };
        let under = if path == "/" { "" } else { &path };
        let seen = |(name, node): (String, Node)| {
            let path = format!("{under}/{name}");
            self.shows(caller, &path, &node).then_some(Entry { path, node })
        };
        let rest = dir.list().into_iter().skip_while(|(name, _)| name.as_str() <= after);
        Ok(rest.filter_map(seen).take(most).collect())
    }
}

/// The right that a writer of such a file needs.
fn write_access(kind: Kind) -> Access {
    match kind {
        Kind::Control | Kind::Message => Access::Invoke,
        _ => Access::Write,
    }
}

/// Reads from `begin` to the end of the pass, at most `limit` bytes.
async fn read_to_end(handle: &dyn Handle, begin: u64, limit: usize) -> Result<Bytes> {
    const CHUNK: usize = 128 * 1024;

    let mut bytes = Vec::new();
    while bytes.len() < limit {
        let size = CHUNK.min(limit - bytes.len());
        let answer: Answer<Bytes> = handle.read(begin + bytes.len() as u64, size);
        let chunk = answer.wait().await?;
        if chunk.is_empty() {
            break;
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}

/// The names of `path` in order, without `.` but with `..`.
fn names(path: &str) -> Result<impl DoubleEndedIterator<Item = &str>> {
    if path.contains('\0') {
        return Err(Error::invalid("a path has no NUL in it"));
    }
    if path.len() >= LONGEST {
        return Err(Error::new(Code::Os(libc::ENAMETOOLONG), format!("a path has fewer than {LONGEST} bytes")));
    }
    Ok(path.split('/').filter(|name| !name.is_empty() && *name != "."))
}

/// `path` as an absolute path without `.`, `..` and doubled slashes. A leading slash is optional; `..` stops at the root.
pub fn normalize(path: &str) -> Result<String> {
    let mut kept: Vec<&str> = Vec::new();
    for name in names(path)? {
        match name {
            ".." => _ = kept.pop(),
            name => kept.push(name),
        }
    }
    Ok(format!("/{}", kept.join("/")))
}

fn not_found(path: &str) -> Error {
    Error::not_found(format!("there is no `{path}`"))
}

fn not_a_directory(path: &str) -> Error {
    Error::new(Code::Os(libc::ENOTDIR), format!("`{path}` is not a directory"))
}

#[cfg(test)]
mod tests;
