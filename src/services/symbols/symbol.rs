//! A symbol: a pattern with an id, a macro and links to others.
//!
//! People and models write symbols loosely: a triad as a string or as a list, `links` for `linked_patterns`, nulls
//! everywhere. [`Symbol::read`] takes all of that and gives one canonical form; what it does not know is kept as it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use acheron_base::{Error, Result, quoted};

/// The most bytes that one symbol, kit or agent may have as JSON.
pub const LARGEST: usize = 64 * 1024;
/// The most links that one symbol may have.
pub const MOST_LINKS: usize = 1024;

/// A pattern that a run can load into its context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Symbol {
    /// Names the symbol for good, for example `ACH-Trust-Repair-004`.
    pub id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its steps: `detect(x) → log(x)`.
    #[serde(default, rename = "macro", skip_serializing_if = "String::is_empty")]
    pub recipe: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbolic_role: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure_mode: String,
    /// The three signs; a string is accepted and split at blanks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triad: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<String>,
    #[serde(default, skip_serializing_if = "Facets::is_empty")]
    pub facets: Facets,
    /// Ids of symbols that this one leads to; `links` is accepted too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked_patterns: Vec<String>,
    /// The older spelling of links; walked like `linked_patterns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lnk: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invocations: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol_domain: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol_tag: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// `validated` is the mark that a run must set before it may store a symbol.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<String>,
    /// Counted by the store; what a writer says here is only used for a symbol that is new.
    #[serde(default)]
    pub version: u64,
    /// Everything else that the writer said.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// How a symbol behaves, in a few fixed words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facets {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topology: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub substrate: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub temporal: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invariants: Vec<String>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Facets {
    fn is_empty(&self) -> bool {
        *self == Facets::default()
    }
}

const TEXTS: [&str; 9] = [
    "name",
    "description",
    "macro",
    "symbolic_role",
    "failure_mode",
    "symbol_domain",
    "symbol_tag",
    "origin",
    "status",
];
const LISTS: [&str; 7] = ["gate", "linked_patterns", "lnk", "invocations", "scope", "traits", "triad"];
const FACET_TEXTS: [&str; 4] = ["function", "topology", "commit", "temporal"];
const FACET_LISTS: [&str; 3] = ["gate", "substrate", "invariants"];

impl Symbol {
    /// Reads what someone wrote into the canonical form.
    pub fn read(value: &Value) -> Result<Symbol> {
        let mut fields = object(value, "symbol")?;
        id(&fields, "id", "symbol")?;
        if let Some(links) = fields.remove("links") {
            extend(&mut fields, "linked_patterns", links);
        }
        let invariants = fields.remove("invariants");
        let mut facets = match fields.remove("facets") {
            None => Map::new(),
            Some(Value::Object(facets)) => facets.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            Some(_) => return Err(Error::invalid("facets of a symbol must be an object")),
        };
        if let Some(invariants) = invariants {
            extend(&mut facets, "invariants", invariants);
        }
        if let Some(Value::String(triad)) = fields.get("triad") {
            let signs = triad.split([' ', ',', '\t', '\n']).filter(|sign| !sign.is_empty()).map(Value::from).collect();
            fields.insert("triad".to_owned(), Value::Array(signs));
        }
        shape(&mut fields, &TEXTS, &LISTS)?;
        shape(&mut facets, &FACET_TEXTS, &FACET_LISTS)?;
        fields.insert("facets".to_owned(), Value::Object(facets));
        if !fields.get("version").is_none_or(Value::is_u64) {
            fields.remove("version");
        }
        let symbol: Symbol = serde_json::from_value(Value::Object(fields))
            .map_err(|fault| Error::invalid(format!("the symbol does not fit its schema: {fault}")))?;
        if symbol.linked_patterns.len() + symbol.lnk.len() > MOST_LINKS {
            return Err(Error::too_large(format!("symbol {} has more than {MOST_LINKS} links", symbol.id)));
        }
        Ok(symbol)
    }

    /// Whether it carries the validated mark, in its status or among its traits.
    pub fn validated(&self) -> bool {
        let marked = |word: &String| word.trim().eq_ignore_ascii_case("validated");
        marked(&self.status) || self.traits.iter().any(marked)
    }

    /// Where it leads, in the order written, each once.
    pub fn links(&self) -> Vec<&str> {
        let mut seen = std::collections::HashSet::new();
        self.linked_patterns.iter().chain(&self.lnk).map(String::as_str).filter(|id| seen.insert(*id)).collect()
    }

    /// The symbol as JSON.
    pub fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null) // cannot: every field is plain data
    }
}

/// Merges an update over what is stored: a key of the update replaces that key, the rest stays.
pub fn merged(stored: &Value, update: &Value) -> Value {
    let mut whole = stored.as_object().cloned().unwrap_or_default();
    for (key, value) in update.as_object().into_iter().flatten() {
        whole.insert(key.clone(), value.clone());
    }
    Value::Object(whole)
}

/// The fields of a document that is an object of tolerable size, without its nulls.
pub(super) fn object(value: &Value, what: &str) -> Result<Map<String, Value>> {
    let Value::Object(fields) = value else {
        return Err(Error::invalid(format!("a {what} must be a JSON object")));
    };
    let size = value.to_string().len();
    if size > LARGEST {
        return Err(Error::too_large(format!("a {what} of {size} bytes is over the limit of {LARGEST}")));
    }
    Ok(fields.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// The id under `key`, checked.
pub(super) fn id(fields: &Map<String, Value>, key: &str, what: &str) -> Result<String> {
    let id = fields.get(key).and_then(Value::as_str).unwrap_or_default();
    check_id(id).map_err(|fault| fault.about(format_args!("{key} of a {what}")))?;
    Ok(id.to_owned())
}

/// An id becomes a file name (`items/<id>.json`) and a key of Redis, so it must be able to be both.
pub fn check_id(id: &str) -> Result<()> {
    let fault = if id.trim().is_empty() {
        "an id is missing or empty".to_owned()
    } else if id.len() > 200 {
        format!("an id of {} bytes is longer than 200", id.len())
    } else if id.starts_with('.') || id.contains('/') || id.chars().any(char::is_control) {
        format!("the id {} cannot be a file name: no slash, no control character, no leading dot", quoted(id))
    } else {
        return Ok(());
    };
    Err(Error::invalid(fault))
}

/// Brings texts to strings and lists to lists of strings.
pub(super) fn shape(fields: &mut Map<String, Value>, texts: &[&str], lists: &[&str]) -> Result<()> {
    for key in texts {
        if fields.get(*key).is_some_and(|value| !value.is_string()) {
            return Err(Error::invalid(format!("{key} must be a string")));
        }
    }
    for key in lists {
        let Some(value) = fields.get_mut(*key) else { continue };
        if let Value::String(one) = value {
            *value = Value::Array(vec![Value::from(one.as_str())]);
        }
        let strings = value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
        if !strings {
            return Err(Error::invalid(format!("{key} must be a list of strings")));
        }
    }
    Ok(())
}

fn extend(fields: &mut Map<String, Value>, key: &str, more: Value) {
    let list = |value: Value| match value {
        Value::Array(items) => items,
        Value::Null => vec![],
        one => vec![one],
    };
    let mut items = list(fields.remove(key).unwrap_or(Value::Null));
    for item in list(more) {
        if !items.contains(&item) {
            items.push(item);
        }
    }
    fields.insert(key.to_owned(), Value::Array(items));
}

#[cfg(test)]
mod tests;
