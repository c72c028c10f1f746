//! The chat of one agent, put together: its model, its limits, its contract. No service, since nothing is called here.

use std::sync::Arc;

use serde_json::json;

use super::World;
use crate::agent::chat::Chat;
use crate::agent::crew::budget_of;
use crate::agent::mind::Settings;
use crate::host::House;
use crate::spec::Agent;
use acheron_base::Result;

pub(super) fn open(world: &World) -> Result<Chat> {
    let house = &world.house;
    let settings = settings(house, &world.agent, &world.spec)?;
    let (prompts, weak) = (house.shared.prompts.clone(), Arc::downgrade(house));
    let core = move |agent: &str| {
        let core = prompts.text("runtime", "core", &json!({ "agent": agent }));
        // A faulty override is told of by the library; the agent is not left without its contract.
        let core = core.unwrap_or_else(|_| include_str!("../../prompts/runtime/core.md").replace("$agent", agent));
        let profile = weak.upgrade().and_then(|house| house.roster.get(agent).ok());
        let about = profile.map(|profile| profile.spec.about).unwrap_or_default();
        if about.trim().is_empty() { core } else { format!("{core}\n\n## Who you are\n\n{}\n", about.trim()) }
    };
    house.shared.crew.join(&house.office, &world.agent, &world.home, Arc::new(core), settings)
}

/// What an agent thinks with and what it may use up. Opens the model; a limit that could not be kept is an error.
pub(super) fn settings(house: &House, agent: &str, spec: &Agent) -> Result<Settings> {
    let mut settings = house.shared.crew.settings(agent, &house.mounted_with.model_of(spec), &spec.limits)?;
    settings.total = budget_of(&spec.budget);
    settings.total.check(Some(&settings.prices))?;
    settings.paused = house.roster.get(agent).is_ok_and(|profile| profile.paused);
    Ok(settings)
}
