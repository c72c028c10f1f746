//! The files of overrides on disk: `{ns}/{key}/{tag}.json` below one directory. A write is atomic and durable, and two
//! processes write one after the other. The service uses it; `acheron-prompts` says what a file means.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

use crate::service::{self, ChangeFiles};
use acheron_base::confined_dir::{ConfinedDir, FileChange, Kind, Lock};
use acheron_base::{Code, Error, Result, if_exists};
use acheron_prompts::descriptor::text_hash;
use acheron_prompts::fault::Fault;
use acheron_prompts::names;
use acheron_prompts::overrides::{OverrideChange, OverrideFile, Resolved, resolve, seed};
use acheron_prompts::tree::PromptTemplate;

pub const LATEST: &str = "latest";

pub struct OverrideStore {
    place: ConfinedDir,
    /// Threads of this process wait here, so that only another process can find the lock taken.
    turn: Mutex<()>,
}

/// Held while a file is read, changed and written.
struct WriteLock<'a> {
    _here: MutexGuard<'a, ()>,
    _everywhere: Lock,
}

/// How often, and how long apart, another process is waited for.
const TRIES: usize = 400;
const PAUSE: Duration = Duration::from_millis(5);

/// A summary of a file, without its texts.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Inspected {
    pub prompt: String,
    pub tag: String,
    pub modified_ms: u64,
    /// SHA-256 of the file.
    pub hash: String,
    pub sections: usize,
    pub tools: usize,
    pub task_examples: usize,
}

/// The result of deleting a file.
#[derive(Debug, PartialEq, Serialize)]
pub struct OverrideDeleted {
    /// Whether there was one.
    pub deleted: bool,
}

impl OverrideStore {
    pub fn new(place: ConfinedDir) -> OverrideStore {
        OverrideStore { place, turn: Mutex::new(()) }
    }

    /// The overrides in force; none without a file.
    pub fn resolve(&self, template: &PromptTemplate, tag: &str) -> Result<Resolved> {
        match self.read(&template.ns, &template.key, tag)? {
            Some(file) => Ok(resolve(template, &file)?),
            None => Ok(Resolved::default()),
        }
    }

    /// Replaces the whole file. Every entry has to fit the prompt as it is now.
    pub fn upsert(&self, by: &dyn ChangeFiles, template: &PromptTemplate, file: &OverrideFile) -> Result<()> {
        let path = check_file(&template.ns, &template.key, file)?;
        if let Some(stale) = resolve(template, file)?.stale.first() {
            let fault = Fault::overrides(format!("{}: {}", stale.target, stale.reason)).coded(Code::Conflict);
            return Err(fault.into());
        }
        let _lock = self.lock()?;
        by.change_files(&self.place, vec![FileChange::write(path, file.bytes())], service::json(file)?)
    }

    /// Puts one override into the file, and gives what the file holds then.
    pub fn store(
        &self,
        by: &dyn ChangeFiles,
        template: &PromptTemplate,
        tag: &str,
        change: &OverrideChange,
    ) -> Result<OverrideFile> {
        let path = path(&template.ns, &template.key, tag)?;
        let _lock = self.lock()?;
        let old = self.read(&template.ns, &template.key, tag)?;
        let mut file = old.unwrap_or_else(|| OverrideFile::new(&template.ns, &template.key, tag));
        change.put(template, &mut file)?;
        by.change_files(&self.place, vec![FileChange::write(path, file.bytes())], service::json(&file)?)?;
        Ok(file)
    }

    /// Writes down the prompt's own words, so that there is something to edit. A file that is there stays.
    pub fn seed(&self, template: &PromptTemplate, tag: &str) -> Result<OverrideFile> {
        let path = path(&template.ns, &template.key, tag)?;
        let _lock = self.lock()?;
        if let Some(file) = self.read(&template.ns, &template.key, tag)? {
            let resolved = resolve(template, &file)?;
            if resolved.overrides.is_empty() && !resolved.stale.is_empty() {
                let why = "the override file exists but could not be resolved: all of it is stale";
                return Err(Fault::overrides(why).coded(Code::Conflict).into());
            }
            return Ok(file);
        }
        let file = seed(template, tag);
        self.place.write(&path, &file.bytes())?;
        Ok(file)
    }

    /// Whether there was a file. Removing what is not there is no fault.
    pub fn delete(&self, by: &dyn ChangeFiles, ns: &str, key: &str, tag: &str) -> Result<OverrideDeleted> {
        let path = path(ns, key, tag)?;
        let _lock = self.lock()?;
        let gone = OverrideDeleted { deleted: self.place.exists(&path)? };
        if gone.deleted {
            by.change_files(&self.place, vec![FileChange::remove(path)], service::json(&gone)?)?;
        }
        Ok(gone)
    }

    pub fn read(&self, ns: &str, key: &str, tag: &str) -> Result<Option<OverrideFile>> {
        let path = path(ns, key, tag)?;
        let Some(bytes) = self.place.read_if_exists(&path)? else { return Ok(None) };
        let file = OverrideFile::read(&bytes, &path)?;
        file.belongs(ns, key, tag)?;
        Ok(Some(file))
    }

    pub fn tags(&self, ns: &str, key: &str) -> Result<Vec<String>> {
        names::exact("namespace", ns)?;
        names::exact("prompt key", key)?;
        let files = if_exists(self.place.list(&format!("{ns}/{key}")))?.unwrap_or_default();
        let tags = files.into_iter().filter(|file| file.kind == Kind::File);
        Ok(tags.filter_map(|file| file.name.strip_suffix(".json").map(str::to_owned)).collect())
    }

    /// Every file, sorted by its path. One that is malformed is an error that names it.
    pub fn inspect(&self) -> Result<Vec<Inspected>> {
        let mut all = Vec::new();
        for entry in self.place.walk("")? {
            let parts: Vec<&str> = entry.name.split('/').collect();
            let (Kind::File, [ns, key, name]) = (entry.kind, &parts[..]) else { continue };
            let Some(tag) = name.strip_suffix(".json") else { continue };
            let bytes = self.place.read(&entry.name)?;
            let file = OverrideFile::read(&bytes, &entry.name)?;
            file.belongs(ns, key, tag)?;
            all.push(Inspected {
                prompt: format!("{ns}/{key}"),
                tag: tag.to_owned(),
                modified_ms: entry.modified_ms,
                hash: text_hash(&String::from_utf8_lossy(&bytes)),
                sections: file.sections.len(),
                tools: file.tools.len(),
                task_examples: file.task_example_overrides.len(),
            });
        }
        all.sort_by(|a, b| (&a.prompt, &a.tag).cmp(&(&b.prompt, &b.tag)));
        Ok(all)
    }

    fn lock(&self) -> Result<WriteLock<'_>> {
        let here = self.turn.lock();
        let mut tries = 0;
        loop {
            match self.place.lock(".lock") {
                Err(error) if error.code == Code::Busy && tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(PAUSE);
                }
                lock => return Ok(WriteLock { _here: here, _everywhere: lock? }),
            }
        }
    }
}

/// What a file of overrides for a prompt tells by itself: the path where it belongs.
pub fn check_file(ns: &str, key: &str, file: &OverrideFile) -> Result<String> {
    let path = path(ns, key, &file.tag)?;
    file.belongs(ns, key, &file.tag)?;
    file.check_hashes()?;
    Ok(path)
}

fn path(ns: &str, key: &str, tag: &str) -> Result<String, Error> {
    names::exact("namespace", ns)?;
    names::exact("prompt key", key)?;
    names::exact("tag", tag)?;
    Ok(format!("{ns}/{key}/{tag}.json"))
}

#[cfg(test)]
mod tests;
