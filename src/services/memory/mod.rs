//! Memory: named things with versions, some of them active.
//!
//! `path`, `content`, `evict`, `words` and `snippet` are rules without a database; `rows` are its tables, and `book`,
//! `active` and `search` keep the rules in it. `desk` is one agent's memory at work, `files` its part of the tree,
//! `service` the operations, `narrator` the model that sums up.

mod active;
mod answers;
mod book;
mod content;
mod desk;
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
#[cfg(test)]
mod tests;
pub mod words;

use std::sync::Arc;

use crate::error::Result;
use crate::service::{Serve, typed};
use crate::spec::ModelKind;

use super::World;

pub use desk::{Desk, Summarize};
use narrator::Narrator;
pub use service::Memory;

/// The memory of one agent, ready to be served.
pub fn served(world: &World) -> Result<Arc<dyn Serve>> {
    let (house, budget) = (&world.house, world.house.spec.memory.active_tokens);
    let desk = Desk::open(house.store.clone(), world.diary.clone(), house.clock.clone(), budget)?;
    typed(Memory::new(desk, narrator(world)))
}

/// The agent's model, unless it is the guide, which only shows the tree around.
fn narrator(world: &World) -> Option<Arc<dyn Summarize>> {
    let model = world.spec.model.over(&world.house.spec.model);
    if model.kind == ModelKind::Script && model.name.is_none() {
        return None;
    }
    let (crew, agent, limits) = (world.house.shared.crew.clone(), world.agent.clone(), world.spec.limits);
    let context_tokens = model.context_tokens.into();
    Some(Arc::new(Narrator::new(context_tokens, move || Ok(crew.settings(&agent, &model, &limits)?.model))))
}
