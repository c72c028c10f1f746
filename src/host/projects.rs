//! `projects/`: directories of this machine, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};

use super::HostState;
use super::binds;
use super::mirror::{Mirror, OverlayDir};
use super::protected_paths;
use super::views::{self, ProjectHome};
use super::watch::{self, MarkStale, NotifyChange, Watching};
use crate::policy::{self, Principal, PrincipalCaller};
use crate::spec::{Bind, ProjectDir, ProjectSpec};
use acheron_base::host_dir::Source;
use acheron_base::{Clock, ConfinedDir, Error, Result};
use acheron_fuse::Mount;
use acheron_vfs::{Caller, Listing, Node, live, pretty, text};

/// The directory, and what notices changes below it.
pub struct Projects {
    listing: Arc<Listing>,
    watching: Mutex<Option<Watching>>,
    /// Every directory that is bound, by its project and its place there, as it was found when it was bound.
    sources: RwLock<BTreeMap<(String, String), Source>>,
    /// Why a directory that exists is not shown, by its project.
    refused: RwLock<BTreeMap<String, Vec<String>>>,
}

impl Projects {
    pub fn new(clock: &Clock) -> Projects {
        Projects {
            listing: Arc::new(Listing::timed(clock)),
            watching: Mutex::default(),
            sources: RwLock::default(),
            refused: RwLock::default(),
        }
    }

    /// The directory that a project has at this place.
    pub fn source(&self, project: &str, at: &str) -> Option<Source> {
        let sources = self.sources.read();
        sources.get(&(project.to_owned(), at.to_owned())).cloned()
    }

    /// Why directories that exist are not shown.
    pub fn faults(&self) -> Vec<String> {
        self.refused.read().values().flatten().cloned().collect()
    }

    fn keep(&self, project: &str, at: &str, source: Option<Source>) {
        let mut sources = self.sources.write();
        match source {
            Some(source) => sources.insert((project.to_owned(), at.to_owned()), source),
            None => sources.remove(&(project.to_owned(), at.to_owned())),
        };
    }
}

pub fn directory(host: &Arc<HostState>) -> Result<Arc<Listing>> {
    for (id, project) in &host.current.spec().projects {
        put_project(host, id, project)?;
    }
    Ok(host.projects.listing.clone())
}

/// Shows the projects named as the mountspec reads now; returns what went wrong.
pub fn show(host: &Arc<HostState>, changed: &BTreeSet<String>) -> Vec<String> {
    if changed.is_empty() {
        return Vec::new();
    }
    let (spec, mount) = (host.current.spec(), host.mount.get());
    let mut faults = Vec::new();
    for id in changed {
        if let Some(mount) = &mount {
            binds::undo(mount, id);
        }
        match spec.projects.get(id) {
            Some(project) => faults.extend(put_project(host, id, project).err().map(|error| error.message)),
            None => {
                views::leave(host, id);
                _ = host.projects.listing.take(id);
                host.projects.refused.write().remove(id);
            }
        }
    }
    if let Some(mount) = mount {
        faults.extend(bind(host, &mount, |bound| changed.contains(&bound.project)));
        views::bind(host, &mount, |project| changed.contains(project));
    }
    faults
}

fn put_project(host: &Arc<HostState>, id: &str, project: &ProjectSpec) -> Result<()> {
    let home = one(host, id, project);
    let home = Arc::new(match views::directory(host, id)? {
        Some(views) => home.with("views", Node::Dir(views)),
        None => home,
    });
    // Names that agents have given to other places, beside `fs`.
    let kept = ConfinedDir::create(host.paths.state.join("projects").join(id))?;
    host.shared.bindings.settle(&format!("/projects/{id}"), &home, kept)?;
    let home = ProjectHome { listing: home, host: Arc::downgrade(host), project: id.to_owned() };
    host.projects.listing.put(id, Node::dir(home));
    Ok(())
}

/// Puts the directories themselves over the tree where this process may, and notices changes in all of them.
pub fn bind(host: &Arc<HostState>, mount: &Arc<Mount>, which: impl Fn(&ProjectDir) -> bool) -> Vec<String> {
    let all = places(host);
    let mut faults = Vec::new();
    if binds::may_mount() {
        let wanted: Vec<ProjectDir> = all.iter().filter(|bound| which(bound)).cloned().collect();
        for (_, error) in binds::make(mount, &wanted) {
            tracing::warn!(%error, "shown through the mount instead");
            faults.push(error.message);
        }
    }
    let watching = watch::watch(&all, &host.paths.state, &tell(host), &stale(mount));
    *host.projects.watching.lock() = Some(watching);
    faults
}

/// Every place that could be opened when it was bound, by the directory that it was then.
fn places(host: &HostState) -> Vec<ProjectDir> {
    let mut all = binds::all(&host.current.spec(), &host.paths.here);
    all.retain_mut(|bound| {
        let source = host.projects.source(&bound.project, &bound.at);
        source.map(|source| (bound.source, bound.id) = (source.path, Some(source.id))).is_some()
    });
    all
}

/// Emits an event to the agents of a project when it changes.
fn tell(host: &Arc<HostState>) -> NotifyChange {
    let host = Arc::downgrade(host);
    Arc::new(move |project: &str, path: &str, what| {
        let Some(host) = host.upgrade() else { return };
        views::touched(&host, project);
        let policy = host.access.policy();
        // A directory is shown for the sake of what lies in it; a file, or what is gone, only for its own.
        let found = host.context.tree().and_then(|tree| tree.find(&Caller::operator(), path));
        let shown = match found {
            Ok((_, Node::Dir(_))) => policy::sees,
            _ => policy::sees_file,
        };
        for (id, profile) in host.profiles.all() {
            if profile.spec.projects.iter().any(|own| own == project)
                // Not even the name of a hidden path is reported.
                && shown(&policy, &Principal::Agent(id.clone()), path)
                && let Ok(event_log) = host.context.event_logs.of(&id)
            {
                event_log.changed(path, what.clone());
            }
        }
    })
}

/// Invalidates the kernel's cache of a file that was changed.
fn stale(mount: &Arc<Mount>) -> MarkStale {
    let mount = Arc::downgrade(mount);
    Arc::new(move |changed: watch::DiskChange<'_>| {
        let Some(mount) = mount.upgrade() else { return };
        match changed {
            watch::DiskChange::File(file) => mount.changed(file),
            watch::DiskChange::Everything(directory) => mount.all_changed(directory),
        }
    })
}

fn one(host: &HostState, id: &str, project: &ProjectSpec) -> Listing {
    let how = if binds::mirrored(project, &host.paths.here) { "mirror" } else { "kernel" };
    let meta = meta(id, project, how);
    let readme = format!("# {id}\n\n{}\n\n`meta.json` tells which directories it binds.\n", project.about);
    Listing::timed(&host.context.clock)
        .file("README.md", text(readme))
        .file("meta.json", live(move |caller| Ok(pretty(&meta(*caller.principal() == Principal::Operator)))))
        .with("fs", fs(host, id, project))
}

/// `meta.json`. Paths of the host are for the operator alone.
fn meta(id: &str, project: &ProjectSpec, how: &'static str) -> impl Fn(bool) -> Value + Send + Sync + 'static {
    let (id, project) = (id.to_owned(), project.clone());
    move |operator| {
        let binds = project.binds.iter().map(|(at, bind)| {
            let path = operator.then_some(&bind.path);
            match path {
                Some(path) => {
                    json!({ "bind_path": at, "target_path": path, "read_only": bind.read_only, "shown_by": how })
                }
                None => json!({ "bind_path": at, "read_only": bind.read_only, "shown_by": how }),
            }
        });
        json!({ "project_id": id, "about": project.about, "binds": binds.collect::<Vec<_>>() })
    }
}

/// `fs`: the directories themselves. One that cannot be opened is logged and stays empty.
fn fs(host: &HostState, id: &str, project: &ProjectSpec) -> Node {
    let mut base = None;
    let places = Listing::default();
    let mut refused = Vec::new();
    for (at, bind) in &project.binds {
        let opened = find(host, bind).and_then(|source| Ok((Mirror::open(&source.path, bind.read_only)?, source)));
        let mirror = match opened {
            Ok((mirror, source)) => {
                host.projects.keep(id, at, Some(source));
                mirror
            }
            Err(error) => {
                host.projects.keep(id, at, None);
                tracing::warn!(%error, "a directory of a project cannot be shown");
                if host.paths.here.join(&bind.path).is_dir() {
                    refused.push(format!("projects.{id}: {}", error.message));
                }
                continue;
            }
        };
        match at.trim_matches('/') {
            "" => base = Some(mirror),
            below => put(&places, below, Node::dir(mirror)),
        }
    }
    host.projects.refused.write().insert(id.to_owned(), refused);
    match base {
        Some(base) if places.names().is_empty() => Node::dir(base),
        Some(base) => Node::dir(OverlayDir { base, places: Arc::new(places) }),
        None => Node::dir(places),
    }
}

/// A path without `..`, as its words say.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => (),
            part => plain.push(part),
        }
    }
    plain
}

/// The directory of a bind. What an agent can write does not say which one it is.
fn find(host: &HostState, bind: &Bind) -> Result<Source> {
    let path = plain(&host.paths.here.join(&bind.path));
    if let Some(at) = &host.paths.mountpoint {
        binds::outside(&path, at)?;
    }
    let source = Source::resolve(&path)?;
    let spec = host.current.spec();
    let written = spec.projects.values().flat_map(|project| project.binds.values()).filter(|bind| !bind.read_only);
    for other in written.filter_map(|bind| host.paths.here.join(&bind.path).canonicalize().ok()) {
        if protected_paths::led_by(&path, &other).is_some_and(|expected| expected != source.path) {
            let (path, other) = (path.display(), other.display());
            return Err(Error::forbidden(format!(
                "{path}: it leads through a link in {other}, which agents may write"
            )));
        }
    }
    Ok(source)
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
