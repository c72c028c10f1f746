//! Examples of a rule: what it must match, and what it must not match. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use super::{Rule, names};

/// Examples of what a rule is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RuleExamples {
    /// These must match.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matching: Vec<String>,
    /// These must not match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_match: Vec<String>,
}

/// The examples of a rule of `agent` that are not as they say: where each stands, and why.
pub fn example_faults(rule: &Rule, agent: &str) -> Vec<(String, String)> {
    let Some(examples) = &rule.examples else { return Vec::new() };
    let Ok(pattern) = Pattern::parse(&rule.path) else { return Vec::new() }; // its own fault
    let pattern = pattern.owned_by(agent);
    let matches = |path: &str| path.starts_with('/') && names(path, agent).is_some_and(|names| pattern.matches(&names));
    let mut faults = Vec::new();
    for (at, path) in examples.matching.iter().enumerate().filter(|(_, path)| !matches(path)) {
        faults.push((format!("examples.match[{at}]"), format!("{path} is not matched by {}", rule.path)));
    }
    for (at, path) in examples.no_match.iter().enumerate().filter(|(_, path)| matches(path)) {
        faults.push((format!("examples.no_match[{at}]"), format!("{path} is matched by {}", rule.path)));
    }
    faults
}
