//! The views of the host, by base and name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};

use super::places::{VIEWS, ViewPlaces};
use super::record::ViewRecord;
use super::view::{View, ViewUsers, remove_all};
use acheron_base::{Clock, Code, Error, Result, quoted};

/// A base has at most this many.
const MOST: usize = 64;

/// What the views are opened with.
pub struct ViewsParts {
    pub state: PathBuf,
    pub clock: Clock,
    /// Why this host cannot mount views, if it cannot.
    pub refused: Option<String>,
}

type ViewKey = (PathBuf, String);

pub struct Views {
    parts: ViewsParts,
    users: RwLock<Option<Arc<dyn ViewUsers>>>,
    all: RwLock<BTreeMap<ViewKey, Arc<View>>>,
    /// Held while one is made.
    making: Mutex<()>,
    /// One promote at a time into each base.
    bases: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>>,
}

impl Views {
    pub fn new(parts: ViewsParts) -> Views {
        Views {
            parts,
            users: RwLock::default(),
            all: RwLock::default(),
            making: Mutex::default(),
            bases: Mutex::default(),
        }
    }

    /// Reads what is in the state directory, and removes what a crash has left; nothing is mounted yet.
    pub fn open(&self, users: Arc<dyn ViewUsers>) -> Result<()> {
        *self.users.write() = Some(users);
        let Ok(found) = fs::read_dir(self.parts.state.join(VIEWS)) else { return Ok(()) };
        for dir in found.flatten().map(|entry| entry.path()) {
            if dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".gone-")) {
                _ = fs::remove_dir_all(&dir);
                continue;
            }
            let read = fs::read(dir.join("view.json")).map_err(Error::from);
            let record = read.and_then(|bytes| {
                serde_json::from_slice::<ViewRecord>(&bytes).map_err(|err| Error::invalid(err.to_string()))
            });
            match record {
                Ok(record) => {
                    let view = self.view(record, ViewPlaces { dir })?;
                    clean(&view);
                    self.all.write().insert((view.record().base, view.name()), view);
                }
                // It was being made when the host died.
                Err(error) if error.code == Code::NotFound => _ = remove_all(&dir),
                Err(error) => tracing::warn!(%error, dir = %dir.display(), "a view cannot be read"),
            }
        }
        Ok(())
    }

    fn view(&self, record: ViewRecord, places: ViewPlaces) -> Result<Arc<View>> {
        let users = self.users.read().clone().ok_or_else(|| Error::unavailable("the host is not ready"))?;
        let lock = self.bases.lock().entry(record.base.clone()).or_default().clone();
        Ok(Arc::new(View::new(record, places, self.parts.clock.clone(), users, lock)))
    }

    pub fn get(&self, base: &Path, name: &str) -> Option<Arc<View>> {
        self.all.read().get(&(base.to_owned(), name.to_owned())).cloned()
    }

    /// The views of a base, by name.
    pub fn of(&self, base: &Path) -> Vec<Arc<View>> {
        self.all.read().values().filter(|view| view.record().base == base).cloned().collect()
    }

    pub fn all(&self) -> Vec<Arc<View>> {
        self.all.read().values().cloned().collect()
    }

    /// Why this host cannot have views.
    pub fn refused(&self) -> Option<&str> {
        self.parts.refused.as_deref()
    }

    /// Makes and mounts a view. Blocks.
    pub fn create(&self, base: &Path, name: &str, agent: Option<String>) -> Result<Arc<View>> {
        if let Some(why) = &self.parts.refused {
            return Err(Error::unavailable(why.clone()));
        }
        let _making = self.making.lock();
        if self.get(base, name).is_some() {
            return Err(Error::already_exists(format!("there is a view {} already", quoted(name))));
        }
        if self.of(base).len() >= MOST {
            return Err(Error::quota_exceeded(format!("the project has {MOST} views already; discard one")));
        }
        let places = ViewPlaces::of(&self.parts.state, base, name);
        let (name, base, created_at_ms) = (name.to_owned(), base.to_owned(), self.parts.clock.now_ms());
        let view = self.view(ViewRecord { name, base, agent, created_at_ms, generation: 0 }, places)?;
        view.make().inspect_err(|_| _ = remove_all(&view.places.dir))?;
        let known = self.all.write().insert((view.record().base, view.name()), view.clone());
        drop(known);
        if let Err(error) = view.mount() {
            self.forget(&view);
            _ = view.unmount();
            _ = remove_all(&view.places.dir);
            return Err(error);
        }
        Ok(view)
    }

    /// The view of an agent, made if there is none. One that cannot be mounted says why when it is used.
    pub fn of_agent(&self, base: &Path, name: &str, agent: Option<&str>) -> Result<Arc<View>> {
        if let Some(view) = self.get(base, name) {
            return Ok(view);
        }
        match self.create(base, name, agent.map(str::to_owned)) {
            // Another thread was first.
            Err(error) if error.code == Code::AlreadyExists => self.get(base, name).ok_or(error),
            made => made,
        }
    }

    fn forget(&self, view: &View) {
        self.all.write().remove(&(view.record().base, view.name()));
    }

    /// Throws a view away. An agent that works in one gets a new one with its next program or turn.
    pub fn discard(&self, view: &View) -> Result<Value> {
        view.discard()?;
        self.forget(view);
        view.users.discarded(view);
        Ok(json!({"discarded": view.name()}))
    }

    /// Unmounts everything, when the host goes down.
    pub fn close(&self) {
        for view in self.all() {
            if let Err(error) = view.unmount() {
                tracing::warn!(%error, view = view.name(), "could not be unmounted");
            }
        }
    }
}

/// Removes stages of promotes that were never decided.
fn clean(view: &View) {
    let kept = super::journal::PromoteJournal::read(&view.places.journal()).ok().flatten().map(|journal| journal.stage);
    let Ok(stages) = view.places.stages(&view.record().base) else { return };
    for stage in fs::read_dir(stages).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if kept.as_ref() != Some(&stage) {
            _ = fs::remove_dir_all(stage);
        }
    }
    view.status.write().can_undo = kept.is_some();
}
