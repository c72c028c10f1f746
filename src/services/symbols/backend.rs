//! Where documents are kept: one trait, several stores.
//!
//! A backend keeps documents and their ledgers, changes several at once or not at all, and tells what changed since one
//! looked. It knows nothing of what is in a document except its domain and its tag.

use async_trait::async_trait;
use tokio::sync::Notify;

use super::change::{DocumentKind, DocumentRecord, Edit, LedgerEntry};
use acheron_base::{Error, Result};

/// Which documents to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub domain: Option<String>,
    pub tag: Option<String>,
}

/// A place for documents.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Its display name: `sqlite`, `redis://host`.
    fn describe(&self) -> String;

    /// Whether it is the database of the host, so that a change can be part of a transaction there.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether it can be reached now; the error says why not.
    async fn answers(&self) -> Result<()> {
        Ok(())
    }

    /// The documents of these ids, in the order asked.
    async fn get(&self, kind: DocumentKind, ids: &[String]) -> Result<Vec<Option<DocumentRecord>>>;

    /// Documents in the order of their ids, beginning after `after`.
    async fn page(
        &self,
        kind: DocumentKind,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DocumentRecord>>;

    /// Makes all the changes, or none: `conflict` if one of the documents is not as its author saw it.
    async fn commit(&self, edits: &[Edit]) -> Result<()>;

    /// The ledger of a document, oldest first, whether or not the document is still there.
    async fn ledger(&self, kind: DocumentKind, id: &str) -> Result<Vec<LedgerEntry>>;

    /// The bytes of all ledgers by author, as far as they are known.
    async fn written(&self) -> Result<Vec<(String, u64)>> {
        Ok(Vec::new())
    }

    /// The domains of the symbols that there are, sorted.
    async fn domains(&self) -> Result<Vec<String>>;

    async fn count(&self, kind: DocumentKind) -> Result<usize>;

    /// The number of changes made so far, and what they were about after the first `seen`; none if that is not known any
    /// more.
    async fn since(&self, seen: u64) -> Result<(u64, Option<Vec<(DocumentKind, String)>>)>;

    /// The name of its history: a store that was emptied has another one. Empty if there is only one.
    async fn epoch(&self) -> Result<String> {
        Ok(String::new())
    }

    /// Notifies of changes that other hosts make, until it cannot any more; never returns where there are none.
    async fn listen(&self, _heard: &Notify) -> Result<()> {
        std::future::pending().await
    }
}

/// The sentence of a change that came too late.
pub fn conflict(edit: &Edit, found: u64) -> Error {
    let LedgerEntry { kind, id, .. } = &edit.change;
    let at = |version| if version == 0 { "absent".to_owned() } else { format!("at version {version}") };
    Error::conflict(format!("{} {id} is {}, not {} as expected", kind.name(), at(found), at(edit.expected)))
}
