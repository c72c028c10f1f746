//! Many documents at once: what is shipped, what is imported.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::change::{DocumentKind, Edit, LedgerAction, last_version, version_of};
use super::ownership::may_change;
use super::store::{Author, SymbolStore, canonical, entry};
use super::symbol::merged;
use acheron_base::Result;

/// How many documents go into one transaction.
const BATCH: usize = 1000;

/// The result of storing many documents at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkResult {
    pub stored: usize,
    /// Those that were there already and were left alone.
    pub kept: usize,
}

/// An entry of an import that is no document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedDocument {
    pub kind: DocumentKind,
    /// Its place in its list, from 0.
    pub index: usize,
    /// Its id, if it has one.
    pub id: Option<String>,
    pub message: String,
}

impl std::fmt::Display for RefusedDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.id.as_ref().map_or(String::new(), |id| format!(" ({id})"));
        write!(f, "{} {}{id}: {}", self.kind.name(), self.index, self.message)
    }
}

/// The entries that are documents, and those that are none, with their places.
pub fn sorted_out(written: Vec<(DocumentKind, Value)>) -> (Vec<(DocumentKind, Value)>, Vec<RefusedDocument>) {
    let (mut good, mut refused) = (Vec::new(), Vec::new());
    let mut places: HashMap<DocumentKind, usize> = HashMap::new();
    for (kind, value) in written {
        let place = places.entry(kind).or_default();
        let index = std::mem::replace(place, *place + 1);
        match canonical(kind, &value) {
            Ok(_) => good.push((kind, value)),
            Err(fault) => {
                let id = value.get("id").or_else(|| value.get("kit")).and_then(Value::as_str);
                let id = id.map(|id| id.chars().take(128).collect());
                refused.push(RefusedDocument { kind, index, id, message: fault.message });
            }
        }
    }
    (good, refused)
}

impl SymbolStore {
    /// Puts in what is shipped, unless it is or was there, and looks at everything once. Later calls cost little; after an
    /// outage, or when the store was emptied, the next call tries again.
    pub async fn ready(&self, shipped: &[(DocumentKind, Value)], author: &Author) -> Result<()> {
        let mut seeded = self.seeded.lock().await;
        if seeded.is_some() && *seeded == Some(self.backend().epoch().await?) {
            return Ok(());
        }
        self.put_many(shipped, true, author).await?;
        self.written.set(self.backend().written().await?);
        self.catch_up().await?;
        *seeded = Some(self.backend().epoch().await?);
        Ok(())
    }

    /// Stores many documents in few transactions. With `keep`, one that is there, or was deleted, stays as it is.
    pub async fn put_many(&self, written: &[(DocumentKind, Value)], keep: bool, author: &Author) -> Result<BulkResult> {
        let mut documents: Vec<(DocumentKind, String, Value)> = Vec::new();
        for (kind, value) in written {
            let (id, body) = canonical(*kind, value)?;
            documents.push((*kind, id, body));
        }
        if !keep {
            for (kind, id, _) in &documents {
                let ledger = self.backend().ledger(*kind, id).await?;
                may_change(&format!("{} {id}", kind.name()), &ledger, author)?;
            }
        }
        let mut taken = BulkResult::default();
        for batch in batches(&documents) {
            let mut edits = Vec::new();
            let mut there = HashMap::new();
            for kind in DocumentKind::ALL {
                let ids: Vec<String> =
                    batch.iter().filter(|(other, ..)| *other == kind).map(|(_, id, _)| id.clone()).collect();
                let found = self.backend().get(kind, &ids).await?;
                there.extend(found.into_iter().flatten().map(|record| ((kind, record.id.clone()), record)));
            }
            for (kind, id, body) in batch {
                let now = there.remove(&(*kind, id.clone()));
                let last = match &now {
                    Some(record) => record.version,
                    None => last_version(&self.backend().ledger(*kind, id).await?),
                };
                if keep && last > 0 {
                    taken.kept += 1;
                    continue;
                }
                let version = if last == 0 { version_of(body).max(1) } else { last + 1 };
                let body = merged(body, &json!({ "version": version }));
                let change = entry(*kind, id, version, LedgerAction::Put, author, Some(body));
                edits.push(Edit { expected: now.map_or(0, |record| record.version), change });
            }
            self.commit(&edits, author).await?;
            edits.iter().for_each(|edit| self.name(edit.change.kind, &edit.change.id, true));
            taken.stored += edits.len();
        }
        Ok(taken)
    }
}

/// Parts documents into batches of one transaction each, in none of which an id stands twice.
fn batches(documents: &[(DocumentKind, String, Value)]) -> Vec<&[(DocumentKind, String, Value)]> {
    let mut batches = Vec::new();
    let mut start = 0;
    let mut seen = HashSet::new();
    for (place, (kind, id, _)) in documents.iter().enumerate() {
        if seen.len() == BATCH || !seen.insert((*kind, id)) {
            batches.push(&documents[start..place]);
            start = place;
            seen = HashSet::from([(*kind, id)]);
        }
    }
    batches.push(&documents[start..]);
    batches
}
