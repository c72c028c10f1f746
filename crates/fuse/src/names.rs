//! Requests about names: looked up at once, from memory; made and removed as soon as that is done.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use fuser::{
    FileHandle, Generation, INodeNo, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyOpen, Request,
};

use super::attributes;
use super::handles::Listed;
use super::inodes::join;
use super::parking::Responder;
use super::server::{How, Server, errno};
use acheron_base::{Code, Error, Result};
use acheron_vfs::{Answer, Caller, Dir, Node};

/// The longest name, as the kernel sees it.
const LONGEST: usize = 255;

/// Numbers mean nothing twice: an inode number belongs to a path.
const GENERATION: Generation = Generation(0);

/// What was begun is done, whatever signal comes. Answered without waiting for notices: the kernel holds the lock of the
/// directory until then, and a notice about it may be waiting for that lock.
const DOING: How = How { patient: true, begun: true };

/// A name in a directory, existing or not.
struct Place<'a> {
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

    fn place<'a>(&self, parent: u64, name: &'a OsStr) -> Result<Place<'a>> {
        if name.len() > LONGEST {
            return Err(Error::new(Code::Os(libc::ENAMETOOLONG), format!("a name has at most {LONGEST} bytes")));
        }
        let (path, dir) = self.directory(parent)?;
        let name = name.to_str().ok_or_else(|| Error::not_found("names here are UTF-8"))?;
        Ok(Place { dir, name, path: join(&path, name) })
    }

    pub fn lookup(&self, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let found = self.place(parent, name).and_then(|place| match place.dir.lookup(place.name) {
            Some(node) => Ok((place, node)),
            None => Err(Error::not_found(format!("there is no `{}`", place.path))),
        });
        match found {
            Ok((place, node)) => self.tell_entry(&*place.dir, &place.path, &node, reply),
            // Without a lifetime: a name that comes is found at once.
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn tell_entry(&self, dir: &dyn Dir, path: &str, node: &Node, reply: ReplyEntry) {
        let (attributes, last) = (self.remember(path, node), attributes::attributes_last(node));
        reply.entry_with_ttls(&last, &attributes::name_lasts(dir), &attributes, GENERATION);
    }

    pub fn getattr(&self, ino: u64, reply: ReplyAttr) {
        match self.inodes.get(ino) {
            Ok(known) => reply.attr(&attributes::attributes_last(&known.node), &self.attributes(ino, &known.node)),
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

    pub fn opendir(&self, ino: u64, reply: ReplyOpen) {
        match self.directory(ino) {
            Ok((_, dir)) => {
                let flags = attributes::directory_flags(&*dir);
                reply.opened(FileHandle(self.directories.add(Listed::new(dir))), flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub fn readdir(&self, ino: u64, fh: u64, offset: u64, mut reply: ReplyDirectory) {
        let listed = self.directories.get(fh).and_then(|listed| Ok((listed, self.inodes.get(ino)?)));
        let (listed, known) = match listed {
            Ok(found) => found,
            Err(error) => return reply.error(errno(&error)),
        };
        for (at, entry) in from(&listed.names(offset), offset) {
            let full = match entry {
                Line::Dot(name) => reply.add(INodeNo(ino), at, fuser::FileType::Directory, name),
                Line::Name(name, node) => {
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
        let names_last = attributes::name_lasts(&**listed.dir());
        for (at, entry) in from(&listed.names(offset), offset) {
            match entry {
                Line::Dot(name) => {
                    let attributes = self.attributes(ino, &known.node);
                    if reply.add(INodeNo(ino), at, name, &Duration::ZERO, &attributes, GENERATION) {
                        break;
                    }
                }
                Line::Name(name, node) => {
                    // Known before it is told: the kernel may come back for it at once.
                    let attributes = self.remember(&join(&known.path, name), node);
                    let last = names_last.min(attributes::attributes_last(node));
                    if reply.add(attributes.ino, at, name, &last, &attributes, GENERATION) {
                        self.forget(attributes.ino.0, 1);
                        break;
                    }
                }
            }
        }
        reply.ok();
    }

    /// The place of a name that `req` is going to change, if its caller may.
    fn to_change<'a>(&self, req: &Request, parent: u64, name: &'a OsStr) -> Result<(Place<'a>, Caller)> {
        let (place, caller) = (self.place(parent, name)?, self.caller(req));
        self.tree.may_change(&caller, &place.path)?;
        Ok((place, caller))
    }

    pub fn mkdir(self: &Arc<Self>, req: &Request, parent: u64, name: &OsStr, reply: ReplyEntry) {
        match self.to_change(req, parent, name) {
            Ok((Place { dir, name, path }, caller)) => {
                let answer = dir.make_dir(&caller, name);
                self.answer(req, DOING, answer, Made { reply, served: self.clone(), dir, path });
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub fn unlink(&self, req: &Request, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        let gone = self.to_change(req, parent, name).map(|(place, caller)| place.dir.remove(&caller, place.name));
        self.answer(req, DOING, gone.unwrap_or_else(Answer::refuse), reply);
    }

    pub fn rmdir(&self, req: &Request, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        let gone = self.to_change(req, parent, name).map(|(place, caller)| place.dir.remove_dir(&caller, place.name));
        self.answer(req, DOING, gone.unwrap_or_else(Answer::refuse), reply);
    }

    pub fn create(&self, req: &Request, parent: u64, name: &OsStr, flags: i32, reply: ReplyCreate) {
        let how = attributes::how(flags);
        let made = self.to_change(req, parent, name).and_then(|(place, caller)| {
            let (node, handle) = place.dir.create(&caller, place.name, how)?;
            let Node::File(file) = &node else {
                return Err(Error::internal("what was made is not a file"));
            };
            let (flags, kind) = (attributes::file_flags(&**file, how, false), file.kind());
            let handle = self.tree.holdings().counted(&caller, kind, handle);
            Ok((place, node, self.opened(handle, kind, how, caller.pid), flags))
        });
        match made {
            Ok((place, node, fh, flags)) => {
                let attributes = self.remember(&place.path, &node);
                let last = attributes::name_lasts(&*place.dir).min(attributes::attributes_last(&node));
                reply.created(&last, &attributes, GENERATION, FileHandle(fh), flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }
}

/// The entry of a directory that was made.
struct Made {
    reply: ReplyEntry,
    served: Arc<Server>,
    dir: Arc<dyn Dir>,
    path: String,
}

impl Responder<Node> for Made {
    fn tell(self, outcome: Result<Node>) {
        match outcome {
            Ok(node) => self.served.tell_entry(&*self.dir, &self.path, &node, self.reply),
            Err(error) => self.reply.error(errno(&error)),
        }
    }
}

/// A line of a listing.
enum Line<'a> {
    Dot(&'static str),
    Name(&'a str, &'a Node),
}

/// The lines of a listing from `offset` on, each with the offset after it.
fn from(names: &[(String, Node)], offset: u64) -> impl Iterator<Item = (u64, Line<'_>)> {
    let dots = [".", ".."].into_iter().map(Line::Dot);
    let names = names.iter().map(|(name, node)| Line::Name(name, node));
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    dots.chain(names).enumerate().skip(skip).map(|(at, line)| (at as u64 + 1, line))
}
