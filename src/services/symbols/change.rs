//! The ledger of a document: one entry per version, with author, time and reason.
//!
//! The ledger of a document is the list of its changes; its present state is the body of the last one that has one to
//! say. Deleting leaves the ledger, so that everything can be undone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use acheron_base::{Error, Result};

/// The three kinds of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Kind")]
pub enum DocumentKind {
    #[default]
    Symbol,
    Kit,
    Agent,
}

impl DocumentKind {
    pub const ALL: [DocumentKind; 3] = [DocumentKind::Symbol, DocumentKind::Kit, DocumentKind::Agent];

    pub fn name(self) -> &'static str {
        match self {
            DocumentKind::Symbol => "symbol",
            DocumentKind::Kit => "kit",
            DocumentKind::Agent => "agent",
        }
    }

    pub fn named(name: &str) -> Option<DocumentKind> {
        DocumentKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Act")]
pub enum LedgerAction {
    Put,
    Delete,
    Undo,
    /// A remark on the document; its body stays as it was.
    Feedback,
}

/// The author of a change, and the run and phase in which it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct By {
    /// An agent, `operator`, or `catalogue` for what was shipped.
    pub who: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
}

impl By {
    pub fn who(who: impl Into<String>) -> By {
        By { who: who.into(), ..By::default() }
    }
}

/// One entry of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Change")]
pub struct LedgerEntry {
    pub kind: DocumentKind,
    pub id: String,
    /// The version that this change made; a remark carries the version that it is about.
    pub version: u64,
    pub act: LedgerAction,
    pub by: By,
    pub at_ms: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How many changes an undo took back. None for every other change, and for one that goes to a version.
    #[serde(default, skip_serializing_if = "is_none")]
    pub undone: u64,
    /// The document after the change; none when it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A change that is to be made, if the document still has the version that its author saw (0: it is not there).
#[derive(Clone, Debug)]
pub struct Edit {
    pub expected: u64,
    pub change: LedgerEntry,
}

/// A document as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentRecord {
    pub id: String,
    pub version: u64,
    pub body: Value,
}

impl DocumentRecord {
    /// Makes a record of a stored body, whose `version` says how often it changed.
    pub fn of(id: &str, body: Value) -> DocumentRecord {
        DocumentRecord { id: id.to_owned(), version: version_of(&body), body }
    }
}

pub fn version_of(body: &Value) -> u64 {
    body.get("version").and_then(Value::as_u64).unwrap_or(0)
}

/// The domain and tag by which a body is listed; both may be empty.
pub fn places(body: &Value) -> (&str, &str) {
    let text = |key| body.get(key).and_then(Value::as_str).unwrap_or_default();
    (text("symbol_domain"), text("symbol_tag"))
}

/// The last version in a ledger; 0 if there was none.
pub fn last_version(ledger: &[LedgerEntry]) -> u64 {
    ledger.iter().map(|change| change.version).max().unwrap_or(0)
}

/// The body to restore when the last `count` changes are undone: the one before them, if there was one.
///
/// An undo takes changes away, so that the next one goes on where it ended. Going forward again is a change to a version.
pub fn before(ledger: &[LedgerEntry], count: u64) -> Result<Option<Value>> {
    let mut standing: Vec<&LedgerEntry> = Vec::new();
    for change in ledger.iter().filter(|change| change.act != LedgerAction::Feedback) {
        match change.undone {
            0 => standing.push(change),
            undone => standing.truncate(standing.len().saturating_sub(undone as usize)),
        }
    }
    let left = (standing.len() as u64).checked_sub(count);
    match (standing.len(), left) {
        (0, _) => Err(Error::not_found("there is nothing to undo")),
        (1, None) => Err(Error::invalid(format!("{count} changes cannot be undone: there is 1"))),
        (all, None) => Err(Error::invalid(format!("{count} changes cannot be undone: there are {all}"))),
        (_, Some(0)) => Ok(None),
        (_, Some(left)) => Ok(standing[left as usize - 1].body.clone()),
    }
}

/// The body that a document had at a version; none if it was not there then.
pub fn at_version(ledger: &[LedgerEntry], version: u64) -> Result<Option<Value>> {
    let mut real = ledger.iter().filter(|change| change.act != LedgerAction::Feedback);
    let found = real.find(|change| change.version == version);
    found.map(|change| change.body.clone()).ok_or_else(|| Error::not_found(format!("there is no version {version}")))
}

#[cfg(test)]
mod tests;
