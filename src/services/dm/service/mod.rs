//! The service `dm`: campaigns are directories, moves are writes. The list of services uses it; the rules are those of
//! `acheron-dm`.

mod command;
mod files;
mod session;

pub use command::{Command, Dm, Output};
pub use session::GameSession;

use std::path::Path;
use std::sync::Arc;

use super::narrator::{ByModel, Narrator};
use super::store::Campaigns;
use crate::service::{Serve, typed};
use crate::services::{AgentEnv, OwnModel};
use crate::spec::ModelKind;
use acheron_base::ConfinedDir;
use acheron_base::Result;

/// The game master of one agent: its own campaigns, or those of the folder that the spec names.
pub fn served(world: &AgentEnv) -> Result<Arc<dyn Serve>> {
    let host = &world.host;
    let root = match &host.mounted_with.dm.root {
        Some(root) => host.folder(Path::new(root))?,
        None => ConfinedDir::create(world.home.join("dm"))?,
    };
    let campaigns = Campaigns::open(root);
    typed(Dm::new(GameSession::new(campaigns, narrator(world), host.context.clock.clone())))
}

/// The narrator that the mountspec names. Without one, the agent's own model if it can tell a story: a script or a
/// recording of the chat knows nothing of the game, and the kernel narrates.
fn narrator(world: &AgentEnv) -> Arc<dyn Narrator> {
    let named = world.host.mounted_with.dm.narrator.clone();
    let (any, own) = (named.is_some(), OwnModel::other(world, named.unwrap_or_default()));
    let open = move || match own.described()?.kind {
        ModelKind::Openai | ModelKind::Anthropic => own.open(),
        _ if any => own.open(),
        _ => Ok(None),
    };
    Arc::new(ByModel::new(open, world.host.shared.prompts.clone()))
}

#[cfg(test)]
mod tests;
