//! Phases out of the prompt library: a namespace is a set, each prompt of it a phase.

use serde_json::json;

use super::set::{PhaseFault, PhaseSet, PhaseSource};
use crate::services::prompts::Library;
use acheron_base::{Error, Result};
use acheron_prompts::PromptTemplate;

/// The texts that every phase gets first, in this order.
const SHARED: [&str; 3] = ["system_prompt", "thought_syntax", "symbol_format"];
const SHARED_SET: &str = "shared";

/// Stands in every prompt of a phase.
pub const TRUST_BEACON: &str = "[ΣTR-⟐⇌🜔⇌⟐]";

/// The phases of a set.
pub fn set(library: &Library, name: &str) -> Result<PhaseSet> {
    let sources: Vec<PhaseSource> = sources(library, name);
    let broken = || library.faults_of(name).into_iter().map(|(file, message)| PhaseFault { file, message });
    if sources.is_empty() || name == SHARED_SET {
        let known = names(library).join(", ");
        let why = broken().next().map_or(String::new(), |fault| format!(" ({}: {})", fault.file, fault.message));
        return Err(Error::not_found(format!("there are no phases in the set `{name:.64}`{why}; sets are {known}")));
    }
    let mut set = PhaseSet::new(name, sources)?;
    set.faults.extend(broken());
    set.faults.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(set)
}

/// Whether a prompt is a phase: it says so, or its name begins with its place in the order. Other files of the folder,
/// such as notes, are none.
fn is_phase(template: &PromptTemplate) -> bool {
    let numbered = template.key.starts_with(|c: char| c.is_ascii_digit());
    template.single && (template.front.phase_id.is_some() || numbered)
}

/// The sets that there are: namespaces in which a prompt declares a phase.
pub fn names(library: &Library) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (template, _) in library.list() {
        if is_phase(&template) && !names.contains(&template.ns) {
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
    let source = |template: std::sync::Arc<PromptTemplate>| PhaseSource {
        stem: template.key.clone(),
        phase_id: template.front.phase_id.clone(),
        aliases: template.front.aliases.clone(),
        max_visits: template.front.max_visits,
        commands: template.front.commands.clone(),
        routes: template.front.routes.clone(),
    };
    library.namespace(name).into_iter().filter(|template| is_phase(template)).map(source).collect()
}

#[cfg(test)]
mod tests;
