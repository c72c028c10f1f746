//! A set of phases: which there are, in what order, and by which names each is called.
//!
//! A model writes `recurse_thought`, `Recurse-Thought` or `01-recurse-thought` and means the same phase. Every phase has
//! one id and any number of other names; two phases with one name are refused when they are loaded.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use acheron_base::{Error, Result};

/// What is known of a phase's prompt before it is rendered.
#[derive(Clone, Debug, Default)]
pub struct Source {
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
    pub fn new(name: &str, mut sources: Vec<Source>) -> Result<PhaseSet> {
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

    /// The phase that somebody means.
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
pub mod tests {
    use super::*;

    pub fn source(stem: &str, id: &str, aliases: &[&str], max_visits: Option<u32>) -> Source {
        Source {
            stem: stem.to_owned(),
            phase_id: (!id.is_empty()).then(|| id.to_owned()),
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            max_visits,
        }
    }

    fn five() -> PhaseSet {
        let sources = vec![
            source("04-build-narrative", "build_output", &[], None),
            source("00-symbolize-input", "", &[], None),
            source("03-validate", "validate_symbols", &[], None),
            source("01-recurse-thought", "", &[], None),
            source("02-synthesize", "synthesize_symbols", &[], None),
        ];
        PhaseSet::new("recursive", sources).unwrap()
    }

    #[test]
    fn phases_stand_in_the_order_of_their_files() {
        let ids: Vec<String> = five().phases.into_iter().map(|phase| phase.phase_id).collect();
        assert_eq!(
            ids,
            ["symbolize_input", "recurse_thought", "synthesize_symbols", "validate_symbols", "build_output"]
        );
    }

    #[test]
    fn a_phase_answers_to_all_its_names() {
        for (name, place) in [
            ("recurse_thought", Some(1)),
            ("01-recurse-thought", Some(1)),
            ("recurse-thought", Some(1)),
            ("Recurse_Thought", Some(1)),
            (" recurse thought ", Some(1)),
            ("validate", Some(3)),
            ("validate_symbols", Some(3)),
            ("build_output", Some(4)),
            ("build_narrative", Some(4)),
            ("build-narrative", Some(4)),
            ("synthesize", Some(2)),
            ("nowhere", None),
            ("", None),
            ("01", None),
        ] {
            assert_eq!(five().find(name), place, "{name}");
        }
    }

    #[test]
    fn two_phases_of_one_name_are_refused_and_both_named() {
        let clash = PhaseSet::new("s", vec![source("00-a", "", &[], None), source("01-b", "", &["A"], None)]);
        assert_eq!(clash.unwrap_err().message, "phases 00-a and 01-b of set s are both called `a`");
        let clash = PhaseSet::new("s", vec![source("00-a-b", "", &[], None), source("01-a_b", "", &[], None)]);
        assert!(clash.is_err());
    }

    #[test]
    fn a_file_that_is_only_a_number_keeps_its_name() {
        let set = PhaseSet::new("s", vec![source("7", "", &[], None)]).unwrap();
        assert_eq!((set.phases[0].phase_id.as_str(), set.find("7")), ("7", Some(0)));
    }
}
