//! The arguments of `memory`.

use super::AgentEnv;
use crate::services::memory::MemoryParts;

pub fn parts(env: &AgentEnv) -> MemoryParts {
    MemoryParts {
        store: env.host.store.clone(),
        event_log: env.event_log.clone(),
        clock: env.host.context.clock.clone(),
        active_tokens: env.host.current.mounted_with.memory.active_tokens,
        model: env.model(),
    }
}
