//! The active set: the memories in the agent's context, within a budget of tokens.

use super::evict::{self, ActiveMemory};
use super::path::Target;
use super::rows::{self, MemoryHead};
use super::snippet::headline;
use super::tx::{MemoryReader, MemoryTx, StoredMemory};
use acheron_base::{Error, Result};

/// A memory that has left the active set, and the line that stands in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictedMemory {
    pub name: String,
    pub version: u64,
    pub tombstone: String,
    pub at_ms: u64,
}

impl MemoryReader<'_> {
    /// The active memories, least recently used first.
    pub fn active(&self) -> Result<Vec<StoredMemory>> {
        let with_version = |head: MemoryHead| {
            let version = rows::version(self.conn, head.id, head.version)?;
            let version =
                version.ok_or_else(|| Error::internal(format!("the memory {} has lost its version", head.name)))?;
            Ok(StoredMemory { head, version })
        };
        rows::active(self.conn, self.agent)?.into_iter().map(with_version).collect()
    }

    /// The evicted memories, the last one first.
    pub fn left(&self, limit: usize) -> Result<Vec<EvictedMemory>> {
        Ok(rows::left(self.conn, self.agent, limit)?.into_iter().filter_map(tombstone).collect())
    }
}

impl MemoryTx<'_> {
    /// The memory that is meant. The latest version becomes active; an old one is only looked at.
    pub fn load(&self, target: &Target) -> Result<StoredMemory> {
        let mut memory = self.reader().find(target)?;
        if memory.version.deleted {
            return Err(Error::not_found(format!(
                "version {} of {} is its deletion and has no content",
                memory.version.version, target.name
            )));
        }
        if memory.version.version == memory.head.version {
            self.activate(&mut memory.head)?;
        }
        Ok(memory)
    }

    /// Takes a memory out of the active set. False when it was not in it.
    pub fn evict(&self, target: &Target, summary: Option<&str>) -> Result<(StoredMemory, bool)> {
        let mut memory = self.reader().find(&Target::latest(target.name.as_str()))?;
        if memory.head.unevictable {
            return Err(Error::forbidden(format!("the memory {} is unevictable", target.name)));
        }
        if memory.head.pinned {
            return Err(Error::forbidden(format!("the memory {} is pinned; unpin it first", target.name)));
        }
        let was = memory.head.used.is_some();
        if was {
            self.lay_down(&mut memory, summary)?;
        }
        Ok((memory, was))
    }

    /// A pinned memory is active and does not leave by itself.
    pub fn pin(&self, target: &Target) -> Result<StoredMemory> {
        let mut memory = self.reader().find(&Target::latest(target.name.as_str()))?;
        memory.head.pinned = true;
        self.activate(&mut memory.head)?;
        Ok(memory)
    }

    pub fn unpin(&self, target: &Target) -> Result<StoredMemory> {
        let mut memory = self.reader().find(&Target::latest(target.name.as_str()))?;
        memory.head.pinned = false;
        rows::update_head(self.tx, &memory.head)?;
        Ok(memory)
    }

    /// Makes what is active fit into the budget, by the rule of [`evict::leaving`].
    pub fn keep_within(&self, budget: u64) -> Result<Vec<EvictedMemory>> {
        let held: Vec<ActiveMemory> = rows::held(self.tx, self.agent)?;
        let leave = |id: i64| {
            let head = rows::head_by_id(self.tx, id)?;
            let mut memory = self.reader().find(&Target::latest(head.name.as_str()))?;
            self.lay_down(&mut memory, None)?;
            tombstone(memory.head).ok_or_else(|| Error::internal("a memory left without a tombstone"))
        };
        evict::leaving(&held, budget).into_iter().map(leave).collect()
    }

    /// Makes a memory the most recently used.
    pub(super) fn activate(&self, head: &mut MemoryHead) -> Result<()> {
        head.used = Some(rows::next_use(self.tx, self.agent)?);
        (head.tombstone, head.left_at_ms) = (None, None);
        rows::update_head(self.tx, head)
    }

    fn lay_down(&self, memory: &mut StoredMemory, summary: Option<&str>) -> Result<()> {
        let line = match summary.map(headline).filter(|line| !line.is_empty()) {
            Some(line) => line,
            None => headline(&memory.version.content.text()),
        };
        let line = match line.is_empty() {
            true => format!("{}, {} tokens", memory.version.kind, memory.version.tokens),
            false => format!("{}, {} tokens: {line}", memory.version.kind, memory.version.tokens),
        };
        memory.head.used = None;
        (memory.head.tombstone, memory.head.left_at_ms) = (Some(line), Some(self.now_ms));
        rows::update_head(self.tx, &memory.head)
    }
}

fn tombstone(head: MemoryHead) -> Option<EvictedMemory> {
    let MemoryHead { name, version, tombstone, left_at_ms, .. } = head;
    Some(EvictedMemory { name, version, tombstone: tombstone?, at_ms: left_at_ms? })
}
