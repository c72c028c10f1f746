//! The origin's files: a catalogue of symbols, a list of kits, a book of personas, and the defaults of a session.
//!
//! Reading gives documents for the shelf; writing gives the same shapes back. Knows nothing of where the files lie.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::change::Kind;
use super::symbol::Symbol;
use acheron_base::{Error, Result};

/// The most documents in one file.
const MOST: usize = 200_000;

/// The four texts of a catalogue; each may be absent.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    pub symbols: Option<String>,
    pub kits: Option<String>,
    pub agents: Option<String>,
    pub defaults: Option<String>,
}

/// What every session begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Defaults {
    #[serde(default)]
    pub default_agent_ids: Vec<String>,
    #[serde(default)]
    pub default_symbol_ids: Vec<String>,
}

/// What is shipped in the program, from `global-library/catalogue/`.
pub fn shipped() -> Texts {
    let text = |text: &str| Some(text.to_owned());
    Texts {
        symbols: text(include_str!("../../../global-library/catalogue/symbol_catalog.json")),
        kits: text(include_str!("../../../global-library/catalogue/kits.json")),
        agents: text(include_str!("../../../global-library/catalogue/agents.json")),
        defaults: text(include_str!("../../../global-library/catalogue/default_context_config.json")),
    }
}

/// Reads symbols, kits and agents, in that order.
pub fn documents(texts: &Texts) -> Result<Vec<(Kind, Value)>> {
    let mut all = Vec::new();
    if let Some(text) = &texts.symbols {
        all.extend(symbols(&parsed("the catalogue", text)?)?.into_iter().map(|body| (Kind::Symbol, body)));
    }
    if let Some(text) = &texts.kits {
        all.extend(kits(&parsed("the list of kits", text)?)?.into_iter().map(|body| (Kind::Kit, body)));
    }
    if let Some(text) = &texts.agents {
        all.extend(agents(&parsed("the book of personas", text)?)?.into_iter().map(|body| (Kind::Agent, body)));
    }
    if all.len() > MOST {
        return Err(Error::too_large(format!("{} documents are more than {MOST}", all.len())));
    }
    Ok(all)
}

/// The symbols of `{"symbols": [...]}`.
pub fn symbols(file: &Value) -> Result<Vec<Value>> {
    match file.get("symbols") {
        Some(Value::Array(symbols)) => Ok(symbols.clone()),
        Some(_) => Err(Error::invalid("the catalogue's 'symbols' must be a list")),
        None => Err(Error::invalid("the catalogue is missing 'symbols' key")),
    }
}

/// The kits of a plain list.
pub fn kits(file: &Value) -> Result<Vec<Value>> {
    let list = if file.is_object() { file.get("kits").unwrap_or(file) } else { file };
    list.as_array().cloned().ok_or_else(|| Error::invalid("the kits must be a list"))
}

/// The agents of `{"personas": [...]}`; a book without personas has none.
pub fn agents(file: &Value) -> Result<Vec<Value>> {
    match file.get("personas") {
        None | Some(Value::Null) => Ok(vec![]),
        Some(Value::Array(personas)) => Ok(personas.clone()),
        Some(_) => Err(Error::invalid("the 'personas' must be a list")),
    }
}

/// Reads `default_context_config.json`.
pub fn defaults(text: &str) -> Result<Defaults> {
    serde_json::from_str(text).map_err(|_| Error::invalid("default context configuration is malformed"))
}

/// Writes symbols, kits and agents as the origin's programs read them: a triad is a string there.
pub fn exported(symbols: &[Value], kits: &[Value], agents: &[Value]) -> Value {
    let symbol = |body: &Value| {
        let mut body = body.clone();
        if let (Ok(symbol), Some(fields)) = (Symbol::read(&body), body.as_object_mut())
            && !symbol.triad.is_empty()
        {
            fields.insert("triad".to_owned(), json!(symbol.triad.join(" ")));
        }
        body
    };
    json!({
        "symbol_catalog.json": { "symbols": symbols.iter().map(symbol).collect::<Vec<_>>() },
        "kits.json": kits,
        "agents.json": { "system": "acheron", "personas": agents },
    })
}

fn parsed(what: &str, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|fault| Error::invalid(format!("{what} is not JSON: {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::symbols::kit::{Agent, Kit};
    use std::collections::{HashMap, HashSet};

    #[test]
    fn a_catalogue_without_symbols_is_refused() {
        assert_eq!(symbols(&json!({})).unwrap_err().message, "the catalogue is missing 'symbols' key");
        assert!(symbols(&json!({"symbols": 7})).is_err());
    }

    #[test]
    fn kits_that_are_no_list_are_refused() {
        assert!(kits(&json!({"kit":"A"})).is_err());
        assert_eq!(kits(&json!([{"kit":"A"}])).unwrap().len(), 1);
    }

    #[test]
    fn a_book_without_personas_has_no_agents() {
        assert_eq!(agents(&json!({"system":"x"})).unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn malformed_defaults_are_refused_in_the_known_words() {
        for text in ["{\"default_agent_ids\":\"A\"}", "[]x", "{\"default_symbol_ids\":[1]}"] {
            assert_eq!(defaults(text).unwrap_err().message, "default context configuration is malformed");
        }
        assert_eq!(defaults("{\"default_agent_ids\":[\"A\"]}").unwrap().default_agent_ids, ["A"]);
    }

    #[test]
    fn what_is_exported_can_be_imported_again() {
        let written = [json!({"id":"A","triad":["x","y","z"],"mood":1}), json!({"id":"B","triad":"⟐⇌"})];
        let first: Vec<Value> = written.iter().map(|body| Symbol::read(body).unwrap().json()).collect();
        let file = exported(&first, &[], &[]);
        assert_eq!(file["symbol_catalog.json"]["symbols"][0]["triad"], "x y z");
        let again = symbols(&file["symbol_catalog.json"]).unwrap();
        let second: Vec<Value> = again.iter().map(|body| Symbol::read(body).unwrap().json()).collect();
        assert_eq!(first, second);
    }

    #[test]
    fn what_we_ship_is_whole() {
        let all = documents(&shipped()).unwrap();
        let of = |kind| all.iter().filter(move |(other, _)| *other == kind).map(|(_, body)| body);
        let symbols: HashMap<String, Symbol> = of(Kind::Symbol)
            .map(|body| Symbol::read(body).unwrap())
            .map(|symbol| (symbol.id.clone(), symbol))
            .collect();
        let agents: Vec<Agent> = of(Kind::Agent).map(|body| Agent::read(body).unwrap()).collect();
        let kits: Vec<Kit> = of(Kind::Kit).map(|body| Kit::read(body).unwrap()).collect();
        assert!(symbols.len() >= 30 && kits.len() >= 3 && agents.len() >= 4);
        assert_eq!(symbols.len(), of(Kind::Symbol).count(), "no id twice");
        for symbol in symbols.values() {
            assert!(symbol.validated(), "{}", symbol.id);
            assert!(symbol.links().iter().all(|link| symbols.contains_key(*link)), "{}", symbol.id);
            assert!(!symbol.links().is_empty(), "{} leads nowhere", symbol.id);
        }
        let agent_ids: HashSet<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
        assert!(agents.iter().flat_map(|agent| &agent.linked_personas).all(|id| agent_ids.contains(id.as_str())));
        for kit in &kits {
            for name in kit.triad.iter().chain(&kit.exec) {
                let agent = agents.iter().any(|agent| super::super::kit::means(name, &agent.id));
                assert!(agent || symbols.contains_key(name), "{} of kit {}", name, kit.kit);
            }
        }
        let defaults = defaults(&shipped().defaults.unwrap()).unwrap();
        assert!(defaults.default_symbol_ids.iter().all(|id| symbols.contains_key(id)));
        assert!(defaults.default_agent_ids.iter().all(|id| agent_ids.contains(id.as_str())));
    }
}
