//! Requests about names: lookups and listings are answered from memory; changes are answered when they are done. Part
//! of the server; uses the tree.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use fuser::{
    FileHandle, FopenFlags, Generation, INodeNo, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyOpen, Request,
};

use super::attributes;
use super::handles::{OpenDir, ShowsName};
use super::inodes::join;
use super::parking::Responder;
use super::server::{AnswerMode, Server, errno};
use acheron_base::{Code, Error, Result};
use acheron_vfs::{Answer, Caller, Dir, Node};

/// The length limit of a name, as the kernel has it.
const LONGEST: usize = 255;

/// Always the same: an inode number belongs to a path.
const GENERATION: Generation = Generation(0);

/// A change that has begun completes whatever signal arrives. It is answered without waiting for notices: the kernel
/// holds the lock of the directory until then, and a notice may be waiting for that lock.
const CHANGE: AnswerMode = AnswerMode { patient: true, begun: true };

/// A name in a directory, existing or not.
struct ChildName<'a> {
    dir: Arc<dyn Dir>,
    name: &'a str,
    path: String,
}

impl Server {
    fn directory(&self, ino: u64) -> Result<(Arc<str>, Arc<dyn Dir>)> {
        let known = self.inodes.get(ino)?;
        match known.node {
            Node::Dir(dir) => Ok((known.path, dir)),
            _ => Err(Error::new(Code::Os(libc::ENOTDIR), format!("`{}` is not a directory", known.path))),
        }
    }

    fn child<'a>(&self, parent: u64, name: &'a OsStr) -> Result<ChildName<'a>> {
        if name.len() > LONGEST {
            return Err(Error::new(Code::Os(libc::ENAMETOOLONG), format!("a name has at most {LONGEST} bytes")));
        }
        let (path, dir) = self.directory(parent)?;
        let name = name.to_str().ok_or_else(|| Error::not_found("names must be UTF-8"))?;
        Ok(ChildName { dir, name, path: join(&path, name) })
    }

    pub fn lookup(&self, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let found = self.child(parent, name).and_then(|child| match child.dir.lookup(child.name) {
            Some(node) => Ok((child, node)),
            None => Err(Error::not_found(format!("there is no `{}`", child.path))),
        });
        match found {
            Ok((child, node)) => self.reply_entry(&*child.dir, &child.path, &node, reply),
            // Without a cache time: a name that is added is found immediately.
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn reply_entry(&self, dir: &dyn Dir, path: &str, node: &Node, reply: ReplyEntry) {
        let (attributes, last) = (self.remember(path, node), attributes::attribute_ttl(node));
        reply.entry_with_ttls(&last, &attributes::name_ttl(dir), &attributes, GENERATION);
    }

    pub fn getattr(&self, ino: u64, reply: ReplyAttr) {
        match self.inodes.get(ino) {
            Ok(known) => reply.attr(&attributes::attribute_ttl(&known.node), &self.attributes(ino, &known.node)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub fn readlink(&self, req: &Request, ino: u64, reply: ReplyData) {
        let target = self.inodes.get(ino).and_then(|known| match known.node {
            Node::Link(link) => link.target(&self.caller(req)),
            _ => Err(Error::invalid(format!("`{}` is not a link", known.path))),
        });
        match target {
            Ok(target) => reply.data(target.as_bytes()),
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// A caller from whom something may be hidden gets a listing of its own, which the kernel does not keep.
    pub fn opendir(&self, req: &Request, ino: u64, reply: ReplyOpen) {
        match self.directory(ino) {
            Ok((path, dir)) => {
                let caller = self.caller(req);
                let (flags, shows) = match self.tree.sees_all(&caller) {
                    true => (attributes::directory_flags(&*dir), None),
                    false => (FopenFlags::empty(), Some(self.shown_to(caller, path))),
                };
                reply.opened(FileHandle(self.directories.add(OpenDir::new(dir, shows))), flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// Decides whether a name below `path` exists for the caller.
    fn shown_to(&self, caller: Caller, path: Arc<str>) -> Box<ShowsName> {
        let tree = self.tree.clone();
        Box::new(move |name, node| tree.shows(&caller, &join(&path, name), node))
    }

    pub fn readdir(&self, ino: u64, fh: u64, offset: u64, mut reply: ReplyDirectory) {
        let listed = self.directories.get(fh).and_then(|listed| Ok((listed, self.inodes.get(ino)?)));
        let (listed, known) = match listed {
            Ok(found) => found,
            Err(error) => return reply.error(errno(&error)),
        };
        for (at, entry) in from(&listed.names(offset), offset) {
            let full = match entry {
                DirEntry::Dot(name) => reply.add(INodeNo(ino), at, fuser::FileType::Directory, name),
                DirEntry::Name(name, node) => {
                    let number = self.number(&join(&known.path, name), node);
                    reply.add(INodeNo(number), at, attributes::kind(node), name)
                }
            };
            if full {
                break;
            }
        }
        reply.ok();
    }

    pub fn readdirplus(&self, ino: u64, fh: u64, offset: u64, mut reply: ReplyDirectoryPlus) {
        let listed = self.directories.get(fh).and_then(|listed| Ok((listed, self.inodes.get(ino)?)));
        let (listed, known) = match listed {
            Ok(found) => found,
            Err(error) => return reply.error(errno(&error)),
        };
        let names_last = attributes::name_ttl(&**listed.dir());
        for (at, entry) in from(&listed.names(offset), offset) {
            match entry {
                DirEntry::Dot(name) => {
                    let attributes = self.attributes(ino, &known.node);
                    if reply.add(INodeNo(ino), at, name, &Duration::ZERO, &attributes, GENERATION) {
                        break;
                    }
                }
                DirEntry::Name(name, node) => {
                    // Recorded before the answer is sent: the kernel may ask for it immediately.
                    let attributes = self.remember(&join(&known.path, name), node);
                    let last = names_last.min(attributes::attribute_ttl(node));
                    if reply.add(attributes.ino, at, name, &last, &attributes, GENERATION) {
                        self.forget(attributes.ino.0, 1);
                        break;
                    }
                }
            }
        }
        reply.ok();
    }

    /// The name that `req` is going to change, if its caller may.
    fn child_to_change<'a>(&self, req: &Request, parent: u64, name: &'a OsStr) -> Result<(ChildName<'a>, Caller)> {
        let (child, caller) = (self.child(parent, name)?, self.caller(req));
        self.tree.may_change(&caller, &child.path)?;
        Ok((child, caller))
    }

    pub fn mkdir(self: &Arc<Self>, req: &Request, parent: u64, name: &OsStr, reply: ReplyEntry) {
        match self.child_to_change(req, parent, name) {
            Ok((ChildName { dir, name, path }, caller)) => {
                let answer = dir.make_dir(&caller, name);
                self.answer(req, CHANGE, answer, MadeDir { reply, server: self.clone(), dir, path });
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub fn unlink(&self, req: &Request, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        let removed =
            self.child_to_change(req, parent, name).map(|(child, caller)| child.dir.remove(&caller, child.name));
        self.answer(req, CHANGE, removed.unwrap_or_else(Answer::refuse), reply);
    }

    pub fn rmdir(&self, req: &Request, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        let removed =
            self.child_to_change(req, parent, name).map(|(child, caller)| child.dir.remove_dir(&caller, child.name));
        self.answer(req, CHANGE, removed.unwrap_or_else(Answer::refuse), reply);
    }

    pub fn create(&self, req: &Request, parent: u64, name: &OsStr, flags: i32, reply: ReplyCreate) {
        let how = attributes::open_mode(flags);
        let made = self.child_to_change(req, parent, name).and_then(|(child, caller)| {
            let (node, handle) = child.dir.create(&caller, child.name, how)?;
            let Node::File(file) = &node else {
                return Err(Error::internal("the directory made something that is not a file"));
            };
            let (flags, kind) = (attributes::file_flags(&**file, how, false), file.kind());
            let handle = self.tree.opened(&caller, kind, &child.path, how, handle);
            Ok((child, node, self.opened(handle, kind, how, caller.pid), flags))
        });
        match made {
            Ok((child, node, fh, flags)) => {
                let attributes = self.remember(&child.path, &node);
                let last = attributes::name_ttl(&*child.dir).min(attributes::attribute_ttl(&node));
                reply.created(&last, &attributes, GENERATION, FileHandle(fh), flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }
}

/// The answer for a directory that was made.
struct MadeDir {
    reply: ReplyEntry,
    server: Arc<Server>,
    dir: Arc<dyn Dir>,
    path: String,
}

impl Responder<Node> for MadeDir {
    fn respond(self, outcome: Result<Node>) {
        match outcome {
            Ok(node) => self.server.reply_entry(&*self.dir, &self.path, &node, self.reply),
            Err(error) => self.reply.error(errno(&error)),
        }
    }
}

/// An entry of a listing.
enum DirEntry<'a> {
    Dot(&'static str),
    Name(&'a str, &'a Node),
}

/// The entries of a listing from `offset`, each with the offset after it.
fn from(names: &[(String, Node)], offset: u64) -> impl Iterator<Item = (u64, DirEntry<'_>)> {
    let dots = [".", ".."].into_iter().map(DirEntry::Dot);
    let names = names.iter().map(|(name, node)| DirEntry::Name(name, node));
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    dots.chain(names).enumerate().skip(skip).map(|(at, line)| (at as u64 + 1, line))
}
