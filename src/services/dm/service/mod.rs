//! The service `dm`: campaigns are directories, moves are writes. The list of services uses it; the rules are those of
//! `acheron-dm`.

mod asking;
mod command;
mod files;
mod session;
mod tool_calls;

pub use command::{Command, Dm, Output};
pub use session::GameSession;

use std::sync::Arc;
use std::time::Duration;

use super::narrator::{ModelNarrator, Narrator};
use super::store::{Campaigns, GameLibrary};
use crate::agent::own_model::OwnModel;
use crate::service::{Serve, typed};
use crate::services::prompts::Library;
use acheron_base::{Clock, ConfinedDir, Result};

/// The parts from which the game master of one agent is built.
pub struct DmParts {
    /// The campaigns: the agent's own, or those of the folder that the mountspec names.
    pub root: ConfinedDir,
    /// The narrator: the agent's model, or the one that the mountspec names.
    pub model: OwnModel,
    /// How long a turn waits for the narrator.
    pub narrator_limit: Duration,
    pub prompts: Arc<Library>,
    /// Cartridges, template and pages of the engine.
    pub library: GameLibrary,
    pub clock: Clock,
}

/// The game master of one agent, ready to be served.
pub fn served(parts: DmParts) -> Result<Arc<dyn Serve>> {
    let DmParts { root, model, narrator_limit, prompts, library, clock } = parts;
    let narrator = narrator(model, prompts, narrator_limit);
    typed(Dm::new(GameSession::new(Campaigns::open(root, library), narrator, clock)))
}

/// The narrator that the mountspec names, or the agent's own model. Where that is the guide, the kernel narrates.
fn narrator(own: OwnModel, prompts: Arc<Library>, limit: Duration) -> Arc<dyn Narrator> {
    Arc::new(ModelNarrator::new(move || own.open(), prompts, limit))
}

#[cfg(test)]
mod tests;
