//! The service `symbols`: the symbol store as operations and files.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::backend::Filter;
use super::bulk::{RefusedDocument, sorted_out};
use super::catalogue;
use super::change::{By, DocumentKind, DocumentRecord, LedgerEntry};
use super::files;
use super::index::{SymbolHit, Within};
use super::store::{Author, SymbolStore};
use super::symbol::Symbol;
use super::wanted::WantedChange;
use crate::contract::Operation;
use crate::jobs::Job;
use crate::policy::PrincipalCaller;
use crate::service::{Cx, Service, WriteCx};
use acheron_base::{Clock, Error, Result};
use acheron_vfs::{Caller, Node};

/// The most documents that one call lists.
const MOST_LISTED: usize = 50;
/// The most symbols that one walk meets.
const WALK_LIMIT: usize = 256;

/// The symbols of the host.
pub struct Symbols {
    symbol_store: Arc<SymbolStore>,
}

impl Symbols {
    pub fn new(symbol_store: Arc<SymbolStore>) -> Symbols {
        Symbols { symbol_store }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Finds symbols by words: by BM25 and the similarity of vectors, best first.
    Search {
        query: String,
        /// How many, at most 50.
        #[serde(default)]
        k: Option<usize>,
        #[serde(default)]
        domain: Option<String>,
        #[serde(default)]
        tag: Option<String>,
    },
    /// Fetches documents by id; what is missing is named.
    Get {
        ids: Vec<String>,
        #[serde(default)]
        kind: DocumentKind,
    },
    /// Lists documents in the order of their ids.
    List {
        #[serde(default)]
        kind: DocumentKind,
        #[serde(default)]
        domain: Option<String>,
        #[serde(default)]
        tag: Option<String>,
        /// Begin after this id.
        #[serde(default)]
        after: Option<String>,
        /// How many, at most 50.
        #[serde(default)]
        limit: Option<usize>,
    },
    /// Stores a document as its next version.
    Put {
        body: Value,
        #[serde(default)]
        kind: DocumentKind,
        #[serde(default)]
        reason: String,
    },
    /// Merges fields over a document.
    Update {
        body: Value,
        #[serde(default)]
        kind: DocumentKind,
        #[serde(default)]
        reason: String,
    },
    /// Takes a document away. Its ledger stays, so that it can be undone.
    Delete {
        id: String,
        #[serde(default)]
        kind: DocumentKind,
        #[serde(default)]
        reason: String,
    },
    /// Goes back by any number of changes, or to a version. A second undo goes on where the first one ended.
    Undo {
        id: String,
        #[serde(default)]
        kind: DocumentKind,
        /// How many changes; 1 if absent.
        #[serde(default)]
        changes: Option<u64>,
        /// Go to what the document was at this version instead, back or forward.
        #[serde(default)]
        to_version: Option<u64>,
        #[serde(default)]
        reason: String,
    },
    /// Shows every change of a document: who, when, why, and the remarks made on it.
    Ledger {
        id: String,
        #[serde(default)]
        kind: DocumentKind,
    },
    /// Walks the links of some symbols.
    Walk {
        ids: Vec<String>,
        /// How many links deep, at most 5.
        #[serde(default)]
        depth: Option<usize>,
    },
    /// Shows a kit with what its names lead to.
    Kit { id: String },
    /// Imports a catalogue, kits and personas in the format of `export`. A faulty entry is named, and the rest is stored.
    Import {
        /// Such as `{"symbols": [{"id": "other-one-001"}]}`.
        #[serde(default)]
        catalogue: Option<Value>,
        /// Such as `[{"kit": "Other Kit", "exec": ["other-one-001"]}]`.
        #[serde(default)]
        kits: Option<Value>,
        /// Such as `{"personas": [{"id": "OTHER-01", "name": "Other"}]}`.
        #[serde(default)]
        agents: Option<Value>,
        /// Whether to replace what is there already.
        #[serde(default)]
        replace: bool,
        /// Whether one faulty entry keeps all the others out.
        #[serde(default)]
        all_or_none: bool,
    },
    /// Exports everything as three documents: catalogue, kits and agents.
    Export {},
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct SymbolHits {
    hits: Vec<SymbolMatch>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Match")]
struct SymbolMatch {
    #[serde(flatten)]
    hit: SymbolHit,
    symbol: Symbol,
}

#[derive(Serialize, JsonSchema)]
pub struct Documents {
    items: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Stored {
    id: String,
    version: u64,
    /// The document as it is now; null if it is gone.
    body: Option<Value>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Deleted")]
pub struct DeletedDocument {
    status: &'static str,
    id: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Changes {
    changes: Vec<LedgerEntry>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Way")]
pub struct WalkResult {
    /// In the order met, without the symbols it began at.
    symbols: Vec<Symbol>,
    /// The ids to begin at that there are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// Links that lead to nothing.
    dangling: Vec<String>,
    /// Whether there was more than one call shows.
    cut: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Imported {
    stored: usize,
    kept: usize,
    /// The entries that are no documents.
    refused: Vec<RefusedDocument>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Found(SymbolHits),
    Documents(Documents),
    Stored(Stored),
    Deleted(DeletedDocument),
    Changes(Changes),
    Way(WalkResult),
    Imported(Imported),
    Plain(Value),
}

#[async_trait]
impl Service for Symbols {
    const NAME: &'static str = "symbols";
    const ABOUT: &'static str = "Keeps symbols, the links between them, kits and agents: searched by words, walked by \
        links, every change with its author and undoable.\n\n\
        `items/<id>.json` is read only: `put`, `update` and `undo` change one, and note who did it and why. All agents \
        share the symbols: an agent changes those that it made, the operator all of them.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::read("search").example(json!({"query": "mend trust", "k": 3})).gives::<SymbolHits>(),
            Operation::read("get").example(json!({"ids": ["ACH-Trust-Repair-005"]})).gives::<Documents>(),
            Operation::read("list").example(json!({"domain": "root", "limit": 5})).gives::<Documents>(),
            Operation::write("put")
                .example(json!({"body": {"id": "my-first-001", "name": "Mine", "linked_patterns": ["ACH-Trust-Repair-005"]}}))
                .gives::<Stored>(),
            Operation::write("update")
                .example(json!({"body": {"id": "my-first-001", "macro": "look → see"}, "reason": "clearer"}))
                .gives::<Stored>(),
            Operation::write("delete").example(json!({"id": "my-first-001"})).gives::<DeletedDocument>(),
            Operation::write("undo").example(json!({"id": "my-first-001"})).gives::<Stored>(),
            Operation::read("ledger").example(json!({"id": "my-first-001"})).gives::<Changes>(),
            Operation::read("walk").example(json!({"ids": ["ACH-Trust-Repair-005"], "depth": 1})).gives::<WalkResult>(),
            Operation::read("kit").example(json!({"id": "Repair Kit"})).gives::<Value>(),
            Operation::execute("import").example(json!({"catalogue": {"symbols": [{"id": "other-one-001"}]}})).gives::<Imported>(),
            Operation::read("export").example(json!({})).gives::<Value>(),
        ]
    }

    fn is_local(&self) -> bool {
        self.symbol_store.backend().is_local()
    }

    fn files(&self) -> Vec<(String, Node)> {
        files::nodes(&self.symbol_store)
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        match command {
            Command::Search { k, .. } => bounded("k", k, 5).map(drop),
            Command::List { limit, .. } => bounded("limit", limit, 20).map(drop),
            Command::Import { catalogue, kits, agents, all_or_none, .. } => {
                importable(catalogue, kits, agents, all_or_none).map(drop)
            }
            change @ (Command::Put { .. } | Command::Update { .. } | Command::Delete { .. } | Command::Undo { .. }) => {
                wanted(change).map(drop)
            }
            _ => Ok(()),
        }
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        ready(&self.symbol_store).await?;
        let author = |reason: String| author(&cx.caller, &cx.job, &cx.clock, reason);
        let symbol_store = &*self.symbol_store;
        Ok(match command {
            Command::Search { query, k, domain, tag } => {
                let k = bounded("k", k, 5)?;
                let within = Within { domain: domain.as_deref(), tag: tag.as_deref() };
                let hits = symbol_store.search(&query, k, &within).await?;
                Output::Found(SymbolHits {
                    hits: hits.into_iter().map(|(hit, symbol)| SymbolMatch { hit, symbol }).collect(),
                })
            }
            Command::Get { ids, kind } => Output::Documents(get(symbol_store, kind, ids).await?),
            Command::List { kind, domain, tag, after, limit } => {
                let limit = bounded("limit", limit, 20)?;
                let items = symbol_store.list(kind, &Filter { domain, tag }, after.as_deref(), limit).await?;
                Output::Documents(Documents {
                    items: items.into_iter().map(|record| record.body).collect(),
                    missing: vec![],
                })
            }
            Command::Ledger { id, kind } => {
                let changes = symbol_store.backend().ledger(kind, &id).await?;
                if changes.is_empty() {
                    return Err(Error::not_found(format!("no change is recorded of a {} {id}", kind.name())));
                }
                Output::Changes(Changes { changes })
            }
            Command::Walk { ids, depth } => {
                let found = symbol_store.symbols(&ids).await?;
                let missing: Vec<String> =
                    ids.into_iter().zip(&found).filter(|(_, symbol)| symbol.is_none()).map(|(id, _)| id).collect();
                let roots: Vec<Symbol> = found.into_iter().flatten().collect();
                if roots.is_empty() && !missing.is_empty() {
                    return Err(Error::not_found(format!("there is no symbol {}", missing.join(", "))));
                }
                let walked = symbol_store.walk(&roots, depth.unwrap_or(1).min(5), WALK_LIMIT).await?;
                Output::Way(WalkResult { symbols: walked.symbols, missing, dangling: walked.dangling, cut: walked.cut })
            }
            Command::Kit { id } => {
                let found = symbol_store.kit(&id).await?;
                let kit = found.ok_or_else(|| Error::not_found(format!("there is no kit {id}")))?;
                let (symbols, agents) = (&kit.symbols, &kit.agents);
                Output::Plain(
                    json!({"kit": kit.kit, "symbols": symbols, "agents": agents, "unresolved": kit.unresolved}),
                )
            }
            Command::Import { catalogue, kits, agents, replace, all_or_none } => {
                let (documents, refused) = importable(catalogue, kits, agents, all_or_none)?;
                let taken = symbol_store.put_many(&documents, !replace, &author("imported".to_owned())).await?;
                Output::Imported(Imported { stored: taken.stored, kept: taken.kept, refused })
            }
            change @ (Command::Put { .. } | Command::Update { .. } | Command::Delete { .. } | Command::Undo { .. }) => {
                let (wanted, reason) = wanted(change)?;
                changed(&wanted, symbol_store.change(&wanted, &author(reason)).await?)
            }
            Command::Export {} => {
                let bodies = async |kind| -> Result<Vec<Value>> {
                    Ok(symbol_store.all(kind).await?.into_iter().map(|record| record.body).collect())
                };
                let (symbols, kits) = (bodies(DocumentKind::Symbol).await?, bodies(DocumentKind::Kit).await?);
                Output::Plain(catalogue::exported(&symbols, &kits, &bodies(DocumentKind::Agent).await?))
            }
        })
    }

    fn write(&self, cx: &WriteCx<'_>, command: Command) -> Result<Output> {
        let (wanted, reason) = wanted(command)?;
        let author = author(cx.caller, cx.job, cx.clock, reason);
        Ok(changed(&wanted, self.symbol_store.change_in(cx.commit, &wanted, &author)?))
    }
}

/// The change that a command asks for, and its reason.
fn wanted(command: Command) -> Result<(WantedChange, String)> {
    Ok(match command {
        Command::Put { body, kind, reason } => (WantedChange::put(kind, &body)?, reason),
        Command::Update { body, kind, reason } => (WantedChange::update(kind, &body, |_| Ok(()))?, reason),
        Command::Delete { id, kind, reason } => (WantedChange::delete(kind, &id)?, reason),
        Command::Undo { changes: Some(_), to_version: Some(_), .. } => {
            return Err(Error::invalid("give changes or to_version, not both"));
        }
        Command::Undo { id, kind, to_version: Some(version), reason, .. } => {
            (WantedChange::to_version(kind, &id, version)?, reason)
        }
        Command::Undo { id, kind, changes, reason, .. } => {
            (WantedChange::undo(kind, &id, changes.unwrap_or(1))?, reason)
        }
        _ => return Err(Error::internal("symbols: this command is not a change")),
    })
}

fn changed(wanted: &WantedChange, stored: Option<DocumentRecord>) -> Output {
    match stored {
        Some(DocumentRecord { id, version, body }) => Output::Stored(Stored { id, version, body: Some(body) }),
        None if wanted.deletes() => Output::Deleted(DeletedDocument { status: "deleted", id: wanted.id.clone() }),
        None => Output::Stored(Stored { id: wanted.id.clone(), version: 0, body: None }),
    }
}

fn author(caller: &Caller, job: &Job, clock: &Clock, reason: String) -> Author {
    let by = By { who: caller.principal().to_string(), run: job.id.clone(), ..By::default() };
    Author::new(by, clock.now_ms()).because(reason)
}

/// Stores the shipped catalogue if it is missing.
pub async fn ready(symbol_store: &SymbolStore) -> Result<()> {
    let documents = catalogue::documents(symbol_store.catalogue())?;
    symbol_store.ready(&documents, &Author::new(By::who("catalogue"), 0).because("shipped")).await
}

async fn get(symbol_store: &SymbolStore, kind: DocumentKind, ids: Vec<String>) -> Result<Documents> {
    let found = symbol_store.backend().get(kind, &ids).await?;
    let missing: Vec<String> =
        ids.iter().zip(&found).filter(|(_, record)| record.is_none()).map(|(id, _)| id.clone()).collect();
    let items: Vec<Value> = found.into_iter().flatten().map(|record| record.body).collect();
    if items.is_empty() && !missing.is_empty() {
        return Err(Error::not_found(format!("there is no {} {}", kind.name(), missing.join(", "))));
    }
    Ok(Documents { items, missing })
}

fn bounded(name: &str, asked: Option<usize>, usual: usize) -> Result<usize> {
    match asked.unwrap_or(usual) {
        0 => Err(Error::invalid(format!("{name} must be at least 1"))),
        asked if asked > MOST_LISTED => Err(Error::invalid(format!("{name} is {asked}, over {MOST_LISTED}"))),
        asked => Ok(asked),
    }
}

/// Documents, and the entries that are none.
type SortedDocuments = (Vec<(DocumentKind, Value)>, Vec<RefusedDocument>);

/// The documents to import, and the entries that are none.
fn importable(
    catalogue: Option<Value>,
    kits: Option<Value>,
    agents: Option<Value>,
    all_or_none: bool,
) -> Result<SortedDocuments> {
    let (documents, refused) = sorted_out(documents(catalogue, kits, agents)?);
    match refused.first() {
        Some(first) if all_or_none || documents.is_empty() => {
            let more = refused.len() - 1;
            Err(Error::invalid(format!("nothing is imported: {first} ({more} more are faulty)")))
        }
        _ => Ok((documents, refused)),
    }
}

fn documents(
    catalogue: Option<Value>,
    kits: Option<Value>,
    agents: Option<Value>,
) -> Result<Vec<(DocumentKind, Value)>> {
    let mut all = Vec::new();
    if let Some(file) = catalogue {
        all.extend(catalogue::symbols(&file)?.into_iter().map(|body| (DocumentKind::Symbol, body)));
    }
    if let Some(file) = kits {
        all.extend(catalogue::kits(&file)?.into_iter().map(|body| (DocumentKind::Kit, body)));
    }
    if let Some(file) = agents {
        all.extend(catalogue::agents(&file)?.into_iter().map(|body| (DocumentKind::Agent, body)));
    }
    match all.is_empty() {
        true => Err(Error::invalid("there is nothing to import: give catalogue, kits or agents")),
        false => Ok(all),
    }
}
