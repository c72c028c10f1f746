//! The arguments of `prompts`: the projects that may be taken back, and the models that may be asked.

use std::sync::Arc;

use serde_json::json;

use super::AgentEnv;
use crate::host::upgrade;
use crate::services::prompts::PromptsParts;
use crate::services::prompts::service::{ChooseModel, OpenProject, OpenedProject};
use acheron_base::{ConfinedDir, Error, Result};
use acheron_prompts::names::clipped;

pub fn parts(env: &AgentEnv) -> Result<PromptsParts> {
    let host = &env.host;
    Ok(PromptsParts {
        library: host.shared.prompts.clone(),
        overrides: host.shared.prompts.overrides_in(&host.paths.state.join("prompts/overrides"))?,
        home: env.home.join("prompts"),
        room: env.room(),
        agent: env.agent.clone(),
        context: host.context.clone(),
        projects: projects(env),
        models: Some(models(env)),
        kinds: Default::default(),
    })
}

/// A project that the agent may change as a whole: only such a one can be taken back.
fn projects(env: &AgentEnv) -> OpenProject {
    let (host, agent) = (Arc::downgrade(&env.host), env.agent.clone());
    Arc::new(move |name| {
        let source = upgrade(&host)?.writable_project(&agent, name);
        let told = |error: Error| Error::new(error.code, format!("its files cannot be rolled back: {}", error.message));
        let (source, kept) = source.map_err(told)?;
        Ok(OpenedProject { directory: ConfinedDir::found(&source)?, kept })
    })
}

/// The agent's own model, or `KIND[:NAME]` as `--model` takes it.
fn models(env: &AgentEnv) -> ChooseModel {
    let own = env.model();
    Arc::new(move |word| {
        let mut model = own.described()?;
        if let Some(word) = word {
            let (kind, name) = word.split_once(':').map_or((word, None), |(kind, name)| (kind, Some(name)));
            model.kind = serde_json::from_value(json!(kind))
                .map_err(|_| Error::invalid(format!("there is no kind of model `{}`", clipped(kind))))?;
            model.name = name.map(str::to_owned);
        }
        let nobody = "the guide is no language model: give the agent a model, or name one (`model`)";
        own.open_as(&model)?.ok_or_else(|| Error::unavailable(nobody))
    })
}
