//! The service `memory`: named memories with versions, some of them active. The host's wiring uses it, and each agent has one.
//!
//! `path`, `content`, `evict`, `words`, `rank` and `snippet` are rules without a database; `rows` are its tables, and `tx`,
//! `active`, `facts`, `similar`, `search` and `questions` apply the rules to them. `store` is the memory of one agent, `live` its memories as the tree shows them,
//! `files` its part of the tree, `service` the operations, `summarizer` the model that writes summaries.

mod active;
mod answers;
mod content;
mod evict;
mod facts;
mod files;
mod live;
pub mod path;
mod questions;
mod rank;
mod rewind;
mod rows;
mod search;
mod service;
mod similar;
mod snippet;
mod store;
mod summarizer;
#[cfg(test)]
mod tests;
mod tx;
pub mod words;

use std::sync::Arc;

use crate::agent::own_model::OwnModel;
use crate::events::EventLog;
use crate::service::{Serve, typed};
use acheron_base::{Clock, Result};
use acheron_store::Store;

pub use rewind::{MemoryChange, changed_since, marker};
pub use rows::purge;
pub use service::Memory;
pub use store::{MemoryStore, Summarize};
use summarizer::ModelSummarizer;

/// The parts from which the memory of one agent is built.
pub struct MemoryParts {
    pub store: Store,
    /// The events of the agent, in which its memory tells of changes.
    pub event_log: Arc<EventLog>,
    pub clock: Clock,
    /// The size of active memory, in tokens.
    pub active_tokens: u64,
    /// Sums up what is evicted.
    pub model: OwnModel,
}

/// The memory of one agent, ready to be served.
pub fn served(parts: MemoryParts) -> Result<Arc<dyn Serve>> {
    let memory = MemoryStore::open(parts.store, parts.event_log, parts.clock, parts.active_tokens)?;
    typed(Memory::new(memory, Some(narrator(parts.model))))
}

/// The agent's model, unless it is the guide, which only shows the tree around.
fn narrator(own: OwnModel) -> Arc<dyn Summarize> {
    Arc::new(ModelSummarizer::new(move || own.open()))
}
