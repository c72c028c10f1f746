//! The mountspec as it reads now: an edit adds, changes and removes services, agents and projects while the host is mounted.
//!
//! A faulty edit changes nothing, and health.json tells what is wrong with it. Whatever else is edited counts at the next
//! mount, and health.json names it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    HostState, audit_lines, health, lifecycle, programs, projects, protected_paths, sandbox_level, views, wiring,
};
use crate::agent::profiles::Profile;
use crate::spec::{Bind, ProjectSpec, Spec};
use acheron_base::watch::FileWatcher;
use acheron_base::{Error, Result};

/// The mountspec that is in force, and the outcome of its last edit.
pub struct CurrentSpec {
    /// The mountspec as it was at the mount; parts that are opened once follow it.
    pub mounted_with: Arc<Spec>,
    spec: RwLock<Arc<Spec>>,
    edited: RwLock<Option<EditOutcome>>,
    /// Held by whoever changes what is in force.
    turn: Mutex<()>,
    guests: Mutex<GuestProjects>,
}

/// Projects that are there beside those of the mountspec, for as long as a program runs in them (`acheron run`).
#[derive(Default)]
struct GuestProjects {
    /// By name, with the number of programs.
    all: BTreeMap<String, (ProjectSpec, usize)>,
}

impl GuestProjects {
    fn added_to(&self, spec: Spec) -> Spec {
        let mut spec = spec;
        spec.projects.extend(self.all.iter().map(|(id, (project, _))| (id.clone(), project.clone())));
        spec
    }

    fn taken_from(&self, spec: &Spec) -> Spec {
        let mut spec = spec.clone();
        spec.projects.retain(|id, _| !self.all.contains_key(id));
        spec
    }
}

/// How the last edit of the mountspec went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EditOutcome {
    pub at_ms: u64,
    /// The parts that it added, changed or removed.
    #[serde(flatten)]
    pub changed: ChangedParts,
    /// Parts of the mountspec that count only at the next mount.
    pub at_next_mount: Vec<String>,
    /// Why nothing, or not everything, came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether `error` is that of an edit; otherwise it says why edits are not followed.
    #[serde(skip)]
    pub failed: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChangedParts {
    pub services: BTreeSet<String>,
    pub agents: BTreeSet<String>,
    pub projects: BTreeSet<String>,
}

impl CurrentSpec {
    pub fn new(spec: Arc<Spec>) -> Self {
        CurrentSpec {
            mounted_with: spec.clone(),
            spec: RwLock::new(spec),
            edited: RwLock::default(),
            turn: Mutex::default(),
            guests: Mutex::default(),
        }
    }

    pub fn spec(&self) -> Arc<Spec> {
        self.spec.read().clone()
    }

    pub fn edited(&self) -> Option<EditOutcome> {
        self.edited.read().clone()
    }

    fn set(&self, spec: Arc<Spec>) {
        *self.spec.write() = spec;
    }
}

/// Follows the file that the host was mounted from, as long as what it returns is held.
pub fn follow(host: &Arc<HostState>, file: &Path) -> Result<FileWatcher> {
    if protected_paths::written(host, file) {
        let said = format!("{} lies in a project that agents may write", file.display());
        let error = Some(format!("edits of the mountspec count at the next mount: {said}"));
        let edited = EditOutcome { at_ms: host.context.clock.now_ms(), error, ..EditOutcome::default() };
        *host.current.edited.write() = Some(edited);
        return Err(Error::forbidden(said));
    }
    // `--model` replaces the model of the file, so that this part is compared with the file itself.
    let model = Spec::load(file).map_or_else(|_| host.current.mounted_with.model.clone(), |spec| spec.model);
    let mounted = Arc::new(Spec { model, ..(*host.current.mounted_with).clone() });
    let (weak, path) = (Arc::downgrade(host), file.to_owned());
    let apply = move |only_if_changed: bool| {
        let Some(host) = weak.upgrade() else { return ControlFlow::Break(()) };
        let _turn = host.current.turn.lock();
        let _inside = host.context.runtime.enter(); // a new agent starts its tasks there
        let new = Spec::load(&path);
        // What was applied at the start is not reported once more, as an edit of nothing.
        let known = host.current.edited().is_some_and(|edited| !edited.failed && edited.at_next_mount.is_empty());
        let skip = only_if_changed || known;
        if skip && new.as_ref().is_ok_and(|new| is_in_force(&host, &mounted, new)) {
            return ControlFlow::Continue(());
        }
        let edited = edit(&host, &mounted, new);
        tracing::info!(?edited, "the mountspec was edited");
        if let Some(error) = &edited.error {
            tracing::warn!(error, "the edited mountspec is not in force");
        }
        *host.current.edited.write() = Some(edited);
        ControlFlow::Continue(())
    };
    let again = apply.clone();
    let watcher = acheron_base::watch::file(file, move || apply(false))?;
    // The file may have been edited since it was read for the mount, before anything watched it. On a thread, as other
    // edits are: an agent that is gone is waited for.
    std::thread::Builder::new().name("follow".to_owned()).spawn(move || again(true))?;
    Ok(watcher)
}

/// Whether an edit to `new` would change nothing.
fn is_in_force(host: &HostState, mounted: &Spec, new: &Spec) -> bool {
    let parts = |spec: &Spec| serde_json::to_value(spec).unwrap_or(Value::Null);
    let old = host.current.guests.lock().taken_from(&host.current.spec());
    let same = |name: &str| parts(&old).get(name) == parts(new).get(name);
    other_parts(mounted, new).is_empty() && AT_ONCE.iter().all(|name| same(name))
}

fn edit(host: &Arc<HostState>, mounted: &Spec, new: Result<Spec>) -> EditOutcome {
    let at_ms = host.context.clock.now_ms();
    let failed =
        |error: Error| EditOutcome { at_ms, error: Some(error.message), failed: true, ..EditOutcome::default() };
    let new = match new {
        Ok(new) => new,
        Err(error) => return failed(error),
    };
    let (old, at_next_mount) = (host.current.spec(), other_parts(mounted, &new));
    let taken = host.current.guests.lock().all.keys().find(|id| new.projects.contains_key(*id)).cloned();
    if let Some(id) = taken {
        return failed(Error::busy(format!("a program runs in another project of the name {id}")));
    }
    let new = host.current.guests.lock().added_to(new);
    if let Err(error) =
        programs::check(&new, &host.paths.here, [Some(host.paths.state.as_path()), host.paths.mountpoint.as_deref()])
    {
        return failed(error);
    }
    if let Err(error) = sandbox_level::check(&new) {
        return failed(error);
    }
    let changed = ChangedParts {
        services: different(&old.services, &new.services),
        agents: different(&old.agents, &new.agents),
        projects: different(&old.projects, &new.projects),
    };
    // A part that takes effect at the next mount stays as it was until then.
    let new = Spec {
        services: new.services,
        agents: new.agents,
        projects: new.projects,
        sandbox: new.sandbox,
        retention: new.retention,
        limits: new.limits,
        approvals: new.approvals,
        default_agent: new.default_agent,
        ..(*old).clone()
    };
    host.shared.runtimes.trust(&new);
    host.current.set(Arc::new(new));
    let stands = host.dirs.registries();
    // All are built before any is seen: what cannot be built changes nothing.
    let built: Result<Vec<_>> = stands.into_iter().map(|stand| Ok((stand.build(host)?, stand))).collect();
    let built = match built {
        Ok(built) => built,
        Err(error) => {
            host.shared.runtimes.trust(&old);
            host.current.set(old);
            return failed(error);
        }
    };
    if host.paths.mountspec.get().is_some_and(|file| protected_paths::written(host, file)) {
        host.shared.runtimes.trust(&old);
        host.current.set(old);
        return failed(Error::forbidden("a project that agents may write would hold the mountspec itself"));
    }
    for (services, stand) in built {
        stand.serve(host, &changed.services, services);
    }
    // Before anything new is shown, so that nothing is unprotected for a moment; and after, by what was really found.
    let mut faults: Vec<String> = protected_paths::keep(host).err().map(|error| error.message).into_iter().collect();
    faults.extend(projects::show(host, &changed.projects));
    faults.extend(protected_paths::keep(host).err().map(|error| error.message));
    faults.extend(people(host, &changed.agents));
    views::follow(host);
    faults.extend(host.views.faults());
    host.context.event_logs.quotas.set(host.current.spec().limits);
    let approvals = host.current.spec().approvals.clone();
    host.context.approvals.set_expiry(approvals.expires_seconds.saturating_mul(1000));
    host.context.approvals.set_url(approvals.url);
    wiring::end_outdated_programs(host);
    health::look(host);
    audit_lines::policy_changed(host, &changed);
    let error = (!faults.is_empty()).then(|| faults.join("; "));
    EditOutcome { at_ms, changed, at_next_mount, failed: error.is_some(), error }
}

/// Adds a directory as a project in which agents may write, until [`remove_guest`]; returns its name. A project of that
/// directory that is there already is used again. Blocks; must be called within a runtime.
pub fn add_guest(host: &Arc<HostState>, directory: &Path) -> Result<String> {
    let path = directory.to_str().ok_or_else(|| Error::invalid(format!("{} is not text", directory.display())))?;
    let _turn = host.current.turn.lock();
    let spec = host.current.spec();
    let same = |project: &ProjectSpec| {
        project.binds.len() == 1
            && project
                .binds
                .get("/")
                .is_some_and(|bind| !bind.read_only && host.paths.here.join(&bind.path) == directory)
    };
    if let Some((id, _)) = spec.projects.iter().find(|(_, project)| same(project)) {
        host.current.guests.lock().all.entry(id.clone()).and_modify(|(_, count)| *count += 1);
        return Ok(id.clone());
    }
    let base = project_name(directory);
    let mut names = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}-{number}")));
    let id = names.find(|id| !spec.projects.contains_key(id)).unwrap_or(base);
    let bind = Bind { path: path.to_owned(), read_only: false, mirror: false };
    let about = format!("The directory {path}, while a program works in it.");
    let project = ProjectSpec { about, binds: [("/".to_owned(), bind)].into(), ..ProjectSpec::default() };
    host.current.guests.lock().all.insert(id.clone(), (project, 1));
    let before = host.current.guests.lock().taken_from(&spec);
    let edited = edit(host, &before.clone(), Ok(before.clone()));
    let shown = host.projects.source(&id, "/").is_some();
    match edited.error.filter(|_| edited.failed) {
        None if shown => Ok(id),
        error => {
            host.current.guests.lock().all.remove(&id);
            edit(host, &before.clone(), Ok(before));
            let why = error.unwrap_or_else(|| "it cannot be opened".to_owned());
            Err(Error::invalid(format!("{path} cannot be a project: {why}")))
        }
    }
}

/// Removes a project that was added for a program, with the last program. One of the mountspec stays.
pub fn remove_guest(host: &Arc<HostState>, id: &str) {
    let _turn = host.current.turn.lock();
    let spec = host.current.spec();
    let before = host.current.guests.lock().taken_from(&spec);
    {
        let mut guests = host.current.guests.lock();
        match guests.all.get_mut(id) {
            None => return,
            Some((_, count)) if *count > 1 => return *count -= 1,
            Some(_) => _ = guests.all.remove(id),
        }
    }
    let edited = edit(host, &before.clone(), Ok(before));
    if let Some(error) = edited.error {
        tracing::warn!(error, project = id, "a project that is used no more could not be taken away");
    }
}

/// A name for the project of a directory.
fn project_name(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    match name.trim_matches('-') {
        "" => "project".to_owned(),
        name => name.chars().take(40).collect(),
    }
}

/// Starts agents that are new in the mountspec and removes those that are gone from it; returns the errors.
fn people(host: &Arc<HostState>, changed: &BTreeSet<String>) -> Vec<String> {
    let spec = host.current.spec();
    let outcome = |id: &String| match spec.agents.get(id) {
        Some(entry) => {
            let known = host.profiles.get(id).ok();
            let profile = Profile::named(&spec, id, entry, known.as_ref());
            let dropped = known.is_some_and(|known| known.over.is_some() && profile.over.is_none());
            let settled = lifecycle::settle(host, id, profile);
            if let (true, Ok(event_log)) = (dropped, host.context.event_logs.of(id)) {
                event_log.changed(&format!("/agents/{id}"), json!({ "what": "update_dropped", "agent": id }));
            }
            settled
        }
        None => host.context.runtime.block_on(lifecycle::remove(host, id, false)),
    };
    let faults = changed.iter().filter_map(|id| outcome(id).err().map(|error| format!("agents.{id}: {error}")));
    faults.collect()
}

/// The names whose things are not what they were.
fn different<T: PartialEq>(old: &BTreeMap<String, T>, new: &BTreeMap<String, T>) -> BTreeSet<String> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names.into_iter().filter(|name| old.get(*name) != new.get(*name)).cloned().collect()
}

/// The parts of a spec that an edit changes at once.
const AT_ONCE: [&str; 9] =
    ["services", "agents", "projects", "sandbox", "retention", "limits", "approvals", "default_agent", "$schema"];

/// The parts of a spec that are not what they were and count only when it is mounted.
fn other_parts(old: &Spec, new: &Spec) -> Vec<String> {
    let parts = |spec: &Spec| serde_json::to_value(spec).unwrap_or(Value::Null);
    let (old, new) = (parts(old), parts(new));
    let names: BTreeSet<&String> =
        [&old, &new].into_iter().filter_map(Value::as_object).flat_map(|parts| parts.keys()).collect();
    let counts = |name: &&String| !AT_ONCE.contains(&name.as_str());
    names.into_iter().filter(counts).filter(|name| old.get(*name) != new.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(services: Value, memory: u64) -> Spec {
        let memory = json!({ "active_tokens": memory });
        let text = json!({ "agents": { "a": {} }, "services": services, "memory": memory }).to_string();
        Spec::check(&text).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    fn program(about: &str) -> Value {
        json!({ "command": ["true"], "about": about, "operations": { "go": {} } })
    }

    #[test]
    fn what_came_changed_and_went_is_found() {
        let old = spec(json!({ "same": program("1"), "other": program("1"), "gone": program("1") }), 1);
        let new = spec(json!({ "same": program("1"), "other": program("2"), "new": program("1") }), 1);
        let found: Vec<String> = different(&old.services, &new.services).into_iter().collect();
        assert_eq!(found, ["gone", "new", "other"]);
        assert_eq!(other_parts(&old, &new), [""; 0]);
    }

    #[test]
    fn what_counts_only_at_the_next_mount_is_named() {
        assert_eq!(other_parts(&spec(json!({}), 1), &spec(json!({ "new": program("1") }), 2)), ["memory"]);
    }
}
