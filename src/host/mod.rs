//! Builds the world from a mountspec, keeps it as the mountspec says, and takes it down in the opposite order.

mod agents;
#[allow(unsafe_code)] // mount_setattr, which no library offers
pub mod binds;
mod census;
mod edit;
mod gate;
mod guarded;
pub mod library;
mod meta;
mod mirror;
mod nodes;
mod pages;
pub mod programs;
mod projects;
mod roster;
mod stand;
pub mod system_paths;
pub mod tidy;
pub mod unasked;
mod watch;
pub mod writable;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::events::Diaries;
use crate::jobs::{Book, Job, Keep};
use crate::policy::Principal;
use crate::service::Office;
use crate::services;
use crate::spec::Spec;
use acheron_base::Clock;
use acheron_base::ConfinedDir;
use acheron_base::Result;
use acheron_base::watch::Following;
use acheron_fuse::Mount;
use acheron_store::Store;
use acheron_vfs::{Listing, Node, Tree};
use library::Source as Library;

pub use agents::Residents;
pub use census::Census;
pub use gate::Doorkeeper;
pub use roster::{Profile, Roster};
use stand::Stand;

/// What a host is started with.
pub struct Options {
    pub spec: Spec,
    /// Where relative paths begin: the directory in which `mount` was started.
    pub here: PathBuf,
    /// Where state is kept.
    pub state: PathBuf,
    /// Where the tree will be mounted, if it will.
    pub mountpoint: Option<PathBuf>,
    pub clock: Clock,
}

/// A running host. Dropping it takes it down.
pub struct Host {
    pub house: Arc<House>,
    tree: Tree,
    root: Arc<Listing>,
    mount: Option<Arc<Mount>>,
    following: Option<Following>,
}

/// What everything in the host is built from.
pub struct House {
    /// The mountspec as it read then; what is opened once goes by it.
    pub mounted_with: Arc<Spec>,
    /// The mountspec as it reads now.
    pub current: edit::Current,
    /// The file that the host was mounted from, if it was one.
    pub mountspec: OnceLock<PathBuf>,
    pub here: PathBuf,
    pub state: PathBuf,
    pub mountpoint: Option<PathBuf>,
    pub started_at_ms: u64,
    pub store: Store,
    pub office: Arc<Office>,
    pub gate: Arc<Doorkeeper>,
    pub shared: services::Shared,
    pub roster: Roster,
    pub library: Library,
    pub residents: OnceLock<Arc<Residents>>,
    /// Where the services that all agents share stand.
    pub local: OnceLock<Stand>,
    pub projects: projects::Projects,
    pub system_paths: system_paths::SystemPaths,
    /// Tells its agents' processes from those of other hosts on this machine.
    pub name: String,
}

impl House {
    /// A folder that the mountspec names, made if it is not there; refused where an agent could have put a link on the way.
    pub fn folder(&self, path: &Path) -> Result<ConfinedDir> {
        guarded::folder(self, path)
    }
}

impl Host {
    /// Builds everything but the mount. Must be called within a runtime.
    pub fn start(options: Options) -> Result<Host> {
        let Options { spec, here, state, mountpoint, clock } = options;
        programs::check(&spec, &here, [Some(state.as_path()), mountpoint.as_deref()])?;
        let store = crate::state::open(&state)?;
        let roster = Roster::open(&spec, &state)?;
        let gate = Arc::new(Doorkeeper::new(roster.policy()?, store.clone(), clock.clone()));
        let book = Arc::new(Book::new(Arc::new(store.clone()) as Arc<dyn Keep>, clock.clone()));
        let diaries = Arc::new(Diaries::new(Some(store.clone()), clock.clone()));
        let unasked = unasked::Unasked::open(&state)?;
        let library = Library::choose(spec.library.as_deref(), &here, unasked.beside(&here, "global-library"));
        let started_at_ms = clock.now_ms();
        let office = Office::new(book, diaries, clock, gate.clone(), tokio::runtime::Handle::current());
        let shared = services::Shared::open(&spec, &here, unasked.beside(&here, "prompts"), &store)?;
        let mounted_with = Arc::new(spec);
        let current = edit::Current::new(mounted_with.clone());
        let house = Arc::new(House {
            mounted_with,
            current,
            mountspec: OnceLock::new(),
            here,
            state,
            mountpoint,
            started_at_ms,
            store,
            office,
            gate,
            shared,
            roster,
            library,
            residents: OnceLock::new(),
            local: OnceLock::new(),
            projects: projects::Projects::default(),
            system_paths: system_paths::SystemPaths::default(),
            name: acheron_sandbox::host(),
        });
        acheron_sandbox::sweep_all();
        let recovered = recover(&house)?;
        system_paths::note(&house);
        let (root, residents) = build(&house)?;
        guarded::keep(&house)?;
        let root = Arc::new(root);
        let tree = Tree::new(root.clone(), house.gate.clone());
        house.office.set_tree(tree.clone());
        _ = house.residents.set(residents.clone()); // there is only one
        residents.open(&house)?;
        for job in recovered {
            resume(&house, job);
        }
        tidy::now_and_then(&house);
        Ok(Host { house, tree, root, mount: None, following: None })
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Mounts the tree.
    pub fn mount(&mut self, mountpoint: &Path) -> Result<Arc<Mount>> {
        census::sees_clearly()?;
        let census = Arc::new(Census::default());
        let binds = binds::all(&self.house.current.spec(), &self.house.here);
        let attach =
            if binds.iter().any(|bound| bound.mirror) { acheron_fuse::mount_mirroring } else { acheron_fuse::mount };
        let mount = attach(self.tree.clone(), census, mountpoint, tokio::runtime::Handle::current())?;
        let mount = Arc::new(mount);
        self.house.gate.mounted(mount.clone());
        self.mount = Some(mount.clone());
        projects::bind(&self.house, &mount, |_| true);
        Ok(mount)
    }

    /// Does what the mountspec in `file` will say when somebody edits it.
    pub fn follow(&mut self, file: &Path) {
        _ = self.house.mountspec.set(file.to_owned()); // there is only one
        match guarded::keep(&self.house).and_then(|()| edit::follow(&self.house, file)) {
            Ok(following) => self.following = Some(following),
            Err(error) => tracing::warn!(%error, "edits of the mountspec are not noticed"),
        }
    }

    /// Takes everything down: work first, then the mount with whoever waits in it, then the state.
    pub async fn down(mut self) {
        self.end_work();
        // Their mount namespaces hold the mount.
        self.house.shared.shells.close().await;
        if let Some(mount) = self.mount.take()
            && let Err(error) = mount.down().await
        {
            tracing::warn!(%error, "the mount could not be taken away");
        }
    }

    fn end_work(&self) {
        if let Some(mount) = &self.mount {
            mount.stop_parking();
        }
        for agent in self.house.office.book.agents() {
            for job in self.house.office.book.shelf(&agent).alive() {
                job.leave();
            }
        }
        self.house.shared.shells.end();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.end_work();
        drop(self.mount.take());
        self.house.gate.left();
        // Desks hold the office and the office holds desks; nodes of the tree hold both.
        self.house.office.empty();
        self.house.shared.crew.disband();
        if let Some(residents) = self.house.residents.get() {
            residents.clear();
        }
        if let Some(local) = self.house.local.get() {
            local.clear();
        }
        self.house.projects.clear();
        self.root.clear();
        self.house.store.close();
    }
}

/// The root of the tree.
fn build(house: &Arc<House>) -> Result<(Listing, Arc<Residents>)> {
    let residents = Residents::new(house);
    let root = Listing::default()
        .file("README.md", acheron_vfs::text(pages::README))
        .file("AGENTS.md", acheron_vfs::text(pages::AGENTS))
        .with("agents", Node::Dir(residents.directory()))
        .dir("global", Listing::default().dir("library", library::directory(house)?))
        .dir("meta", meta::directory(house))
        .dir("nodes", Listing::default().dir("local", nodes::directory(house)?))
        .with("projects", Node::Dir(projects::directory(house)?));
    Ok((root, residents))
}

/// Puts the jobs of an earlier life into the book; returns those that are to run.
fn recover(house: &House) -> Result<Vec<Arc<Job>>> {
    use crate::state::jobs as journal;

    let now = house.office.clock.now_ms();
    let found = house.store.write_blocking(move |tx| journal::recover(tx, now))?;
    let names = house.store.look(journal::names)?;
    for (agent, id, correlation_id) in names {
        house.office.book.restore_name(&agent, &id, correlation_id.as_deref());
    }
    for row in &found.interrupted {
        tracing::warn!(job = row.id, service = row.service, "a job was interrupted by the end of the host");
        let path = format!("/agents/{}/jobs/{}/status.json", row.agent, row.id);
        house.office.diaries.of(&row.agent)?.note("job", &path, crate::jobs::told(row));
    }
    Ok(found.queued.iter().map(|row| house.office.book.restore(Job::from_row(row))).collect())
}

fn resume(house: &House, job: Arc<Job>) {
    if job.call.service == crate::agent::chat::SERVICE {
        return match house.shared.crew.chat(&job.call.agent) {
            Ok(chat) => chat.resume(job),
            Err(error) => house.office.abandon(job, error),
        };
    }
    let agent = match &job.call.principal {
        Principal::Agent(id) => id.clone(),
        _ => job.call.agent.clone(),
    };
    // A service of an agent, or one that all share.
    let seat = |owner: &str| house.office.desk(owner, &job.call.service);
    match seat(&job.call.agent).or_else(|_| seat(&agent)).or_else(|_| seat(nodes::NODE)) {
        Ok(desk) => desk.resume(job),
        Err(error) => house.office.abandon(job, error),
    }
}
