//! The symbol store as files: `items/<id>.json`, `kits/`, `agents/`, `domains.json`.
//!
//! Names come from memory, bodies from the backend when they are read.

use std::sync::Arc;

use super::change::DocumentKind;
use super::store::SymbolStore;
use acheron_base::Error;
use acheron_vfs::{Answer, ComputedFile, Node, VirtualDir, line, pretty};

/// The files beside those of the contract.
pub fn nodes(symbol_store: &Arc<SymbolStore>) -> Vec<(String, Node)> {
    let domains = {
        let symbol_store = symbol_store.clone();
        ComputedFile::fetched(move |_| {
            let symbol_store = symbol_store.clone();
            Answer::soon(async move { Ok(line(&symbol_store.backend().domains().await?)) })
        })
    };
    let dir = |name: &str, kind| (name.to_owned(), documents(symbol_store, kind));
    vec![
        dir("items", DocumentKind::Symbol),
        dir("kits", DocumentKind::Kit),
        dir("agents", DocumentKind::Agent),
        ("domains.json".to_owned(), Node::file(domains)),
    ]
}

fn documents(symbol_store: &Arc<SymbolStore>, kind: DocumentKind) -> Node {
    let (names, found) = (symbol_store.clone(), symbol_store.clone());
    Node::dir(VirtualDir::new(
        move || names.names(kind).into_iter().map(|id| format!("{id}.json")).collect(),
        move |name| {
            let id = name.strip_suffix(".json")?;
            found.has(kind, id).then(|| Node::file(document(&found, kind, id)))
        },
    ))
}

fn document(symbol_store: &Arc<SymbolStore>, kind: DocumentKind, id: &str) -> ComputedFile {
    let (symbol_store, id) = (symbol_store.clone(), id.to_owned());
    ComputedFile::fetched(move |_| {
        let (symbol_store, id) = (symbol_store.clone(), id.clone());
        Answer::soon(async move {
            let record = symbol_store.get(kind, &id).await?;
            let record = record.ok_or_else(|| Error::not_found(format!("{} {id} is gone", kind.name())))?;
            Ok(pretty(&record.body))
        })
    })
}
