//! Requests about scratch files: a file that a program makes beside another is private to it, and renaming it onto the other
//! is a write. Part of the server; uses the tree.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fuser::{Errno, FileHandle, ReplyAttr, ReplyCreate, ReplyEntry};

use super::attributes;
use super::name_requests::{ChildName, GENERATION};
use super::notices::Notice;
use super::scratch::{ScratchFiles, TellLoss};
use super::server::{Requester, Server, errno};
use acheron_base::{Error, Result};
use acheron_vfs::scratch::{ScratchFile, StandsFor, stands_for, takes_writes, writable};
use acheron_vfs::{Answer, Caller, File, Handle, Kind, Node, Open};

impl Server {
    /// The scratch file of this caller at `path`, and the caller.
    fn draft(&self, by: Requester, path: &str) -> Option<(ScratchFile, Caller)> {
        if self.scratch.is_empty() {
            return None;
        }
        let caller = self.caller(by);
        Some((self.scratch.get(&caller, path)?, caller))
    }

    /// The length that a file without one of its own has for the process that has just renamed its bytes to it: a program that looks
    /// whether all of them have arrived (Claude Code does) must find them. Commands and messages have no other length.
    pub fn saved_length(&self, by: Requester, path: &str, node: &Node) -> Option<u64> {
        let Node::File(file) = node else { return None };
        if !matches!(file.kind(), Kind::Control | Kind::Message) || !self.scratch.is_saved(path) {
            return None;
        }
        self.scratch.saved(&self.caller(by), path)
    }

    /// Answers for a name that the directory does not have.
    pub fn lookup_draft(&self, by: Requester, child: &ChildName, reply: ReplyEntry) {
        match self.draft(by, &child.path) {
            Some((file, caller)) => {
                let attributes = self.remember(&private(&caller, &child.path), &Node::file(file));
                reply.entry_with_ttls(&Duration::ZERO, &Duration::ZERO, &attributes, GENERATION);
            }
            // Without a cache time: a name that is added is found immediately.
            None => reply.error(errno(&Error::not_found(format!("there is no `{}`", child.path)))),
        }
    }

    /// What a new file called `child` stands for, if the caller may write that; `None` if it is no scratch file.
    pub fn stands_for(&self, caller: &Caller, child: &ChildName) -> Option<Result<Option<Arc<dyn File>>>> {
        let real = match stands_for(&*child.dir, child.name())? {
            StandsFor::Named(real) => real,
            StandsFor::Unknown => return Some(Ok(None)),
        };
        let path = child.sibling(&real);
        Some(match child.dir.lookup(&real) {
            Some(Node::File(file)) => self.tree.may_write(caller, &*file, &path).map(|()| Some(file)),
            _ => self.tree.may_change(caller, &path).map(|()| None),
        })
    }

    /// Tells what a file stands for, or what the directory belongs to, that something beside it was refused or is lost.
    pub fn tell_loss(&self, caller: &Caller, child: &ChildName, of: Option<Arc<dyn File>>) -> TellLoss {
        let (tree, caller, path, dir) = (self.tree.clone(), caller.clone(), child.path.clone(), child.dir.clone());
        Box::new(move |error| match of.clone().or_else(|| writable(&*dir)) {
            Some(of) if of.kind() != Kind::Item => of.unfinished(&caller, error),
            _ => tree.tell_refusal(&caller, &path, error),
        })
    }

    pub fn create_draft(
        &self,
        caller: &Caller,
        child: &ChildName,
        of: Result<Option<Arc<dyn File>>>,
        how: Open,
        reply: ReplyCreate,
    ) {
        let made = of.and_then(|of| {
            let file = self.scratch.make(caller, &child.path, self.tell_loss(caller, child, of))?;
            let handle = file.open(caller, how)?;
            Ok((file, handle))
        });
        match made {
            Ok((file, handle)) => {
                let (kind, flags) = (file.kind(), attributes::file_flags(&file, how, false));
                let attributes = self.remember(&private(caller, &child.path), &Node::file(file));
                let fh = self.opened(handle, kind, how, caller.pid);
                reply.created(&Duration::ZERO, &attributes, GENERATION, FileHandle(fh), flags);
            }
            Err(error) => reply.error(refused_creation(&error)),
        }
    }

    /// Removes a scratch file; returns whether `path` was one.
    pub fn remove_draft(&self, by: Requester, path: &str) -> bool {
        self.draft(by, path).is_some_and(|(_, caller)| self.scratch.remove(&caller, path))
    }

    /// The effect of a rename from or to the name of a scratch file; `None` if neither is one.
    pub fn rename_draft(self: &Arc<Self>, by: Requester, from: &ChildName, to: &ChildName) -> Option<Answer<()>> {
        if let Some((file, caller)) = self.draft(by, &from.path) {
            return Some(match self.stands_for(&caller, to) {
                Some(Ok(_)) => {
                    self.scratch.rename(&caller, &from.path, &to.path);
                    Answer::ok(())
                }
                Some(Err(error)) => Answer::refuse(error),
                None => self.commit(caller, file, from.path.clone(), to),
            });
        }
        let Some(Node::File(file)) = from.dir.lookup(from.name()).filter(|_| from.dir.lookup(to.name()).is_none())
        else {
            return None;
        };
        let caller = self.caller(by);
        // Only vim, which has its swap file here, writes the file anew afterwards. The copy of any other would be lost.
        let is_backup = stands_for(&*to.dir, to.name()) == Some(StandsFor::Named(from.name().to_owned()));
        if !takes_writes(&*file) || !is_backup || !self.scratch.has_swap_of(&caller, from) {
            return None;
        }
        Some(self.set_aside(caller, file, from, to))
    }

    /// Writes the bytes of a scratch file to the file that it was renamed to, as `echo >` would. It stays if they are refused.
    fn commit(self: &Arc<Self>, caller: Caller, file: ScratchFile, from: String, to: &ChildName) -> Answer<()> {
        let place = to.path.clone();
        let handle = match to.dir.lookup(to.name()) {
            Some(node) => self.tree.open(&caller, &node, &to.path, Open::WRITE),
            None => self.tree.may_change(&caller, &to.path).and_then(|()| {
                let (node, handle) = to.dir.create(&caller, to.name(), Open::WRITE)?;
                let Node::File(file) = node else { return Err(Error::internal("the directory made no file")) };
                Ok(self.tree.opened(&caller, file.kind(), &to.path, Open::WRITE, handle))
            }),
        };
        let handle = match handle {
            Ok(handle) => handle,
            Err(error) => return Answer::refuse(error),
        };
        let server = self.clone();
        Answer::soon(async move {
            let bytes = file.finish();
            let written = write_whole(&*handle, &bytes).await;
            handle.closed();
            written.inspect_err(|_| file.resume())?;
            server.scratch.save(&caller, &from, &place, bytes.len() as u64);
            Ok(())
        })
    }

    /// A copy of the file takes the new name, for a program that keeps the old bytes as its backup and then writes the file
    /// anew. The file itself stays where it is.
    fn set_aside(
        self: &Arc<Self>,
        caller: Caller,
        file: Arc<dyn File>,
        from: &ChildName,
        to: &ChildName,
    ) -> Answer<()> {
        let handle = self.tree.may_write(&caller, &*file, &from.path);
        let handle = handle.and_then(|()| self.tree.open(&caller, &Node::File(file), &from.path, Open::READ));
        let (server, path) = (self.clone(), to.path.clone());
        let tell = self.tell_loss(&caller, to, None);
        let parent = self.inodes.number(to.parent(), &Node::Dir(to.dir.clone()));
        let notice = Notice::Entry { parent, name: to.name().to_owned(), path: path.clone() };
        match handle {
            Ok(handle) => Answer::soon(async move {
                let bytes = handle.read(0, usize::MAX).ready_or_busy().await;
                handle.closed();
                server.scratch.make(&caller, &path, tell)?.write_at(0, &bytes?)?;
                // The kernel takes the new name for the file itself.
                server.notices.post(notice);
                Ok(())
            }),
            Err(error) => Answer::refuse(error),
        }
    }

    /// New permission bits or a new owner: accepted for a scratch file, whose program compares them with those of the file
    /// that it stands for. Nothing follows from them.
    pub fn set_mode(self: &Arc<Self>, by: Requester, ino: u64, mode: Option<u32>, reply: ReplyAttr) {
        let known = self.inodes.get(ino);
        match known.map(|known| known.path.split_once('\0').and_then(|(path, _)| self.draft(by, path))) {
            Ok(Some((file, _))) => {
                if let Some(mode) = mode {
                    file.set_mode((mode & 0o777) as u16);
                }
                self.getattr(by, ino, None, reply);
            }
            Ok(None) => reply.error(Errno::EPERM),
            Err(error) => reply.error(errno(&error)),
        }
    }
}

impl ScratchFiles {
    /// Whether the process edits `file` with vim: then it has a swap file of it.
    fn has_swap_of(&self, caller: &Caller, file: &ChildName) -> bool {
        ["swp", "swo", "swx"].iter().any(|end| {
            let swap = file.sibling(&format!(".{}.{end}", file.name()));
            self.get(caller, &swap).is_some()
        })
    }
}

async fn write_whole(handle: &dyn Handle, bytes: &Bytes) -> Result<()> {
    handle.write(0, bytes).wait().await?;
    handle.flush(true).wait().await
}

/// The path under which the inode of a scratch file is known: each process has its own.
fn private(caller: &Caller, path: &str) -> String {
    format!("{path}\0{}", caller.pid)
}

/// The error for something that cannot be made: programs take `EPERM` and `EINVAL` for a fault of the whole file system.
pub fn refused_creation(error: &Error) -> Errno {
    match error.errno() {
        libc::EPERM | libc::EINVAL => Errno::EACCES,
        other => Errno::from_i32(other),
    }
}
