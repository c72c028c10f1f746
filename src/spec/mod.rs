//! The mountspec: a namespace described by one JSON file, parsed into plain data.
//!
//! It is checked completely before anything is mounted: every fault is reported with its JSON path, and a misspelt key
//! with the nearest known one. Used by `agent`, `services`, `host` and `cli`. Uses `contract`, `policy`, `events` and
//! `model` for their types and checks; it builds nothing.

mod approvals;
mod fabric;
mod json;
mod network;
mod operation_schema;
mod partial;
mod project_dir;
mod sense;
#[cfg(test)]
mod tests;
pub mod types;

use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};

pub use crate::contract::ValueFault;
use crate::contract::{check, schema};
use acheron_base::{Error, Result};
pub use approvals::{ApprovalsSpec, NotifySpec};
pub use fabric::{FabricKind, FabricSpec, MAIL as OFFERED_MAIL, OfferSpec};
pub use network::NetworkAccess;
use partial::PartialSpec;
pub use project_dir::{ProjectDir, ServedBy};
pub use sense::{BUILT_IN, agent_faults, contract_of, effect_of, is_id, notes};
pub use types::*;

/// The only layout that this program supports.
pub const LAYOUT: &str = "acheron-1";
/// The default mountspec.
pub const DEFAULT: &str = include_str!("../../mountspec/default.json");
/// The size limit of a mountspec in bytes.
const LARGEST: u64 = 4 << 20;

/// A mountspec with faults.
pub struct FaultySpec {
    /// The parts that could be read: for further checks, never to be mounted.
    pub read: Option<Box<Spec>>,
    pub faults: Vec<ValueFault>,
}

impl Spec {
    /// Reads and checks a file; the error has one line per fault.
    pub fn load(path: &Path) -> Result<Spec> {
        let text = read(path)?;
        Spec::check(&text).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(|fault| format!("\n  {fault}")).collect();
            Error::invalid(format!("{} cannot be mounted:{}", path.display(), lines.concat()))
        })
    }

    /// Parses and checks a mountspec; the error lists all faults.
    pub fn check(text: &str) -> Result<Spec, Vec<ValueFault>> {
        Spec::check_parts(text).map_err(|faulty| faulty.faults)
    }

    /// [`check`](Spec::check), whose error also has the parts that could be read.
    pub fn check_parts(text: &str) -> Result<Spec, FaultySpec> {
        let (value, mut faults) = json::parse(text).map_err(|faults| FaultySpec { read: None, faults })?;
        // Reading the published one takes a tenth of the time of making it; a test compares the two.
        static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
            serde_json::from_str(include_str!("../../mountspec/SCHEMA.json")).unwrap_or_else(|_| Spec::schema())
        });
        let mut of_schema = check::faults(&SCHEMA, &SCHEMA, &value);
        of_schema.iter_mut().for_each(no_key_here);
        let read = match serde_json::from_value::<Spec>(value.clone()) {
            Ok(spec) => Ok(spec),
            Err(err) => Err((PartialSpec::read(value, &of_schema), err)),
        };
        faults.extend(of_schema);
        let read = match read {
            Ok(spec) => {
                faults.extend(sense::faults(&spec));
                if faults.is_empty() {
                    return Ok(spec);
                }
                Some(spec)
            }
            Err((_, err)) if faults.is_empty() => {
                faults.push(ValueFault { path: String::new(), message: err.to_string() });
                None
            }
            Err((partial, _)) => partial.map(|partial| {
                faults.extend(sense::faults(&partial.spec).into_iter().filter(|fault| partial.counts(fault)));
                partial.spec
            }),
        };
        Err(FaultySpec { read: read.map(Box::new), faults })
    }

    /// The JSON Schema of a mountspec, published as `mountspec/SCHEMA.json`.
    pub fn schema() -> Value {
        let mut page = json!({"$schema": schema::DIALECT, "title": "mountspec"});
        for (key, value) in
            schema::strict::<Spec>().as_object().into_iter().flatten().filter(|(key, _)| *key != "title")
        {
            page[key] = value.clone();
        }
        page
    }

    /// The agent that `agents/self` refers to for the operator: the one named, or the first.
    pub fn default_agent(&self) -> &str {
        let first = || self.agents.keys().next().map(String::as_str);
        self.default_agent.as_deref().or_else(first).unwrap_or_default()
    }

    /// The model of an agent: the default model with the agent's changes.
    pub fn model_of(&self, agent: &AgentSpec) -> ModelSpec {
        agent.model.over(&self.model)
    }
}

/// Says where a key belongs, if that is what an unknown key of the mountspec is.
fn no_key_here(fault: &mut ValueFault) {
    let name = fault.message.strip_prefix("unknown key `").and_then(|rest| rest.split('`').next());
    let is_key = name.is_some_and(|name| {
        let name = name.to_ascii_lowercase().replace(['-', '_'], "");
        name == "apikey" || name == "key" || name == "authtoken" || name == "token"
    });
    if is_key && fault.path.split('.').any(|part| part == "model" || part == "narrator") {
        fault.message = format!(
            "unknown key {}: the mountspec holds no secrets; set the variable of the provider in the environment of \
             `acheron mount` ({})",
            acheron_base::quoted(name.unwrap_or_default()),
            crate::model::server::key_variables()
        );
    }
}

/// The text of a mountspec: a regular file up to the size limit.
pub fn read(path: &Path) -> Result<String> {
    let told = |err: std::io::Error| Error::from(err).about(path.display());
    let meta = std::fs::metadata(path).map_err(told)?;
    if !meta.is_file() {
        return Err(Error::invalid(format!("{} is not a file", path.display())));
    }
    if meta.len() > LARGEST {
        return Err(Error::too_large(format!("{} is larger than {LARGEST} bytes", path.display())));
    }
    let bytes = std::fs::read(path).map_err(told)?;
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{} is not UTF-8 text", path.display())))
}
