//! The model of one agent, for services that think: as the agent's profile says now, and paid for by its budget.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};

use async_trait::async_trait;

use super::AgentEnv;
use crate::agent::budget::{Spent, Standing, standing};
use crate::agent::chat::Chat;
use crate::host::HostState;
use crate::model::{AnswerPiece, Model, ModelAnswer, ModelRequest, Prices};
use crate::spec::{self, ModelChange, ModelKind};
use acheron_base::blocking;
use acheron_base::{Error, Result};

pub struct OwnModel {
    payer: Payer,
    /// What the service is told otherwise about its model.
    otherwise: ModelChange,
    opened: Mutex<Option<(spec::ModelSpec, Arc<dyn Model>)>>,
}

impl OwnModel {
    pub fn of(world: &AgentEnv) -> OwnModel {
        OwnModel::other(world, ModelChange::default())
    }

    pub fn other(world: &AgentEnv, otherwise: ModelChange) -> OwnModel {
        let payer = Payer { host: Arc::downgrade(&world.host), agent: world.agent.clone() };
        OwnModel { payer, otherwise, opened: Mutex::default() }
    }

    /// What is said of it now.
    pub fn described(&self) -> Result<spec::ModelSpec> {
        let host = self.payer.host()?;
        Ok(self.otherwise.over(&host.mounted_with.model_of(&host.profiles.get(&self.payer.agent)?.spec)))
    }

    /// What one turn of the agent may use up now.
    pub fn limits(&self) -> Result<spec::TurnLimits> {
        Ok(self.payer.host()?.profiles.get(&self.payer.agent)?.spec.limits)
    }

    /// Whether it is the guide, which only shows the tree around.
    pub fn is_guide(&self) -> Result<bool> {
        let model = self.described()?;
        Ok(model.kind == ModelKind::Script && model.name.is_none())
    }

    /// Whoever answers now: opened when first asked, then kept until another is named. `None` is an external one.
    pub fn open(&self) -> Result<Option<Arc<dyn Model>>> {
        let (host, model) = (self.payer.host()?, self.described()?);
        let mut opened = self.opened.lock();
        if let Some((_, known)) = opened.as_ref().filter(|(known, _)| *known == model) {
            return Ok(Some(known.clone()));
        }
        let settings = host.shared.runtimes.settings(&self.payer.agent, &model, &self.limits()?)?;
        let Some(found) = settings.model else { return Ok(None) };
        let paid: Arc<dyn Model> = Arc::new(Paid { model: found, prices: settings.prices, payer: self.payer.clone() });
        *opened = Some((model, paid.clone()));
        Ok(Some(paid))
    }
}

/// The agent in whose name a service asks.
#[derive(Clone)]
struct Payer {
    host: Weak<HostState>,
    agent: String,
}

impl Payer {
    fn host(&self) -> Result<Arc<HostState>> {
        self.host.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))
    }

    fn chat(&self) -> Result<Chat> {
        self.host()?.shared.runtimes.chat(&self.agent)
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
