//! The symbols, kits and agents as one thing to ask: a backend, and an index that follows it.
//!
//! Every change goes through [`SymbolStore::change`], which numbers it and tries again after a concurrent change. The index
//! is brought up to date from the backend's own list of changes, so it also sees what other hosts did.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify};

use super::backend::{Backend, Filter};
use super::catalogue::{self, CatalogueTexts};
use super::change::{By, DocumentKind, DocumentRecord, Edit, LedgerAction, LedgerEntry};
use super::index::{Index, SymbolHit, Within};
use super::kit::{Agent, Kit, means};
use super::ownership::WrittenBytes;
use super::symbol::{Symbol, check_id};
use super::walk::{Walk, Walked};
use super::wanted::WantedChange;
use crate::state::quota::Quotas;
use acheron_base::{Code, Error, Result};

/// How many documents are fetched at once.
const PAGE: usize = 1000;
/// The number of attempts when the same document is changed concurrently.
const TRIES: usize = 8;

/// How often changes of other hosts are looked for without being told of them.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How long after a lost connection another one is tried.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// The author, time and reason of a change.
#[derive(Clone, Debug, Default)]
pub struct Author {
    pub by: By,
    pub at_ms: u64,
    pub reason: String,
}

impl Author {
    pub fn new(by: By, at_ms: u64) -> Author {
        Author { by, at_ms, reason: String::new() }
    }

    pub fn because(mut self, reason: impl Into<String>) -> Author {
        self.reason = reason.into();
        self
    }
}

/// A kit with what its names lead to.
#[derive(Clone, Debug, Default)]
pub struct ResolvedKit {
    pub kit: Kit,
    pub symbols: Vec<Symbol>,
    pub agents: Vec<Agent>,
    pub unresolved: Vec<String>,
}

pub struct SymbolStore {
    backend: Arc<dyn Backend>,
    index: Mutex<FollowedIndex>,
    /// The names of all documents, for listings, which must not wait.
    names: RwLock<BTreeSet<(DocumentKind, String)>>,
    /// The history that has the catalogue already.
    pub(super) seeded: Mutex<Option<String>>,
    /// What an empty store is filled with.
    catalogue: CatalogueTexts,
    /// What each agent has written.
    pub(super) written: WrittenBytes,
}

/// The index, and how much of the backend's history it contains; none before the first read.
#[derive(Default)]
struct FollowedIndex {
    index: Index,
    seen: Option<u64>,
    /// The history that it was read from.
    epoch: String,
}

impl SymbolStore {
    pub fn new(backend: Arc<dyn Backend>) -> SymbolStore {
        let (index, names, seeded) = (Mutex::default(), RwLock::default(), Mutex::default());
        let written = WrittenBytes::default();
        SymbolStore { backend, index, names, seeded, catalogue: catalogue::shipped(), written }
    }

    /// The same store, to be filled with another catalogue than the program's.
    pub fn with_catalogue(self, catalogue: CatalogueTexts) -> SymbolStore {
        SymbolStore { catalogue, ..self }
    }

    /// The same store, with the limits of what agents keep.
    pub fn with_quotas(self, quotas: Arc<Quotas>) -> SymbolStore {
        SymbolStore { written: WrittenBytes::new(quotas), ..self }
    }

    /// Makes changes, if their author may write as much.
    pub(super) async fn commit(&self, edits: &[Edit], author: &Author) -> Result<()> {
        let bytes = self.written.check(author, edits.iter().map(|edit| &edit.change))?;
        self.backend.commit(edits).await?;
        self.written.add(author, bytes);
        Ok(())
    }

    pub fn catalogue(&self) -> &CatalogueTexts {
        &self.catalogue
    }

    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// The ids of a kind, sorted, as far as this host knows.
    pub fn names(&self, kind: DocumentKind) -> Vec<String> {
        let names = self.names.read();
        let from = (kind, String::new());
        names.range(from..).take_while(|(other, _)| *other == kind).map(|(_, id)| id.clone()).collect()
    }

    pub fn has(&self, kind: DocumentKind, id: &str) -> bool {
        self.names.read().contains(&(kind, id.to_owned()))
    }

    /// The document of that kind and id.
    pub async fn get(&self, kind: DocumentKind, id: &str) -> Result<Option<DocumentRecord>> {
        Ok(self.backend.get(kind, &[id.to_owned()]).await?.pop().flatten())
    }

    /// The symbols of these ids, in the order asked.
    pub async fn symbols(&self, ids: &[String]) -> Result<Vec<Option<Symbol>>> {
        let records = self.backend.get(DocumentKind::Symbol, ids).await?;
        Ok(records.into_iter().map(|record| Symbol::read(&record?.body).ok()).collect())
    }

    pub async fn agent(&self, id: &str) -> Result<Option<Agent>> {
        self.get(DocumentKind::Agent, id).await?.map(|record| Agent::read(&record.body)).transpose()
    }

    pub async fn list(
        &self,
        kind: DocumentKind,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DocumentRecord>> {
        self.backend.page(kind, filter, after, limit).await
    }

    /// Makes one change; tries again after a concurrent one. The document as it is then, if it is.
    pub async fn change(&self, wanted: &WantedChange, author: &Author) -> Result<Option<DocumentRecord>> {
        let (kind, id) = (wanted.kind, &wanted.id);
        for _ in 0..TRIES {
            let now = self.get(kind, id).await?;
            let ledger = self.backend.ledger(kind, id).await?;
            let edit = wanted.edit(now.as_ref(), &ledger, author)?;
            let body = edit.change.body.clone();
            match self.commit(&[edit], author).await {
                Ok(()) => {
                    self.name(kind, id, body.is_some());
                    return Ok(body.map(|body| DocumentRecord::of(id, body)));
                }
                Err(fault) if fault.code == Code::Conflict => (), // a concurrent change: look again
                Err(fault) => return Err(fault),
            }
        }
        Err(Error::busy(format!("{} {id} kept changing while it was being changed", kind.name())))
    }

    pub async fn put(&self, kind: DocumentKind, written: &Value, author: &Author) -> Result<DocumentRecord> {
        let stored = self.change(&WantedChange::put(kind, written)?, author).await?;
        stored.ok_or_else(|| Error::internal("a stored document has no record"))
    }

    pub async fn update(
        &self,
        kind: DocumentKind,
        update: &Value,
        author: &Author,
        accept: impl Fn(&Value) -> Result<()> + Send + Sync + 'static,
    ) -> Result<DocumentRecord> {
        let stored = self.change(&WantedChange::update(kind, update, accept)?, author).await?;
        stored.ok_or_else(|| Error::internal("an updated document has no record"))
    }

    /// Takes a document away; whether it was there.
    pub async fn delete(&self, kind: DocumentKind, id: &str, author: &Author) -> Result<bool> {
        match self.change(&WantedChange::delete(kind, id)?, author).await {
            Ok(_) => Ok(true),
            Err(fault) if fault.code == Code::NotFound => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Goes back by some changes. The document as it is then, if it is.
    pub async fn undo(
        &self,
        kind: DocumentKind,
        id: &str,
        changes: u64,
        author: &Author,
    ) -> Result<Option<DocumentRecord>> {
        self.change(&WantedChange::undo(kind, id, changes)?, author).await
    }

    /// Writes a remark into the ledger of a document; whether that document is there.
    pub async fn feedback(&self, kind: DocumentKind, id: &str, author: &Author) -> Result<bool> {
        check_id(id)?;
        let now = self.get(kind, id).await?;
        let version = now.as_ref().map_or(0, |record| record.version);
        let change = entry(kind, id, version, LedgerAction::Feedback, author, None);
        self.commit(&[Edit { expected: version, change }], author).await?;
        Ok(now.is_some())
    }

    /// The symbols nearest to a text, best first.
    pub async fn search(&self, query: &str, k: usize, within: &Within<'_>) -> Result<Vec<(SymbolHit, Symbol)>> {
        let hits = {
            let mut followed = self.index.lock().await;
            self.follow(&mut followed).await?;
            followed.index.search(query, k, within)
        };
        let ids: Vec<String> = hits.iter().map(|hit| hit.id.clone()).collect();
        let found = self.symbols(&ids).await?;
        Ok(hits.into_iter().zip(found).filter_map(|(hit, symbol)| Some((hit, symbol?))).collect())
    }

    /// Walks the links of `roots`.
    pub async fn walk(&self, roots: &[Symbol], depth: usize, room: usize) -> Result<Walked> {
        let mut walk = Walk::new(roots, depth, room);
        while !walk.wanted().is_empty() {
            let found = self.symbols(walk.wanted()).await?;
            walk.found(found);
        }
        Ok(walk.end())
    }

    /// A kit, with the symbols and agents that its names lead to.
    pub async fn kit(&self, id: &str) -> Result<Option<ResolvedKit>> {
        let Some(record) = self.get(DocumentKind::Kit, id).await? else { return Ok(None) };
        let kit = Kit::read(&record.body)?;
        let mut resolved = ResolvedKit::default();
        let names: Vec<String> = kit.wanted().into_iter().map(str::to_owned).collect();
        let symbols = self.symbols(&names).await?;
        let agents = self.agents().await?;
        for (name, symbol) in names.into_iter().zip(symbols) {
            let agent = agents.iter().find(|agent| agent.id == name);
            let agent = agent.or_else(|| agents.iter().find(|agent| means(&name, &agent.id)));
            match (symbol, agent) {
                (Some(symbol), _) => resolved.symbols.push(symbol),
                (None, Some(agent)) => resolved.agents.push(agent.clone()),
                (None, None) => resolved.unresolved.push(name),
            }
        }
        Ok(Some(ResolvedKit { kit, ..resolved }))
    }

    /// Every agent there is, up to a page of them.
    pub async fn agents(&self) -> Result<Vec<Agent>> {
        let records = self.backend.page(DocumentKind::Agent, &Filter::default(), None, PAGE).await?;
        Ok(records.iter().filter_map(|record| Agent::read(&record.body).ok()).collect())
    }

    /// Every document of a kind, page by page.
    pub async fn all(&self, kind: DocumentKind) -> Result<Vec<DocumentRecord>> {
        let mut all: Vec<DocumentRecord> = Vec::new();
        loop {
            let after = all.last().map(|record| record.id.clone());
            let page = self.backend.page(kind, &Filter::default(), after.as_deref(), PAGE).await?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }

    /// Sees what there is, for searches and listings.
    pub(super) async fn catch_up(&self) -> Result<()> {
        self.follow(&mut *self.index.lock().await).await
    }

    /// Follows what other hosts change, as long as the store is there, so that its listings show it.
    pub fn follow_others(self: &Arc<Self>) {
        let (store, backend) = (Arc::downgrade(self), self.backend.clone());
        tokio::spawn(async move {
            let heard = Notify::new();
            let follow = async {
                loop {
                    // Now and then without being told, so that a store that is gone is noticed.
                    tokio::time::timeout(LOOK_EVERY, heard.notified()).await.ok();
                    let Some(store) = store.upgrade() else { return };
                    if let Err(fault) = store.catch_up().await {
                        tracing::debug!(event = "symbol_store.not_followed", %fault);
                    }
                }
            };
            let listen = async {
                loop {
                    if let Err(fault) = backend.listen(&heard).await {
                        tracing::debug!(event = "symbol_store.not_heard", %fault);
                    }
                    tokio::time::sleep(LISTEN_AGAIN).await;
                }
            };
            tokio::select! {
                () = follow => (),
                () = listen => (),
            }
        });
    }

    /// Brings the index and the names to where the backend is.
    async fn follow(&self, followed: &mut FollowedIndex) -> Result<()> {
        let epoch = self.backend.epoch().await?;
        if let Some(seen) = followed.seen.filter(|_| followed.epoch == epoch) {
            let (count, changed) = self.backend.since(seen).await?;
            if let Some(changed) = changed.filter(|_| count >= seen) {
                let changed: BTreeSet<(DocumentKind, String)> = changed.into_iter().collect();
                for kind in DocumentKind::ALL {
                    let ids: Vec<String> =
                        changed.iter().filter(|(other, _)| *other == kind).map(|(_, id)| id.clone()).collect();
                    self.look_again(followed, kind, &ids).await?;
                }
                followed.seen = Some(count);
                return Ok(());
            }
            // A history that became shorter is another history: a restored copy. One of which too much was forgotten is
            // read anew as well.
        }
        let (count, _) = self.backend.since(u64::MAX >> 1).await?;
        followed.index = Index::default();
        let mut names = BTreeSet::new();
        for kind in DocumentKind::ALL {
            for record in self.all(kind).await? {
                if let (DocumentKind::Symbol, Ok(symbol)) = (kind, Symbol::read(&record.body)) {
                    followed.index.put(&symbol);
                    // Others have their turn on this thread, however many symbols there are.
                    tokio::task::yield_now().await;
                }
                names.insert((kind, record.id));
            }
        }
        *self.names.write() = names;
        (followed.seen, followed.epoch) = (Some(count), epoch);
        Ok(())
    }

    /// Takes over what became of some documents.
    async fn look_again(&self, followed: &mut FollowedIndex, kind: DocumentKind, ids: &[String]) -> Result<()> {
        for ids in ids.chunks(PAGE) {
            for (id, record) in ids.iter().zip(self.backend.get(kind, ids).await?) {
                self.name(kind, id, record.is_some());
                if kind != DocumentKind::Symbol {
                    continue;
                }
                match record.and_then(|record| Symbol::read(&record.body).ok()) {
                    Some(symbol) => {
                        followed.index.put(&symbol);
                        tokio::task::yield_now().await;
                    }
                    None => {
                        followed.index.remove(id);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn name(&self, kind: DocumentKind, id: &str, there: bool) {
        let mut names = self.names.write();
        let key = (kind, id.to_owned());
        if there {
            names.insert(key)
        } else {
            names.remove(&key)
        };
    }
}

pub(super) fn entry(
    kind: DocumentKind,
    id: &str,
    version: u64,
    act: LedgerAction,
    author: &Author,
    body: Option<Value>,
) -> LedgerEntry {
    LedgerEntry {
        kind,
        id: id.to_owned(),
        version,
        act,
        by: author.by.clone(),
        at_ms: author.at_ms,
        reason: author.reason.clone(),
        undone: 0,
        body,
    }
}

/// The id and the canonical form of what someone wrote.
pub(super) fn canonical(kind: DocumentKind, written: &Value) -> Result<(String, Value)> {
    Ok(match kind {
        DocumentKind::Symbol => {
            let symbol = Symbol::read(written)?;
            (symbol.id.clone(), symbol.json())
        }
        DocumentKind::Kit => {
            let kit = Kit::read(written)?;
            (kit.kit.clone(), json!(kit))
        }
        DocumentKind::Agent => {
            let agent = Agent::read(written)?;
            (agent.id.clone(), json!(agent))
        }
    })
}
