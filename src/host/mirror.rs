//! A directory of this machine as part of the tree, for the file tools of the host itself. Where the kernel does not put
//! the directory itself there, [`fuse`](acheron_fuse) answers for it on the same [`HostDir`].

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use acheron_base::host_dir::{FileInfo, HostDir, beneath, look, reopen};
use acheron_base::{Code, Error, Result};
use acheron_vfs::{
    Answer, Caller, Dir, File, Handle, Kind, Link, Listing, Mirrored, NameQuery, Node, Open, Smallest, Stat,
};

/// A directory below an open root.
#[derive(Clone)]
pub struct Mirror {
    ground: Arc<HostDir>,
    /// Relative to the root; empty for the root itself.
    path: PathBuf,
}

impl Mirror {
    pub fn open(source: &Path, read_only: bool) -> Result<Mirror> {
        let ground = HostDir::open(source, read_only).map_err(|err| told(source, err))?;
        Ok(Mirror { ground: Arc::new(ground), path: PathBuf::new() })
    }

    /// The file at this path, referenced but not opened.
    fn held(&self) -> Result<OwnedFd> {
        self.ground.open_path(&self.path).map_err(|err| told(&self.path, err))
    }

    fn writable(&self, name: &str) -> Result<()> {
        let refused = |_| Error::read_only(format!("`{name}` lies in a read-only bind"));
        self.ground.writable().map_err(refused)
    }

    fn unlink(&self, name: &str, how: AtFlags) -> Result<()> {
        self.writable(name)?;
        rustix::fs::unlinkat(self.held()?, name, how).map_err(|err| told(Path::new(name), err))
    }

    fn node(&self, name: &str, kind: FileType) -> Option<Node> {
        let path = self.path.join(name);
        let below = Mirror { path, ..self.clone() };
        match kind {
            FileType::Directory => Some(Node::dir(below)),
            FileType::RegularFile => Some(Node::file(MirrorFile(below))),
            FileType::Symlink => Some(Node::link(MirrorLink(below))),
            // Pipes, sockets and devices of the host are not part of the tree.
            _ => None,
        }
    }

    /// Goes through the names that can be shown, as they come.
    fn each(&self, mut seen: impl FnMut(&str, FileType)) {
        let Some(held) = self.held().ok().and_then(|held| reopen(&held, OFlags::RDONLY | OFlags::DIRECTORY).ok())
        else {
            return;
        };
        let mut buffer = Vec::with_capacity(64 << 10);
        let mut entries = RawDir::new(&held, buffer.spare_capacity_mut());
        while let Some(Ok(entry)) = entries.next() {
            // A name that is not text is not shown in the tree; nor is anything but files, directories and links.
            let Ok(name) = entry.file_name().to_str() else { continue };
            let kind = entry.file_type();
            let shown =
                matches!(kind, FileType::Directory | FileType::RegularFile | FileType::Symlink | FileType::Unknown);
            if shown && !matches!(name, "." | "..") {
                seen(name, kind);
            }
        }
    }

    fn info(&self) -> Result<FileInfo> {
        FileInfo::of(self.held()?).map_err(|err| told(&self.path, err))
    }
}

fn told(path: &Path, err: Errno) -> Error {
    if err == Errno::XDEV {
        return Error::forbidden(format!("`{}` leads out of what is bound", path.display()));
    }
    Error::from(std::io::Error::from(err)).about(path.display())
}

impl Dir for Mirror {
    fn lookup(&self, name: &str) -> Option<Node> {
        let info = look(&self.held().ok()?, OsStr::new(name)).ok()?;
        match info.is_covered() {
            true => Some(Node::dir(Listing::default())),
            false => self.node(name, info.kind),
        }
    }

    fn list(&self) -> Vec<(String, Node)> {
        let mut found = Vec::new();
        self.each(|name, kind| {
            let node = match kind {
                FileType::Unknown => self.lookup(name),
                kind => self.node(name, kind),
            };
            found.extend(node.map(|node| (name.to_owned(), node)));
        });
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    fn first(&self, most: usize) -> Vec<(String, Node)> {
        let mut names = Smallest::<String>::new(most);
        self.each(|name, kind| {
            if names.wants(name) && (kind != FileType::Unknown || self.lookup(name).is_some()) {
                names.take(name.to_owned());
            }
        });
        names.sorted().into_iter().filter_map(|name| Some((name.clone(), self.lookup(&name)?))).collect()
    }

    fn is_quick(&self, _query: NameQuery) -> bool {
        false
    }

    fn modified(&self) -> SystemTime {
        self.info().map_or(SystemTime::UNIX_EPOCH, |info| info.modified)
    }

    fn mirrored(&self) -> Option<Mirrored> {
        let root = self.path.as_os_str().is_empty();
        root.then(|| Mirrored { host_dir: self.ground.clone(), overlay: Arc::default() })
    }

    fn make_dir(&self, _caller: &Caller, name: &str) -> Answer<Node> {
        let made = || {
            self.writable(name)?;
            let mode = Mode::from_raw_mode(0o755);
            rustix::fs::mkdirat(self.held()?, name, mode).map_err(|err| told(Path::new(name), err))?;
            self.lookup(name).ok_or_else(|| Error::not_found(format!("`{name}` is gone already")))
        };
        Answer::Now(made())
    }

    fn remove_dir(&self, _caller: &Caller, name: &str) -> Answer<()> {
        Answer::Now(self.unlink(name, AtFlags::REMOVEDIR))
    }

    fn create(&self, caller: &Caller, name: &str, how: Open) -> Result<(Node, Box<dyn Handle>)> {
        self.writable(name)?;
        let made = MirrorFile(Mirror { path: self.path.join(name), ..self.clone() });
        let flags = flags(how) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let handle = match beneath(self.held()?, name, flags, Mode::from_raw_mode(0o644)) {
            Ok(file) => Box::new(MirrorHandle::new(file, how)) as Box<dyn Handle>,
            // The name was created concurrently; or it is something that is not shown, which must not be opened for a new file.
            Err(Errno::EXIST) => made.open(caller, how)?,
            Err(err) => return Err(told(Path::new(name), err)),
        };
        Ok((Node::file(made), handle))
    }

    fn remove(&self, _caller: &Caller, name: &str) -> Answer<()> {
        Answer::Now(self.unlink(name, AtFlags::empty()))
    }
}

/// How the file itself is opened.
fn flags(how: Open) -> OFlags {
    let cut = if how.truncate { OFlags::TRUNC } else { OFlags::empty() };
    cut | if how.write { OFlags::RDWR } else { OFlags::RDONLY }
}

/// A regular file.
struct MirrorFile(Mirror);

impl File for MirrorFile {
    fn kind(&self) -> Kind {
        Kind::Live
    }

    fn stat(&self) -> Stat {
        match self.0.info() {
            Ok(info) => Stat { size: info.size, modified: info.modified },
            Err(_) => Stat { size: 0, modified: SystemTime::UNIX_EPOCH },
        }
    }

    fn has_quick_stat(&self) -> bool {
        false
    }

    fn mode(&self) -> u16 {
        self.0.info().map_or(0o444, |info| info.mode & 0o777)
    }

    fn open(&self, _caller: &Caller, how: Open) -> Result<Box<dyn Handle>> {
        if how.write {
            self.0.writable(&self.0.path.display().to_string())?;
        }
        let held = self.0.held()?;
        // A pipe or a device is not even opened: that alone may do something.
        if FileInfo::of(&held).map_err(|err| told(&self.0.path, err))?.kind != FileType::RegularFile {
            let path = self.0.path.display();
            return Err(Error::forbidden(format!("`{path}` is a pipe, a device or a socket, not a file")));
        }
        let file = reopen(&held, flags(how)).map_err(|err| told(&self.0.path, err))?;
        Ok(Box::new(MirrorHandle::new(file, how)))
    }
}

struct MirrorHandle {
    file: std::fs::File,
    append: bool,
    write: bool,
}

impl MirrorHandle {
    fn new(file: OwnedFd, how: Open) -> MirrorHandle {
        MirrorHandle { file: file.into(), append: how.append, write: how.write }
    }
}

impl Handle for MirrorHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let mut buffer = vec![0; size];
        let mut filled = 0;
        while filled < size {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(err) if err.kind() == std::io::ErrorKind::Interrupted => (),
                Err(err) => return Answer::refuse(err.into()),
            }
        }
        buffer.truncate(filled);
        Answer::ok(buffer.into())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Answer<()> {
        if !self.write {
            return Answer::refuse(Error::new(Code::Os(libc::EBADF), "the file was not opened for writing"));
        }
        let offset = if self.append { self.file.metadata().map_or(offset, |meta| meta.len()) } else { offset };
        match self.file.write_all_at(data, offset) {
            Ok(()) => Answer::ok(()),
            Err(err) => Answer::refuse(err.into()),
        }
    }

    fn sync(&self) -> Answer<()> {
        self.file.sync_all().map_or_else(|err| Answer::refuse(err.into()), Answer::ok)
    }

    fn truncate(&self, size: u64) -> Answer<()> {
        self.file.set_len(size).map_or_else(|err| Answer::refuse(err.into()), Answer::ok)
    }
}

/// A symbolic link with its real target; the root stops a process that follows it.
struct MirrorLink(Mirror);

impl Link for MirrorLink {
    fn target(&self, _caller: &Caller) -> Result<String> {
        let target = rustix::fs::readlinkat(self.0.held()?, c"", Vec::new()).map_err(|err| told(&self.0.path, err))?;
        target.into_string().map_err(|_| Error::invalid("the link's target is not text"))
    }
}

/// A directory with places of its own over those of another.
pub struct OverlayDir {
    pub base: Mirror,
    pub places: Arc<Listing>,
}

impl Dir for OverlayDir {
    fn lookup(&self, name: &str) -> Option<Node> {
        self.places.lookup(name).or_else(|| self.base.lookup(name))
    }

    fn list(&self) -> Vec<(String, Node)> {
        let mut all = self.base.list();
        all.retain(|(name, _)| self.places.lookup(name).is_none());
        all.extend(self.places.list());
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn is_quick(&self, _query: NameQuery) -> bool {
        false
    }

    fn modified(&self) -> SystemTime {
        self.base.modified()
    }

    fn mirrored(&self) -> Option<Mirrored> {
        Some(Mirrored { host_dir: self.base.ground.clone(), overlay: self.places.clone() })
    }

    fn make_dir(&self, caller: &Caller, name: &str) -> Answer<Node> {
        self.base.make_dir(caller, name)
    }

    fn remove_dir(&self, caller: &Caller, name: &str) -> Answer<()> {
        self.base.remove_dir(caller, name)
    }

    fn create(&self, caller: &Caller, name: &str, how: Open) -> Result<(Node, Box<dyn Handle>)> {
        self.base.create(caller, name, how)
    }

    fn remove(&self, caller: &Caller, name: &str) -> Answer<()> {
        self.base.remove(caller, name)
    }
}

#[cfg(test)]
mod tests;
