//! The shelf as files: `items/<id>.json`, `kits/`, `agents/`, `domains.json`.
//!
//! Names come from memory, bodies from the backend when somebody reads them.

use std::sync::Arc;

use super::change::Kind;
use super::shelf::Shelf;
use acheron_base::Error;
use acheron_vfs::{Answer, ComputedFile, Node, VirtualDir, line, pretty};

/// What stands beside the contract files.
pub fn nodes(shelf: &Arc<Shelf>) -> Vec<(String, Node)> {
    let domains = {
        let shelf = shelf.clone();
        ComputedFile::fetched(move |_| {
            let shelf = shelf.clone();
            Answer::soon(async move { Ok(line(&shelf.backend().domains().await?)) })
        })
    };
    let dir = |name: &str, kind| (name.to_owned(), documents(shelf, kind));
    vec![
        dir("items", Kind::Symbol),
        dir("kits", Kind::Kit),
        dir("agents", Kind::Agent),
        ("domains.json".to_owned(), Node::file(domains)),
    ]
}

fn documents(shelf: &Arc<Shelf>, kind: Kind) -> Node {
    let (names, found) = (shelf.clone(), shelf.clone());
    Node::dir(VirtualDir::new(
        move || names.names(kind).into_iter().map(|id| format!("{id}.json")).collect(),
        move |name| {
            let id = name.strip_suffix(".json")?;
            found.has(kind, id).then(|| Node::file(document(&found, kind, id)))
        },
    ))
}

fn document(shelf: &Arc<Shelf>, kind: Kind, id: &str) -> ComputedFile {
    let (shelf, id) = (shelf.clone(), id.to_owned());
    ComputedFile::fetched(move |_| {
        let (shelf, id) = (shelf.clone(), id.clone());
        Answer::soon(async move {
            let record = shelf.get(kind, &id).await?;
            let record = record.ok_or_else(|| Error::not_found(format!("{} {id} is gone", kind.name())))?;
            Ok(pretty(&record.body))
        })
    })
}
