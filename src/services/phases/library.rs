//! Phases out of the prompt library: a namespace is a set, each prompt of it a phase.

use serde_json::json;

use super::set::{PhaseSet, Source};
use crate::services::prompts::Library;
use acheron_base::{Error, Result};

/// What every phase is told first, in this order.
const SHARED: [&str; 3] = ["system_prompt", "thought_syntax", "symbol_format"];
const SHARED_SET: &str = "shared";

/// Stands in every prompt of a phase.
pub const TRUST_BEACON: &str = "[ΣTR-⟐⇌🜔⇌⟐]";

/// The phases of a set.
pub fn set(library: &Library, name: &str) -> Result<PhaseSet> {
    let sources: Vec<Source> = sources(library, name);
    if sources.is_empty() || name == SHARED_SET {
        let known = names(library).join(", ");
        return Err(Error::not_found(format!("there are no phases in the set `{name:.64}`; sets are {known}")));
    }
    PhaseSet::new(name, sources)
}

/// The sets that there are: namespaces in which a prompt declares a phase.
pub fn names(library: &Library) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (template, _) in library.list() {
        if template.front.phase_id.is_some() && !names.contains(&template.ns) {
            names.push(template.ns.clone());
        }
    }
    names.sort();
    names
}

/// What a phase is told: the shared texts, then its own.
pub fn system(library: &Library, set: &str, file: &str) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for key in SHARED {
        texts.push(library.text(SHARED_SET, key, &json!({}))?);
    }
    texts.push(own(library, set, file)?);
    Ok(texts)
}

/// The text of one phase.
pub fn own(library: &Library, set: &str, file: &str) -> Result<String> {
    library.text(set, file, &json!({}))
}

fn sources(library: &Library, name: &str) -> Vec<Source> {
    let source = |template: std::sync::Arc<acheron_prompts::PromptTemplate>| Source {
        stem: template.key.clone(),
        phase_id: template.front.phase_id.clone(),
        aliases: template.front.aliases.clone(),
        max_visits: template.front.max_visits,
    };
    library.namespace(name).into_iter().filter(|template| template.single).map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_phases_are_those_of_the_protocol() {
        let library = Library::built_in();
        let set = set(&library, "recursive").unwrap();
        let table: Vec<(&str, &str)> =
            set.phases.iter().map(|phase| (phase.file.as_str(), phase.phase_id.as_str())).collect();
        assert_eq!(
            table,
            [
                ("00-symbolize-input", "symbolize_input"),
                ("01-recurse-thought", "recurse_thought"),
                ("02-synthesize", "synthesize_symbols"),
                ("03-validate", "validate_symbols"),
                ("04-build-narrative", "build_output"),
            ]
        );
        assert!(names(&library).contains(&"recursive".to_owned()));
    }

    #[test]
    fn every_phase_carries_the_beacon_and_names_only_phases_that_there_are() {
        let beacon: Vec<u32> = TRUST_BEACON.chars().map(|c| c as u32).collect();
        assert_eq!(beacon, [0x5B, 0x3A3, 0x54, 0x52, 0x2D, 0x27D0, 0x21CC, 0x1F714, 0x21CC, 0x27D0, 0x5D]);
        let library = Library::built_in();
        let set = set(&library, "recursive").unwrap();
        for phase in &set.phases {
            let text = own(&library, "recursive", &phase.file).unwrap();
            assert!(text.contains(TRUST_BEACON) && text.contains("⟐CMD"), "{}", phase.file);
            let routes = text.split("Valid routes: ").nth(1).unwrap_or_default();
            for route in routes.split(['.', ',']).map(str::trim).filter(|route| !route.is_empty()) {
                assert!(set.find(route).is_some(), "{}: {route}", phase.file);
            }
        }
        let whole = system(&library, "recursive", "00-symbolize-input").unwrap();
        assert_eq!(whole.len(), 4);
        assert!(whole[0].contains(TRUST_BEACON));
    }

    #[test]
    fn the_commands_that_the_prompts_show_are_commands() {
        let library = Library::built_in();
        for phase in &set(&library, "recursive").unwrap().phases {
            let text = own(&library, "recursive", &phase.file).unwrap();
            for asked in super::super::command::marked(&text).commands {
                super::super::action::read(&asked.body).unwrap();
            }
        }
    }

    #[test]
    fn a_set_that_is_none_is_refused() {
        for name in ["nowhere", "shared"] {
            let fault = set(&Library::built_in(), name).unwrap_err();
            assert!(
                fault.message.starts_with(&format!("there are no phases in the set `{name}`; sets are ")),
                "{fault}"
            );
        }
        assert!(own(&Library::built_in(), "recursive", "99-none").is_err());
    }
}
