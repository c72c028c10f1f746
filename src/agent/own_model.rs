//! The model of one agent, for services that think: as the agent's profile says now, and paid for by its budget.
//!
//! Services are handed an [`OwnModel`]; the host makes them from [`AgentModels`].

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::budget::{Spent, Standing, standing};
use super::chat::Chat;
use super::profiles::AgentProfiles;
use super::runtimes::AgentRuntimes;
use crate::model::{AnswerPiece, Model, ModelAnswer, ModelRequest, Prices};
use crate::spec::{self, ModelChange, ModelKind};
use acheron_base::{Error, Result, blocking};

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
        let payer = Payer { models: self.clone(), agent: agent.to_owned() };
        OwnModel { payer, otherwise, opened: Mutex::default() }
    }

    /// The description of an agent's model that holds now.
    pub fn described(&self, agent: &str) -> Result<spec::ModelSpec> {
        Ok(self.profiles.get(agent)?.spec.model.over(&self.default))
    }
}

/// The model of one agent, opened when it is first asked.
pub struct OwnModel {
    payer: Payer,
    /// What the service says otherwise about its model.
    otherwise: ModelChange,
    opened: Mutex<Option<(spec::ModelSpec, Arc<dyn Model>)>>,
}

impl OwnModel {
    /// The description of it that holds now.
    pub fn described(&self) -> Result<spec::ModelSpec> {
        Ok(self.otherwise.over(&self.payer.models.described(&self.payer.agent)?))
    }

    /// The limits of one turn of the agent that hold now.
    pub fn limits(&self) -> Result<spec::TurnLimits> {
        Ok(self.payer.models.profiles.get(&self.payer.agent)?.spec.limits)
    }

    /// Whether it is the guide, which only shows the tree around.
    pub fn is_guide(&self) -> Result<bool> {
        let model = self.described()?;
        Ok(model.kind == ModelKind::Script && model.name.is_none())
    }

    /// The model that answers now: opened when first asked, then kept until another is named. `None` is an external one.
    pub fn open(&self) -> Result<Option<Arc<dyn Model>>> {
        let model = self.described()?;
        let mut opened = self.opened.lock();
        if let Some((_, known)) = opened.as_ref().filter(|(known, _)| *known == model) {
            return Ok(Some(known.clone()));
        }
        let settings = self.payer.models.runtimes.settings(&self.payer.agent, &model, &self.limits()?)?;
        let Some(found) = settings.model else { return Ok(None) };
        let paid: Arc<dyn Model> = Arc::new(Paid { model: found, prices: settings.prices, payer: self.payer.clone() });
        *opened = Some((model, paid.clone()));
        Ok(Some(paid))
    }
}

/// The agent in whose name a service asks.
#[derive(Clone)]
struct Payer {
    models: AgentModels,
    agent: String,
}

impl Payer {
    fn chat(&self) -> Result<Chat> {
        self.models.runtimes.chat(&self.agent)
    }
}

/// A model whose answers are charged to an agent.
struct Paid {
    model: Arc<dyn Model>,
    prices: Prices,
    payer: Payer,
}

#[async_trait]
impl Model for Paid {
    fn name(&self) -> String {
        self.model.name()
    }

    async fn answer(&self, ask: &ModelRequest, watch: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        let chat = self.payer.chat()?;
        let agent_runtime = chat.agent_runtime();
        if let Standing::Over(what) = standing(&agent_runtime.settings().total, &chat.spent()) {
            return Err(Error::budget_exceeded(format!("{} has used up its {what}", self.payer.agent)));
        }
        let (clock, begun) = (&agent_runtime.context.clock, agent_runtime.context.clock.now_ms());
        let said = self.model.answer(ask, watch).await?;
        let ms = clock.now_ms().saturating_sub(begun);
        let spent = Spent { rounds: 1, usage: said.usage, ms, money: self.prices.cost(said.usage) };
        let history = agent_runtime.history.clone();
        blocking(move || history.charge(&spent)).await?;
        Ok(said)
    }

    fn resume(&self, said: &[String]) {
        self.model.resume(said);
    }
}
