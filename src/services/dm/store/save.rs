//! One campaign on disk: reading it, and making an act's changes whole or not at all.
//!
//! The changes are first written down in `.kernel/pending.json`; when that file stands, the act has happened. Whoever opens the
//! campaign next makes the rest of it, however the last one ended.

use serde::{Deserialize, Serialize};

use super::super::act::{self, Act, Done, Entry, JOURNAL};
use super::super::delta::apply::Change;
use super::super::shelf::Shelf;
use super::super::turn::Seat;
use super::super::world::Cartridge;
use super::super::{boot, md};
use acheron_base::confined_dir::{ConfinedDir, Kind, Lock};
use acheron_base::{Code, Error, Result};

const PENDING: &str = ".kernel/pending.json";
const LOCK: &str = ".kernel/lock";
/// A file of a campaign larger than this is not read.
const LARGEST: u64 = 32 << 20;

/// A campaign's folder.
pub struct Save {
    place: ConfinedDir,
    pub id: String,
}

/// A change with the length of the file before it, so that it can be made twice.
#[derive(Serialize, Deserialize)]
struct Pending {
    #[serde(flatten)]
    change: Change,
    at: u64,
}

impl Save {
    /// Opens the campaign and finishes what was left unfinished.
    pub fn open(place: ConfinedDir, id: &str) -> Result<Save> {
        let save = Save { place, id: id.to_owned() };
        if save.place.exists(PENDING)? {
            let _lock = save.lock()?;
            save.recover()?;
        }
        Ok(save)
    }

    /// The one who may write. Whoever else asks meanwhile is told `busy`.
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

    /// The seed of the dice: as written, else made from the campaign's name.
    fn seed(&self) -> u64 {
        let own = self.field("seed").ok().and_then(|seed| seed.parse().ok());
        own.unwrap_or_else(|| {
            self.id.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
        })
    }

    pub fn seat<'a>(&'a self, world: &'a Cartridge, at: &'a str) -> Seat<'a> {
        Seat { world, shelf: self, campaign: &self.id, seed: self.seed(), at }
    }

    /// Plays one act to its end. An act that is refused leaves every byte as it was.
    pub fn act(&self, world: &Cartridge, act: &Act, at: &str) -> Result<Done> {
        let _lock = self.lock()?;
        self.recover()?;
        let seq = self.read(JOURNAL)?.map_or(0, |text| text.lines().count()) as u64;
        let (done, changes) = act::whole(self.seat(world, at), act, seq)?;
        self.make(changes)?;
        Ok(done)
    }

    fn make(&self, changes: Vec<Change>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let pending = self.plan(changes)?;
        self.write_plan(&pending)?;
        self.finish(&pending)
    }

    fn plan(&self, changes: Vec<Change>) -> Result<Vec<Pending>> {
        let mut pending: Vec<Pending> = Vec::new();
        for change in changes {
            let before = pending.iter().rev().find(|own| own.change.path() == change.path());
            let at = match before {
                Some(Pending { change: Change::Write { text, .. }, .. }) => text.len() as u64,
                Some(Pending { change: Change::Append { text, .. }, at }) => at + text.len() as u64,
                _ => self.size(change.path())?,
            };
            pending.push(Pending { change, at });
        }
        Ok(pending)
    }

    /// The moment in which the act happens.
    fn write_plan(&self, pending: &[Pending]) -> Result<()> {
        let text = serde_json::to_vec(pending).map_err(|fault| Error::internal(fault.to_string()))?;
        self.place.write(PENDING, &text)
    }

    fn size(&self, path: &str) -> Result<u64> {
        if self.place.exists(path)? { Ok(self.place.stat(path)?.size) } else { Ok(0) }
    }

    fn finish(&self, pending: &[Pending]) -> Result<()> {
        pending.iter().try_for_each(|one| self.make_one(one))?;
        self.place.remove(PENDING)
    }

    /// One change, which may have been made before, wholly or in part.
    fn make_one(&self, Pending { change, at }: &Pending) -> Result<()> {
        match change {
            Change::Write { path, text } => self.place.write(path, text.as_bytes()),
            Change::Append { path, text } if self.size(path)? == *at => self.place.append(path, text.as_bytes()),
            Change::Append { path, text } => self.put_at(path, *at, text.as_bytes()),
            Change::Cut { path, length } => self.put_at(path, *length as u64, b""),
            Change::Remove { path } if self.place.exists(path)? => self.place.remove(path),
            Change::Remove { .. } => Ok(()),
        }
    }

    /// The file's first `at` bytes and then these.
    fn put_at(&self, path: &str, at: u64, bytes: &[u8]) -> Result<()> {
        let mut whole = if self.place.exists(path)? { self.place.read_up_to(path, LARGEST)? } else { Vec::new() };
        if (whole.len() as u64) < at {
            return Err(Error::internal(format!("{path} of {} is shorter than the journal knows it", self.id)));
        }
        whole.truncate(at as usize);
        whole.extend_from_slice(bytes);
        self.place.write(path, &whole)
    }

    /// Makes the rest of an act whose plan stands.
    fn recover(&self) -> Result<()> {
        if !self.place.exists(PENDING)? {
            return Ok(());
        }
        let text = self.place.read_up_to(PENDING, 4 * LARGEST)?;
        let pending: Vec<Pending> = serde_json::from_slice(&text)
            .map_err(|fault| Error::internal(format!("{PENDING} of {}: {fault}", self.id)))?;
        self.finish(&pending)
    }

    /// Other texts for files of a campaign that has not begun; all of them, or none.
    pub fn replace(&self, files: super::super::shelf::Files) -> Result<()> {
        let _lock = self.lock()?;
        self.make(files.into_iter().map(|(path, text)| Change::Write { path, text }).collect())
    }

    pub fn journal(&self) -> Result<Vec<Entry>> {
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

#[cfg(test)]
#[path = "../tests/save.rs"]
mod tests;

impl Shelf for Save {
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
