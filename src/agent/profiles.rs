//! The profiles of all agents: those that the mountspec names, and those that were created while the host ran.
//!
//! A created agent is kept as `profile.json` in its own state, and is there again after a restart. So is a change of an
//! agent that the mountspec names, until that entry of the mountspec is edited. The host opens the profiles, and hands
//! them to the services that manage agents.

use std::collections::BTreeMap;
use std::path::Path;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::policy::{Action, Policy, Rule};
use crate::spec::{self, Spec};
use acheron_base::{Code, ConfinedDir, Error, Result, if_exists};
use acheron_fabric::names::FarPattern;

/// One who lives here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    pub name: String,
    #[serde(flatten)]
    pub spec: spec::AgentSpec,
    /// Was created while the host ran; the mountspec does not know it.
    pub created: bool,
    /// The agent whose sub-brain it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How many parents stand above it.
    pub depth: u32,
    pub paused: bool,
    /// An agent has paused it, not the operator: then an agent that may can resume it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused_by_agent: bool,
    /// What the mountspec said of it when it was changed here: the change holds as long as it says the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<Box<spec::AgentSpec>>,
}

impl Profile {
    /// One whom the mountspec names. What was changed here holds over the entry for which it was made; whoever edits the
    /// entry has the last word.
    pub fn named(spec: &Spec, id: &str, entry: &spec::AgentSpec, known: Option<&Profile>) -> Profile {
        let fresh = Profile { name: id.to_owned(), spec: entry.clone(), ..Profile::default() };
        let Some(known) = known else { return fresh };
        let dropped = match &known.over {
            None => None,
            Some(over) if **over != *entry => Some("its entry in the mountspec was edited".to_owned()),
            Some(_) => spec::agent_faults(spec, id, &known.spec).first().map(ToString::to_string),
        };
        match dropped {
            None if known.over.is_some() => return known.clone(),
            None => (),
            Some(why) => tracing::warn!(agent = id, why, "what agents.update had changed of an agent is dropped"),
        }
        Profile { paused: known.paused, paused_by_agent: known.paused_by_agent, ..fresh }
    }
}

pub struct AgentProfiles {
    place: ConfinedDir,
    all: RwLock<BTreeMap<String, Profile>>,
    /// Rules that hold for everybody and that no rule of their own takes back.
    common: RwLock<Vec<Rule>>,
    /// What is offered to agents of other hosts.
    offers: Vec<(FarPattern, String, Option<String>)>,
}

impl AgentProfiles {
    pub fn open(spec: &Spec, state: &Path) -> Result<AgentProfiles> {
        let place = ConfinedDir::create(state.join("agents"))?;
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
        let profiles = AgentProfiles {
            place,
            all: RwLock::default(),
            common: RwLock::default(),
            offers: spec.fabric.as_ref().map(|fabric| fabric.rules()).unwrap_or_default(),
        };
        for (id, entry) in &spec.agents {
            let known = all.remove(id);
            let profile = Profile::named(spec, id, entry, known.as_ref());
            // What was dropped must not come back when the entry is edited back.
            if known.is_some_and(|known| known.over.is_some() && profile.over.is_none()) {
                profiles.put(id, profile.clone())?;
            }
            all.insert(id.clone(), profile);
        }
        *profiles.all.write() = all;
        Ok(profiles)
    }

    pub fn get(&self, id: &str) -> Result<Profile> {
        let found = self.all.read().get(id).cloned();
        found.ok_or_else(|| Error::not_found(format!("there is no agent `{id}`")))
    }

    /// The agent that an agent works for in the end: itself, or the parent of its parents.
    pub fn founder(&self, id: &str) -> String {
        let all = self.all.read();
        let mut at = id;
        // No longer than there are agents, whatever is written in the profiles.
        for _ in 0..all.len() {
            match all.get(at).and_then(|profile| profile.parent.as_deref()) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at.to_owned()
    }

    pub fn has(&self, id: &str) -> bool {
        self.get(id).is_ok()
    }

    pub fn all(&self) -> BTreeMap<String, Profile> {
        self.all.read().clone()
    }

    pub fn ids(&self) -> Vec<String> {
        self.all().into_keys().collect()
    }

    /// Writes a profile down; it is safe when this returns.
    pub fn put(&self, id: &str, profile: Profile) -> Result<()> {
        let json = serde_json::to_vec_pretty(&profile).map_err(|error| Error::internal(error.to_string()))?;
        self.place.write(&format!("{id}/profile.json"), &json)?;
        self.all.write().insert(id.to_owned(), profile);
        Ok(())
    }

    /// Forgets an agent; with `purge` everything it left behind goes too.
    pub fn remove(&self, id: &str, purge: bool) -> Result<()> {
        match purge {
            true => self.place.remove_dir_all(id)?,
            // There is none if the mountspec had named the agent.
            false => _ = if_exists(self.place.remove(&format!("{id}/profile.json")))?,
        }
        self.all.write().remove(id);
        Ok(())
    }

    /// Holds for everybody from the next policy on.
    pub fn bind_all(&self, rules: Vec<Rule>) {
        *self.common.write() = rules;
    }

    /// What everybody may do. A parent may look at its sub-brains.
    pub fn policy(&self) -> Result<Policy> {
        let all = self.all();
        let common = self.common.read().clone();
        let mut policy = Policy::default();
        for (id, profile) in &all {
            let children = all.iter().filter(|(_, child)| child.parent.as_deref() == Some(id));
            let mut rules: Vec<Rule> =
                children.map(|(child, _)| Rule::allow(&[Action::Read], format!("/agents/{child}/**"))).collect();
            rules.extend(views(&profile.spec, &self.founder(id)));
            rules.extend(profile.spec.permissions.iter().cloned());
            rules.extend(common.iter().cloned());
            policy = policy.agent(id, &profile.spec.projects, &rules).map_err(Error::invalid)?;
        }
        for (to, path, lender) in &self.offers {
            policy = policy.offer(to.clone(), path.clone(), lender.clone()).map_err(Error::invalid)?;
        }
        Ok(policy)
    }
}

/// The views of its projects: an agent sees what is told of the one that it works in, and nothing of any other. The files of
/// its own view are the project's for it, under the paths of the project.
fn views(spec: &spec::AgentSpec, founder: &str) -> Vec<Rule> {
    use Action::{Invoke, Read, Write};
    let mut rules = Vec::new();
    for project in &spec.projects {
        rules.push(Rule::deny(&[Read, Write, Invoke], format!("/projects/{project}/views/**")));
        let own = match spec.view {
            spec::ViewMode::None => continue,
            spec::ViewMode::Own => founder,
            spec::ViewMode::Shared => "shared",
        };
        rules.push(Rule::allow(&[Read], format!("/projects/{project}/views/{own}/*")));
    }
    rules
}

#[cfg(test)]
mod tests;
