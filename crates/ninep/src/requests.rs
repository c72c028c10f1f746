//! Answers requests from the tree. Each answer is a future of its own; what reads a disk runs on a thread that may wait.
//! Used by the session; uses the tree and the fids.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::attributes::{Numbering, entry_kind, open_mode};
use super::fids::{Fid, Fids, Opened, OpenedDir, OpenedFile, join};
use super::message::{DirEntry, HEAD, NO_FID, QID_DIR, Qid, Reply, Request};
use super::wire::Field;
use super::{Attach, AttachRequest, Attached, Peer};
use acheron_base::{Code, Error, Result, blocking};
use acheron_vfs::{Answer, Dir, File, Kind, NameQuery, Node, Open, Tree, not_permitted};

/// The bytes of a read or write message that are not data.
pub const OVERHEAD: u32 = HEAD as u32 + 4 + 8 + 4;

/// The names of one walk.
const MOST_NAMES: usize = 16;
/// The length of a name.
const LONGEST_NAME: usize = 255;
/// What `statfs(2)` says of 9P.
const FILE_SYSTEM: u32 = 0x0102_1997;
/// The field of a set-attributes request that sets the size, and those that set times.
const SETS_SIZE: u32 = 0x8;
const SETS_TIMES: u32 = 0x10 | 0x20 | 0x40 | 0x80 | 0x100;
/// The flag that removes a directory.
const REMOVES_DIR: u32 = 0x200;

/// One connection's view of the tree.
pub struct View {
    pub tree: Tree,
    pub attach: Arc<dyn Attach>,
    pub peer: Option<Peer>,
    pub numbering: Arc<Numbering>,
    pub fids: Fids,
    /// Ends the session.
    pub cut: CancellationToken,
    /// The size limit of a message, as it was agreed.
    pub msize: u32,
}

/// Whether a request changes something, so that it is ended and not cancelled.
pub fn changes(request: &Request) -> bool {
    use Request::{
        Clunk, Fsync, Lcreate, Link, Lopen, Mkdir, Mknod, Remove, Rename, Renameat, Setattr, Symlink, Unlinkat, Write,
    };
    match request {
        Lopen { flags, .. } => open_mode(*flags).0.write,
        other => matches!(
            other,
            Write { .. }
                | Clunk { .. }
                | Lcreate { .. }
                | Remove { .. }
                | Mkdir { .. }
                | Rename { .. }
                | Renameat { .. }
                | Unlinkat { .. }
                | Setattr { .. }
                | Fsync { .. }
                | Symlink { .. }
                | Mknod { .. }
                | Link { .. }
        ),
    }
}

impl View {
    /// Answers a request that is neither a version nor a flush.
    pub async fn answer(&self, request: Request) -> Result<Reply> {
        match request {
            Request::Attach { fid, auth_fid, user, tree, uid } => self.attach(fid, auth_fid, user, tree, uid).await,
            Request::Walk { fid, new_fid, names } => self.walk(fid, new_fid, names).await,
            Request::Lopen { fid, flags } => self.open(fid, flags).await,
            Request::Lcreate { fid, name, flags, .. } => self.create(fid, name, flags).await,
            Request::Read { fid, offset, count } => self.read(fid, offset, count).await,
            Request::Write { fid, offset, data } => self.write(fid, offset, data).await,
            Request::Readdir { fid, offset, count } => self.readdir(fid, offset, count).await,
            Request::Getattr { fid, .. } => self.getattr(fid).await,
            Request::Setattr { fid, valid, size, .. } => self.setattr(fid, valid, size).await,
            Request::Readlink { fid } => self.readlink(fid).await,
            Request::Fsync { fid, .. } => self.fsync(fid).await,
            Request::Clunk { fid } => self.clunk(fid).await,
            Request::Remove { fid } => self.remove(fid).await,
            Request::Mkdir { directory, name, .. } => self.mkdir(directory, name).await,
            Request::Unlinkat { directory, name, flags } => self.unlink(directory, name, flags).await,
            Request::Rename { fid, directory, name } => self.rename(fid, directory, name).await,
            Request::Renameat { directory, name, new_directory, new_name } => {
                self.rename_at(directory, name, new_directory, new_name).await
            }
            Request::Statfs { fid } => self.statfs(fid),
            Request::Symlink { .. } | Request::Mknod { .. } | Request::Link { .. } => {
                Err(Error::forbidden("no links and no devices can be made here"))
            }
            // "No authentication" in the words of the protocol: the client attaches without it.
            Request::Auth { .. } => Err(Error::not_found("no authentication is required")),
            Request::Xattrwalk { .. } | Request::Xattrcreate { .. } => {
                Err(Error::unknown_operation("there are no extended attributes"))
            }
            Request::Lock { .. } | Request::Getlock { .. } => Err(Error::unknown_operation("there are no locks")),
            Request::Version { .. } | Request::Flush { .. } => Err(Error::internal("the session answers this")),
        }
    }

    async fn attach(&self, fid: u32, auth_fid: u32, user: String, tree: String, uid: u32) -> Result<Reply> {
        if auth_fid != NO_FID {
            return Err(Error::new(Code::Os(libc::EBADF), "there is no such authentication"));
        }
        let request = AttachRequest { peer: self.peer.clone(), user, tree, uid };
        let Attached { caller, ended } = self.attach.attach(request).await?;
        let root = Node::Dir(self.tree.root());
        let qid = self.numbering.qid("/", &root);
        self.fids.add(fid, Fid::new(caller, "/".into(), root))?;
        let cut = self.cut.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => cut.cancel(),
                () = cut.cancelled() => (),
            }
        });
        Ok(Reply::Attach { qid })
    }

    /// Finds what the names lead to. If only some are found, they are told and there is no new fid.
    async fn walk(&self, fid: u32, new_fid: u32, names: Vec<String>) -> Result<Reply> {
        let from = self.fids.get(fid)?;
        if names.len() > MOST_NAMES {
            return Err(Error::invalid(format!("a walk has at most {MOST_NAMES} names")));
        }
        if from.opened.get().is_some() {
            return Err(Error::new(Code::Os(libc::EBADF), "an open fid cannot be walked"));
        }
        let (mut path, mut node, wanted) = (from.path.clone(), from.node.clone(), names.len());
        let mut qids = Vec::with_capacity(wanted);
        for name in names {
            let found = match name.as_str() {
                "." => Ok((path.clone(), node.clone())),
                ".." => self.parent(&from, &path).await,
                _ => self.step(&from, &path, &node, name).await,
            };
            match found {
                Ok(found) => (path, node) = found,
                Err(error) if qids.is_empty() => return Err(error),
                Err(_) => return Ok(Reply::Walk { qids }),
            }
            qids.push(self.numbering.qid(&path, &node));
        }
        let walked = Fid::new(from.caller.clone(), path, node);
        if new_fid == fid {
            self.fids.replace(fid, walked);
        } else {
            self.fids.add(new_fid, walked)?;
        }
        Ok(Reply::Walk { qids })
    }

    /// One name further. A name that is hidden from the caller is missing.
    async fn step(&self, fid: &Fid, path: &str, node: &Node, name: String) -> Result<(Arc<str>, Node)> {
        let Node::Dir(dir) = node else {
            return Err(Error::new(Code::Os(libc::ENOTDIR), format!("`{path}` is not a directory")));
        };
        check_name(&name)?;
        let below = join(path, &name);
        let (dir, quick) = (dir.clone(), dir.is_quick(NameQuery::One));
        let caller = fid.caller.clone();
        let found = maybe_blocking(quick, move || Ok(dir.lookup_for(&caller, &name))).await?;
        let shown = found.filter(|node| self.tree.shows(&fid.caller, &below, node));
        let node = shown.ok_or_else(|| Error::not_found(format!("there is no `{below}`")))?;
        Ok((below.into(), node))
    }

    async fn parent(&self, fid: &Fid, path: &str) -> Result<(Arc<str>, Node)> {
        let above = match path.rsplit_once('/') {
            Some(("", _)) | None => "/",
            Some((above, _)) => above,
        };
        let (tree, caller, wanted) = (self.tree.clone(), fid.caller.clone(), above.to_owned());
        let (path, node) = blocking(move || tree.find(&caller, &wanted)).await?;
        Ok((path.into(), node))
    }

    async fn open(&self, number: u32, flags: u32) -> Result<Reply> {
        let fid = self.fids.get(number)?;
        let (how, patient) = open_mode(flags);
        let qid = self.numbering.qid(&fid.path, &fid.node);
        let opened = match &fid.node {
            Node::Dir(_) if how.write => {
                return Err(Error::new(Code::Os(libc::EISDIR), format!("`{}` is a directory", fid.path)));
            }
            Node::Dir(_) => Opened::Dir(Arc::new(OpenedDir::default())),
            Node::Link(_) => return Err(Error::new(Code::Os(libc::ELOOP), format!("`{}` is a link", fid.path))),
            Node::File(file) => {
                let (tree, held, kind) = (self.tree.clone(), fid.clone(), file.kind());
                let open = move || tree.open(&held.caller, &held.node, &held.path, how);
                let handle = maybe_blocking(fid.node.has_quick_stat(), open).await?;
                Opened::File(Arc::new(OpenedFile::new(handle, kind, patient)))
            }
        };
        set_open(&fid, opened)?;
        Ok(Reply::Lopen { qid, iounit: self.msize - OVERHEAD })
    }

    /// The directory of the fid becomes the file that was made.
    async fn create(&self, number: u32, name: String, flags: u32) -> Result<Reply> {
        let (fid, path, dir) = self.to_change(number, &name)?;
        if fid.opened.get().is_some() {
            return Err(Error::new(Code::Os(libc::EBADF), "the fid is open"));
        }
        let (how, patient) = open_mode(flags);
        let (caller, quick) = (fid.caller.clone(), dir.is_quick(NameQuery::One));
        let made = maybe_blocking(quick, move || dir.create(&caller, &name, how)).await;
        let (node, handle) = made.inspect_err(|error| self.tree.tell_refusal(&fid.caller, &path, error))?;
        let Node::File(file) = &node else {
            return Err(Error::internal("the directory made something that is not a file"));
        };
        let handle = self.tree.opened(&fid.caller, file.kind(), &path, how, handle);
        let opened = Opened::File(Arc::new(OpenedFile::new(handle, file.kind(), patient)));
        let qid = self.numbering.qid(&path, &node);
        let new = Fid::new(fid.caller.clone(), path.into(), node);
        set_open(&new, opened)?;
        self.fids.replace(number, new);
        Ok(Reply::Lcreate { qid, iounit: self.msize - OVERHEAD })
    }

    async fn read(&self, fid: u32, offset: u64, count: u32) -> Result<Reply> {
        let file = self.fids.get(fid)?.file()?;
        let size = count.min(self.msize - HEAD as u32 - 4) as usize;
        let data = in_time(file.patient, file.handle.read(offset, size)).await?;
        Ok(Reply::Read { data })
    }

    async fn write(&self, fid: u32, offset: u64, data: Bytes) -> Result<Reply> {
        let file = self.fids.get(fid)?.file()?;
        file.wrote();
        in_time(file.patient, file.handle.write(offset, &data)).await?;
        Ok(Reply::Write { count: data.len() as u32 })
    }

    async fn fsync(&self, fid: u32) -> Result<Reply> {
        if let Ok(file) = self.fids.get(fid)?.file() {
            file.unsent.store(false, Ordering::SeqCst);
            file.handle.sync().wait().await?;
        }
        Ok(Reply::Fsync {})
    }

    /// The fid is gone even if what was written is refused.
    async fn clunk(&self, fid: u32) -> Result<Reply> {
        let fid = self.fids.remove(fid)?;
        close(&fid).await?;
        Ok(Reply::Clunk {})
    }

    async fn readdir(&self, number: u32, offset: u64, count: u32) -> Result<Reply> {
        let fid = self.fids.get(number)?;
        let (dir, Some(Opened::Dir(opened))) = (fid.dir()?, fid.opened.get()) else {
            return Err(Error::new(Code::Os(libc::EBADF), "the directory is not open"));
        };
        let known = opened.0.lock().clone().filter(|_| offset > 0);
        let names = match known {
            Some(names) => names,
            None => {
                let (tree, held, quick) = (self.tree.clone(), fid.clone(), dir.is_quick(NameQuery::All));
                let list = move || {
                    let mut names = dir.list();
                    if !tree.sees_all(&held.caller) {
                        names.retain(|(name, node)| tree.shows(&held.caller, &held.child(name), node));
                    }
                    Ok(Arc::new(names))
                };
                let names = maybe_blocking(quick, list).await?;
                *opened.0.lock() = Some(names.clone());
                names
            }
        };
        let most = count.min(self.msize - HEAD as u32 - 4) as usize;
        Ok(Reply::Readdir { entries: self.entries(&fid, &names, offset, most).into() })
    }

    /// The entries after `offset` that fit into `most` bytes.
    fn entries(&self, fid: &Fid, names: &[(String, Node)], offset: u64, most: usize) -> Vec<u8> {
        let dots = [".", ".."].into_iter().map(|name| (name, None));
        let all = dots.chain(names.iter().map(|(name, node)| (name.as_str(), Some(node))));
        let mut entries = Vec::new();
        for (at, (name, node)) in all.enumerate().skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            let (qid, kind) = match node {
                Some(node) => (self.numbering.qid(&fid.child(name), node), entry_kind(node)),
                None => (Qid { kind: QID_DIR, ..self.numbering.qid(&fid.path, &fid.node) }, libc::DT_DIR),
            };
            let entry = DirEntry { qid, offset: at as u64 + 1, kind, name: name.to_owned() };
            let whole = entries.len();
            entry.put(&mut entries);
            if entries.len() > most {
                entries.truncate(whole);
                break;
            }
        }
        entries
    }

    async fn getattr(&self, number: u32) -> Result<Reply> {
        let fid = self.fids.get(number)?;
        let (tree, numbering, quick) = (self.tree.clone(), self.numbering.clone(), fid.node.has_quick_stat());
        maybe_blocking(quick, move || Ok(numbering.attributes(&tree, &fid.path, &fid.node))).await
    }

    /// Sets the size; accepts new times of what may be written, because `touch` and `cp -p` set them.
    async fn setattr(&self, number: u32, valid: u32, size: u64) -> Result<Reply> {
        let fid = self.fids.get(number)?;
        if valid & !(SETS_SIZE | SETS_TIMES) != 0 {
            return Err(not_permitted("owners and permissions cannot be set"));
        }
        let Node::File(file) = &fid.node else { return Err(not_permitted("only files have a size")) };
        self.tree.may_write(&fid.caller, &**file, &fid.path)?;
        if file.mode() & 0o200 == 0 {
            return Err(Error::forbidden(format!("`{}` cannot be written", fid.path)));
        }
        if valid & SETS_SIZE != 0 {
            self.truncate(&fid, file, size).await?;
        }
        Ok(Reply::Setattr {})
    }

    async fn truncate(&self, fid: &Arc<Fid>, file: &Arc<dyn File>, size: u64) -> Result<()> {
        if let Ok(open) = fid.file() {
            return open.handle.truncate(size).wait().await;
        }
        if matches!(file.kind(), Kind::Control | Kind::Message) {
            return Ok(()); // commands have no length
        }
        let (tree, held) = (self.tree.clone(), fid.clone());
        let how = Open { write: true, ..Open::default() };
        let open = move || tree.open(&held.caller, &held.node, &held.path, how);
        let handle = maybe_blocking(fid.node.has_quick_stat(), open).await?;
        let cut = async {
            handle.truncate(size).wait().await?;
            handle.sync().wait().await
        };
        let cut = cut.await;
        handle.closed();
        cut
    }

    async fn readlink(&self, number: u32) -> Result<Reply> {
        let fid = self.fids.get(number)?;
        let Node::Link(link) = &fid.node else { return Err(Error::invalid(format!("`{}` is not a link", fid.path))) };
        Ok(Reply::Readlink { target: link.target(&fid.caller)? })
    }

    /// A name in a directory that the caller may change.
    fn to_change(&self, directory: u32, name: &str) -> Result<(Arc<Fid>, String, Arc<dyn Dir>)> {
        let fid = self.fids.get(directory)?;
        check_name(name)?;
        let (path, dir) = (fid.child(name), fid.dir()?);
        self.tree.may_change(&fid.caller, &path)?;
        Ok((fid, path, dir))
    }

    async fn mkdir(&self, directory: u32, name: String) -> Result<Reply> {
        let (fid, path, dir) = self.to_change(directory, &name)?;
        let quick = dir.is_quick(NameQuery::One);
        let made = maybe_blocking(quick, move || Ok(dir.make_dir(&fid.caller, &name))).await?.wait().await?;
        Ok(Reply::Mkdir { qid: self.numbering.qid(&path, &made) })
    }

    async fn unlink(&self, directory: u32, name: String, flags: u32) -> Result<Reply> {
        let (fid, _, dir) = self.to_change(directory, &name)?;
        remove_name(fid, dir, name, flags & REMOVES_DIR != 0).await?;
        Ok(Reply::Unlinkat {})
    }

    async fn remove(&self, number: u32) -> Result<Reply> {
        let fid = self.fids.remove(number)?;
        // What was written is closed first, whatever becomes of the name.
        close(&fid).await?;
        let (Some((above, name)), Node::Dir(_) | Node::File(_) | Node::Link(_)) =
            (fid.path.rsplit_once('/').filter(|(_, name)| !name.is_empty()), &fid.node)
        else {
            return Err(Error::forbidden("the root cannot be removed"));
        };
        self.tree.may_change(&fid.caller, &fid.path)?;
        let (tree, caller, above) = (self.tree.clone(), fid.caller.clone(), above.to_owned());
        let (_, parent) = blocking(move || tree.find(&caller, &above)).await?;
        let Node::Dir(dir) = parent else { return Err(Error::internal("the parent is not a directory")) };
        let (name, is_dir) = (name.to_owned(), matches!(fid.node, Node::Dir(_)));
        remove_name(fid.clone(), dir, name, is_dir).await?;
        Ok(Reply::Remove {})
    }

    async fn rename(&self, number: u32, directory: u32, new_name: String) -> Result<Reply> {
        let fid = self.fids.get(number)?;
        let (_, new_path, _) = self.to_change(directory, &new_name)?;
        self.move_to(&fid, fid.path.to_string(), new_path).await?;
        Ok(Reply::Rename {})
    }

    async fn rename_at(&self, directory: u32, name: String, to: u32, new_name: String) -> Result<Reply> {
        let (fid, path, _) = self.to_change(directory, &name)?;
        let (_, new_path, _) = self.to_change(to, &new_name)?;
        self.move_to(&fid, path, new_path).await?;
        Ok(Reply::Renameat {})
    }

    async fn move_to(&self, fid: &Fid, from: String, to: String) -> Result<()> {
        self.tree.may_change(&fid.caller, &from)?;
        self.tree.may_move(&fid.caller, &from)?;
        let above = match from.rsplit_once('/') {
            Some(("", _)) | None => "/".to_owned(),
            Some((above, _)) => above.to_owned(),
        };
        let (tree, caller) = (self.tree.clone(), fid.caller.clone());
        let answer = blocking(move || match tree.find(&caller, &above)? {
            (_, Node::Dir(dir)) => Ok(dir.rename(&caller, &from, &to)),
            _ => Err(Error::not_found(format!("there is no `{from}`"))),
        });
        answer.await?.wait().await
    }

    fn statfs(&self, fid: u32) -> Result<Reply> {
        self.fids.get(fid)?;
        Ok(Reply::Statfs {
            kind: FILE_SYSTEM,
            block_size: 4096,
            blocks: 0,
            free: 0,
            available: 0,
            files: 0,
            free_files: 0,
            id: 0,
            longest_name: LONGEST_NAME as u32,
        })
    }
}

/// Waits for the answer, or says `busy` to a caller that asked not to wait.
async fn in_time<T: Send + 'static>(patient: bool, answer: Answer<T>) -> Result<T> {
    match patient {
        true => answer.wait().await,
        false => answer.ready_or_busy().await,
    }
}

async fn maybe_blocking<T: Send + 'static>(
    quick: bool,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match quick {
        true => work(),
        false => blocking(work).await,
    }
}

fn set_open(fid: &Fid, opened: Opened) -> Result<()> {
    fid.opened.set(opened).map_err(|late| {
        if let Opened::File(file) = late {
            file.handle.closed();
        }
        Error::new(Code::Os(libc::EBADF), "the fid is open")
    })
}

/// Completes what was written, and closes the file.
async fn close(fid: &Fid) -> Result<()> {
    let Some(Opened::File(file)) = fid.opened.get() else { return Ok(()) };
    file.unsent.store(false, Ordering::SeqCst);
    let flushed = file.handle.flush(true).wait().await;
    file.handle.closed();
    flushed
}

async fn remove_name(fid: Arc<Fid>, dir: Arc<dyn Dir>, name: String, is_dir: bool) -> Result<()> {
    let quick = dir.is_quick(NameQuery::One);
    let remove = move || match is_dir {
        true => Ok(dir.remove_dir(&fid.caller, &name)),
        false => Ok(dir.remove(&fid.caller, &name)),
    };
    maybe_blocking(quick, remove).await?.wait().await
}

fn check_name(name: &str) -> Result<()> {
    if name.len() > LONGEST_NAME {
        return Err(Error::new(Code::Os(libc::ENAMETOOLONG), format!("a name has at most {LONGEST_NAME} bytes")));
    }
    match name.is_empty() || matches!(name, "." | "..") || name.contains(['/', '\0']) {
        true => Err(Error::invalid("a name is not empty, not a dot, and has no slash and no NUL in it")),
        false => Ok(()),
    }
}
