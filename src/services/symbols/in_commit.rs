//! Changes of documents that are kept in the database of the host: part of the transaction of a call.

use std::sync::Arc;

use super::change::DocumentRecord;
use super::sqlite;
use super::store::{Author, SymbolStore};
use super::wanted::WantedChange;
use crate::events::Commit;
use acheron_base::Result;

impl SymbolStore {
    /// Makes one change in a transaction of the database in which this backend keeps its documents. The document as it is
    /// then, if it is.
    pub fn change_in(
        self: &Arc<Self>,
        commit: &Commit<'_>,
        wanted: &WantedChange,
        author: &Author,
    ) -> Result<Option<DocumentRecord>> {
        let (tx, kind) = (commit.tx(), wanted.kind);
        let now = sqlite::document(tx, kind, &wanted.id)?;
        let ledger = sqlite::ledger(tx, kind, &wanted.id)?;
        let edit = wanted.edit(now.as_ref(), &ledger, author)?;
        let bytes = self.written.check(author, [&edit.change])?;
        sqlite::apply(tx, &edit)?;
        let (symbol_store, id, body) = (self.clone(), wanted.id.clone(), edit.change.body);
        let there = body.is_some();
        let author = author.clone();
        commit.after(move || {
            symbol_store.name(kind, &id, there);
            symbol_store.written.add(&author, bytes);
        });
        Ok(body.map(|body| DocumentRecord::of(&wanted.id, body)))
    }
}
