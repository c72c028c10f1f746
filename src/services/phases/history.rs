//! The histories of sessions: sealed lines in a file each, and in the database how many there must be.
//!
//! Lines go to the file first and are counted afterwards. So after a crash a file may have lines that are not counted
//! yet: they are ours if they open in their place, and are counted then. Fewer than counted means that some were cut off.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::seal::{FIRST, LinePosition, SealKeys, Tag};
use acheron_base::{Code, Error, Result, Room, confined_dir, if_exists};
use acheron_store::{OptionalExtension, Store, Tx, params};

/// The largest history file that is read.
const LARGEST: u64 = 64 << 20;
const KEY_FILE: &str = "history.key";

/// One record of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRecord {
    /// `query`, `assistant` or `command`.
    pub role: String,
    pub content: String,
    #[serde(default)]
    pub at_ms: u64,
}

/// Fills a buffer with unpredictable bytes.
pub type FillRandom = dyn Fn(&mut [u8]) + Send + Sync;

/// All sessions of one agent. Blocks: call it where that is allowed.
pub struct Histories {
    place: confined_dir::ConfinedDir,
    store: Store,
    keys: Mutex<SealKeys>,
    random: Arc<FillRandom>,
    /// Names the owner in the database, where all agents share a table.
    owner: String,
    names: Mutex<BTreeSet<String>>,
    writing: Mutex<()>,
}

impl Histories {
    /// Opens the histories under `dir`. The key is `given` (from the environment), or a file beside them, which is made
    /// if it is missing. Sessions that another key sealed stay closed until that key is back.
    pub fn open(
        dir: &Path,
        owner: &str,
        store: Store,
        given: Option<&str>,
        random: Arc<FillRandom>,
        room: Option<Arc<Room>>,
    ) -> Result<Histories> {
        let place = confined_dir::ConfinedDir::create(dir)?;
        let place = match room {
            Some(room) => place.with_room(room),
            None => place,
        };
        let keys = match given {
            Some(given) => SealKeys::read(given)?,
            None => from_file(dir, &place, &store, owner, &*random)?,
        };
        let names = Mutex::new(sealed(&place, ".")?.into_iter().collect());
        let (keys, owner) = (Mutex::new(keys), owner.to_owned());
        Ok(Histories { place, store, keys, random, owner, names, writing: Mutex::default() })
    }

    /// The whole history of a session; empty if there is none.
    pub fn read(&self, session: &str) -> Result<Vec<HistoryRecord>> {
        Ok(self.load(session)?.records)
    }

    /// Adds records to a session, all of them on disk when this returns.
    pub fn append(&self, session: &str, records: &[HistoryRecord]) -> Result<()> {
        let _one_writer = self.writing.lock();
        let loaded = self.load(session)?;
        let keys = self.keys.lock().clone();
        let (mut position, mut previous) = (loaded.records.len() as u64, loaded.last);
        let mut lines = String::new();
        for record in records {
            let plain = serde_json::to_vec(record).map_err(|fault| Error::internal(fault.to_string()))?;
            let at = LinePosition { what: "session", name: session, position, previous };
            let (line, tag) = keys.seal(&at, &plain, &*self.random)?;
            lines += &(line + "\n");
            (position, previous) = (position + 1, tag);
        }
        if loaded.torn {
            let whole = self.place.read_up_to(&file(session), LARGEST)?;
            let kept = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            self.place.write(&file(session), &whole[..kept])?;
        }
        self.place.append(&file(session), lines.as_bytes())?;
        self.names.lock().insert(session.to_owned());
        self.count(session, position, previous)
    }

    /// The sessions that there are, sorted. From memory: a listing must not wait.
    pub fn sessions(&self) -> Vec<String> {
        self.names.lock().iter().cloned().collect()
    }

    pub fn has_session(&self, id: &str) -> bool {
        self.names.lock().contains(id)
    }

    /// Seals the record of a run.
    pub fn keep_run(&self, id: &str, plain: &[u8]) -> Result<()> {
        check_session(id)?;
        let keys = self.keys.lock().clone();
        let at = LinePosition { what: "run", name: id, position: 0, previous: FIRST };
        let (line, _) = keys.seal(&at, plain, &*self.random)?;
        self.place.write(&format!("runs/{id}.sealed"), line.as_bytes())
    }

    pub fn read_run(&self, id: &str) -> Result<Vec<u8>> {
        check_session(id)?;
        let line = self.place.read_up_to(&format!("runs/{id}.sealed"), LARGEST)?;
        let keys = self.keys.lock().clone();
        let at = LinePosition { what: "run", name: id, position: 0, previous: FIRST };
        Ok(keys.open(&at, &String::from_utf8_lossy(&line))?.0)
    }

    pub fn forget_run(&self, id: &str) -> Result<()> {
        check_session(id)?;
        self.place.remove(&format!("runs/{id}.sealed"))
    }

    /// The runs whose records are kept, sorted.
    pub fn runs(&self) -> Result<Vec<String>> {
        sealed(&self.place, "runs")
    }

    /// Makes a new key for what is sealed from now on; older lines keep theirs, which stays in the file.
    pub fn rotate(&self) -> Result<String> {
        let mut keys = self.keys.lock();
        let mut text = self.place.read_text(KEY_FILE).map_err(|fault| match fault.code {
            Code::NotFound => Error::invalid("the history key comes from the environment: change it there"),
            _ => fault,
        })?;
        text += &SealKeys::line(&*self.random);
        let next = SealKeys::read(&text)?;
        write_key(self.place.path(), &text, true)?;
        *keys = next;
        Ok(keys.ids().last().map(|id| (*id).to_owned()).unwrap_or_default())
    }

    /// Forgets a session: its lines and their count. Whether there was one.
    pub fn clear(&self, session: &str) -> Result<bool> {
        check_session(session)?;
        let _one_writer = self.writing.lock();
        // The file first: after a crash between the two the session is damaged and can be cleared again, not there again.
        let there = if_exists(self.place.remove(&file(session)))?.is_some();
        let key = self.key(session);
        self.store.write_blocking(move |tx| {
            tx.prepare_cached("DELETE FROM sealed_histories WHERE session = ?1")?.execute([key])?;
            Ok(())
        })?;
        Ok(self.names.lock().remove(session) || there)
    }

    /// Cuts a session off at its first damage. The file as it was is kept beside it; a session that only lacks its key is
    /// left alone, since the key may come back.
    pub fn repair(&self, session: &str, mark: &str) -> Result<RepairedHistory> {
        check_session(session)?;
        let _one_writer = self.writing.lock();
        let read = self.lines(session)?;
        let Some(damage) = read.damage else {
            return Ok(RepairedHistory { kept: read.history.records.len() as u64, ..RepairedHistory::default() });
        };
        if damage.code == Code::Unavailable {
            return Err(damage);
        }
        let bytes = if_exists(self.place.read_up_to(&file(session), LARGEST))?.unwrap_or_default();
        let copy = format!("damaged/{session}.{mark}.sealed");
        self.place.write(&copy, &bytes)?;
        self.place.write(&file(session), &bytes[..read.sound])?;
        let kept = read.history.records.len() as u64;
        self.count(session, kept, read.history.last)?;
        let lost = read.total.max(read.counted).saturating_sub(kept);
        Ok(RepairedHistory { kept, lost, damage: Some(damage.message), copy: Some(copy) })
    }

    fn load(&self, session: &str) -> Result<LoadedHistory> {
        let read = self.lines(session)?;
        match read.damage {
            Some(damage) => Err(damage),
            None => Ok(read.history),
        }
    }

    /// Reads a session up to its first damage.
    fn lines(&self, session: &str) -> Result<ReadLines> {
        check_session(session)?;
        let (counted, last) = self.counted(session)?;
        let bytes = if_exists(self.place.read_up_to(&file(session), LARGEST))?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let keys = self.keys.lock().clone();
        let history = LoadedHistory { records: vec![], last: FIRST, torn: false };
        let total = text.lines().count() as u64;
        let mut read = ReadLines { history, damage: None, sound: 0, total, counted };
        for line in text.split_inclusive('\n') {
            let position = read.history.records.len() as u64;
            if !line.ends_with('\n') && position >= counted {
                read.history.torn = true; // half a line, never acknowledged
                break;
            }
            let at = LinePosition { what: "session", name: session, position, previous: read.history.last };
            let opened = keys.open(&at, line).and_then(|(plain, tag)| {
                let broken = || Error::failed(format!("line {} of session {session} holds no record", position + 1));
                Ok((serde_json::from_slice(&plain).map_err(|_| broken())?, tag))
            });
            match opened {
                Ok((_, tag)) if position + 1 == counted && tag != last => {
                    let message = format!("the history of session {session} is not the one that was kept");
                    read.damage = Some(Error::failed(message));
                    return Ok(read);
                }
                Ok((record, tag)) => {
                    read.history.records.push(record);
                    read.history.last = tag;
                    read.sound += line.len();
                }
                Err(damage) => {
                    read.damage = Some(damage);
                    return Ok(read);
                }
            }
        }
        let found = read.history.records.len() as u64;
        if found < counted {
            let lost = counted - found;
            read.damage = Some(Error::failed(format!("{lost} lines were cut off the history of session {session}")));
        }
        Ok(read)
    }

    fn counted(&self, session: &str) -> Result<(u64, Tag)> {
        let key = self.key(session);
        self.store.look(|conn| {
            let mut query = conn.prepare_cached("SELECT lines, last FROM sealed_histories WHERE session = ?1")?;
            let row = query.query_row([key], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))).optional()?;
            let Some((lines, last)) = row else { return Ok((0, FIRST)) };
            let last = URL_SAFE_NO_PAD.decode(last).ok().and_then(|last| Tag::try_from(last).ok());
            Ok((lines as u64, last.ok_or_else(|| Error::internal("a sealed history has no last tag"))?))
        })
    }

    fn count(&self, session: &str, lines: u64, last: Tag) -> Result<()> {
        let (key, last) = (self.key(session), URL_SAFE_NO_PAD.encode(last));
        self.store.write_blocking(move |tx| {
            tx.prepare_cached("REPLACE INTO sealed_histories (session, lines, last) VALUES (?1, ?2, ?3)")?
                .execute(params![key, lines as i64, last])?;
            Ok(())
        })
    }

    fn key(&self, session: &str) -> String {
        format!("{}/{session}", self.owner)
    }
}

fn sealed(place: &confined_dir::ConfinedDir, dir: &str) -> Result<Vec<String>> {
    let entries = if_exists(place.list(dir))?.unwrap_or_default();
    let mut names: Vec<String> =
        entries.iter().filter_map(|entry| entry.name.strip_suffix(".sealed").map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

/// What became of a session that was repaired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RepairedHistory {
    /// The records that it has now.
    pub kept: u64,
    /// The records that were cut off.
    pub lost: u64,
    /// What was wrong; none if nothing was.
    pub damage: Option<String>,
    /// The file as it was before, below the folder of the histories.
    pub copy: Option<String>,
}

/// The lines of a session up to the first that cannot be read.
struct ReadLines {
    history: LoadedHistory,
    damage: Option<Error>,
    /// The bytes of the lines that are sound.
    sound: usize,
    /// The lines in the file.
    total: u64,
    /// The lines that there must be.
    counted: u64,
}

struct LoadedHistory {
    records: Vec<HistoryRecord>,
    last: Tag,
    torn: bool,
}

fn file(session: &str) -> String {
    format!("{session}.sealed")
}

/// A session's name becomes a file's name.
pub fn check_session(session: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if session.is_empty() || session.len() > 100 || session.starts_with('.') || !session.chars().all(fits) {
        return Err(Error::invalid(format!(
            "session_id {session:.40?} must be 1 to 100 letters, digits, '.', '_' or '-', and not begin with '.'"
        )));
    }
    Ok(())
}

fn from_file(
    dir: &Path,
    place: &confined_dir::ConfinedDir,
    store: &Store,
    owner: &str,
    random: &FillRandom,
) -> Result<SealKeys> {
    let named = |fault: Error| fault.about(dir.join(KEY_FILE).display());
    match place.read_text(KEY_FILE) {
        Ok(text) => {
            let mode = std::fs::metadata(dir.join(KEY_FILE))?.permissions().mode();
            if mode & 0o077 != 0 {
                let open = format!("others may read it (mode {:o}); make it 0600", mode & 0o777);
                return Err(named(Error::forbidden(open)));
            }
            SealKeys::read(&text).map_err(named)
        }
        Err(fault) if fault.code == Code::NotFound => {
            let prefix = format!("{owner}/");
            let sealed: bool = store.look(|conn| {
                let mut query = conn.prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM sealed_histories WHERE substr(session, 1, length(?1)) = ?1)",
                )?;
                Ok(query.query_row([prefix], |row| row.get(0))?)
            })?;
            if sealed {
                // What the lost key sealed stays closed until its line is put back; everything else goes on with a new one.
                tracing::warn!(owner, "the key of existing histories is gone; a new one seals from now on");
            }
            let text = SealKeys::line(random);
            write_key(dir, &text, false)?;
            SealKeys::read(&text)
        }
        Err(fault) => Err(named(fault)),
    }
}

/// Forgets the histories of an agent, whose files are removed with its other files.
pub fn purge(tx: &Tx<'_>, owner: &str) -> Result<()> {
    let sql = "DELETE FROM sealed_histories WHERE substr(session, 1, length(?1)) = ?1";
    tx.execute(sql, [format!("{owner}/")])?;
    Ok(())
}

/// Writes the key file with mode 0600 from its first moment on, whole or not at all.
fn write_key(dir: &Path, text: &str, replace: bool) -> Result<()> {
    let (fresh, whole) = (dir.join(".history.key.new"), dir.join(KEY_FILE));
    if replace {
        std::fs::remove_file(&fresh).ok(); // left over from a crash
    }
    let to = if replace { &fresh } else { &whole };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if replace {
        std::fs::rename(&fresh, &whole)?;
    }
    std::fs::File::open(dir)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests;
