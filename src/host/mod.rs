//! Builds everything from a mountspec, keeps it as the mountspec says, and takes it down in the opposite order.
//!
//! Ownership goes one way: [`Host`] owns the root of the tree and [`HostState`], the tree owns the services, and what
//! stands in the tree refers to the host by `Weak`. So a host that is dropped is gone. Used by `src/cli` alone.

mod acp_mind;
mod agent_dirs;
mod approval_notices;
mod audit_file;
mod audit_lines;
pub mod binds;
mod caller_identity;
mod commands;
#[cfg(feature = "door-acp")]
pub mod door_acp;
#[cfg(feature = "door-http")]
pub mod door_listener;
#[cfg(feature = "door-mcp")]
pub mod door_mcp;
pub mod door_tokens;
#[cfg(feature = "door-web")]
pub mod door_web;
mod edit;
pub mod exec_network;
#[cfg(feature = "fabric")]
pub mod fabric;
mod growth;
mod health;
pub mod library;
mod lifecycle;
mod mail;
mod meta;
mod mirror;
mod network;
#[cfg(feature = "door-9p")]
pub mod ninep_listener;
mod nodes;
pub mod overview;
mod pages;
mod policy_access;
pub mod presence;
pub mod programs;
mod projects;
mod protected_names;
mod protected_paths;
mod recover;
mod refusal_rate;
mod rewind;
pub mod run_plan;
pub mod runs;
pub mod sandbox_level;
mod service_registry;
mod socket;
mod state;
pub mod system_paths;
mod telemetry;
pub mod tidy;
mod timelines;
pub mod trusted_defaults;
pub mod view_commands;
mod views;
mod watch;
mod wiring;
pub mod writable;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::profiles::AgentProfiles;
use crate::doors::tokens::Tokens;
use crate::events::EventLogs;
use crate::jobs::{JobStore, Jobs};
use crate::service::ServiceContext;
use crate::spec::{ServedBy, Spec};
use crate::state::audit::AuditSize;
use acheron_base::watch::FileWatcher;
use acheron_base::{Clock, Ids, Random, Result};
use acheron_fuse::Mount;
use acheron_store::Store;
use acheron_vfs::{Listing, Node, Tree};
use library::LibrarySource as Library;
use socket::HostSocket;
use state::{HostIdentity, HostPaths, upgrade};
use wiring::{Filling, SharedParts, SharedServices};

pub use agent_dirs::AgentDirs;
pub use caller_identity::CallerIdentity;
pub use policy_access::PolicyAccess;
pub use socket::NAME as SOCKET;
pub use state::HostState;

/// The options with which a host is started.
pub struct Options {
    pub spec: Spec,
    /// Where relative paths begin: the directory in which `mount` was started.
    pub here: PathBuf,
    /// Where state is kept.
    pub state: PathBuf,
    /// Where the tree will be mounted, if it will.
    pub mountpoint: Option<PathBuf>,
    pub clock: Clock,
    pub random: Random,
}

/// A running host. Dropping it takes it down.
pub struct Host {
    pub state: Arc<HostState>,
    tree: Tree,
    mount: Option<Arc<Mount>>,
    following: Option<FileWatcher>,
    socket: Option<HostSocket>,
    #[cfg(feature = "fabric")]
    fabric: Option<fabric::FabricTask>,
}

impl Host {
    /// Builds everything but the mount. Must be called within a runtime.
    pub fn start(options: Options) -> Result<Host> {
        let more = [Some(options.state.as_path()), options.mountpoint.as_deref()];
        programs::check(&options.spec, &options.here, more)?;
        sandbox_level::check(&options.spec)?;
        let (store, audit) = crate::state::open(&options.state, &options.clock, &options.random)?;
        let mut decided = recover::make_files(&store)?;
        decided.extend(crate::services::views::replay(&options.state)?);
        decided.extend(rewind::decided(&options.state).into_iter().map(|(job, result)| (job, Ok(result))));
        let (host, filling) = open(options, store, audit)?;
        let host = Arc::new(host);
        host.minds.of_host(&host);
        acheron_sandbox::remove_stale_groups();
        host.context.approvals.restore()?;
        let recovered = recover::jobs(&host, decided)?;
        views::open(&host)?;
        system_paths::note(&host);
        let (root, agent_dirs) = build(&host)?;
        protected_paths::keep(&host)?;
        let tree = Tree::new(Arc::new(root), host.access.clone()).started_at(host.context.clock.now());
        host.context.set_tree(&tree);
        host.access.tell(&host.context);
        wiring::serve_networks(&host);
        host.dirs.set_agents(agent_dirs.clone());
        agent_dirs.open(&host)?;
        views::follow(&host);
        rewind::open(&host);
        filling.wait()?;
        for job in recovered {
            recover::resume(&host, job);
        }
        host.context.approvals.withdraw_abandoned();
        approval_notices::begin(&host);
        tidy::now_and_then(&host);
        health::look(&host);
        health::follow_symbols(&host);
        audit_lines::started(&host);
        host.begin_telemetry();
        if host.paths.mountpoint.is_none() {
            host.shared.mcp_servers.open();
        }
        #[cfg(feature = "fabric")]
        let fabric = fabric::begin(&host);
        Ok(Host {
            state: host,
            tree,
            mount: None,
            following: None,
            socket: None,
            #[cfg(feature = "fabric")]
            fabric,
        })
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Mounts the tree.
    pub fn mount(&mut self, mountpoint: &Path) -> Result<Arc<Mount>> {
        caller_identity::sees_clearly()?;
        let identify = Arc::new(CallerIdentity::default());
        let binds = binds::all(&self.state.current.spec(), &self.state.paths.here);
        let mirror_host_dirs = binds.iter().any(|bound| bound.served_by == Some(ServedBy::Mirror));
        let options = acheron_fuse::Options { mirror_host_dirs, ..acheron_fuse::Options::default() };
        let runtime = tokio::runtime::Handle::current();
        let mount = Arc::new(acheron_fuse::mount(self.tree.clone(), identify, mountpoint, runtime, &options)?);
        self.state.mount.set(&mount);
        self.mount = Some(mount.clone());
        projects::bind(&self.state, &mount, |_| true);
        views::bind(&self.state, &mount, |_| true);
        // In their sandboxes they see the mount.
        self.state.shared.mcp_servers.open();
        Ok(mount)
    }

    /// Takes the commands of the operator that reach the host by its socket.
    pub fn listen(&mut self) -> Result<()> {
        self.socket = Some(HostSocket::open(&self.state)?);
        Ok(())
    }

    /// Waits until no command is connected.
    pub async fn idle(&self) {
        if let Some(socket) = &self.socket {
            socket.idle().await;
        }
    }

    /// Waits until commands have come by the socket and all have gone; for ever if it does not listen.
    pub async fn unused(&self) {
        match &self.socket {
            Some(socket) => socket.unused().await,
            None => std::future::pending().await,
        }
    }

    /// Applies the mountspec in `file` whenever it is edited.
    pub fn follow(&mut self, file: &Path) {
        _ = self.state.paths.mountspec.set(file.to_owned()); // there is only one
        match protected_paths::keep(&self.state).and_then(|()| edit::follow(&self.state, file)) {
            Ok(following) => self.following = Some(following),
            Err(error) => tracing::warn!(%error, "edits of the mountspec are not noticed"),
        }
    }

    /// Takes everything down: work first, then the mount with its waiting readers, then the state.
    pub async fn down(mut self) {
        self.end_work();
        #[cfg(feature = "fabric")]
        if let Some(fabric) = self.fabric.take() {
            fabric.leave().await;
        }
        // Their mount namespaces hold the mount.
        self.state.shared.shells.close().await;
        self.state.shared.mcp_servers.close().await;
        let state = self.state.clone();
        let closed = acheron_base::blocking(move || {
            state.views.views.close();
            Ok(())
        });
        _ = closed.await; // the mount is taken down in any case
        if let Some(mount) = self.mount.take()
            && let Err(error) = mount.unmount().await
        {
            tracing::warn!(%error, "the mount could not be removed");
        }
    }

    fn end_work(&mut self) {
        // Their programs end with the connections.
        self.socket = None;
        if let Some(mount) = &self.mount {
            mount.stop_parking();
        }
        for agent in self.state.context.jobs.agents() {
            for job in self.state.context.jobs.of(&agent).unfinished() {
                job.shut_down();
            }
        }
        self.state.shared.shells.end();
        self.state.shared.mcp_servers.end();
    }
}

impl Drop for Host {
    /// Ends the work and the mount, and finishes the writes that are queued. Everything else goes with its owners.
    fn drop(&mut self) {
        self.end_work();
        self.state.views.views.close();
        drop(self.mount.take());
        audit_lines::stopped(&self.state);
        self.state.store.close();
    }
}

/// Opens the state of a host. There is no tree yet.
fn open(options: Options, store: Store, audit: AuditSize) -> Result<(HostState, Filling)> {
    let Options { spec, here, state, mountpoint, clock, random } = options;
    runs::left::take_back(&state)?;
    let profiles = Arc::new(AgentProfiles::open(&spec, &state)?);
    let access = Arc::new(PolicyAccess::new(profiles.policy()?, store.clone(), clock.clone()));
    let all_jobs = Arc::new(Jobs::new(Arc::new(store.clone()) as Arc<dyn JobStore>, Ids::new(clock.clone(), random)));
    let event_logs = Arc::new(EventLogs::new(store.clone(), clock.clone()));
    let timelines = timelines::Timelines::open(&store, &audit, &clock)?;
    event_logs.quotas.set(spec.limits);
    event_logs.restore()?;
    let unasked = trusted_defaults::TrustedDefaults::open(&state)?;
    let library = Library::choose(spec.library.as_deref(), &here, unasked.beside(&here, "global-library"));
    let skills = spec.skills.iter().map(|folder| here.join(folder)).collect();
    let identity = HostIdentity { name: acheron_sandbox::host_id(), started_at_ms: clock.now_ms() };
    let (shared, filling) = SharedServices::open(SharedParts {
        spec: &spec,
        here: &here,
        beside: unasked.beside(&here, "prompts"),
        library: library.folder(),
        store: &store,
        event_logs: &event_logs,
        clock: &clock,
    })?;
    let projects = Arc::new(projects::Projects::new(&clock));
    let views = views::HostViews::new(&state, &clock);
    let context =
        ServiceContext::new(all_jobs, event_logs, store.clone(), access.clone(), tokio::runtime::Handle::current());
    context.approvals.set_host(&identity.name);
    context.approvals.set_expiry(spec.approvals.expires_seconds.saturating_mul(1000));
    context.approvals.set_url(spec.approvals.url.clone());
    let tokens = Tokens::new(store.clone(), context.ids.clone());
    let state = HostState {
        current: Arc::new(edit::CurrentSpec::new(Arc::new(spec))),
        paths: HostPaths { here, state, mountpoint, mountspec: Default::default(), library, skills },
        identity,
        store,
        audit,
        timelines,
        context,
        access,
        profiles,
        shared,
        dirs: Default::default(),
        projects,
        views,
        system_paths: Default::default(),
        protected_names: Default::default(),
        mount: Default::default(),
        health: Default::default(),
        runs: Default::default(),
        tokens,
        #[cfg(feature = "door-web")]
        open_pages: Default::default(),
        telemetry: Default::default(),
        network: Default::default(),
        #[cfg(feature = "fabric")]
        fabric: Default::default(),
        minds: Default::default(),
    };
    Ok((state, filling))
}

/// The root of the tree.
fn build(host: &Arc<HostState>) -> Result<(Listing, Arc<AgentDirs>)> {
    let agent_dirs = AgentDirs::new(host);
    let root = Listing::default()
        .file("README.md", acheron_vfs::text(pages::README))
        .file(".ignore", acheron_vfs::text(pages::IGNORE))
        .file("AGENTS.md", acheron_vfs::text(pages::AGENTS))
        .with("agents", Node::Dir(agent_dirs.directory()))
        .dir("approvals", crate::approvals::files::directory(&host.context.approvals))
        .dir("global", Listing::default().dir("library", library::directory(host)?))
        .dir("mail", mail::directory(host)?)
        .dir("meta", meta::directory(host))
        .with("nodes", Node::Dir(nodes::root(host)?))
        .with("projects", Node::Dir(projects::directory(host)?));
    Ok((root, agent_dirs))
}
