//! Kits and agents: a kit names symbols that belong together, an agent is a persona.
//!
//! Both are kept as documents, as symbols are. Which symbols and agents a kit's names lead to is asked here
//! ([`Kit::wanted`]) and answered by the owner of the store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::symbol::{id, object, shape};
use acheron_base::{Error, Result};

/// Symbols and agents that are loaded together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kit {
    /// The kit's name; it may hold blanks.
    pub kit: String,
    /// Ids of agents or symbols; `P003` also finds `<prefix>-P003`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triad: Vec<String>,
    /// An id, or only a sign that is shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub anchor: String,
    /// Ids of the symbols that do the work, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exec: Vec<String>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Kit {
    pub fn read(value: &Value) -> Result<Kit> {
        let mut fields = object(value, "kit")?;
        if !fields.contains_key("kit") {
            let id = fields.remove("kit_id").or_else(|| fields.remove("id"));
            fields.extend(id.map(|id| ("kit".to_owned(), id)));
        }
        id(&fields, "kit", "kit")?;
        shape(&mut fields, &["anchor"], &["triad", "exec"])?;
        serde_json::from_value(Value::Object(fields))
            .map_err(|fault| Error::invalid(format!("the kit does not fit its schema: {fault}")))
    }

    /// Every name in it, in order: triad, exec, anchor.
    pub fn wanted(&self) -> Vec<&str> {
        let names = self.triad.iter().chain(&self.exec).chain([&self.anchor]);
        names.map(String::as_str).filter(|name| !name.is_empty()).collect()
    }
}

/// A persona that a run can call into its roster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    pub id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call_phrase: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recursion_level: String,
    /// Its purpose; shown in the roster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure_mode: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub triad_raw: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked_personas: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activation_conditions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback_behavior: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub logging_level: String,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Agent {
    pub fn read(value: &Value) -> Result<Agent> {
        let mut fields = object(value, "agent")?;
        id(&fields, "id", "agent")?;
        let texts = ["name", "call_phrase", "role", "recursion_level", "function", "failure_mode", "logging_level"];
        shape(&mut fields, &texts, &["linked_personas", "activation_conditions", "fallback_behavior"])?;
        shape(&mut fields, &["triad_raw"], &[])?;
        serde_json::from_value(Value::Object(fields))
            .map_err(|fault| Error::invalid(format!("the agent does not fit its schema: {fault}")))
    }
}

/// Whether the short name of a kit (`P003`) means that agent (`SZ-P003`).
pub fn means(short: &str, id: &str) -> bool {
    id == short || id.strip_suffix(short).is_some_and(|prefix| prefix.ends_with('-'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kit_names_what_it_wants_in_order() {
        let kit = Kit::read(&json!({"kit":"A B","triad":["P003"],"anchor":"⟐","exec":["S1","S2"]})).unwrap();
        assert_eq!(kit.wanted(), ["P003", "S1", "S2", "⟐"]);
    }

    #[test]
    fn the_name_of_a_kit_has_three_spellings() {
        for written in [json!({"kit":"K"}), json!({"kit_id":"K"}), json!({"id":"K"})] {
            assert_eq!(Kit::read(&written).unwrap().kit, "K", "{written}");
        }
        assert!(Kit::read(&json!({"exec":[]})).is_err());
    }

    #[test]
    fn a_short_name_means_the_agent_behind_the_hyphen() {
        for (short, id, expected) in
            [("P003", "SZ-P003", true), ("P003", "P003", true), ("P003", "SZXP003", false), ("P00", "SZ-P003", false)]
        {
            assert_eq!(means(short, id), expected, "{short} {id}");
        }
    }

    #[test]
    fn an_agent_keeps_what_we_do_not_know() {
        let agent = Agent::read(&json!({"id":"A","mood":"calm","role":null})).unwrap();
        assert_eq!(serde_json::to_value(agent).unwrap(), json!({"id":"A","mood":"calm"}));
    }
}
