//! The prompts of one agent, put together from the house.

use std::sync::Arc;

use serde_json::json;

use super::overrides::Store;
use super::service::{Choose, Projects, Prompts, Setting};
use crate::service::{Serve, typed};
use crate::services::World;
use acheron_base::ConfinedDir;
use acheron_base::{Error, Result};

/// The prompts of one agent, ready to be served.
pub fn served(world: &World) -> Result<Arc<dyn Serve>> {
    let house = &world.house;
    typed(Prompts::new(Setting {
        library: house.shared.prompts.clone(),
        overrides: Arc::new(Store::new(ConfinedDir::create(house.state.join("prompts/overrides"))?)),
        home: world.home.join("prompts"),
        agent: world.agent.clone(),
        office: house.office.clone(),
        projects: projects(world),
        models: Some(models(world)),
    })?)
}

/// A project that the agent may change as a whole: only such a one can be taken back.
fn projects(world: &World) -> Projects {
    let (house, agent) = (Arc::downgrade(&world.house), world.agent.clone());
    Arc::new(move |name| {
        let house = house.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))?;
        let source = house.writable_project(&agent, name);
        let told = |error: Error| Error::new(error.code, format!("its files cannot be taken back: {}", error.message));
        ConfinedDir::found(&source.map_err(told)?)
    })
}

/// The agent's own model, or `KIND[:NAME]` as `--model` takes it.
fn models(world: &World) -> Choose {
    let (house, agent) = (Arc::downgrade(&world.house), world.agent.clone());
    Arc::new(move |word| {
        let house = house.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))?;
        let spec = house.roster.get(&agent)?.spec;
        let mut model = house.mounted_with.model_of(&spec);
        if let Some(word) = word {
            let (kind, name) = word.split_once(':').map_or((word, None), |(kind, name)| (kind, Some(name)));
            model.kind = serde_json::from_value(json!(kind))
                .map_err(|_| Error::invalid(format!("there is no kind of model `{}`", super::names::clipped(kind))))?;
            model.name = name.map(str::to_owned);
        }
        let settings = house.shared.crew.settings(&agent, &model, &spec.limits)?;
        settings.model.ok_or_else(|| Error::unavailable("an external model cannot be asked from here"))
    })
}
