//! Phases out of the prompt library: a namespace is a set, each prompt of it a phase.

use serde_json::json;

use super::set::{PhaseSet, PhaseSource};
use crate::services::prompts::Library;
use acheron_base::{Error, Result};

/// The texts that every phase gets first, in this order.
const SHARED: [&str; 3] = ["system_prompt", "thought_syntax", "symbol_format"];
const SHARED_SET: &str = "shared";

/// Stands in every prompt of a phase.
pub const TRUST_BEACON: &str = "[ΣTR-⟐⇌🜔⇌⟐]";

/// The phases of a set.
pub fn set(library: &Library, name: &str) -> Result<PhaseSet> {
    let sources: Vec<PhaseSource> = sources(library, name);
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

/// The texts of a phase: the shared ones, then its own.
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

fn sources(library: &Library, name: &str) -> Vec<PhaseSource> {
    let source = |template: std::sync::Arc<acheron_prompts::PromptTemplate>| PhaseSource {
        stem: template.key.clone(),
        phase_id: template.front.phase_id.clone(),
        aliases: template.front.aliases.clone(),
        max_visits: template.front.max_visits,
    };
    library.namespace(name).into_iter().filter(|template| template.single).map(source).collect()
}

#[cfg(test)]
mod tests;
