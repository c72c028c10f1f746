//! The state that the modules of the host share. Services never see it: they are handed what they use.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::acp_mind::AcpMinds;
use super::health::HostHealth;
use super::library::LibrarySource as Library;
use super::network::HostNetwork;
use super::projects::Projects;
use super::protected_names::ProtectedNames;
use super::runs::ActiveRuns;
use super::service_registry::ServiceRegistry;
use super::system_paths::SystemPaths;
use super::telemetry::{self, TraceExport};
use super::timelines::Timelines;
use super::views::HostViews;
use super::wiring::SharedServices;
use super::{AgentDirs, PolicyAccess, edit, protected_paths};
use crate::agent::own_model::AgentModels;
use crate::agent::profiles::AgentProfiles;
use crate::doors::DoorContext;
use crate::doors::tokens::Tokens;
use crate::gateway::Gateway;
use crate::service::ServiceContext;
use crate::state::audit::AuditSize;
use acheron_base::{ConfinedDir, Error, Result};
use acheron_fuse::Mount;
use acheron_store::Store;
use acheron_vfs::Listing;

/// The state of a running host.
pub struct HostState {
    /// The mountspec, as it was at the mount and as it reads now.
    pub current: Arc<edit::CurrentSpec>,
    pub paths: HostPaths,
    pub identity: HostIdentity,
    pub store: Store,
    pub audit: AuditSize,
    pub timelines: Arc<Timelines>,
    pub context: Arc<ServiceContext>,
    pub access: Arc<PolicyAccess>,
    pub profiles: Arc<AgentProfiles>,
    pub shared: SharedServices,
    pub dirs: ServiceDirs,
    pub projects: Arc<Projects>,
    pub views: HostViews,
    pub system_paths: SystemPaths,
    pub protected_names: ProtectedNames,
    pub mount: MountSlot,
    pub health: HostHealth,
    pub runs: ActiveRuns,
    /// The tokens of clients outside.
    pub tokens: Arc<Tokens>,
    /// Where the page is served.
    #[cfg(feature = "door-web")]
    pub open_pages: super::door_web::OpenPages,
    /// Sends traces, if the mountspec names a collector.
    pub telemetry: OnceLock<TraceExport>,
    pub network: HostNetwork,
    /// The other hosts, if this one has joined them.
    #[cfg(feature = "fabric")]
    pub fabric: super::fabric::FabricState,
    /// Programs that are the minds of agents.
    pub minds: AcpMinds,
}

/// Where the host's own things are on this machine.
pub struct HostPaths {
    /// Where relative paths begin: the directory in which `mount` was started.
    pub here: PathBuf,
    pub state: PathBuf,
    pub mountpoint: Option<PathBuf>,
    /// The file that the host was mounted from, if it was one.
    pub mountspec: OnceLock<PathBuf>,
    pub library: Library,
    /// Directories of skills.
    pub skills: Vec<PathBuf>,
}

pub struct HostIdentity {
    /// Distinguishes the processes of its agents from those of other hosts on this machine.
    pub name: String,
    pub started_at_ms: u64,
}

/// The directories in which services stand. They are built after the state.
#[derive(Default)]
pub struct ServiceDirs {
    agents: OnceLock<Arc<AgentDirs>>,
    /// The services that all agents share.
    local: OnceLock<ServiceRegistry>,
    /// `/nodes`.
    nodes: OnceLock<Arc<Listing>>,
    /// Held while a service is put into a directory.
    placing: Mutex<()>,
}

impl ServiceDirs {
    pub fn set_agents(&self, agents: Arc<AgentDirs>) {
        _ = self.agents.set(agents); // there is only one
    }

    pub fn set_local(&self, local: ServiceRegistry) {
        _ = self.local.set(local); // there is only one
    }

    pub fn set_nodes(&self, nodes: Arc<Listing>) {
        _ = self.nodes.set(nodes); // there is only one
    }

    pub fn nodes(&self) -> Option<&Arc<Listing>> {
        self.nodes.get()
    }

    /// Held by whoever puts a service into its directory, so that of two versions of a service the later stands there.
    pub fn placing(&self) -> MutexGuard<'_, ()> {
        self.placing.lock()
    }

    pub fn agents(&self) -> Result<&Arc<AgentDirs>> {
        self.agents.get().ok_or_else(|| Error::unavailable("the host is not ready"))
    }

    /// Every directory with services.
    pub fn registries(&self) -> Vec<ServiceRegistry> {
        self.agents.get().into_iter().flat_map(|it| it.stands()).chain(self.local.get().cloned()).collect()
    }
}

/// The mount, while there is one.
#[derive(Default)]
pub struct MountSlot(Mutex<Weak<Mount>>);

impl MountSlot {
    pub fn set(&self, mount: &Arc<Mount>) {
        *self.0.lock() = Arc::downgrade(mount);
    }

    pub fn get(&self) -> Option<Arc<Mount>> {
        self.0.lock().upgrade()
    }
}

impl HostState {
    /// A folder that the mountspec names, made if it is not there; refused where an agent could have put a link on the way.
    pub fn folder(&self, path: &Path) -> Result<ConfinedDir> {
        protected_paths::folder(self, path)
    }

    /// The models of agents, for services that think.
    pub fn models(&self) -> AgentModels {
        let (profiles, runtimes) = (self.profiles.clone(), self.shared.runtimes.clone());
        AgentModels { profiles, runtimes, default: self.current.mounted_with.model.clone() }
    }

    /// Begins to send traces, if the mountspec names a collector.
    pub fn begin_telemetry(&self) {
        if let Some(endpoint) = &self.current.mounted_with.telemetry.otlp {
            let (clock, random) = (self.context.clock.clone(), self.context.ids.random().clone());
            let export = telemetry::begin(endpoint, self.identity.name.clone(), self.store.clone(), clock, random);
            _ = self.telemetry.set(export); // there is only one
        }
    }

    /// What a door is handed.
    pub fn door_context(&self, down: CancellationToken) -> Result<DoorContext> {
        let (ids, tokens) = (self.context.ids.clone(), self.tokens.clone());
        let tree = self.context.tree()?.downgrade();
        let links = self.context.approvals.links().ok_or_else(|| Error::unavailable("the host is not ready"))?;
        Ok(DoorContext { tree, ids, tokens, refusals: self.access.clone(), links, down })
    }

    /// The gateway through which programs ask the models of agents.
    pub fn gateway(&self) -> Gateway {
        Gateway { models: self.models(), logs: self.shared.requests.clone(), ids: self.context.ids.clone() }
    }
}

/// The host of something in its tree, unless that is going down.
pub fn upgrade(host: &Weak<HostState>) -> Result<Arc<HostState>> {
    host.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))
}
