//! The values from which the arguments of one agent's services are made. They exist while services are built; no
//! service keeps them.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::own_model::OwnModel;
use crate::events::EventLog;
use crate::host::HostState;
use acheron_base::Result;

/// One agent of the host.
pub struct AgentEnv {
    pub agent: String,
    /// The agent's own files; a service that uses it creates it.
    pub home: PathBuf,
    pub event_log: Arc<EventLog>,
    pub host: Arc<HostState>,
}

impl AgentEnv {
    pub fn new(host: &Arc<HostState>, agent: &str) -> Result<AgentEnv> {
        let event_log = host.context.event_logs.of(agent)?;
        let home = host.paths.state.join("agents").join(agent);
        Ok(AgentEnv { agent: agent.to_owned(), home, event_log, host: host.clone() })
    }

    /// The agent's model, paid for by its budget.
    pub fn model(&self) -> OwnModel {
        self.host.models().of(&self.agent)
    }
}
