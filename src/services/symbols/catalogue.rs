//! The origin's files: a catalogue of symbols, a list of kits, a list of personas, and the defaults of a session.
//!
//! Reading gives documents for the symbol store; writing gives the same shapes back. Knows nothing of where the files lie.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::change::DocumentKind;
use super::symbol::Symbol;
use acheron_base::{Error, Result};

/// The most documents in one file.
const MOST: usize = 200_000;

/// The four texts of a catalogue; each may be absent.
#[derive(Clone, Debug, Default)]
pub struct CatalogueTexts {
    pub symbols: Option<String>,
    pub kits: Option<String>,
    pub agents: Option<String>,
    pub defaults: Option<String>,
}

/// The symbols and agents with which every session begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Defaults {
    #[serde(default)]
    pub default_agent_ids: Vec<String>,
    #[serde(default)]
    pub default_symbol_ids: Vec<String>,
}

/// The catalogue that is shipped in the program, from `global-library/catalogue/`.
pub fn shipped() -> CatalogueTexts {
    let text = |text: &str| Some(text.to_owned());
    CatalogueTexts {
        symbols: text(include_str!("../../../global-library/catalogue/symbol_catalog.json")),
        kits: text(include_str!("../../../global-library/catalogue/kits.json")),
        agents: text(include_str!("../../../global-library/catalogue/agents.json")),
        defaults: text(include_str!("../../../global-library/catalogue/default_context_config.json")),
    }
}

/// The catalogue of a library folder (`catalogue/`); a file that it lacks is the program's.
pub fn of_library(folder: Option<&std::path::Path>) -> Result<CatalogueTexts> {
    let shipped = shipped();
    Ok(CatalogueTexts {
        symbols: own(folder, "symbol_catalog.json", shipped.symbols)?,
        kits: own(folder, "kits.json", shipped.kits)?,
        agents: own(folder, "agents.json", shipped.agents)?,
        defaults: own(folder, DEFAULTS, shipped.defaults)?,
    })
}

const DEFAULTS: &str = "default_context_config.json";

/// A file of the catalogue of a library; the program's if the library has none.
fn own(folder: Option<&std::path::Path>, name: &str, shipped: Option<String>) -> Result<Option<String>> {
    match folder.map(|folder| folder.join("catalogue").join(name)) {
        Some(path) if path.is_file() => Ok(Some(std::fs::read_to_string(path)?)),
        _ => Ok(shipped),
    }
}

/// The defaults of a library as they are now.
pub fn defaults_of_library(folder: Option<&std::path::Path>) -> Result<Defaults> {
    let text = own(folder, DEFAULTS, shipped().defaults)?;
    text.as_deref().map(defaults).transpose().map(Option::unwrap_or_default)
}

/// Reads symbols, kits and agents, in that order.
pub fn documents(texts: &CatalogueTexts) -> Result<Vec<(DocumentKind, Value)>> {
    let mut all = Vec::new();
    if let Some(text) = &texts.symbols {
        all.extend(symbols(&parsed("the catalogue", text)?)?.into_iter().map(|body| (DocumentKind::Symbol, body)));
    }
    if let Some(text) = &texts.kits {
        all.extend(kits(&parsed("the list of kits", text)?)?.into_iter().map(|body| (DocumentKind::Kit, body)));
    }
    if let Some(text) = &texts.agents {
        all.extend(agents(&parsed("the list of personas", text)?)?.into_iter().map(|body| (DocumentKind::Agent, body)));
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
    let malformed = |why| Error::invalid(format!("default context configuration is malformed: {why}"));
    serde_json::from_str(text).map_err(malformed)
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
mod tests;
