//! A set of phases: which there are, in what order, and by which names each is called.
//!
//! A model writes `recurse_thought`, `Recurse-Thought` or `01-recurse-thought` and means the same phase. Every phase has
//! one id and any number of other names; two phases with one name are refused when they are loaded.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::action::TABLE;
use acheron_base::{Error, Result};

/// The facts about a phase's prompt before it is rendered.
#[derive(Clone, Debug, Default)]
pub struct PhaseSource {
    /// The file name without its ending.
    pub stem: String,
    pub phase_id: Option<String>,
    pub aliases: Vec<String>,
    pub max_visits: Option<u32>,
    /// The commands that it allows; all if it does not say.
    pub commands: Option<Vec<String>>,
    /// The phases that may follow; any if it does not say.
    pub routes: Option<Vec<String>>,
}

/// A file of a set that is no phase because of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhaseFault {
    pub file: String,
    pub message: String,
}

/// One phase of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Phase {
    pub phase_id: String,
    /// The prompt's key in its namespace.
    pub file: String,
    /// Every name that leads here, folded.
    pub aliases: Vec<String>,
    /// How often one run may come here.
    pub max_visits: u32,
    /// The commands that it allows; all of them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// The phases that may follow it; any if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<String>>,
}

/// Phases in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseSet {
    pub name: String,
    pub phases: Vec<Phase>,
    /// Files that would be phases, and why they are none.
    pub faults: Vec<PhaseFault>,
    names: HashMap<String, usize>,
}

impl PhaseSource {
    /// Every name that leads to it, folded, its id first.
    fn names(&self) -> Vec<String> {
        let bare = unnumbered(&self.stem);
        let id = self.phase_id.as_deref().unwrap_or(bare);
        let mut names: Vec<String> = Vec::new();
        for name in [id, &self.stem, bare].into_iter().chain(self.aliases.iter().map(String::as_str)) {
            let folded = fold(name);
            if !folded.is_empty() && !names.contains(&folded) {
                names.push(folded);
            }
        }
        names
    }

    /// Why it cannot be a phase of a set with these names.
    fn fault(&self, every_name: &[String]) -> Option<String> {
        let plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "_-. ".contains(c));
        if let Some(name) = self.phase_id.iter().chain(&self.aliases).find(|name| fold(name).is_empty() || !plain(name))
        {
            return Some(format!("`{name:.64}` is not the name of a phase: letters, digits, `_`, `-` and `.` are"));
        }
        let known = || TABLE.iter().map(|row| row.name);
        if let Some(other) = self.commands.iter().flatten().find(|name| !known().any(|own| own == name.as_str())) {
            let all: Vec<&str> = known().collect();
            return Some(format!("there is no command `{other:.64}`; there are {}", all.join(", ")));
        }
        let lost = self.routes.iter().flatten().find(|route| !every_name.contains(&fold(route)))?;
        Some(format!("it may be followed by `{lost:.64}`, but there is no such phase in the set"))
    }
}

impl PhaseSet {
    /// Orders the sources by file name and gives each its names.
    pub fn new(name: &str, mut sources: Vec<PhaseSource>) -> Result<PhaseSet> {
        sources.sort_by(|a, b| a.stem.cmp(&b.stem));
        let mut set = PhaseSet { name: name.to_owned(), ..PhaseSet::default() };
        let every_name: Vec<String> = sources.iter().flat_map(PhaseSource::names).collect();
        for source in sources {
            if let Some(message) = source.fault(&every_name) {
                set.faults.push(PhaseFault { file: source.stem, message });
                continue;
            }
            let (place, aliases) = (set.phases.len(), source.names());
            let phase_id = source.phase_id.unwrap_or_else(|| fold(unnumbered(&source.stem)));
            for alias in &aliases {
                if let Some(other) = set.names.insert(alias.clone(), place) {
                    let other: &Phase = &set.phases[other];
                    return Err(Error::invalid(format!(
                        "phases {} and {} of set {name} are both called `{alias}`",
                        other.file, source.stem
                    )));
                }
            }
            let max_visits = source.max_visits.unwrap_or(1);
            let (commands, routes) = (source.commands, source.routes);
            set.phases.push(Phase { phase_id, file: source.stem, aliases, max_visits, commands, routes });
        }
        Ok(set)
    }

    /// The phase that a name means.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.get(&fold(name)).copied()
    }

    pub fn len(&self) -> usize {
        self.phases.len()
    }

    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }
}

/// A name without case, with `_` for `-` and blanks.
fn fold(name: &str) -> String {
    name.trim().to_lowercase().replace(['-', ' '], "_")
}

/// `recurse-thought` of `01-recurse-thought`.
fn unnumbered(stem: &str) -> &str {
    let rest = stem.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if rest.len() < stem.len() { rest.trim_start_matches(['-', '_', '.']) } else { rest };
    if rest.is_empty() { stem } else { rest }
}

#[cfg(test)]
pub mod tests;
