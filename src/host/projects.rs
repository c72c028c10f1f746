//! `projects/`: directories of this machine, by name.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::House;
use super::binds::{self, Place as Bound};
use super::mirror::{Mirror, Over};
use super::watch::{self, Stale, Tell, Watching};
use crate::error::Result;
use crate::fuse::Mount;
use crate::place::Place;
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

pub fn directory(house: &Arc<House>) -> Result<Arc<Listing>> {
    for (id, project) in &house.current.spec().projects {
        put_project(house, id, project)?;
    }
    Ok(house.projects.listing.clone())
}

/// Shows the projects named as the mountspec reads now; returns what went wrong.
pub fn show(house: &Arc<House>, changed: &BTreeSet<String>) -> Vec<String> {
    if changed.is_empty() {
        return Vec::new();
    }
    let (spec, mount) = (house.current.spec(), house.gate.mount());
    let mut faults = Vec::new();
    for id in changed {
        if let Some(mount) = &mount {
            binds::undo(mount, id);
        }
        match spec.projects.get(id) {
            Some(project) => faults.extend(put_project(house, id, project).err().map(|error| error.message)),
            None => _ = house.projects.listing.take(id),
        }
    }
    if let Some(mount) = mount {
        faults.extend(bind(house, &mount, |bound| bound.project().is_some_and(|id| changed.contains(id))));
    }
    faults
}

fn put_project(house: &Arc<House>, id: &str, project: &Project) -> Result<()> {
    let home = Arc::new(one(house, id, project));
    // Names that agents have given to other places, beside `fs`.
    let read_only = project.binds.values().all(|bind| bind.read_only);
    let kept = Place::create(house.state.join("projects").join(id))?;
    house.shared.bindings.settle(&format!("/projects/{id}"), &home, kept, read_only)?;
    house.projects.listing.put(id, Node::Dir(home));
    Ok(())
}

/// Puts the directories themselves over the tree where this process may, and notices changes in all of them.
pub fn bind(house: &Arc<House>, mount: &Arc<Mount>, which: impl Fn(&Bound) -> bool) -> Vec<String> {
    let all = binds::places(&house.current.spec(), &house.here);
    let mut faults = Vec::new();
    if binds::may_mount() {
        let wanted: Vec<Bound> = all.iter().filter(|bound| which(bound)).cloned().collect();
        for (_, error) in binds::make(mount, &wanted) {
            tracing::warn!(%error, "shown through the mount instead");
            faults.push(error.message);
        }
    }
    let watching = watch::watch(&all, &house.state, &tell(house), &stale(mount));
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

/// Tells the kernel what it may have kept of a file that was changed.
fn stale(mount: &Arc<Mount>) -> Stale {
    let mount = Arc::downgrade(mount);
    Arc::new(move |changed: watch::Changed<'_>| {
        let Some(mount) = mount.upgrade() else { return };
        match changed {
            watch::Changed::File(file) => mount.changed(file),
            watch::Changed::Everything(directory) => mount.all_changed(directory),
        }
    })
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
