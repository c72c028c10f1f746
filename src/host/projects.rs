//! `projects/`: directories of this machine, by name.

use std::sync::Arc;

use serde_json::json;

use super::mirror::{Mirror, Over};
use super::{House, binds};
use crate::error::Result;
use crate::place::Place;
use crate::spec::Project;
use crate::vfs::{Listing, Node, pretty, text};

pub fn directory(house: &Arc<House>) -> Result<Listing> {
    let listing = Listing::default();
    for (id, project) in &house.spec.projects {
        let home = Arc::new(one(house, id, project));
        // Names that agents have given to other places, beside `fs`.
        let read_only = project.binds.values().all(|bind| bind.read_only);
        let kept = Place::create(house.state.join("projects").join(id))?;
        house.shared.bindings.settle(&format!("/projects/{id}"), &home, kept, read_only)?;
        listing.put(id, Node::Dir(home));
    }
    Ok(listing)
}

fn one(house: &House, id: &str, project: &Project) -> Listing {
    let how = if binds::mirrored(project, &house.here) { "mirror" } else { "kernel" };
    let binds: Vec<_> = project
        .binds
        .iter()
        .map(|(at, bind)| {
            json!({ "bind_path": at, "target_path": bind.path, "read_only": bind.read_only, "shown_by": how })
        })
        .collect();
    let readme = format!("# {id}\n\n{}\n\n`meta.json` tells which directories it binds.\n", project.about);
    Listing::default()
        .file("README.md", text(readme))
        .file("meta.json", text(pretty(&json!({ "project_id": id, "about": project.about, "binds": binds }))))
        .with("fs", fs(house, project))
}

/// `fs`: the directories themselves. One that cannot be opened is told of and stays empty.
fn fs(house: &House, project: &Project) -> Node {
    let mut base = None;
    let places = Listing::default();
    for (at, bind) in &project.binds {
        let source = house.here.join(&bind.path);
        let source = house.mountpoint.as_ref().map_or(Ok(source.clone()), |at| binds::outside(&source, at));
        let mirror = match source.and_then(|source| Mirror::open(&source, bind.read_only)) {
            Ok(mirror) => mirror,
            Err(error) => {
                tracing::warn!(%error, "a directory of a project cannot be shown");
                continue;
            }
        };
        match at.trim_matches('/') {
            "" => base = Some(mirror),
            below => put(&places, below, Node::dir(mirror)),
        }
    }
    match base {
        Some(base) if places.names().is_empty() => Node::dir(base),
        Some(base) => Node::dir(Over { base, places: Arc::new(places) }),
        None => Node::dir(places),
    }
}

/// Puts a node at `a/b/c`, with plain directories on the way; in what is bound there already, it would not be seen.
fn put(listing: &Listing, path: &str, node: Node) {
    match path.split_once('/') {
        None => listing.put(path, node),
        Some((first, rest)) => {
            if listing.names().iter().any(|name| name == first) {
                tracing::warn!(
                    path,
                    "two binds of a project share a directory; the kernel shows both, the file tools the first"
                );
                return;
            }
            let inner = Listing::default();
            put(&inner, rest, node);
            listing.put(first, Node::dir(inner));
        }
    }
}
