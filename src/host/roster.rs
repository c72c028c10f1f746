//! Who lives here: those of the mountspec, and those who were created while the host ran.
//!
//! Who was created is kept as `profile.json` in the agent's own state, and is there again after a restart.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};
use crate::place::Place;
use crate::policy::{Action, Policy, Rule};
use crate::spec::{self, Spec};

/// One who lives here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    pub name: String,
    #[serde(flatten)]
    pub spec: spec::Agent,
    /// Was created while the host ran; the mountspec does not know it.
    pub created: bool,
    /// The agent whose sub-brain it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How many parents stand above it.
    pub depth: u32,
    pub paused: bool,
}

pub struct Roster {
    place: Place,
    all: RwLock<BTreeMap<String, Profile>>,
    /// Rules that hold for everybody and that no rule of their own takes back.
    common: RwLock<Vec<Rule>>,
}

impl Roster {
    pub fn open(spec: &Spec, state: &Path) -> Result<Roster> {
        let place = Place::create(state.join("agents"))?;
        let mut all = BTreeMap::new();
        for entry in place.list("")? {
            let file = format!("{}/profile.json", entry.name);
            match place.read(&file) {
                Err(error) if matches!(error.code, Code::NotFound | Code::Os(_)) => (),
                bytes => {
                    let profile = serde_json::from_slice(&bytes?)
                        .map_err(|error| Error::invalid(format!("agents/{file} is not readable: {error}")))?;
                    all.insert(entry.name, profile);
                }
            }
        }
        // Of those whom the mountspec named once, only what they were told to do is kept.
        all.retain(|id, profile: &mut Profile| profile.created || spec.agents.contains_key(id));
        for (id, agent) in &spec.agents {
            let paused = all.get(id).is_some_and(|profile| profile.paused);
            all.insert(id.clone(), Profile { name: id.clone(), spec: agent.clone(), paused, ..Profile::default() });
        }
        Ok(Roster { place, all: RwLock::new(all), common: RwLock::default() })
    }

    pub fn get(&self, id: &str) -> Result<Profile> {
        let found = self.all.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        found.ok_or_else(|| Error::not_found(format!("there is no agent `{id}`")))
    }

    pub fn has(&self, id: &str) -> bool {
        self.get(id).is_ok()
    }

    pub fn all(&self) -> BTreeMap<String, Profile> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn ids(&self) -> Vec<String> {
        self.all().into_keys().collect()
    }

    /// Writes a profile down; it is safe when this returns.
    pub fn put(&self, id: &str, profile: Profile) -> Result<()> {
        let json = serde_json::to_vec_pretty(&profile).map_err(|error| Error::internal(error.to_string()))?;
        self.place.write(&format!("{id}/profile.json"), &json)?;
        self.all.write().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), profile);
        Ok(())
    }

    /// Forgets an agent; with `purge` everything it left behind goes too.
    pub fn remove(&self, id: &str, purge: bool) -> Result<()> {
        match purge {
            true => self.place.remove_dir_all(id)?,
            false => match self.place.remove(&format!("{id}/profile.json")) {
                Err(error) if error.code == Code::NotFound => (), // the mountspec had named it
                removed => removed?,
            },
        }
        self.all.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        Ok(())
    }

    /// Holds for everybody from the next policy on.
    pub fn bind_all(&self, rules: Vec<Rule>) {
        *self.common.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// What everybody may do. A parent may look at its sub-brains.
    pub fn policy(&self) -> Result<Policy> {
        let all = self.all();
        let common = self.common.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut policy = Policy::default();
        for (id, profile) in &all {
            let children = all.iter().filter(|(_, child)| child.parent.as_deref() == Some(id));
            let mut rules: Vec<Rule> =
                children.map(|(child, _)| Rule::allow(&[Action::Read], format!("/agents/{child}/**"))).collect();
            rules.extend(profile.spec.permissions.iter().cloned());
            rules.extend(common.iter().cloned());
            policy = policy.agent(id, &profile.spec.projects, &rules).map_err(Error::invalid)?;
        }
        Ok(policy)
    }
}
