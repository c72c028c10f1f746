//! The service `dm`: campaigns as directories, moves as writes. Connects; every rule is elsewhere.

mod command;
mod files;
mod table;

pub use command::{Command, Dm, Output};
pub use table::Table;

use std::sync::Arc;

use super::narrator::{ByModel, Narrator, Silent};
use super::store::Hall;
use crate::error::Result;
use crate::place::Place;
use crate::service::{Serve, typed};
use crate::services::World;
use crate::spec::ModelKind;

/// The game master of one agent: its own campaigns, or those of the folder that the spec names.
pub fn served(world: &World) -> Result<Arc<dyn Serve>> {
    let house = &world.house;
    let root = match &house.spec.dm.root {
        Some(root) => house.here.join(root),
        None => world.home.join("dm"),
    };
    let hall = Hall::open(Place::create(root)?);
    typed(Dm::new(Table::new(hall, narrator(world)?, house.clock.clone())))
}

/// A model that can tell a story tells it; a script or a recording knows nothing of the game.
fn narrator(world: &World) -> Result<Arc<dyn Narrator>> {
    let house = &world.house;
    let model = world.spec.model.over(&house.spec.model);
    if !matches!(model.kind, ModelKind::Openai | ModelKind::Anthropic) {
        return Ok(Arc::new(Silent));
    }
    let settings = house.shared.crew.settings(&world.agent, &model, &world.spec.limits)?;
    Ok(match settings.model {
        Some(model) => Arc::new(ByModel::new(model, house.shared.prompts.clone())),
        None => Arc::new(Silent),
    })
}

#[cfg(test)]
mod tests;
