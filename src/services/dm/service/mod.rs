//! The service `dm`: campaigns are directories, moves are writes. The list of services uses it; the rules are those of
//! `acheron-dm`.

mod command;
mod files;
mod session;
mod tool_calls;

pub use command::{Command, Dm, Output};
pub use session::GameSession;

use std::sync::Arc;

use super::narrator::{ModelNarrator, Narrator};
use super::store::{Campaigns, GameLibrary};
use crate::agent::own_model::OwnModel;
use crate::service::{Serve, typed};
use crate::services::prompts::Library;
use crate::spec::ModelKind;
use acheron_base::{Clock, ConfinedDir, Result};

/// The parts from which the game master of one agent is built.
pub struct DmParts {
    /// The campaigns: the agent's own, or those of the folder that the mountspec names.
    pub root: ConfinedDir,
    /// The narrator: the agent's model, or the one that the mountspec names.
    pub model: OwnModel,
    /// Whether the mountspec names a narrator.
    pub named: bool,
    pub prompts: Arc<Library>,
    /// Cartridges, template and pages of the engine.
    pub library: GameLibrary,
    pub clock: Clock,
}

/// The game master of one agent, ready to be served.
pub fn served(parts: DmParts) -> Result<Arc<dyn Serve>> {
    let DmParts { root, model, named, prompts, library, clock } = parts;
    typed(Dm::new(GameSession::new(Campaigns::open(root, library), narrator(model, named, prompts), clock)))
}

/// The narrator that the mountspec names. Without one, the agent's own model if it can tell a story: a script or a
/// recording of the chat knows nothing of the game, and the kernel narrates.
fn narrator(own: OwnModel, named: bool, prompts: Arc<Library>) -> Arc<dyn Narrator> {
    let open = move || match own.described()?.kind {
        ModelKind::Openai | ModelKind::Anthropic => own.open(),
        _ if named => own.open(),
        _ => Ok(None),
    };
    Arc::new(ModelNarrator::new(open, prompts))
}

#[cfg(test)]
mod tests;
