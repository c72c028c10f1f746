//! Memory: named things with versions, some of them active.
//!
//! `path`, `content`, `evict`, `words` and `snippet` are rules without a database; `rows` are its tables, and `book`,
//! `active` and `search` keep the rules in it. `memory` is one agent's memory at work, `files` its part of the tree,
//! `service` the operations, `narrator` the model that sums up.

mod active;
mod answers;
mod content;
mod evict;
mod files;
mod narrator;
pub mod path;
mod rows;
mod search;
mod service;
#[cfg(test)]
mod sessions;
mod shelf;
mod snippet;
mod store;
#[cfg(test)]
mod tests;
mod tx;
pub mod words;

use std::sync::Arc;

use crate::service::{Serve, typed};
use acheron_base::Result;

use super::{AgentEnv, OwnModel};

use narrator::Narrator;
pub use rows::purge;
pub use service::Memory;
pub use store::{MemoryStore, Summarize};

/// The memory of one agent, ready to be served.
pub fn served(world: &AgentEnv) -> Result<Arc<dyn Serve>> {
    let (host, budget) = (&world.host, world.host.mounted_with.memory.active_tokens);
    let memory = MemoryStore::open(host.store.clone(), world.event_log.clone(), host.context.clock.clone(), budget)?;
    typed(Memory::new(memory, Some(narrator(world))))
}

/// The agent's model, unless it is the guide, which only shows the tree around.
fn narrator(world: &AgentEnv) -> Arc<dyn Summarize> {
    let own = OwnModel::of(world);
    Arc::new(Narrator::new(move || match own.is_guide()? {
        true => Ok(None),
        false => Ok(own.open()?.map(|model| (model, own.described().map_or(0, |own| own.context_tokens.into())))),
    }))
}
