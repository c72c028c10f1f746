//! The model of one agent, for services that think: as the agent's profile says now, and paid for by its budget.
//!
//! Services are handed an [`OwnModel`]; the host makes them from [`AgentModels`].

use std::sync::Arc;

use parking_lot::Mutex;

use super::ask::PaidModel;
use super::profiles::AgentProfiles;
use super::runtime::Settings;
use super::runtimes::AgentRuntimes;
use crate::spec::{self, ModelChange, ModelKind};
use acheron_base::{Error, Result};

/// Opens the model that an agent has now; `None` where there is none.
pub type OpenModel = dyn Fn() -> Result<Option<PaidModel>> + Send + Sync;

/// Where the models of agents come from.
#[derive(Clone)]
pub struct AgentModels {
    pub profiles: Arc<AgentProfiles>,
    pub runtimes: Arc<AgentRuntimes>,
    /// The model of the mountspec: it holds where an agent's profile says nothing else.
    pub default: spec::ModelSpec,
}

impl AgentModels {
    /// The model of `agent`, paid for by its budget.
    pub fn of(&self, agent: &str) -> OwnModel {
        self.other(agent, ModelChange::default())
    }

    /// The same with what a service says otherwise.
    pub fn other(&self, agent: &str, otherwise: ModelChange) -> OwnModel {
        OwnModel { models: self.clone(), agent: agent.to_owned(), otherwise, opened: Mutex::default() }
    }

    /// The description of an agent's own model that holds now.
    fn own(&self, agent: &str) -> Result<spec::ModelSpec> {
        Ok(self.profiles.get(agent)?.spec.model.over(&self.default))
    }

    /// The description of the model that programs and services of an agent ask. If a program is the mind of the agent, it is the
    /// one that `gateway` names.
    pub fn described(&self, agent: &str) -> Result<spec::ModelSpec> {
        let own = self.own(agent)?;
        match (own.kind, &own.gateway) {
            (ModelKind::Acp, Some(gateway)) => Ok(gateway.over(&own)),
            (ModelKind::Acp, None) => Err(Error::unavailable(format!(
                "the mind of {agent} is a program, and it has no model beside it; name one in model.gateway"
            ))),
            _ => Ok(own),
        }
    }
}

/// The model of one agent, for a service that asks it.
pub struct OwnModel {
    models: AgentModels,
    agent: String,
    /// What the service says otherwise about its model.
    otherwise: ModelChange,
    /// The model that it names, opened when it was first asked.
    opened: Mutex<Option<(spec::ModelSpec, Settings)>>,
}

impl OwnModel {
    /// The description of it that holds now.
    pub fn described(&self) -> Result<spec::ModelSpec> {
        Ok(self.otherwise.over(&self.models.described(&self.agent)?))
    }

    /// The limits of one turn of the agent that hold now.
    pub fn limits(&self) -> Result<spec::TurnLimits> {
        Ok(self.models.profiles.get(&self.agent)?.spec.limits)
    }

    /// The model that answers now. `None` is the guide, which only shows the tree around and is no model; an external one is
    /// refused.
    pub fn open(&self) -> Result<Option<PaidModel>> {
        self.open_as(&self.described()?)
    }

    /// The same for another model than the agent has.
    pub fn open_as(&self, model: &spec::ModelSpec) -> Result<Option<PaidModel>> {
        if model.kind == ModelKind::Script && model.name.is_none() {
            return Ok(None);
        }
        let chat = self.models.runtimes.chat(&self.agent)?;
        let agent_runtime = chat.agent_runtime();
        // The chat and all services share one model: a script and a recording go on from line to line, whoever asks.
        let settings = match *model == self.models.own(&self.agent)? {
            true => agent_runtime.settings(),
            false => self.settings_of(model)?,
        };
        match agent_runtime.paid_model(&settings) {
            Some(paid) => Ok(Some(paid)),
            None => Err(Error::unavailable(
                "the model of this agent is `external`: programs outside answer its chat, and nobody answers its services; \
                 give the agent another model",
            )),
        }
    }

    fn settings_of(&self, model: &spec::ModelSpec) -> Result<Settings> {
        let mut opened = self.opened.lock();
        if let Some((_, known)) = opened.as_ref().filter(|(known, _)| known == model) {
            return Ok(known.clone());
        }
        let settings = self.models.runtimes.settings(&self.agent, model, &self.limits()?)?;
        *opened = Some((model.clone(), settings.clone()));
        Ok(settings)
    }
}
