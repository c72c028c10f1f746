//! The prompts of one agent, put together from the house.

use std::sync::Arc;

use serde_json::json;

use super::override_store::OverrideStore;
use super::service::{Choose, Projects, Prompts, Setting};
use crate::service::{Serve, typed};
use crate::services::AgentEnv;
use acheron_base::ConfinedDir;
use acheron_base::{Error, Result};

/// The prompts of one agent, ready to be served.
pub fn served(world: &AgentEnv) -> Result<Arc<dyn Serve>> {
    let host = &world.host;
    typed(Prompts::new(Setting {
        library: host.shared.prompts.clone(),
        overrides: Arc::new(OverrideStore::new(ConfinedDir::create(host.state.join("prompts/overrides"))?)),
        home: world.home.join("prompts"),
        agent: world.agent.clone(),
        context: host.context.clone(),
        projects: projects(world),
        models: Some(models(world)),
    })?)
}

/// A project that the agent may change as a whole: only such a one can be taken back.
fn projects(world: &AgentEnv) -> Projects {
    let (host, agent) = (Arc::downgrade(&world.host), world.agent.clone());
    Arc::new(move |name| {
        let host = host.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))?;
        let source = host.writable_project(&agent, name);
        let told = |error: Error| Error::new(error.code, format!("its files cannot be taken back: {}", error.message));
        ConfinedDir::found(&source.map_err(told)?)
    })
}

/// The agent's own model, or `KIND[:NAME]` as `--model` takes it.
fn models(world: &AgentEnv) -> Choose {
    let (host, agent) = (Arc::downgrade(&world.host), world.agent.clone());
    Arc::new(move |word| {
        let host = host.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))?;
        let spec = host.profiles.get(&agent)?.spec;
        let mut model = host.mounted_with.model_of(&spec);
        if let Some(word) = word {
            let (kind, name) = word.split_once(':').map_or((word, None), |(kind, name)| (kind, Some(name)));
            model.kind = serde_json::from_value(json!(kind)).map_err(|_| {
                Error::invalid(format!("there is no kind of model `{}`", acheron_prompts::names::clipped(kind)))
            })?;
            model.name = name.map(str::to_owned);
        }
        let settings = host.shared.runtimes.settings(&agent, &model, &spec.limits)?;
        settings.model.ok_or_else(|| Error::unavailable("an external model cannot be asked from here"))
    })
}
