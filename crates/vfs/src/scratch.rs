//! A file of one process that stands for another until it is renamed to that one's name, as editors and many programs save:
//! its bytes become a write then. Uses only the traits of the tree; the server keeps the files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Answer, Caller, Dir, File, Handle, Kind, Node, Open, STARTED, Stat};
use acheron_base::{Error, Result};

/// The length limit of one file, in bytes: more than any file of the tree takes.
const LONGEST: usize = 8 << 20;

/// The limit of all of them together, in bytes.
const TOGETHER: usize = 64 << 20;

/// The bytes of a scratch file. A clone is the same file.
#[derive(Clone)]
pub struct ScratchFile(Arc<Scratch>);

struct Scratch {
    owner: u32,
    bytes: Mutex<Vec<u8>>,
    mode: AtomicU16,
    /// What all scratch files hold.
    together: Arc<AtomicUsize>,
}

impl ScratchFile {
    /// An empty file of the process of `caller`. `together` counts the bytes of all files that share it.
    pub fn new(caller: &Caller, together: &Arc<AtomicUsize>) -> ScratchFile {
        ScratchFile(Arc::new(Scratch {
            owner: caller.pid,
            bytes: Mutex::default(),
            mode: AtomicU16::new(0o600),
            together: together.clone(),
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

    /// Sets the permission bits that are shown. They mean nothing here, but programs look whether they were set.
    pub fn set_mode(&self, mode: u16) {
        self.0.mode.store(mode & 0o777, Ordering::Relaxed);
    }

    /// Replaces a part of the bytes.
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let end = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(data.len()));
        let end = end.filter(|end| *end <= LONGEST).ok_or_else(too_large)?;
        let mut bytes = self.0.bytes.lock();
        let length = bytes.len();
        self.resize(&mut bytes, length.max(end))?;
        bytes[end - data.len()..end].copy_from_slice(data);
        Ok(())
    }

    fn truncate(&self, size: u64) -> Result<()> {
        let size = usize::try_from(size).ok().filter(|size| *size <= LONGEST).ok_or_else(too_large)?;
        let mut bytes = self.0.bytes.lock();
        self.resize(&mut bytes, size)?;
        Ok(())
    }

    fn resize(&self, bytes: &mut Vec<u8>, size: usize) -> Result<()> {
        let more = size.saturating_sub(bytes.len());
        let before = self.0.together.fetch_add(more, Ordering::Relaxed);
        if more > 0 && before + more > TOGETHER {
            self.0.together.fetch_sub(more, Ordering::Relaxed);
            return Err(Error::too_large(format!("unfinished files have at most {TOGETHER} bytes together")));
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
pub enum StandsFor {
    /// The file of this name, which may not be there yet.
    Named(String),
    /// Something that only the rename tells.
    Unknown,
}

/// What a new file called `name` would stand for in `dir`; `None` if it is no scratch file.
///
/// The name of such a file has the real name in it, with something before or after (`.create.json.swp`,
/// `create.json.tmp.1.ab`, `content~`), or is one of those that `sed -i`, vim and others make up. It never ends like the real
/// one: a mistyped `craete.json` is a mistake and not the draft of another file.
pub fn stands_for(dir: &dyn Dir, name: &str) -> Option<StandsFor> {
    let taken = |real: &str| matches!(dir.lookup(real), Some(Node::File(file)) if takes_writes(&*file));
    let named = parts(name).find(|real| taken(real) || dir.takes_new(real));
    let same_end = |real: &str| extension(name).is_some() && extension(name) == extension(real);
    match named {
        Some(real) if !same_end(real) => Some(StandsFor::Named(real.to_owned())),
        Some(_) => None,
        None if is_made_up(name) && (dir.takes_new("page.md") || holds_writable(dir)) => Some(StandsFor::Unknown),
        None => None,
    }
}

/// Whether a writer of the file does something.
pub fn takes_writes(file: &dyn File) -> bool {
    matches!(file.kind(), Kind::Control | Kind::Message | Kind::Item) && file.mode() & 0o200 != 0
}

/// So many entries of a directory are looked at.
const LOOKED_AT: usize = 64;

fn holds_writable(dir: &dyn Dir) -> bool {
    dir.first(LOOKED_AT).iter().any(|(_, node)| matches!(node, Node::File(file) if takes_writes(&**file)))
}

fn extension(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, end)| end)
}

/// Names that programs make up without the real one.
fn is_made_up(name: &str) -> bool {
    let sed =
        name.strip_prefix("sed").is_some_and(|rest| rest.len() == 6 && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
    let temporary = name.starts_with(".tmp") || name.starts_with("tmp");
    sed || name == "4913" || temporary && extension(name).is_none_or(|end| !matches!(end, "json" | "md" | "txt"))
}

/// The parts of `name` that may be the real name: from a separator to a separator, the longest first.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    const MOST: usize = 12;
    let is_separator = |c: char| matches!(c, '.' | '~' | '#' | '-' | '_' | '%' | '@' | ',');
    let cuts: Vec<usize> = name.match_indices(is_separator).map(|(at, _)| at).take(MOST).collect();
    let begins = std::iter::once(0).chain(cuts.clone().into_iter().map(|at| at + 1)).chain(cuts.clone());
    let ends: Vec<usize> = std::iter::once(name.len()).chain(cuts.into_iter().rev()).collect();
    let mut found: Vec<&str> = begins
        .flat_map(|begin| ends.iter().filter_map(move |end| name.get(begin..*end)).collect::<Vec<_>>())
        .filter(|part| !part.is_empty() && *part != name)
        .collect();
    found.sort_by_key(|part| std::cmp::Reverse(part.len()));
    found.into_iter()
}

#[cfg(test)]
mod tests;
