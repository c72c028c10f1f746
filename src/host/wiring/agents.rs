//! The arguments of `agents` and `sub_brains`, which manage agents.

use std::sync::Arc;

use super::AgentEnv;
use crate::host::lifecycle::Lifecycle;
use crate::services::agents::AgentsParts;
use crate::services::sub_brains::SubBrainsParts;
use acheron_base::{ConfinedDir, Result};

pub fn parts(env: &AgentEnv) -> AgentsParts {
    let host = &env.host;
    let (access, current) = (host.access.clone(), host.current.clone());
    AgentsParts {
        profiles: host.profiles.clone(),
        runtimes: host.shared.runtimes.clone(),
        policy: Arc::new(move || access.policy()),
        spec: Arc::new(move || current.spec()),
        lifecycle: Arc::new(Lifecycle(Arc::downgrade(host))),
    }
}

pub fn helpers(env: &AgentEnv) -> Result<SubBrainsParts> {
    let host = &env.host;
    Ok(SubBrainsParts {
        agent: env.agent.clone(),
        home: ConfinedDir::create(&env.home)?,
        profiles: host.profiles.clone(),
        runtimes: host.shared.runtimes.clone(),
        lifecycle: Arc::new(Lifecycle(Arc::downgrade(host))),
    })
}
