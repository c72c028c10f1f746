//! One campaign on disk: reads it, and makes all changes of an act or none.
//!
//! The changes are first written to `.kernel/pending.json`; once that file exists, the act has happened. The next process that
//! opens the campaign makes the changes that are left, however the last one ended. Only `store` and the service use it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ChangedBy;
use acheron_base::confined_dir::{ConfinedDir, FileChange, Kind, Lock};
use acheron_base::{Code, Error, Result};
use acheron_dm::act::{self, Act, ActResult, JOURNAL, JournalEntry};
use acheron_dm::answer::{ANSWER, LastAnswer};
use acheron_dm::delta::apply::Change;
use acheron_dm::files::{Files, ReadFiles};
use acheron_dm::turn::ActContext;
use acheron_dm::world::Cartridge;
use acheron_dm::{boot, md};

const PENDING: &str = ".kernel/pending.json";
const LOCK: &str = ".kernel/lock";
/// A file of a campaign larger than this is not read.
const LARGEST: u64 = 32 << 20;
/// How often a reader tries again while an act is being made, 5 ms apart.
const RETRIES: usize = 400;

/// A campaign's folder.
pub struct Save {
    /// The folder of all campaigns, and the campaign's in it.
    root: Arc<ConfinedDir>,
    place: ConfinedDir,
    pub id: String,
}

/// A change with the length of the file before it, so that it can be made twice.
#[derive(Serialize, Deserialize)]
struct PendingChange {
    #[serde(flatten)]
    change: Change,
    at: u64,
}

impl Save {
    /// Opens the campaign and finishes an act that was interrupted.
    pub fn open(root: &Arc<ConfinedDir>, id: &str) -> Result<Save> {
        let place = root.within(&format!("campaigns/{id}"))?;
        let save = Save { root: root.clone(), place, id: id.to_owned() };
        if save.place.exists(PENDING)? {
            let _lock = save.lock_when_free()?;
            save.recover()?;
        }
        Ok(save)
    }

    /// The right to write, once the act that is being made is made. It is no question of a narrator, so it takes a moment; a
    /// reader that came in that moment is no second player.
    fn lock_when_free(&self) -> Result<Lock> {
        for _ in 0..RETRIES {
            match self.lock() {
                Err(fault) if fault.code == Code::Busy => std::thread::sleep(Duration::from_millis(5)),
                answer => return answer,
            }
        }
        self.lock()
    }

    /// The right to write. While it is held, every other attempt fails with `busy`.
    fn lock(&self) -> Result<Lock> {
        self.place.lock(LOCK).map_err(|fault| match fault.code {
            Code::Busy => Error::busy(format!("campaign {} is being played by someone else", self.id)),
            _ => fault,
        })
    }

    pub fn field(&self, key: &str) -> Result<String> {
        let page = self.read("CAMPAIGN.md")?.unwrap_or_default();
        md::field(&page, key)
            .map(str::to_owned)
            .ok_or_else(|| Error::invalid(format!("CAMPAIGN.md of {} has no {key}", self.id)))
    }

    /// The seed of the dice: the recorded one, else one computed from the campaign's name.
    fn seed(&self) -> u64 {
        let own = self.field("seed").ok().and_then(|seed| seed.parse().ok());
        own.unwrap_or_else(|| {
            self.id.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
        })
    }

    pub fn context<'a>(&'a self, world: &'a Cartridge, at: &'a str) -> ActContext<'a> {
        ActContext { world, files: self, campaign: &self.id, seed: self.seed(), at }
    }

    /// Plays one act to its end. An act that is refused changes no byte.
    pub fn act(&self, by: &ChangedBy, world: &Cartridge, act: &Act, at: &str) -> Result<ActResult> {
        self.act_and(by, world, act, at, Vec::new())
    }

    /// Plays one act, and changes other files of the root together with it.
    pub fn act_and(
        &self,
        by: &ChangedBy,
        world: &Cartridge,
        act: &Act,
        at: &str,
        others: Vec<FileChange>,
    ) -> Result<ActResult> {
        let _lock = self.lock()?;
        self.recover()?;
        let seq = self.read(JOURNAL)?.map_or(0, |text| text.lines().count()) as u64;
        let (done, changes) = act::whole(self.context(world, at), act, seq)?;
        self.make(by, changes, others, &done)?;
        Ok(done)
    }

    fn make(&self, by: &ChangedBy, changes: Vec<Change>, others: Vec<FileChange>, done: &ActResult) -> Result<()> {
        if changes.is_empty() && others.is_empty() {
            return Ok(());
        }
        let pending = self.plan(changes)?;
        self.write_plan(by, &pending, others, done)?;
        self.finish(&pending)
    }

    fn plan(&self, changes: Vec<Change>) -> Result<Vec<PendingChange>> {
        let mut pending: Vec<PendingChange> = Vec::new();
        for change in changes {
            let before = pending.iter().rev().find(|own| own.change.path() == change.path());
            let at = match before {
                Some(PendingChange { change: Change::Write { text, .. }, .. }) => text.len() as u64,
                Some(PendingChange { change: Change::Append { text, .. }, at }) => at + text.len() as u64,
                _ => self.size(change.path())?,
            };
            pending.push(PendingChange { change, at });
        }
        Ok(pending)
    }

    /// Writes the plan to the disk. From then on the act has happened, and so has the call that it belongs to.
    fn write_plan(
        &self,
        by: &ChangedBy,
        pending: &[PendingChange],
        others: Vec<FileChange>,
        done: &ActResult,
    ) -> Result<()> {
        let text = serde_json::to_vec(pending).map_err(|fault| Error::internal(fault.to_string()))?;
        let mut changes = vec![FileChange::write(format!("campaigns/{}/{PENDING}", self.id), text)];
        changes.extend(others);
        by.change(&self.root, changes, done)
    }

    fn size(&self, path: &str) -> Result<u64> {
        if self.place.exists(path)? { Ok(self.place.stat(path)?.size) } else { Ok(0) }
    }

    fn finish(&self, pending: &[PendingChange]) -> Result<()> {
        pending.iter().try_for_each(|one| self.make_one(one))?;
        self.place.remove(PENDING)
    }

    /// Makes one change, which may have been made before, wholly or in part.
    fn make_one(&self, PendingChange { change, at }: &PendingChange) -> Result<()> {
        match change {
            Change::Write { path, text } => self.place.write(path, text.as_bytes()),
            Change::Append { path, text } if self.size(path)? == *at => self.place.append(path, text.as_bytes()),
            Change::Append { path, text } => self.put_at(path, *at, text.as_bytes()),
            Change::Cut { path, length } => self.put_at(path, *length as u64, b""),
            Change::Remove { path } if self.place.exists(path)? => self.place.remove(path),
            Change::Remove { .. } => Ok(()),
        }
    }

    /// Cuts the file to its first `at` bytes and appends these.
    fn put_at(&self, path: &str, at: u64, bytes: &[u8]) -> Result<()> {
        let mut whole = if self.place.exists(path)? { self.place.read_up_to(path, LARGEST)? } else { Vec::new() };
        if (whole.len() as u64) < at {
            return Err(Error::internal(format!("{path} of {} is shorter than the journal knows it", self.id)));
        }
        whole.truncate(at as usize);
        whole.extend_from_slice(bytes);
        self.place.write(path, &whole)
    }

    /// Makes the changes that are left of an act whose plan is on the disk.
    fn recover(&self) -> Result<()> {
        if !self.place.exists(PENDING)? {
            return Ok(());
        }
        let text = self.place.read_up_to(PENDING, 4 * LARGEST)?;
        let pending: Vec<PendingChange> = serde_json::from_slice(&text)
            .map_err(|fault| Error::internal(format!("{PENDING} of {}: {fault}", self.id)))?;
        self.finish(&pending)
    }

    /// Replaces files of a campaign that has not begun, and changes others of the root; all of them, or none.
    pub fn replace(&self, by: &ChangedBy, files: Files, others: Vec<FileChange>, done: &ActResult) -> Result<()> {
        let _lock = self.lock()?;
        let changes = files.into_iter().map(|(path, text)| Change::Write { path, text });
        self.make(by, changes.collect(), others, done)
    }

    /// Keeps the answer to an input that left no act behind, or to one that did: `output` shows the last of all.
    pub fn answered(&self, output: &str, error: Option<&Error>) -> Result<()> {
        let error = error.map_or(serde_json::Value::Null, |error| serde_json::json!(error));
        let answer = LastAnswer::new(self, output.to_owned(), error)?;
        let text = serde_json::to_vec(&answer).map_err(|fault| Error::internal(fault.to_string()))?;
        self.place.write(ANSWER, &text)
    }

    pub fn journal(&self) -> Result<Vec<JournalEntry>> {
        let text = self.read(JOURNAL)?.unwrap_or_default();
        let entry = |line: &str| {
            serde_json::from_str(line).map_err(|fault| Error::invalid(format!("the journal of {}: {fault}", self.id)))
        };
        text.lines().filter(|line| !line.is_empty()).map(entry).collect()
    }

    pub fn initialised(&self) -> bool {
        boot::uninitialised(self).is_ok_and(|why| why.is_none())
    }
}

impl ReadFiles for Save {
    fn read(&self, path: &str) -> Result<Option<String>> {
        if !self.place.exists(path)? {
            return Ok(None);
        }
        let bytes = self.place.read_up_to(path, LARGEST)?;
        String::from_utf8(bytes).map(Some).map_err(|_| Error::invalid(format!("{path} of {} is not UTF-8", self.id)))
    }

    fn paths(&self) -> Result<Vec<String>> {
        let files = self.place.walk("")?.into_iter().filter(|entry| entry.kind == Kind::File);
        let mut paths: Vec<String> = files.map(|entry| entry.name).collect();
        paths.sort();
        Ok(paths)
    }
}

#[cfg(test)]
mod tests;
