//! A change of a document that somebody wants, as a function of the document and its ledger. Both ways to make a change
//! use it: in a transaction of this host, and by a backend that other hosts change too.

use serde_json::{Value, json};

use super::change::{
    DocumentKind, DocumentRecord, Edit, LedgerAction, LedgerEntry, at_version, before, last_version, version_of,
};
use super::ownership::may_change;
use super::store::{Author, canonical, entry};
use super::symbol::{check_id, merged};
use acheron_base::{Error, Result};

/// The new version and body of a document; no body if it goes.
pub type NextVersion = (u64, Option<Value>);

type Decide = dyn Fn(Option<&DocumentRecord>, &[LedgerEntry]) -> Result<NextVersion> + Send + Sync;

pub struct WantedChange {
    pub kind: DocumentKind,
    pub id: String,
    act: LedgerAction,
    /// How many changes it takes back.
    undone: u64,
    decide: Box<Decide>,
}

impl WantedChange {
    fn new(
        kind: DocumentKind,
        id: &str,
        act: LedgerAction,
        decide: impl Fn(Option<&DocumentRecord>, &[LedgerEntry]) -> Result<NextVersion> + Send + Sync + 'static,
    ) -> Result<WantedChange> {
        check_id(id)?;
        Ok(WantedChange { kind, id: id.to_owned(), act, undone: 0, decide: Box::new(decide) })
    }

    /// Stores a document as it is written, under its own id, as its next version.
    pub fn put(kind: DocumentKind, written: &Value) -> Result<WantedChange> {
        let (id, body) = canonical(kind, written)?;
        let given = version_of(&body);
        WantedChange::new(kind, &id, LedgerAction::Put, move |_, ledger| {
            let version = if ledger.is_empty() { given.max(1) } else { last_version(ledger) + 1 };
            Ok((version, Some(body.clone())))
        })
    }

    /// Merges `update` over what is stored under its id, or stores it if there is nothing. `accept` may refuse the whole.
    pub fn update(
        kind: DocumentKind,
        update: &Value,
        accept: impl Fn(&Value) -> Result<()> + Send + Sync + 'static,
    ) -> Result<WantedChange> {
        let (id, _) = canonical(kind, update)?;
        let update = update.clone();
        WantedChange::new(kind, &id, LedgerAction::Put, move |now, ledger| {
            let whole = now.map_or_else(|| update.clone(), |now| merged(&now.body, &update));
            let (_, body) = canonical(kind, &whole)?;
            accept(&body)?;
            Ok((last_version(ledger) + 1, Some(body)))
        })
    }

    /// Takes a document away. Its ledger stays.
    pub fn delete(kind: DocumentKind, id: &str) -> Result<WantedChange> {
        let absent = format!("there is no {} {id}", kind.name());
        WantedChange::new(kind, id, LedgerAction::Delete, move |now, ledger| match now {
            Some(_) => Ok((last_version(ledger) + 1, None)),
            None => Err(Error::not_found(absent.as_str())),
        })
    }

    /// Goes back by some changes, as a change of its own.
    pub fn undo(kind: DocumentKind, id: &str, changes: u64) -> Result<WantedChange> {
        if changes == 0 {
            return Err(Error::invalid("changes must be at least 1"));
        }
        let about = format!("{} {id}", kind.name());
        let wanted = WantedChange::new(kind, id, LedgerAction::Undo, move |_, ledger| {
            let body = before(ledger, changes).map_err(|fault| fault.about(&about))?;
            Ok((last_version(ledger) + 1, body))
        })?;
        Ok(WantedChange { undone: changes, ..wanted })
    }

    /// Goes to what a document was at a version, back or forward, as a change of its own.
    pub fn to_version(kind: DocumentKind, id: &str, version: u64) -> Result<WantedChange> {
        let about = format!("{} {id}", kind.name());
        WantedChange::new(kind, id, LedgerAction::Undo, move |_, ledger| {
            let body = at_version(ledger, version).map_err(|fault| fault.about(&about))?;
            Ok((last_version(ledger) + 1, body))
        })
    }

    pub fn deletes(&self) -> bool {
        self.act == LedgerAction::Delete
    }

    /// What is to be stored, now that the document and its ledger are known.
    pub fn edit(&self, now: Option<&DocumentRecord>, ledger: &[LedgerEntry], author: &Author) -> Result<Edit> {
        may_change(&format!("{} {}", self.kind.name(), self.id), ledger, author)?;
        let (version, body) = (self.decide)(now, ledger)?;
        let body = body.map(|body| merged(&body, &json!({ "version": version })));
        let change = LedgerEntry { undone: self.undone, ..entry(self.kind, &self.id, version, self.act, author, body) };
        Ok(Edit { expected: now.map_or(0, |record| record.version), change })
    }
}
