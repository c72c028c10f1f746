//! The values from which the arguments of one agent's services are made. They exist while services are built; no
//! service keeps them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::own_model::OwnModel;
use crate::events::EventLog;
use crate::host::HostState;
use crate::state::quota::QuotaKind;
use acheron_base::{Result, Room};

/// The directory of an agent for what can be made again; it counts for no limit.
pub const CACHE: &str = "cache";

/// One agent of the host.
pub struct AgentEnv {
    pub agent: String,
    /// The agent's own files; a service that uses it creates it.
    pub home: PathBuf,
    pub event_log: Arc<EventLog>,
    pub host: Arc<HostState>,
    room: Arc<Room>,
}

impl AgentEnv {
    pub fn new(host: &Arc<HostState>, agent: &str) -> Result<AgentEnv> {
        let event_log = host.context.event_logs.of(agent)?;
        let home = host.paths.state.join("agents").join(agent);
        let quotas = host.context.event_logs.quotas.clone();
        let room =
            Arc::new(Room::new(&home, move |used, more| quotas.check(QuotaKind::Files, used, more)).without(CACHE));
        Ok(AgentEnv { agent: agent.to_owned(), home, event_log, host: host.clone(), room })
    }

    /// The room for the agent's own files, which all services share.
    pub fn room(&self) -> Arc<Room> {
        self.room.clone()
    }

    /// The agent's model, paid for by its budget.
    pub fn model(&self) -> OwnModel {
        self.host.models().of(&self.agent)
    }
}
