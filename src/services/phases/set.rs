//! A set of phases: which there are, in what order, and by which names each is called.
//!
//! A model writes `recurse_thought`, `Recurse-Thought` or `01-recurse-thought` and means the same phase. Every phase has
//! one id and any number of other names; two phases with one name are refused when they are loaded.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use acheron_base::{Error, Result};

/// The facts about a phase's prompt before it is rendered.
#[derive(Clone, Debug, Default)]
pub struct PhaseSource {
    /// The file name without its ending.
    pub stem: String,
    pub phase_id: Option<String>,
    pub aliases: Vec<String>,
    pub max_visits: Option<u32>,
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
}

/// Phases in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseSet {
    pub name: String,
    pub phases: Vec<Phase>,
    names: HashMap<String, usize>,
}

impl PhaseSet {
    /// Orders the sources by file name and gives each its names.
    pub fn new(name: &str, mut sources: Vec<PhaseSource>) -> Result<PhaseSet> {
        sources.sort_by(|a, b| a.stem.cmp(&b.stem));
        let mut set = PhaseSet { name: name.to_owned(), ..PhaseSet::default() };
        for (place, source) in sources.into_iter().enumerate() {
            let bare = unnumbered(&source.stem);
            let phase_id = source.phase_id.unwrap_or_else(|| fold(bare));
            let mut aliases: Vec<String> = Vec::new();
            let names = [phase_id.as_str(), &source.stem, bare];
            for name in names.into_iter().chain(source.aliases.iter().map(String::as_str)) {
                let folded = fold(name);
                if !folded.is_empty() && !aliases.contains(&folded) {
                    aliases.push(folded);
                }
            }
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
            set.phases.push(Phase { phase_id, file: source.stem, aliases, max_visits });
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
