//! The chat of one agent, put together: its model, its limits, its contract. No service, since nothing is called here.

use std::sync::Arc;

use serde_json::json;

use super::AgentEnv;
use crate::agent::chat::Chat;
use crate::agent::runtime::Settings;
use crate::agent::runtimes::budget_of;
use crate::host::HostState;
use crate::spec::AgentSpec;
use acheron_base::Result;

pub(super) fn open(world: &AgentEnv) -> Result<Chat> {
    let host = &world.host;
    let settings = settings(host, &world.agent, &world.spec)?;
    let (prompts, weak) = (host.shared.prompts.clone(), Arc::downgrade(host));
    let core = move |agent: &str| {
        let core = prompts.text("runtime", "core", &json!({ "agent": agent }));
        // A faulty override is told of by the library; the agent is not left without its contract.
        let core = core.unwrap_or_else(|_| include_str!("../../prompts/runtime/core.md").replace("$agent", agent));
        let profile = weak.upgrade().and_then(|host| host.profiles.get(agent).ok());
        let about = profile.map(|profile| profile.spec.about).unwrap_or_default();
        if about.trim().is_empty() { core } else { format!("{core}\n\n## Who you are\n\n{}\n", about.trim()) }
    };
    host.shared.runtimes.add(&host.context, &world.agent, &world.home, Arc::new(core), settings)
}

/// What an agent thinks with and what it may use up. Opens the model; a limit that could not be kept is an error.
pub(super) fn settings(host: &HostState, agent: &str, spec: &AgentSpec) -> Result<Settings> {
    let mut settings = host.shared.runtimes.settings(agent, &host.mounted_with.model_of(spec), &spec.limits)?;
    settings.total = budget_of(&spec.budget);
    settings.total.check(Some(&settings.prices))?;
    settings.paused = host.profiles.get(agent).is_ok_and(|profile| profile.paused);
    Ok(settings)
}
