//! `projects/`: directories of this machine, by name.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::House;
use super::binds::{self, Place};
use super::mirror::{Mirror, Over};
use super::watch::{Tell, Watching};
use crate::fuse::Mount;
use crate::spec::Project;
use crate::vfs::{Listing, Node, pretty, text};

/// The directory, and what notices changes below it.
#[derive(Default)]
pub struct Projects {
    listing: Arc<Listing>,
    watching: Mutex<Option<Watching>>,
}

impl Projects {
    pub fn clear(&self) {
        self.listing.clear();
        *self.watching.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

pub fn directory(house: &Arc<House>) -> Arc<Listing> {
    for (id, project) in &house.spec.projects {
        house.projects.listing.put(id, Node::dir(one(&house.here, id, project)));
    }
    house.projects.listing.clone()
}

/// Shows the projects named as the mountspec reads now; returns what went wrong.
pub fn show(house: &Arc<House>, changed: &BTreeSet<String>) -> Vec<String> {
    if changed.is_empty() {
        return Vec::new();
    }
    let (spec, listing) = (house.current.spec(), &house.projects.listing);
    let mount = house.gate.mount();
    for id in changed {
        if let Some(mount) = &mount {
            binds::undo(mount, id);
        }
        match spec.projects.get(id) {
            Some(project) => listing.put(id, Node::dir(one(&house.here, id, project))),
            None => _ = listing.take(id),
        }
    }
    let Some(mount) = mount else { return Vec::new() };
    bind(house, &mount, |place| place.project().is_some_and(|id| changed.contains(id)))
}

/// Puts the directories themselves over the tree where this process may, and notices changes in all of them.
pub fn bind(house: &Arc<House>, mount: &Mount, which: impl Fn(&Place) -> bool) -> Vec<String> {
    let places = binds::places(&house.current.spec(), &house.here);
    let mut faults = Vec::new();
    if binds::may_mount() {
        let wanted: Vec<Place> = places.iter().filter(|place| which(place)).cloned().collect();
        for (_, error) in binds::make(mount, &wanted) {
            tracing::warn!(%error, "shown through the mount instead");
            faults.push(error.message);
        }
    }
    let watching = super::watch::watch(&places, &tell(house));
    *house.projects.watching.lock().unwrap_or_else(PoisonError::into_inner) = Some(watching);
    faults
}

/// Tells the agents of a project what changed in it.
fn tell(house: &Arc<House>) -> Tell {
    let house = Arc::downgrade(house);
    Arc::new(move |project: &str, path: &str, what| {
        let Some(house) = house.upgrade() else { return };
        for (id, profile) in house.roster.all() {
            if profile.spec.projects.iter().any(|own| own == project)
                && let Ok(diary) = house.diaries.of(&id)
            {
                diary.changed(path, what.clone());
            }
        }
    })
}

fn one(here: &Path, id: &str, project: &Project) -> Listing {
    let binds: Vec<_> = project
        .binds
        .iter()
        .map(|(at, bind)| json!({ "bind_path": at, "target_path": bind.path, "read_only": bind.read_only }))
        .collect();
    let readme = format!("# {id}\n\n{}\n\n`meta.json` tells which directories it binds.\n", project.about);
    Listing::default()
        .file("README.md", text(readme))
        .file("meta.json", text(pretty(&json!({ "project_id": id, "about": project.about, "binds": binds }))))
        .with("fs", fs(here, project))
}

/// `fs`: the directories themselves. One that cannot be opened is told of and stays empty.
fn fs(here: &Path, project: &Project) -> Node {
    let mut base = None;
    let places = Listing::default();
    for (at, bind) in &project.binds {
        let source = here.join(&bind.path);
        let mirror = match Mirror::open(&source, bind.read_only) {
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
        Some(base) => Node::dir(Over { base, places }),
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
