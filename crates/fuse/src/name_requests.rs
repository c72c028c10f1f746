//! Requests about names: lookups and listings are answered from memory, or on the pool if the directory is not quick;
//! changes are answered when they are done. Part of the server; uses the tree.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use fuser::{
    FileHandle, FopenFlags, Generation, INodeNo, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyOpen, Request,
};

use super::attributes;
use super::handles::{OpenDir, ShowsName};
use super::inodes::{KnownNode, join};
use super::parking::Responder;
use super::scratch_requests::refused_creation;
use super::server::{AnswerMode, Requester, Server, errno};
use acheron_base::{Code, Error, Result};
use acheron_vfs::scratch::writable;
use acheron_vfs::{Answer, Caller, Dir, NameQuery, Node, Open};

/// The length limit of a name, as the kernel has it.
const LONGEST: usize = 255;

/// Always the same: an inode number belongs to a path.
pub const GENERATION: Generation = Generation(0);

/// A change that has begun completes whatever signal arrives. It is answered without waiting for notices: the kernel
/// holds the lock of the directory until then, and a notice may be waiting for that lock.
const CHANGE: AnswerMode = AnswerMode { patient: true, begun: true };

/// A name in a directory, existing or not.
pub struct ChildName {
    pub dir: Arc<dyn Dir>,
    pub path: String,
}

impl ChildName {
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }

    /// The path of the directory.
    pub fn parent(&self) -> &str {
        match self.path.rsplit_once('/') {
            Some(("", _)) | None => "/",
            Some((parent, _)) => parent,
        }
    }

    /// The path of another name in the same directory.
    pub fn sibling(&self, name: &str) -> String {
        join(self.parent(), name)
    }

    fn is_quick(&self) -> bool {
        self.dir.is_quick(NameQuery::One)
    }
}

impl Server {
    fn directory(&self, ino: u64) -> Result<(Arc<str>, Arc<dyn Dir>)> {
        let known = self.inodes.get(ino)?;
        match known.node {
            Node::Dir(dir) => Ok((known.path, dir)),
            _ => Err(Error::new(Code::Os(libc::ENOTDIR), format!("`{}` is not a directory", known.path))),
        }
    }

    fn child(&self, parent: u64, name: &OsStr) -> Result<ChildName> {
        if name.len() > LONGEST {
            return Err(Error::new(Code::Os(libc::ENAMETOOLONG), format!("a name has at most {LONGEST} bytes")));
        }
        let (path, dir) = self.directory(parent)?;
        let name = name.to_str().ok_or_else(|| Error::not_found("names must be UTF-8"))?;
        Ok(ChildName { dir, path: join(&path, name) })
    }

    pub fn lookup(self: &Arc<Self>, req: &Request, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let by = Requester::from(req);
        match self.child(parent, name) {
            Ok(child) => self.now_or_in_pool(child.is_quick(), move |server| server.lookup_child(by, child, reply)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn lookup_child(self: &Arc<Self>, by: Requester, child: ChildName, reply: ReplyEntry) {
        match child.dir.lookup(child.name()) {
            Some(node) => self.now_or_in_pool(node.has_quick_stat(), move |server| {
                match server.saved_length(by, &child.path, &node) {
                    Some(length) => {
                        let attributes = attributes::with_length(server.remember(&child.path, &node), length);
                        reply.entry_with_ttls(&Duration::ZERO, &Duration::ZERO, &attributes, GENERATION);
                    }
                    None => server.reply_entry(&*child.dir, &child.path, &node, reply),
                }
            }),
            None => self.lookup_draft(by, &child, reply),
        }
    }

    fn reply_entry(&self, dir: &dyn Dir, path: &str, node: &Node, reply: ReplyEntry) {
        let (attributes, last) = (self.remember(path, node), attributes::attribute_ttl(node));
        reply.entry_with_ttls(&last, &attributes::name_ttl(dir), &attributes, GENERATION);
    }

    /// `fh`: for `fstat(2)`.
    pub fn getattr(self: &Arc<Self>, by: Requester, ino: u64, fh: Option<u64>, reply: ReplyAttr) {
        let counted = fh.and_then(|fh| self.files.get(fh).ok()?.length.get().copied());
        match (self.inodes.get(ino), counted) {
            // Not kept: another handle may have counted another length.
            (Ok(known), Some(length)) => {
                let attributes = self.attributes(ino, &known.node);
                reply.attr(&Duration::ZERO, &attributes::with_length(attributes, length));
            }
            (Ok(known), None) => self.now_or_in_pool(known.node.has_quick_stat(), move |server| {
                if let Some(length) = server.saved_length(by, &known.path, &known.node) {
                    let attributes = server.attributes(ino, &known.node);
                    return reply.attr(&Duration::ZERO, &attributes::with_length(attributes, length));
                }
                reply.attr(&attributes::attribute_ttl(&known.node), &server.attributes(ino, &known.node));
            }),
            (Err(error), _) => reply.error(errno(&error)),
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

    pub fn readdir(self: &Arc<Self>, ino: u64, fh: u64, offset: u64, reply: ReplyDirectory) {
        match self.opened_dir(ino, fh) {
            Ok((listed, known)) => self.now_or_in_pool(listed.is_quick(offset), move |server| {
                server.fill((ino, &known), &listed, offset, reply);
            }),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn opened_dir(&self, ino: u64, fh: u64) -> Result<(Arc<OpenDir>, KnownNode)> {
        Ok((self.directories.get(fh)?, self.inodes.get(ino)?))
    }

    fn fill(&self, (ino, known): (u64, &KnownNode), listed: &OpenDir, offset: u64, mut reply: ReplyDirectory) {
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

    pub fn readdirplus(self: &Arc<Self>, ino: u64, fh: u64, offset: u64, reply: ReplyDirectoryPlus) {
        match self.opened_dir(ino, fh) {
            Ok((listed, known)) => self.now_or_in_pool(listed.is_quick(offset), move |server| {
                server.fill_plus((ino, &known), &listed, offset, reply);
            }),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn fill_plus(&self, (ino, known): (u64, &KnownNode), listed: &OpenDir, offset: u64, mut reply: ReplyDirectoryPlus) {
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

    pub fn releasedir(self: &Arc<Self>, fh: u64, reply: ReplyEmpty) {
        let listed = self.directories.remove(fh);
        reply.ok();
        // Dropping a hundred thousand nodes takes time, too.
        if let Some(listed) = listed.filter(|listed| listed.is_long()) {
            self.in_pool(move |_| drop(listed));
        }
    }

    /// The name that a requester is going to change, if it may.
    fn child_to_change(&self, by: Requester, parent: u64, name: &OsStr) -> Result<(ChildName, Caller)> {
        let (child, caller) = (self.child(parent, name)?, self.caller(by));
        self.tree.may_change(&caller, &child.path)?;
        Ok((child, caller))
    }

    pub fn mkdir(self: &Arc<Self>, req: &Request, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let by = Requester::from(req);
        match self.child_to_change(by, parent, name) {
            Ok((child, caller)) => self.now_or_in_pool(child.is_quick(), move |server| {
                let answer = child.dir.make_dir(&caller, child.name());
                let ChildName { dir, path } = child;
                server.answer(by, CHANGE, answer, MadeDir { reply, server: server.clone(), dir, path });
            }),
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub fn unlink(self: &Arc<Self>, req: &Request, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        if self.child(parent, name).is_ok_and(|child| self.remove_draft(req.into(), &child.path)) {
            return reply.ok();
        }
        self.remove_name(req.into(), parent, name, |child, caller| child.dir.remove(caller, child.name()), reply);
    }

    pub fn rmdir(self: &Arc<Self>, req: &Request, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        self.remove_name(req.into(), parent, name, |child, caller| child.dir.remove_dir(caller, child.name()), reply);
    }

    fn remove_name(
        self: &Arc<Self>,
        by: Requester,
        parent: u64,
        name: &OsStr,
        remove: fn(&ChildName, &Caller) -> Answer<()>,
        reply: ReplyEmpty,
    ) {
        match self.child_to_change(by, parent, name) {
            Ok((child, caller)) => self.now_or_in_pool(child.is_quick(), move |server| {
                server.answer(by, CHANGE, remove(&child, &caller), reply);
            }),
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// Renames a name that is no mirrored file. `flags` are those of `renameat2(2)`; nothing is exchanged.
    pub fn rename(
        self: &Arc<Self>,
        req: &Request,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: u32,
        reply: ReplyEmpty,
    ) {
        let by = Requester::from(req);
        let both = self.child(parent, name).and_then(|child| {
            if flags & !libc::RENAME_NOREPLACE != 0 {
                return Err(Error::invalid("names are renamed here, not exchanged"));
            }
            Ok((child, self.child(new_parent, new_name)?))
        });
        match both {
            Ok((child, new)) => self.now_or_in_pool(child.is_quick(), move |server| {
                let answer = server.rename_draft(by, &child, &new).unwrap_or_else(|| {
                    let caller = server.caller(by);
                    let may = server.tree.may_change(&caller, &child.path);
                    match may.and_then(|()| server.tree.may_change(&caller, &new.path)) {
                        Ok(()) => child.dir.rename(&caller, &child.path, &new.path),
                        Err(error) => Answer::refuse(error),
                    }
                });
                server.answer(by, CHANGE, answer, reply);
            }),
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub fn create(self: &Arc<Self>, req: &Request, parent: u64, name: &OsStr, flags: i32, reply: ReplyCreate) {
        let (how, caller) = (attributes::open_mode(flags), self.caller(req));
        match self.child(parent, name) {
            Ok(child) => {
                self.now_or_in_pool(child.is_quick(), move |server| match server.stands_for(&caller, &child) {
                    Some(of) => server.create_draft(&caller, &child, of, how, reply),
                    None => server.create_child(child, &caller, how, reply),
                });
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn create_child(&self, child: ChildName, caller: &Caller, how: Open, reply: ReplyCreate) {
        let may = self.tree.may_change(caller, &child.path);
        let allowed = may.is_ok();
        let made = may.and_then(|()| child.dir.create(caller, child.name(), how)).and_then(|(node, handle)| {
            let Node::File(file) = &node else {
                return Err(Error::internal("the directory made something that is not a file"));
            };
            let (flags, kind) = (attributes::file_flags(&**file, how, false), file.kind());
            let handle = self.tree.opened(caller, kind, &child.path, how, handle);
            let fh = self.opened(handle, kind, how, caller.pid);
            Ok((node, fh, flags))
        });
        match made {
            Ok((node, fh, flags)) => {
                let attributes = self.remember(&child.path, &node);
                let last = attributes::name_ttl(&*child.dir).min(attributes::attribute_ttl(&node));
                reply.created(&last, &attributes, GENERATION, FileHandle(fh), flags);
            }
            Err(error) => {
                if allowed {
                    self.tell_refused_name(caller, &child, &error);
                }
                reply.error(refused_creation(&error));
            }
        }
    }

    /// The number alone reads as a rule that denies it: a mistyped name is told where refusals are.
    fn tell_refused_name(&self, caller: &Caller, child: &ChildName, error: &Error) {
        let Some(real) = writable(&*child.dir) else { return self.tree.tell_refusal(caller, &child.path, error) };
        let names: Vec<String> = child.dir.first(16).into_iter().map(|(name, _)| name).collect();
        let sentence = format!("no file `{}` can be made here; there is {}", child.name(), names.join(", "));
        self.tell_loss(caller, child, Some(real))(&Error::new(error.code, sentence));
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
            Err(error) => self.reply.error(refused_creation(&error)),
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
