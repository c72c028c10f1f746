//! One agent's memory in the database: what is remembered, changed, deleted and brought back.
//!
//! Every method is one step of a transaction that the caller holds. The active set has its own file, and so has search.

use std::sync::Arc;

use super::content::{Content, ContentChange};
use super::path::{self, Target};
use super::questions::BackgroundCache;
use super::rows::{self, MemoryHead, Version};
use acheron_base::{Error, Result, quoted};
use acheron_store::{Connection, Tx};

/// The memory of one agent, open for reading.
pub struct MemoryReader<'c> {
    pub(super) conn: &'c Connection,
    pub(super) agent: i64,
    /// Counted anew for each question where there is none.
    pub(super) background: Option<Arc<BackgroundCache>>,
}

/// The memory of one agent, open for a change.
pub struct MemoryTx<'c> {
    pub(super) tx: &'c Tx<'c>,
    pub(super) agent: i64,
    pub(super) now_ms: u64,
}

/// A memory and one of its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMemory {
    pub head: MemoryHead,
    pub version: Version,
}

/// Something to remember.
#[derive(Clone, Debug)]
pub struct NewMemory {
    /// Made up from the kind when absent.
    pub name: Option<String>,
    pub kind: String,
    pub tags: Vec<String>,
    pub sources: Vec<String>,
    pub content: Content,
    pub write_protected: bool,
    pub unevictable: bool,
}

impl NewMemory {
    /// An empty text, as `mkdir` makes it.
    pub fn note(name: &str) -> NewMemory {
        NewMemory {
            name: Some(name.to_owned()),
            kind: "note".into(),
            tags: Vec::new(),
            sources: Vec::new(),
            content: Content::Text(String::new()),
            write_protected: false,
            unevictable: false,
        }
    }
}

impl<'c> MemoryReader<'c> {
    pub fn read(conn: &'c Connection, agent: &str) -> Result<MemoryReader<'c>> {
        Ok(MemoryReader { conn, agent: rows::agent(conn, agent)?, background: None })
    }

    /// The memory that is meant, in the version that is meant.
    pub fn find(&self, target: &Target) -> Result<StoredMemory> {
        let head = rows::head(self.conn, self.agent, &target.name)?;
        let head = head.ok_or_else(|| Error::not_found(format!("there is no memory {}", target.name)))?;
        match target.version {
            None if head.deleted => Err(deleted(&head)),
            _ => {
                let version = self.version(&head, target.version.unwrap_or(head.version))?;
                Ok(StoredMemory { head, version })
            }
        }
    }

    /// The newest versions of a memory, deletions among them, newest first.
    pub fn versions(&self, target: &Target, limit: usize) -> Result<(MemoryHead, Vec<Version>)> {
        let head = rows::head(self.conn, self.agent, &target.name)?;
        let head = head.ok_or_else(|| Error::not_found(format!("there is no memory {}", target.name)))?;
        let versions = rows::versions(self.conn, head.id, limit)?;
        Ok((head, versions))
    }

    fn version(&self, head: &MemoryHead, version: u64) -> Result<Version> {
        let found = rows::version(self.conn, head.id, version)?;
        found.ok_or_else(|| {
            Error::not_found(format!(
                "the memory {} has no version {version}; its latest is {}",
                head.name, head.version
            ))
        })
    }
}

impl<'c> MemoryTx<'c> {
    pub fn take(tx: &'c Tx<'c>, agent: &str, now_ms: u64) -> Result<MemoryTx<'c>> {
        Ok(MemoryTx { tx, agent: rows::agent_or_new(tx, agent)?, now_ms })
    }

    pub fn reader(&self) -> MemoryReader<'_> {
        MemoryReader { conn: self.tx, agent: self.agent, background: None }
    }

    /// Remembers something new, and makes it active. A name whose memory was deleted may be taken again; its versions
    /// go on counting.
    pub fn create(&self, new: NewMemory) -> Result<StoredMemory> {
        check_new(&new.kind, &new.tags, new.name.as_deref())?;
        let name = match &new.name {
            Some(name) => name.clone(),
            None => self.free_name(&new.kind)?,
        };
        let mut head = match rows::head(self.tx, self.agent, &name)? {
            Some(head) if !head.deleted => {
                return Err(Error::already_exists(format!(
                    "there is a memory {name} already; mutate it, or choose another name"
                )));
            }
            Some(head) => rows::leave_fact(self.tx, head)?,
            None => rows::insert_head(self.tx, self.agent, &name)?,
        };
        (head.write_protected, head.unevictable, head.pinned) = (new.write_protected, new.unevictable, false);
        let version = Version { kind: new.kind, tags: new.tags, sources: new.sources, ..self.blank(new.content) };
        let version = rows::insert_version(self.tx, self.agent, &mut head, version)?;
        self.activate(&mut head)?;
        Ok(StoredMemory { head, version })
    }

    /// Makes a new version. A target that names a version must name the latest.
    pub fn mutate(&self, target: &Target, if_version: Option<u64>, change: ContentChange) -> Result<StoredMemory> {
        let before = self.writable(target, if_version)?;
        let content = before.version.content.clone().changed(change)?;
        self.put(before, content)
    }

    /// Makes a new version of what was written to the file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<StoredMemory> {
        let before = self.writable(&Target::latest(name), None)?;
        let content = Content::written(bytes, &before.version.content)?;
        self.put(before, content)
    }

    /// Sums other memories up: a new version of `name` if there is one, else a memory of its own.
    pub fn sum_up(&self, name: Option<String>, text: String, sources: Vec<String>) -> Result<StoredMemory> {
        let content = Content::given(text.into())?;
        let there = name.as_ref().map(|name| rows::head(self.tx, self.agent, name)).transpose()?.flatten();
        match (name, there) {
            (Some(name), Some(head)) if !head.deleted => {
                let mut before = self.writable(&Target::latest(name), None)?;
                before.version.sources = sources;
                self.put(before, content)
            }
            (name, _) => {
                self.create(NewMemory { name, sources, content, kind: "summary".into(), ..NewMemory::note("") })
            }
        }
    }

    /// Deletes: one more version, without content. It leaves the active set without a tombstone.
    pub fn delete(&self, target: &Target, if_version: Option<u64>) -> Result<StoredMemory> {
        let StoredMemory { mut head, version } = self.writable(target, if_version)?;
        if head.unevictable {
            return Err(Error::forbidden(format!("the memory {} is unevictable, so it cannot be deleted", head.name)));
        }
        let version = Version { deleted: true, kind: version.kind, ..self.blank(Content::Text(String::new())) };
        let version = rows::insert_version(self.tx, self.agent, &mut head, version)?;
        (head.used, head.pinned, head.tombstone, head.left_at_ms) = (None, false, None, None);
        rows::update_head(self.tx, &head)?;
        Ok(StoredMemory { head, version })
    }

    /// Brings an old version back, as a new one.
    pub fn restore(&self, target: &Target, version: u64) -> Result<StoredMemory> {
        let mut old = self.reader().find(&Target { name: target.name.clone(), version: Some(version) })?;
        if old.version.deleted {
            return Err(Error::invalid(format!(
                "version {version} of {} is its deletion; restore an earlier one",
                target.name
            )));
        }
        if old.head.write_protected && !old.head.deleted {
            return Err(protected(&old.head));
        }
        let version = Version { written_at_ms: self.now_ms, ..old.version };
        let version = rows::insert_version(self.tx, self.agent, &mut old.head, version)?;
        Ok(StoredMemory { head: old.head, version })
    }

    /// The latest version, if it may be changed and is the one that the caller means.
    pub(super) fn writable(&self, target: &Target, if_version: Option<u64>) -> Result<StoredMemory> {
        let memory = self.reader().find(&Target::latest(target.name.as_str()))?;
        for meant in [target.version, if_version].into_iter().flatten() {
            if meant != memory.head.version {
                return Err(Error::conflict(format!(
                    "version {meant} of {} is not the latest: that is version {}",
                    target.name, memory.head.version
                )));
            }
        }
        match memory.head.write_protected {
            true => Err(protected(&memory.head)),
            false => Ok(memory),
        }
    }

    fn put(&self, before: StoredMemory, content: Content) -> Result<StoredMemory> {
        let StoredMemory { mut head, version } = before;
        let version = Version { content, written_at_ms: self.now_ms, ..version };
        let version = rows::insert_version(self.tx, self.agent, &mut head, version)?;
        if head.used.is_some() {
            self.activate(&mut head)?;
        }
        Ok(StoredMemory { head, version })
    }

    fn blank(&self, content: Content) -> Version {
        Version {
            version: 0,
            deleted: false,
            kind: String::new(),
            tags: Vec::new(),
            sources: Vec::new(),
            content,
            bytes: 0,
            tokens: 0,
            written_at_ms: self.now_ms,
        }
    }

    fn free_name(&self, kind: &str) -> Result<String> {
        let mut n = rows::count(self.tx, self.agent)? + 1;
        loop {
            let name = path::generated(kind, n);
            if rows::head(self.tx, self.agent, &name)?.is_none() {
                return Ok(name);
            }
            n += 1;
        }
    }
}

fn deleted(head: &MemoryHead) -> Error {
    Error::not_found(format!(
        "the memory {} was deleted by its version {}; `restore` brings an earlier one back",
        head.name, head.version
    ))
}

fn protected(head: &MemoryHead) -> Error {
    Error::forbidden(format!("the memory {} is write-protected", head.name))
}

/// Whether a memory may be of this kind, with these tags, under this name.
pub(super) fn check_new(kind: &str, tags: &[String], name: Option<&str>) -> Result<()> {
    check_kind(kind)?;
    check_tags(tags)?;
    name.map_or(Ok(()), path::check)
}

fn check_kind(kind: &str) -> Result<()> {
    match kind.trim().is_empty() || kind.chars().count() > 64 || kind.chars().any(char::is_control) {
        true => Err(Error::invalid("a kind is one word or a few, at most 64 characters, such as `note`")),
        false => Ok(()),
    }
}

fn check_tags(tags: &[String]) -> Result<()> {
    let bad = |tag: &&String| tag.trim().is_empty() || tag.chars().count() > 64 || tag.chars().any(char::is_control);
    match tags.iter().find(bad) {
        _ if tags.len() > 32 => Err(Error::invalid("a memory has at most 32 tags")),
        Some(tag) => Err(Error::invalid(format!("{} is not a tag: write at most 64 characters", quoted(tag)))),
        None => Ok(()),
    }
}
