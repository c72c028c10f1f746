//! The chat of one agent, put together: its model, its limits, its contract. No service, since nothing is called here.

use std::sync::Arc;

use serde_json::json;

use super::World;
use crate::agent::chat::Chat;
use crate::error::Result;

pub(super) fn open(world: &World) -> Result<Chat> {
    let house = &world.house;
    let model = house.spec.model_of(&world.spec);
    let mut settings = house.shared.crew.settings(&world.agent, &model, &world.spec.limits)?;
    settings.paused = house.roster.get(&world.agent)?.paused;
    let (prompts, about) = (house.shared.prompts.clone(), world.spec.about.trim().to_owned());
    let core = move |agent: &str| {
        let core = prompts.text("runtime", "core", &json!({ "agent": agent }));
        // A faulty override is told of by the library; the agent is not left without its contract.
        let core = core.unwrap_or_else(|_| include_str!("../../prompts/runtime/core.md").replace("$agent", agent));
        if about.is_empty() { core } else { format!("{core}\n\n## Who you are\n\n{about}\n") }
    };
    house.shared.crew.join(&house.office, &world.agent, &world.home, Arc::new(core), settings)
}
