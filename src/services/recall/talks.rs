//! Conversations on disk: one directory per conversation, one file per message. Written whole, by one writer at a time;
//! what other programs put there is read as well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use crate::service::{ChangeFiles, WithoutCall};
use acheron_base::confined_dir::{ConfinedDir, FileChange, Kind, Lock};
use acheron_base::{Clock, Code, Error, Result, quoted};
use acheron_recall::message::{Name, Role, first, next};

/// The longest message.
pub const MESSAGE: usize = 1 << 20;
const LOCK: &str = ".lock";
/// How long the lock of a conversation is waited for, and how often it is tried. Calls wait for each other before they come
/// here, so it is held by the last write of a call that was cancelled, or by another program.
const LOCK_TIME: Duration = Duration::from_secs(5);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

pub struct Talks {
    place: ConfinedDir,
    clock: Clock,
    /// Held while a name is chosen and taken, so that two conversations never get the same one.
    naming: Mutex<()>,
}

/// A conversation locked for writing.
pub struct LockedTalk {
    pub talks: Arc<Talks>,
    pub id: String,
    _lock: Lock,
}

impl Talks {
    pub fn new(place: ConfinedDir, clock: Clock) -> Talks {
        Talks { place, clock, naming: Mutex::default() }
    }

    pub fn ids(&self) -> Result<Vec<String>> {
        let names = self.place.names("")?;
        Ok(names.into_iter().filter(|(name, kind)| *kind == Kind::Dir && check(name).is_ok()).map(|it| it.0).collect())
    }

    pub fn has(&self, id: &str) -> bool {
        check(id).is_ok() && self.place.stat(id).is_ok_and(|entry| entry.kind == Kind::Dir)
    }

    /// Begins a conversation without messages, under the time if it is given no name.
    pub fn begin(&self, id: Option<&str>) -> Result<String> {
        let _naming = self.naming.lock();
        let id = self.unused(id)?;
        self.place.make_dir(&id)?;
        Ok(id)
    }

    /// Begins a conversation with a system message; the call that does this ends with `result` of its name.
    pub fn begin_with(
        &self,
        by: &dyn ChangeFiles,
        id: Option<&str>,
        system: &str,
        result: impl FnOnce(&str) -> Value,
    ) -> Result<String> {
        let _naming = self.naming.lock();
        let id = self.unused(id)?;
        let message = path(&id, &Name::new(first(self.clock.now_ns(), &[]), Role::System).file)?;
        by.change_files(&self.place, vec![FileChange::write(message, system)], result(&id))?;
        Ok(id)
    }

    /// The name of a new conversation: the wanted one, or the time.
    fn unused(&self, id: Option<&str>) -> Result<String> {
        Ok(match id {
            Some(id) => {
                check(id)?;
                if self.has(id) {
                    return Err(Error::already_exists(format!("there is a conversation {id} already")));
                }
                id.to_owned()
            }
            None => {
                let now = self.clock.now_ns();
                let free = (now..).find(|ns| !self.has(&ns.to_string()));
                free.unwrap_or(now).to_string()
            }
        })
    }

    /// The messages in their order.
    pub fn messages(&self, id: &str) -> Result<Vec<Name>> {
        check(id)?;
        let names = self.place.names(id).map_err(|error| match error.code {
            Code::NotFound => Error::not_found(format!("there is no conversation {id}")),
            _ => error,
        })?;
        let mut found: Vec<Name> =
            names.iter().filter(|(_, kind)| *kind == Kind::File).filter_map(|(name, _)| Name::parse(name)).collect();
        found.sort();
        Ok(found)
    }

    pub fn read(&self, id: &str, file: &str) -> Result<Vec<u8>> {
        check(id)?;
        self.place.read_up_to(&path(id, file)?, MESSAGE as u64)
    }

    pub fn stat(&self, id: &str, file: &str) -> Result<(u64, u64)> {
        self.place.stat(&path(id, file)?).map(|entry| (entry.size, entry.modified_ms))
    }

    /// A message as a person puts it there, name and all.
    pub fn put(&self, id: &str, file: &str, bytes: &[u8]) -> Result<()> {
        if !self.has(id) {
            return Err(Error::not_found(format!("there is no conversation {id}")));
        }
        if std::str::from_utf8(bytes).is_err() {
            return Err(Error::invalid("a message is UTF-8 text"));
        }
        self.place.write(&path(id, file)?, bytes)
    }

    pub fn remove(&self, id: &str, file: &str) -> Result<()> {
        check(id)?;
        self.place.remove(&path(id, file)?)
    }

    /// All that was said, in order.
    pub fn said(&self, id: &str) -> Result<Vec<(Role, String)>> {
        let read = |name: Name| {
            let text = String::from_utf8(self.read(id, &name.file)?);
            Ok((name.role, text.map_err(|_| Error::invalid(format!("{id}/{} is not UTF-8 text", name.file)))?))
        };
        self.messages(id)?.into_iter().map(read).collect()
    }

    /// Locks a conversation for writing; fails if it stays locked.
    pub fn hold(self: &Arc<Self>, id: &str) -> Result<LockedTalk> {
        if !self.has(id) {
            check(id)?;
            return Err(Error::not_found(format!("there is no conversation {id}")));
        }
        let (path, end) = (format!("{id}/{LOCK}"), Instant::now() + LOCK_TIME);
        let lock = loop {
            match self.place.lock(&path) {
                Err(error) if error.code == Code::Busy && Instant::now() < end => std::thread::sleep(LOCK_PAUSE),
                Err(error) if error.code == Code::Busy => {
                    return Err(Error::busy(format!(
                        "the conversation {id} is being changed: try again when that is over"
                    )));
                }
                locked => break locked?,
            }
        };
        Ok(LockedTalk { talks: self.clone(), id: id.to_owned(), _lock: lock })
    }
}

impl LockedTalk {
    /// Removes the conversation with all its messages. It is renamed first: half of one is never shown.
    pub fn delete(self) -> Result<()> {
        let (place, gone) = (&self.talks.place, format!(".removed-{}", self.id));
        place.rename(&self.id, &gone)?;
        place.remove_dir_all(&gone)
    }

    /// Adds a message after all that are there; gives its name.
    pub fn add(&self, role: Role, text: &str) -> Result<String> {
        self.add_by(&WithoutCall, role, text, |_| Value::Null)
    }

    /// Adds a message; the call that does this ends with `result` of its name.
    pub fn add_by(
        &self,
        by: &dyn ChangeFiles,
        role: Role,
        text: &str,
        result: impl FnOnce(&str) -> Value,
    ) -> Result<String> {
        if text.len() > MESSAGE {
            return Err(Error::too_large(format!("a message has at most {MESSAGE} bytes")));
        }
        let name = Name::new(next(self.talks.clock.now_ns(), &self.talks.messages(&self.id)?), role);
        self.put(by, name, text, result)
    }

    /// Puts the system message before all others, unless there is one.
    pub fn open_with(&self, text: impl FnOnce() -> Result<String>) -> Result<()> {
        let there = self.talks.messages(&self.id)?;
        if there.iter().any(|name| name.role == Role::System) {
            return Ok(());
        }
        let name = Name::new(first(self.talks.clock.now_ns(), &there), Role::System);
        self.put(&WithoutCall, name, &text()?, |_| Value::Null).map(drop)
    }

    fn put(&self, by: &dyn ChangeFiles, name: Name, text: &str, result: impl FnOnce(&str) -> Value) -> Result<String> {
        let path = path(&self.id, &name.file)?;
        if self.talks.place.exists(&path)? {
            return Err(Error::already_exists(format!("there is a message {path} already")));
        }
        by.change_files(&self.talks.place, vec![FileChange::write(path, text)], result(&name.file))?;
        Ok(name.file)
    }
}

fn path(id: &str, file: &str) -> Result<String> {
    match Name::parse(file) {
        Some(_) => Ok(format!("{id}/{file}")),
        None => Err(Error::invalid(format!("{} is not a message: write <nanoseconds>-<role>.md", quoted(file)))),
    }
}

/// Whether a conversation may be called this.
pub fn check(id: &str) -> Result<()> {
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    match plain && !id.starts_with('.') && (1..=100).contains(&id.len()) {
        true => Ok(()),
        false => Err(Error::invalid("a conversation is called by letters, digits, `.`, `_` and `-`, at most 100")),
    }
}

#[cfg(test)]
mod tests;
