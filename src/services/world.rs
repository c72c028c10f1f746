//! What the services of one agent are built from.

use std::path::PathBuf;
use std::sync::Arc;

use crate::events::EventLog;
use crate::host::HostState;
use crate::spec::AgentSpec;
use acheron_base::Result;

/// One agent's view of the house: capability by argument.
pub struct AgentEnv {
    pub agent: String,
    pub spec: AgentSpec,
    /// Where the agent's own files are kept; there when somebody makes it.
    pub home: PathBuf,
    pub event_log: Arc<EventLog>,
    pub host: Arc<HostState>,
}

impl AgentEnv {
    pub fn new(host: &Arc<HostState>, agent: &str, event_log: Arc<EventLog>) -> Result<AgentEnv> {
        let spec = host.profiles.get(agent)?.spec;
        let home = host.state.join("agents").join(agent);
        Ok(AgentEnv { agent: agent.to_owned(), spec, home, event_log, host: host.clone() })
    }
}
