//! The services of the house, one file or folder each: a pure core first, the service last.
//!
//! A new one is a module here and a line in [`all`]. What a service needs of the host comes with its agent's [`AgentEnv`];
//! only the files of this folder that let agents in or wire programs up ([`agents`], [`sub_brains`], [`hands`]) name the
//! host, and no folder below does.

pub mod agents;
pub mod chat;
pub mod dm;
pub mod external;
pub mod memory;
pub mod mounts;
mod own_model;
pub mod phases;
pub mod prompts;
pub mod recall;
mod sandbox_rules;
pub mod search_code;
mod shared;
pub mod sub_brains;
pub mod symbols;
pub mod terminal;
pub mod web_search;
pub mod wiring;
mod world;

use std::sync::Arc;

use crate::service::{Serve, typed};
use acheron_base::{Code, Result};
use acheron_store::Tx;
use acheron_vfs::Node;

pub use own_model::OwnModel;
use search_code::SearchCode;
pub use shared::SharedServices;
pub use world::AgentEnv;

/// Every service of one agent, a line each, and then those that the mountspec configures.
pub fn all(world: &AgentEnv) -> Result<Vec<Arc<dyn Serve>>> {
    let mut all = vec![
        typed(SearchCode::of(world))?, //
        memory::served(world)?,
        prompts::served(world)?,
        recall::served(world)?,
        wiring::terminal(world)?,
        wiring::mounts(world)?,
        symbols::open::served(world)?,
        phases::open::served(world)?,
        typed(agents::Agents::of(world))?,
        typed(sub_brains::SubBrains::of(world)?)?,
    ];
    match dm::service::served(world) {
        Ok(dm) => all.push(dm),
        // An agent may have put a link where its folder was: that must not keep everybody out.
        Err(error) if error.code == Code::Forbidden => tracing::warn!(%error, "dm is not served"),
        Err(error) => return Err(error),
    }
    all.extend(configured(world)?);
    Ok(all)
}

/// The services of one agent that are what `services` in the mountspec says.
pub fn configured(world: &AgentEnv) -> Result<Vec<Arc<dyn Serve>>> {
    let mut all = wiring::programs(&world.host, crate::spec::Scope::Agent)?;
    all.push(wiring::web_search(world)?);
    Ok(all)
}

/// Removes for good what services keep of an agent outside its own directory, a line each.
pub fn purge(tx: &Tx<'_>, agent: &str) -> Result<()> {
    memory::purge(tx, agent)?;
    phases::history::purge(tx, agent)
}

/// What stands in an agent's directory without being a service, a line each.
pub fn rooms(world: &AgentEnv) -> Result<Vec<(String, Node)>> {
    let chat = chat::open(world)?;
    let thoughts = chat.agent_runtime().thoughts.directory();
    Ok(vec![
        ("chat".to_owned(), Node::dir(chat.directory())), //
        ("thoughts".to_owned(), Node::dir(thoughts)),
    ])
}
