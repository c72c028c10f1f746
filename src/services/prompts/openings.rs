//! The open prompts of one agent: opened, kept on disk so that they outlive the host, closed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::Library;
use super::opened::{Opened, SavedPrompt};
use super::override_store::{LATEST, OverrideStore};
use super::resources::Resources;
use super::resources::kinds::{self, ResourceKinds, SESSION, SessionState};
use crate::service::ChangeFiles;
use acheron_base::confined_dir::FileChange;
use acheron_base::{ConfinedDir, Error, Result};
use acheron_prompts::manifest::{Headings, Need};
use acheron_prompts::prompt::{Prompt, Session};
use acheron_prompts::{PromptTemplate, load, names};

/// Open at once, an agent.
const MOST: usize = 256;

pub struct Openings {
    pub library: Arc<Library>,
    pub overrides: Arc<OverrideStore>,
    place: ConfinedDir,
    kinds: ResourceKinds,
    table: Mutex<OpeningsState>,
}

#[derive(Default)]
struct OpeningsState {
    open: BTreeMap<String, Arc<Opened>>,
    /// Numbers that were given out.
    last: u64,
}

/// A request to open a prompt.
#[derive(Default)]
pub struct OpenRequest {
    pub id: Option<String>,
    pub prompt: String,
    pub params: Value,
    pub tag: Option<String>,
    pub headings: Option<Headings>,
    pub session: Map<String, Value>,
    pub needs: BTreeMap<String, Need>,
    pub time_limit_ms: Option<u64>,
    pub deadline_ms: Option<u64>,
    pub now_ms: u64,
}

impl Openings {
    /// Opens again what was open when the host went down, from the template that it was opened with. What this program
    /// cannot read any more is left on disk.
    pub fn new(
        library: Arc<Library>,
        overrides: Arc<OverrideStore>,
        place: ConfinedDir,
        kinds: ResourceKinds,
    ) -> Result<Openings> {
        let openings = Openings { library, overrides, place, kinds, table: Mutex::default() };
        for entry in openings.place.list("")? {
            let Some(id) = entry.name.strip_suffix(".json") else { continue };
            let again = openings.place.read(&entry.name).and_then(|bytes| {
                let saved: SavedPrompt =
                    serde_json::from_slice(&bytes).map_err(|error| Error::invalid(error.to_string()))?;
                let template = load::again(&saved.prompt, &saved.sources).map_err(|faults| {
                    Error::invalid(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
                })?;
                openings.build(saved, Arc::new(template))
            });
            match again {
                Ok(opened) => openings.add(Arc::new(opened)),
                Err(error) => tracing::warn!(%error, id, "an open prompt could not be opened again"),
            }
        }
        Ok(openings)
    }

    fn add(&self, opened: Arc<Opened>) {
        let mut table = self.table.lock();
        let number = opened.id.strip_prefix('p').and_then(|number| number.parse().ok());
        table.last = table.last.max(number.unwrap_or(0));
        table.open.insert(opened.id.clone(), opened);
    }

    /// The template, with the overrides of a tag.
    pub fn prompt(&self, name: &str, tag: &str) -> Result<Prompt> {
        self.overridden(self.template(name)?, tag)
    }

    fn overridden(&self, template: Arc<PromptTemplate>, tag: &str) -> Result<Prompt> {
        let mut prompt = Prompt::new(template.clone());
        prompt.overrides = Arc::new(self.overrides.resolve(&template, tag)?.overrides);
        Ok(prompt)
    }

    pub fn template(&self, name: &str) -> Result<Arc<PromptTemplate>> {
        let (ns, key) = ns_and_key(name)?;
        self.library.get(ns, key)
    }

    fn build(&self, saved: SavedPrompt, template: Arc<PromptTemplate>) -> Result<Opened> {
        let prompt = self.overridden(template, &saved.tag)?;
        let session = Arc::new(Mutex::new(Session::default()));
        let resources = self.resources(&prompt.template, &saved.needs, &session)?;
        Opened::new(saved, prompt, session, resources)
    }

    /// The resources of a prompt with what was bound to it, open.
    fn resources(
        &self,
        template: &PromptTemplate,
        bound: &BTreeMap<String, Need>,
        session: &Arc<Mutex<Session>>,
    ) -> Result<Resources> {
        let needs = kinds::needs(template, bound);
        let mut kinds = self.kinds.clone();
        let own = session.clone();
        kinds.insert(
            SESSION.to_owned(),
            Arc::new(move |need: &Need| Ok(Arc::new(SessionState::new(own.clone(), need.initial.as_ref())) as _)),
        );
        let resources = Resources::new(kinds::registry(&needs, &kinds)?);
        resources.enter()?;
        // Conditions look at the session, so what it holds at first has to be there at first.
        for name in needs.iter().filter(|(_, need)| need.kind == SESSION).map(|(name, _)| name) {
            resources.get(name)?;
        }
        Ok(resources)
    }

    /// Binds further resources to an open prompt, whose turn the caller holds: all of them or none. Those that it had are
    /// closed. Gives the names of all.
    pub fn bind_resources(&self, opened: &Opened, more: BTreeMap<String, Need>) -> Result<Vec<String>> {
        let template = opened.prompt().template;
        let mut needs = opened.needs();
        if !more.is_empty() {
            needs.extend(more);
            let resources = self.resources(&template, &needs, &opened.session())?;
            for error in opened.change_resources(needs.clone(), resources).exit() {
                tracing::warn!(%error, "a resource could not be closed");
            }
        }
        Ok(kinds::needs(&template, &needs).into_keys().collect())
    }

    /// Opens a prompt; the call that does this ends with `result` of it.
    pub fn open(
        &self,
        by: &dyn ChangeFiles,
        asked: OpenRequest,
        result: impl FnOnce(&Opened) -> Value,
    ) -> Result<Arc<Opened>> {
        let mut fresh = Prompt::new(self.template(&asked.prompt)?);
        fresh.bind_json(&asked.params)?;
        let records = fresh.template.records.keys();
        let params = records.filter_map(|name| Some((name.clone(), fresh.bound(name)?.clone()))).collect();
        let id = self.id(asked.id.as_deref())?;
        let saved = SavedPrompt {
            id: id.clone(),
            prompt: asked.prompt,
            tag: asked.tag.filter(|tag| !tag.is_empty()).unwrap_or_else(|| LATEST.to_owned()),
            opened_at_ms: asked.now_ms,
            deadline_ms: asked.deadline_ms,
            headings: asked.headings,
            params,
            session: Session { values: asked.session, ..Session::default() },
            needs: asked.needs,
            time_limit_ms: asked.time_limit_ms,
            ..SavedPrompt::default()
        };
        let opened = Arc::new(self.build(saved, fresh.template.clone())?);
        self.save(by, &opened, result(&opened))?;
        self.add(opened.clone());
        Ok(opened)
    }

    /// The id that was asked for, if it is free, or a new one.
    fn id(&self, wanted: Option<&str>) -> Result<String> {
        let mut table = self.table.lock();
        if table.open.len() >= MOST {
            return Err(Error::busy(format!("{MOST} prompts are open; close one first")));
        }
        match wanted {
            Some(id) => {
                names::exact("the id of an open prompt", id)?;
                match table.open.contains_key(id) {
                    true => Err(Error::already_exists(format!("a prompt is open as `{id}` already"))),
                    false => Ok(id.to_owned()),
                }
            }
            None => {
                table.last += 1;
                while table.open.contains_key(&format!("p{}", table.last)) {
                    table.last += 1;
                }
                Ok(format!("p{}", table.last))
            }
        }
    }

    pub fn get(&self, id: &str) -> Result<Arc<Opened>> {
        let table = self.table.lock();
        let found = table.open.get(id).cloned();
        found.ok_or_else(|| Error::not_found(format!("no prompt is open as `{}`", names::clipped(id))))
    }

    pub fn ids(&self) -> Vec<String> {
        self.table.lock().open.keys().cloned().collect()
    }

    /// Why an open prompt is not what one opened now would be.
    pub fn stale(&self, opened: &Opened) -> Option<&'static str> {
        let own = opened.prompt().template;
        match self.library.get(&own.ns, &own.key) {
            Ok(now) if now.sources == own.sources => None,
            Ok(_) => Some("its template was changed after it was opened; open it again to have the new one"),
            Err(_) => Some("its template is gone; it can be used until it is closed"),
        }
    }

    pub fn stale_ids(&self) -> Vec<String> {
        let table = self.table.lock();
        let stale = table.open.iter().filter(|(_, opened)| self.stale(opened).is_some());
        stale.map(|(id, _)| id.clone()).collect()
    }

    /// Writes an open prompt to the disk; the call that changed it ends with `result`.
    pub fn save(&self, by: &dyn ChangeFiles, opened: &Opened, result: Value) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(&opened.saved()).map_err(|error| Error::internal(error.to_string()))?;
        by.change_files(&self.place, vec![FileChange::write(format!("{}.json", opened.id), bytes)], result)
    }

    /// Closes a prompt and its resources, and gives what would not close. Closing what is not open is nothing.
    pub fn close(&self, by: &dyn ChangeFiles, id: &str) -> Result<Value> {
        let Ok(opened) = self.get(id) else { return Ok(json!({"closed": id, "was_open": false, "errors": []})) };
        let closed = |errors: Vec<Error>| json!({"closed": id, "was_open": true, "errors": errors});
        // Resources end with the process, too.
        by.change_files(&self.place, vec![FileChange::remove(format!("{id}.json"))], closed(Vec::new()))?;
        self.table.lock().open.remove(id);
        Ok(closed(opened.resources().exit()))
    }
}

/// The two halves of a prompt's name.
pub fn ns_and_key(name: &str) -> Result<(&str, &str)> {
    let fault = || Error::invalid(format!("a prompt is named <ns>/<key>, not `{}`", names::clipped(name)));
    name.split_once('/').ok_or_else(fault)
}
