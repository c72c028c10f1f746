//! The chat of one agent, put together: its model, its limits, its contract. No service, since nothing is called here.

use std::sync::Arc;

use serde_json::json;

use super::{AgentEnv, project_pages};
use crate::agent::chat::Chat;
use crate::agent::profiles::Profile;
use crate::agent::runtime::{BudgetSource, Settings};
use crate::agent::runtimes::budget_of;
use crate::host::HostState;
use crate::model::ModelProtocol;
use crate::services::mail::AgentInbox;
use crate::spec::{AgentSpec, ModelKind};
use acheron_base::Result;
use acheron_base::delimited::delimited;

pub fn open(env: &AgentEnv) -> Result<Chat> {
    let host = &env.host;
    let settings = settings(host, &env.agent, &host.profiles.get(&env.agent)?.spec)?;
    let (prompts, profiles, weak) = (host.shared.prompts.clone(), host.profiles.clone(), Arc::downgrade(host));
    let core = move |agent: &str, protocol: ModelProtocol| {
        let (key, built_in) = match protocol {
            ModelProtocol::Json => ("core", include_str!("../../../prompts/runtime/core.md")),
            ModelProtocol::Native => ("core_native", include_str!("../../../prompts/runtime/core_native.md")),
        };
        let core = prompts.text("runtime", key, &json!({ "agent": agent }));
        // The library reports a faulty override; the agent is not left without its contract.
        let core = core.unwrap_or_else(|_| built_in.replace("$agent", agent));
        let Ok(profile) = profiles.get(agent) else { return core };
        let pages = weak.upgrade().map(|host| project_pages::text(&host, agent, &profile.spec)).unwrap_or_default();
        let core = match profile.spec.about.trim() {
            "" => core,
            about => {
                // A helper is told that its parent says so, which has no more rights than the parent.
                let parent = profile.parent.as_deref().map(|parent| ("from", parent));
                format!("{core}\n\n## Who you are\n\n{}\n", delimited("about", parent, about))
            }
        };
        core + &pages
    };
    let mail = Arc::new(AgentInbox::new(&host.shared.post, &env.agent));
    host.shared.runtimes.add(&host.context, &env.agent, &env.home, Arc::new(core), mail, settings)
}

/// The model and the limits of an agent. Opens the model; a limit that could not be kept is an error.
pub fn settings(host: &HostState, agent: &str, spec: &AgentSpec) -> Result<Settings> {
    let model = host.current.mounted_with.model_of(spec);
    let mut settings = host.shared.runtimes.settings(agent, &model, &spec.limits)?;
    if model.kind == ModelKind::Acp {
        settings.mind = Some(host.minds.mind(agent, &model)?);
    }
    settings.total = budget_of(&spec.budget);
    settings.total.check(Some(&settings.prices))?;
    let profile = host.profiles.get(agent);
    settings.paused = profile.as_ref().is_ok_and(|profile| profile.paused);
    settings.parent = profile.as_ref().ok().and_then(|profile| profile.parent.clone());
    let unchanged = |profile: &Profile| profile.over.as_ref().is_none_or(|entry| entry.budget == spec.budget);
    settings.budget_source = match profile {
        _ if host.runs.has_own_budget(agent) => BudgetSource::Run,
        Ok(profile) if !profile.created && unchanged(&profile) => BudgetSource::Mountspec,
        _ => BudgetSource::Agents,
    };
    Ok(settings)
}
