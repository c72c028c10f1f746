//! A file of one process that stands for another until it is renamed to that one's name, as editors and many programs save:
//! its bytes become a write then. Uses only the traits of the tree; the server keeps the files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::scratch_names::{self, extension};
use super::{Answer, Caller, Dir, File, Handle, Kind, Node, Open, STARTED, Stat};
use acheron_base::{Code, Error, Result};

/// The length limit of one file, in bytes: more than any file of the tree takes.
const LONGEST: usize = 8 << 20;

/// The limit of all of one principal together, in bytes.
const TOGETHER: usize = 16 << 20;

/// The bytes of a scratch file. A clone is the same file.
#[derive(Clone)]
pub struct ScratchFile(Arc<Scratch>);

struct Scratch {
    owner: u32,
    bytes: Mutex<Vec<u8>>,
    mode: AtomicU16,
    /// What all scratch files of the principal hold.
    together: Arc<AtomicUsize>,
    /// Its bytes were taken: it is no scratch file any more.
    finished: AtomicBool,
}

impl ScratchFile {
    /// An empty file of the process of `caller`. `together` counts the bytes of all files of its principal.
    pub fn new(caller: &Caller, together: &Arc<AtomicUsize>) -> ScratchFile {
        ScratchFile(Arc::new(Scratch {
            owner: caller.pid,
            bytes: Mutex::default(),
            mode: AtomicU16::new(0o600),
            together: together.clone(),
            finished: AtomicBool::new(false),
        }))
    }

    /// Whether it belongs to the process of `caller`.
    pub fn belongs_to(&self, caller: &Caller) -> bool {
        caller.pid != 0 && caller.pid == self.0.owner
    }

    /// What was written.
    pub fn bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.0.bytes.lock())
    }

    /// Takes what was written: a handle that is still open writes nothing more.
    pub fn finish(&self) -> Bytes {
        let bytes = self.0.bytes.lock();
        self.0.finished.store(true, Ordering::SeqCst);
        Bytes::copy_from_slice(&bytes)
    }

    /// What was taken was refused: the file is as before.
    pub fn resume(&self) {
        self.0.finished.store(false, Ordering::SeqCst);
    }

    fn is_open(&self) -> Result<()> {
        match self.0.finished.load(Ordering::SeqCst) {
            true => {
                Err(Error::new(Code::Os(libc::EBADF), "the file was renamed to its place; open that one to write on"))
            }
            false => Ok(()),
        }
    }

    /// Sets the permission bits that are shown. They mean nothing here, but programs look whether they were set.
    pub fn set_mode(&self, mode: u16) {
        self.0.mode.store(mode & 0o777, Ordering::Relaxed);
    }

    /// Replaces a part of the bytes.
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let end = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(data.len()));
        let end = end.filter(|end| *end <= LONGEST).ok_or_else(too_large)?;
        let mut bytes = self.0.bytes.lock();
        self.is_open()?;
        let length = bytes.len();
        self.resize(&mut bytes, length.max(end))?;
        bytes[end - data.len()..end].copy_from_slice(data);
        Ok(())
    }

    fn truncate(&self, size: u64) -> Result<()> {
        let size = usize::try_from(size).ok().filter(|size| *size <= LONGEST).ok_or_else(too_large)?;
        let mut bytes = self.0.bytes.lock();
        self.is_open()?;
        self.resize(&mut bytes, size)?;
        Ok(())
    }

    fn resize(&self, bytes: &mut Vec<u8>, size: usize) -> Result<()> {
        let more = size.saturating_sub(bytes.len());
        let before = self.0.together.fetch_add(more, Ordering::Relaxed);
        if more > 0 && before + more > TOGETHER {
            self.0.together.fetch_sub(more, Ordering::Relaxed);
            let sentence = format!("unfinished files have at most {TOGETHER} bytes together; rename or remove some");
            return Err(Error::new(Code::Os(libc::EDQUOT), sentence));
        }
        self.0.together.fetch_sub(bytes.len().saturating_sub(size), Ordering::Relaxed);
        bytes.resize(size, 0);
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.together.fetch_sub(self.bytes.get_mut().len(), Ordering::Relaxed);
    }
}

fn too_large() -> Error {
    Error::too_large(format!("an unfinished file has at most {LONGEST} bytes"))
}

impl File for ScratchFile {
    fn kind(&self) -> Kind {
        Kind::Scratch
    }

    fn stat(&self) -> Stat {
        let bytes = self.0.bytes.lock();
        Stat { size: bytes.len() as u64, modified: STARTED }
    }

    fn mode(&self) -> u16 {
        self.0.mode.load(Ordering::Relaxed)
    }

    fn open(&self, caller: &Caller, how: Open) -> Result<Box<dyn Handle>> {
        if !self.belongs_to(caller) {
            return Err(Error::forbidden("an unfinished file belongs to the process that made it"));
        }
        if how.truncate {
            self.truncate(0)?;
        }
        Ok(Box::new(ScratchHandle { file: self.clone(), append: how.append }))
    }
}

struct ScratchHandle {
    file: ScratchFile,
    append: bool,
}

impl Handle for ScratchHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let bytes = self.file.0.bytes.lock();
        let begin = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        let end = begin.saturating_add(size).min(bytes.len());
        Answer::ok(Bytes::copy_from_slice(&bytes[begin..end]))
    }

    fn write(&self, offset: u64, data: &[u8]) -> Answer<()> {
        let offset = if self.append { self.file.stat().size } else { offset };
        Answer::Now(self.file.write_at(offset, data))
    }

    fn truncate(&self, size: u64) -> Answer<()> {
        Answer::Now(self.file.truncate(size))
    }
}

/// What a scratch file in a directory stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// The file of this name, which may not be there yet.
    Named(String),
    /// Something that only the rename tells.
    Unknown,
}

/// What a new file called `name` would stand for in `dir`; `None` if it is no scratch file.
///
/// The name must be one that a program which saves by rename makes up, with the real name in it or without (see
/// `scratch_names`). Anything else, such as `content.txt` or `create.json.bak`, is a file that would never be
/// renamed: it is refused rather than lost.
pub fn stands_for(dir: &dyn Dir, name: &str) -> Option<StandsFor> {
    let taken = |real: &str| matches!(dir.lookup(real), Some(Node::File(file)) if takes_writes(&*file));
    let named = scratch_names::drafts_of(name).find(|real| taken(real) || dir.takes_new(real));
    // What cannot be written has no drafts.
    let fixed = || scratch_names::drafts_of(name).any(|real| dir.lookup(real).is_some());
    let same_end = |real: &str| extension(name).is_some() && extension(name) == extension(real);
    match named {
        Some(real) if !same_end(real) => Some(StandsFor::Named(real.to_owned())),
        Some(_) => None,
        None if scratch_names::is_made_up(name)
            && !fixed()
            && (dir.takes_new("page.md") || writable(dir).is_some()) =>
        {
            Some(StandsFor::Unknown)
        }
        None => None,
    }
}

/// Whether a writer of the file does something.
pub fn takes_writes(file: &dyn File) -> bool {
    matches!(file.kind(), Kind::Control | Kind::Message | Kind::Item) && file.mode() & 0o200 != 0
}

/// So many entries of a directory are looked at.
const LOOKED_AT: usize = 64;

/// The first file of a directory that takes writes.
pub fn writable(dir: &dyn Dir) -> Option<Arc<dyn File>> {
    dir.first(LOOKED_AT).into_iter().find_map(|(_, node)| match node {
        Node::File(file) if takes_writes(&*file) => Some(file),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
