//! A newer fact wins: memories that say the same fact at different times form a group, and the newest is the current one.
//!
//! The others are kept and readable; they are marked `was`. A deletion of the current one makes the one before it current again.

use super::path::Target;
use super::rows::{self, MemoryHead};
use super::tx::{MemoryReader, MemoryTx};
use acheron_base::{Error, Result};
use acheron_store::{OptionalExtension, params};

/// The most memories that one may supersede at a time, and that `meta.json` lists.
pub const MOST: usize = 64;

impl MemoryReader<'_> {
    /// The current memory of the group of `id`, if that is another one.
    pub fn current(&self, id: i64) -> Result<Option<i64>> {
        let mut select = self.conn.prepare_cached(
            "SELECT n.id FROM memories m JOIN memories n ON n.fact = m.fact WHERE m.id = ?1 AND m.fact IS NOT NULL \
             AND n.fact_turn > m.fact_turn AND n.deleted = 0 ORDER BY n.fact_turn DESC LIMIT 1",
        )?;
        Ok(select.query_row([id], |row| row.get(0)).optional()?)
    }

    /// The names of the memories that this one supersedes, the newest first.
    pub fn older(&self, head: &MemoryHead) -> Result<Vec<String>> {
        let Some((fact, turn)) = head.fact else { return Ok(Vec::new()) };
        let mut select = self.conn.prepare_cached(
            "SELECT name FROM memories WHERE fact = ?1 AND fact_turn < ?2 AND deleted = 0 ORDER BY fact_turn DESC LIMIT ?3",
        )?;
        Ok(select.query_map(params![fact, turn, MOST], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}

impl MemoryTx<'_> {
    /// Makes `head` the current memory of a fact, and marks `older` as what it was. Gives the older ones.
    pub fn supersede(&self, head: &mut MemoryHead, older: &[Target]) -> Result<Vec<MemoryHead>> {
        if older.is_empty() {
            return Ok(Vec::new());
        }
        if older.len() > MOST {
            return Err(Error::invalid(format!("supersedes names at most {MOST} memories")));
        }
        let found = older.iter().map(|target| self.supersedable(head, target)).collect::<Result<Vec<_>>>()?;
        if let Some(current) = &head.superseded_by
            && !found.iter().any(|old| old.name == *current)
        {
            return Err(Error::conflict(format!(
                "the memory {} is itself superseded by {current}: name that in `supersedes` too, or mutate it instead",
                head.name
            )));
        }
        let fact = found.iter().find_map(|old| old.fact).or(head.fact).map_or(found[0].id, |(fact, _)| fact);
        for member in found.iter().chain([&*head]) {
            self.join(fact, member)?;
        }
        let turn: u64 = self
            .tx
            .prepare_cached("SELECT coalesce(max(fact_turn), 0) + 1 FROM memories WHERE fact = ?1")?
            .query_row([fact], |row| row.get(0))?;
        let mut update = self.tx.prepare_cached("UPDATE memories SET fact = ?2, fact_turn = ?3 WHERE id = ?1")?;
        update.execute(params![head.id, fact, turn])?;
        (head.fact, head.superseded_by) = (Some((fact, turn)), None);
        found.into_iter().map(|old| rows::head_by_id(self.tx, old.id)).collect()
    }

    /// A memory that another may supersede.
    fn supersedable(&self, head: &MemoryHead, target: &Target) -> Result<MemoryHead> {
        let old = self.writable(target, None)?.head;
        match old.id == head.id {
            true => Err(Error::invalid(format!("{} cannot supersede itself", head.name))),
            false => Ok(old),
        }
    }

    /// Moves a memory, and the group that it is in, into a group.
    fn join(&self, fact: i64, member: &MemoryHead) -> Result<()> {
        match member.fact {
            Some((same, _)) if same == fact => {}
            Some((other, _)) => {
                let mut update = self.tx.prepare_cached("UPDATE memories SET fact = ?2 WHERE fact = ?1")?;
                update.execute(params![other, fact])?;
            }
            None => {
                let mut update =
                    self.tx.prepare_cached("UPDATE memories SET fact = ?2, fact_turn = 0 WHERE id = ?1")?;
                update.execute(params![member.id, fact])?;
            }
        }
        Ok(())
    }
}
