//! The state that the services of all agents share, opened once per host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::runtimes::AgentRuntimes;
use crate::events::EventLogs;
use crate::gateway::RequestLogs;
use crate::services::mail::Post;
use crate::services::mcp::McpServers;
use crate::services::mounts::Bindings;
use crate::services::prompts::Library;
use crate::services::prompts::watch::watch;
use crate::services::queues::Queues;
use crate::services::recall::Wikis;
use crate::services::search_code::SearchSlots;
use crate::services::symbols;
use crate::services::symbols::open::Filling;
use crate::services::symbols::store::SymbolStore;
use crate::services::terminal::{RunningPrograms, Shells};
use crate::spec::Spec;
use acheron_base::watch::FileWatcher;
use acheron_base::{Clock, Result};
use acheron_store::Store;

pub struct SharedServices {
    pub runtimes: Arc<AgentRuntimes>,
    /// What programs asked models through the gateway.
    pub requests: Arc<RequestLogs>,
    pub prompts: Arc<Library>,
    pub symbols: Arc<SymbolStore>,
    /// Reloads the prompts as long as it is held.
    _watch: Option<FileWatcher>,
    /// The mail of all agents and of the operator.
    pub post: Arc<Post>,
    pub queues: Arc<Queues>,
    pub bindings: Arc<Bindings>,
    /// The sessions of all terminals.
    pub shells: Arc<Shells>,
    /// The searches of all agents.
    pub searches: Arc<SearchSlots>,
    /// The programs of all agents that run now.
    pub programs: Arc<RunningPrograms>,
    /// The memory wikis, each opened once.
    pub wikis: Arc<Wikis>,
    /// The MCP servers of all agents.
    pub mcp_servers: Arc<McpServers>,
}

/// What the shared state is opened from.
pub struct SharedParts<'a> {
    pub spec: &'a Spec,
    pub here: &'a Path,
    /// The prompts that lie beside the host, for a mountspec that names none.
    pub beside: Option<PathBuf>,
    /// The folder of the library, if it is one.
    pub library: Option<&'a Path>,
    pub store: &'a Store,
    pub event_logs: &'a Arc<EventLogs>,
    pub clock: &'a Clock,
}

impl SharedServices {
    pub fn open(parts: SharedParts<'_>) -> Result<(SharedServices, Filling)> {
        let SharedParts { spec, here, beside, library, store, event_logs, clock } = parts;
        let quotas = &event_logs.quotas;
        let catalogue = symbols::catalogue::of_library(library)?;
        let (symbols, filling) = symbols::open::open(&spec.symbols, store, catalogue, quotas.clone())?;
        let folder = spec.prompts.as_deref().map(|folder| here.join(folder));
        let in_library = library.map(|library| library.join("prompts")).filter(|folder| folder.is_dir());
        let folder = folder.or(in_library).or_else(|| beside.filter(|folder| folder.is_dir()));
        let prompts = Arc::new(Library::open(folder.as_deref()));
        let watch = watch(&prompts, |_| {}).unwrap_or_else(|error| {
            tracing::warn!(%error, "edits of prompts are not noticed");
            None
        });
        let runtimes = Arc::new(AgentRuntimes::new(
            store.clone(),
            here,
            Box::new(|name| std::env::var(name).ok()),
            clock.clone(),
        )?);
        runtimes.trust(spec);
        let requests = Arc::new(RequestLogs::open(store.clone(), clock.clone())?);
        let post = Post::open(store.clone(), event_logs.clone(), quotas.clone(), clock.clone())?;
        let queues = {
            let shared = spec.fabric.as_ref().map(|fabric| fabric.queues.as_slice()).unwrap_or_default();
            Queues::new(store.clone(), quotas.clone(), clock.clone(), shared)
        };
        let shared = SharedServices {
            post,
            queues,
            runtimes,
            requests,
            prompts,
            symbols,
            _watch: watch,
            bindings: Arc::default(),
            shells: Arc::default(),
            searches: Arc::default(),
            programs: Arc::default(),
            wikis: Arc::default(),
            mcp_servers: Arc::default(),
        };
        Ok((shared, filling))
    }
}
