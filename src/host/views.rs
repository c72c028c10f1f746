//! Views in the tree, and in the sandboxes of agents: which agent works in which view, where views show, and what happens when
//! a base changes.

mod view_dir;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::{HostState, binds, upgrade};
use crate::policy::{Principal, PrincipalCaller};
use crate::service::{self, ServiceInstance, typed};
use crate::services::views::{SHARED, View, ViewService, ViewUsers, Views, ViewsParts, ViewsService};
use crate::spec::ViewMode;
use acheron_base::host_dir::Source;
use acheron_base::{Clock, Error, Result};
use acheron_fuse::Mount;
use acheron_vfs::{Caller, Dir as _, Listing, Node};
pub use view_dir::ProjectHome;
use view_dir::ViewDir;

/// Changes of a base within this time are taken over together.
const TOGETHER: Duration = Duration::from_millis(200);

/// The views of a host and where they show.
pub struct HostViews {
    pub views: Arc<Views>,
    /// `projects/<p>/views`, by project, with its base.
    listings: Mutex<BTreeMap<String, (PathBuf, Arc<Listing>)>>,
    /// Bases that have changed and are looked at soon.
    changed: Mutex<BTreeSet<PathBuf>>,
    /// Why views that agents should have could not be made.
    faults: Mutex<Vec<String>>,
}

impl HostViews {
    pub fn new(state: &Path, clock: &Clock) -> HostViews {
        let refused = (!binds::may_mount())
            .then(|| "views need the right to mount, which this host does not have: run acheron as root".to_owned());
        let views = Arc::new(Views::new(ViewsParts { state: state.to_owned(), clock: clock.clone(), refused }));
        HostViews { views, listings: Mutex::default(), changed: Mutex::default(), faults: Mutex::default() }
    }

    pub fn faults(&self) -> Vec<String> {
        self.faults.lock().clone()
    }

    /// The projects that show the views of this base.
    fn projects_of(&self, base: &Path) -> Vec<(String, Arc<Listing>)> {
        let listings = self.listings.lock();
        let own = listings.iter().filter(|(_, (of, _))| of == base);
        own.map(|(project, (_, listing))| (project.clone(), listing.clone())).collect()
    }
}

/// Reads the views of the state directory.
pub fn open(host: &Arc<HostState>) -> Result<()> {
    host.views.views.open(Arc::new(TreeUsers(Arc::downgrade(host))))
}

/// `projects/<id>/views`, with the views that there are; `None` for a project without a directory at its top.
pub fn directory(host: &HostState, id: &str) -> Result<Option<Arc<Listing>>> {
    let base = host.projects.source(id, "/").map(|source| source.path);
    // What it had views of may be another directory now. If not, programs go on in them.
    let before = host.views.listings.lock().get(id).map(|(base, _)| base.clone());
    if before.is_some() && before != base {
        leave(host, id);
    }
    let Some(base) = base else { return Ok(None) };
    let path = format!("/projects/{id}/views");
    let serve = typed(ViewsService::new(host.views.views.clone(), base.clone(), id.to_owned()))?;
    let instance = ServiceInstance::shared(&host.context, host.current.mounted_with.default_agent(), path, serve);
    let listing = Arc::new(service::directory(&instance));
    host.views.listings.lock().insert(id.to_owned(), (base.clone(), listing.clone()));
    for view in host.views.views.of(&base) {
        // One that cannot be mounted is shown with the reason.
        let mounted = if view.mounted().is_ok() { Ok(()) } else { view.mount() };
        if let Err(error) = mounted {
            tracing::warn!(%error, view = view.name(), "a view cannot be mounted");
        }
        put(host, id, &listing, &view)?;
    }
    Ok(Some(listing))
}

/// A project is gone: its views are unmounted, unless another project has the same directory. They are there again with it.
pub fn leave(host: &HostState, id: &str) {
    let gone = host.views.listings.lock().remove(id);
    let Some((base, _)) = gone else { return };
    if host.views.projects_of(&base).is_empty() {
        for view in host.views.views.of(&base) {
            _ = view.unmount(); // what is still mounted is mounted anew next time
        }
    }
}

/// Shows a view under its name.
fn put(host: &HostState, project: &str, listing: &Listing, view: &Arc<View>) -> Result<()> {
    let (name, agent) = (view.name(), view.record().agent);
    let path = format!("/projects/{project}/views/{name}");
    let fs = Node::dir(ViewDir::new(view.clone()));
    let serve = typed(ViewService::new(view.clone(), host.views.views.clone(), fs))?;
    let owner = agent.filter(|agent| host.profiles.has(agent));
    let owner = owner.unwrap_or_else(|| host.current.mounted_with.default_agent().to_owned());
    let instance = ServiceInstance::shared(&host.context, &owner, path, serve);
    listing.put(&name, Node::dir(service::directory(&instance)));
    Ok(())
}

/// Puts every mounted view over the tree, where the kernel shows it.
pub fn bind(host: &HostState, mount: &Mount, which: impl Fn(&str) -> bool) {
    for view in host.views.views.all() {
        bind_one(host, mount, &view, &which);
    }
}

fn bind_one(host: &HostState, mount: &Mount, view: &View, which: impl Fn(&str) -> bool) {
    let Ok(source) = view.mounted() else { return };
    for (project, _) in host.views.projects_of(&view.record().base).into_iter().filter(|(project, _)| which(project)) {
        let path = format!("/projects/{project}/views/{}/fs", view.name());
        mount.flush_notices();
        mount.protect(&path);
        if let Err(error) = binds::mount_over(mount.mountpoint(), &source, Path::new(&path), false) {
            mount.unprotect(&path);
            tracing::warn!(%error, "a view is shown through the mount instead");
        }
    }
}

/// The view that an agent works in, in this project; `None` if it works in the project itself. Helpers work in the view of the
/// agent that they work for.
pub fn of_agent(host: &HostState, agent: &str, project: &str) -> Result<Option<Arc<View>>> {
    let Some((base, name, owner)) = wanted(host, agent, project)? else { return Ok(None) };
    host.views.views.of_agent(&base, &name, owner.as_deref()).map(Some)
}

/// The same, without making one: quick.
fn known(host: &HostState, agent: &str, project: &str) -> Result<Option<Arc<View>>> {
    let Some((base, name, _)) = wanted(host, agent, project)? else { return Ok(None) };
    let view = host.views.views.get(&base, &name);
    view.map(Some).ok_or_else(|| Error::unavailable(format!("the view of {agent} is not there yet")))
}

fn wanted(host: &HostState, agent: &str, project: &str) -> Result<Option<(PathBuf, String, Option<String>)>> {
    let founder = host.profiles.founder(agent);
    let mode = host.profiles.get(&founder)?.spec.view;
    let (name, owner) = match mode {
        ViewMode::None => return Ok(None),
        ViewMode::Own => (founder.clone(), Some(founder)),
        ViewMode::Shared => (SHARED.to_owned(), None),
    };
    let base = host.projects.source(project, "/").ok_or_else(|| {
        Error::unavailable(format!("project {project} has no directory at its top, so that there can be no view of it"))
    })?;
    Ok(Some((base.path, name, owner)))
}

/// The directory that a caller has as `fs` of a project in place of the project's own.
fn fs_of(host: &HostState, caller: &Caller, project: &str) -> Option<Result<Node>> {
    let Principal::Agent(agent) = caller.principal() else { return None };
    match known(host, agent, project) {
        Ok(None) => None,
        Ok(Some(view)) => Some(Ok(Node::dir(ViewDir::new(view)))),
        Err(error) => Some(Err(error)),
    }
}

/// The directory of the view at the top of a project, for a sandbox or a search.
pub fn source(host: &HostState, agent: &str, project: &str) -> Result<Option<Source>> {
    let Some(view) = of_agent(host, agent, project)? else { return Ok(None) };
    view.look_at_git();
    Source::resolve(&view.mounted()?).map(Some)
}

/// Makes the views that agents should have. What cannot be made is a fault of the host: the agent gets no other directory.
pub fn follow(host: &HostState) {
    let mut faults = Vec::new();
    for (agent, profile) in host.profiles.all() {
        let projects = profile.spec.projects.iter().filter(|_| profile.spec.view != ViewMode::None);
        for project in projects {
            match of_agent(host, &agent, project).and_then(|view| view.map_or(Ok(()), |view| view.mounted().map(drop)))
            {
                Ok(()) => (),
                Err(error) => faults.push(format!("agents.{agent}.view: {}", error.message)),
            }
        }
    }
    faults.sort();
    faults.dedup();
    *host.views.faults.lock() = faults;
}

/// A file of a project has changed: its views look again soon.
pub fn touched(host: &Arc<HostState>, project: &str) {
    let base = host.views.listings.lock().get(project).map(|(base, _)| base.clone());
    if let Some(base) = base.filter(|base| !host.views.views.of(base).is_empty()) {
        look_soon(host, base);
    }
}

fn look_soon(host: &Arc<HostState>, base: PathBuf) {
    if !host.views.changed.lock().insert(base.clone()) {
        return;
    }
    let weak = Arc::downgrade(host);
    host.context.runtime.spawn(async move {
        tokio::time::sleep(TOGETHER).await;
        let Ok(host) = upgrade(&weak) else { return };
        let looked = acheron_base::blocking(move || {
            host.views.changed.lock().remove(&base);
            for view in host.views.views.of(&base) {
                view.base_changed()?;
            }
            Ok(())
        });
        if let Err(error) = looked.await {
            tracing::warn!(%error, "a view could not follow its project");
        }
    });
}

/// What views ask of the host.
struct TreeUsers(Weak<HostState>);

impl ViewUsers for TreeUsers {
    fn end_programs(&self, view: &View, why: &str) {
        let Ok(host) = upgrade(&self.0) else { return };
        for agent in host.profiles.ids() {
            let projects = host.profiles.get(&agent).map(|profile| profile.spec.projects).unwrap_or_default();
            let works = projects.iter().any(|project| {
                known(&host, &agent, project).is_ok_and(|own| own.is_some_and(|own| own.places == view.places))
            });
            if works {
                host.shared.programs.end_where(&agent, |_| Some(why.to_owned()));
            }
        }
    }

    fn show(&self, view: &View) -> Result<()> {
        let host = upgrade(&self.0)?;
        for (project, listing) in host.views.projects_of(&view.record().base) {
            // One that is listed goes on with its last call.
            if listing.lookup(&view.name()).is_none()
                && let Some(own) = host.views.views.get(&view.record().base, &view.name())
            {
                put(&host, &project, &listing, &own)?;
            }
        }
        if let Some(mount) = host.mount.get() {
            bind_one(&host, &mount, view, |_| true);
        }
        Ok(())
    }

    fn hide(&self, view: &View) {
        let Ok(host) = upgrade(&self.0) else { return };
        let projects = host.views.projects_of(&view.record().base);
        if let Some(mount) = host.mount.get() {
            for (project, _) in &projects {
                binds::undo_at(&mount, &format!("projects/{project}/views/{}/fs", view.name()));
            }
        }
    }

    fn discarded(&self, view: &View) {
        let Ok(host) = upgrade(&self.0) else { return };
        for (_, listing) in host.views.projects_of(&view.record().base) {
            listing.take(&view.name());
        }
        // An agent that had it gets a new one.
        follow(&host);
    }

    fn base_changed(&self, base: &Path) {
        if let Ok(host) = upgrade(&self.0) {
            look_soon(&host, base.to_owned());
        }
    }

    fn protected(&self, base: &Path) -> Vec<String> {
        let Ok(host) = upgrade(&self.0) else { return Vec::new() };
        let spec = host.current.spec();
        let own = host.views.projects_of(base).into_iter().filter_map(|(project, _)| spec.projects.get(&project));
        let mut names: Vec<String> = own.flat_map(|project| project.protected.iter().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }
}
