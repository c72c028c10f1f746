//! The runtimes of all agents of the host: their chats, models and wake rules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use parking_lot::RwLock;

use super::ask::OpenedModel;
use super::budget::{BudgetLimits, Spent};
use super::chat::Chat;
use super::ledger::Ledger;
use super::mail::IncomingMail;
use super::runtime::{AgentRuntime, AgentState, Core, Remember, Remembering, Settings};
use super::transcript::TurnStore;
use super::wake::{self, WakeRules};
use crate::jobs::Jobs;
use crate::model::config::ModelConfig;
use crate::model::replay::Recording;
use crate::model::server::{ModelServer, Silence};
use crate::policy::PrincipalCaller;
use crate::service::ServiceContext;
use crate::service::runner::CallQueue;
use crate::spec;
use acheron_base::{Clock, ConfinedDir, Error, Result};
use acheron_http::{Http, RetryPolicy};
use acheron_store::Store;
use acheron_vfs::Caller;

/// The number of running and of waiting turns of all agents; a turn that waits for an event costs no thread.
const RUNNING: usize = 4096;
const WAITING: usize = 16_384;

type Env = dyn Fn(&str) -> Option<String> + Send + Sync;

pub struct AgentRuntimes {
    store: Store,
    /// What agents and other payers have used up.
    ledger: Ledger,
    /// The directory that scripts and recordings are relative to.
    here: PathBuf,
    env: Box<Env>,
    /// The servers that the mountspec names; no other server gets a key from the environment.
    servers: RwLock<BTreeSet<String>>,
    http: Arc<Http>,
    call_queue: Arc<CallQueue>,
    recording: Arc<Recording>,
    members: DashMap<String, RunningAgent>,
}

struct RunningAgent {
    chat: Chat,
    /// Active until dropped.
    _wake_rules: Option<WakeRules>,
}

impl AgentRuntimes {
    /// `env` looks up a variable; keys come from nowhere else.
    pub fn new(store: Store, here: &Path, env: Box<Env>, clock: Clock) -> Result<Self> {
        let ledger = Ledger::open(store.clone(), clock.clone())?;
        let http = Arc::new(Http::new(RetryPolicy::default(), clock));
        let call_queue = Arc::new(CallQueue::new(RUNNING, WAITING));
        let (servers, recording) = (RwLock::default(), Arc::default());
        let (here, members) = (here.to_owned(), DashMap::new());
        Ok(AgentRuntimes { store, ledger, here, env, servers, http, call_queue, recording, members })
    }

    /// Allows the servers of a mountspec to get keys from the environment.
    pub fn trust(&self, spec: &spec::Spec) {
        let own = spec.agents.values().map(|agent| &agent.model.base_url);
        let gateways = spec.agents.values().map(|agent| &agent.model.gateway).chain([&spec.model.gateway]);
        let gateways = gateways.flatten().map(|model| &model.base_url);
        let narrator = spec.dm.narrator.iter().map(|model| &model.base_url);
        let changes = spec.agents.values().map(|agent| &agent.model.fallback).chain([&spec.model.fallback]);
        let fallbacks = changes.flatten().map(|model| &model.base_url);
        let named =
            own.chain(narrator).chain(fallbacks).chain(gateways).chain([&spec.model.base_url]).flatten().cloned();
        *self.servers.write() = named.collect();
    }

    /// A variable of the environment, for a server that may get it: the provider's own, or one from the mountspec.
    fn key(&self, name: &str, server: Option<&str>) -> Option<String> {
        let servers = self.servers.read();
        let known = server.is_none_or(|url| servers.iter().any(|known| known == url));
        (self.env)(name).filter(|_| known)
    }

    /// Records every answer of every model from now on.
    pub fn record(&self, file: &Path) -> Result<()> {
        self.recording.begin(file)
    }

    /// The client for the servers of models.
    pub fn http(&self) -> &Arc<Http> {
        &self.http
    }

    /// The server of a model with its key, for the gateway; an error if it has none.
    pub fn server(&self, model: &spec::ModelSpec) -> Result<ModelServer> {
        match config(model)? {
            ModelConfig::Remote(remote) => remote.server(&|name: &str| self.key(name, model.base_url.as_deref())),
            _ => Err(Error::invalid("this kind of model has no server")),
        }
    }

    /// The text of a script or recording.
    pub fn file_text(&self, file: &str) -> Result<String> {
        crate::model::config::text(&self.here.join(file)).map_err(|error| Error::invalid(format!("{file}: {error}")))
    }

    /// Builds the settings of an agent from the mountspec. Opens the model.
    pub fn settings(&self, agent: &str, model: &spec::ModelSpec, limits: &spec::TurnLimits) -> Result<Settings> {
        let kind = config(model)?;
        // The jitter of retries need not be secret, only different for each agent.
        let seed = agent.bytes().fold(0u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let env = |name: &str| self.key(name, model.base_url.as_deref());
        let opened = kind.open(agent, &self.here, &self.http, &env, seed)?;
        let (limits, prices) = (limits_of(limits), model.prices);
        limits.check(Some(&prices))?;
        Ok(Settings {
            model: opened.map(|model| OpenedModel::new(self.recording.of(agent, model))),
            limits,
            prices,
            window: model.context_tokens.into(),
            strict: model.strict,
            protocol: model.protocol,
            ..Settings::default()
        })
    }

    /// Adds an agent whose state is in `home`.
    pub fn add(
        &self,
        context: &Arc<ServiceContext>,
        agent: &str,
        home: &Path,
        core: Arc<Core>,
        mail: Arc<dyn IncomingMail>,
        settings: Settings,
    ) -> Result<Chat> {
        let dir = Arc::new(ConfinedDir::create(home)?);
        let (turns, ledger) = (TurnStore::new(self.store.clone(), agent), self.ledger.clone());
        let state = AgentState { dir, turns, ledger, mail };
        let agent_runtime =
            AgentRuntime::open(agent, context.clone(), state, core, active_memory(context, agent), settings)?;
        let chat = Chat::new(Arc::new(agent_runtime), self.call_queue.clone());
        self.members.insert(agent.to_owned(), RunningAgent { chat: chat.clone(), _wake_rules: None });
        Ok(chat)
    }

    /// Changes the settings of an agent. A running turn keeps the settings that it started with.
    pub fn change(&self, agent: &str, settings: Settings) -> Result<()> {
        self.chat(agent)?.agent_runtime().change(|now| *now = settings);
        Ok(())
    }

    /// Replaces the wake rules of an agent.
    pub fn set_wake_rules(&self, agent: &str, rules: &[spec::Wake]) -> Result<()> {
        let chat = self.chat(agent)?;
        let wake_rules = wake::set(&chat, rules)?;
        if let Some(mut member) = self.members.get_mut(agent) {
            member._wake_rules = Some(wake_rules);
        }
        Ok(())
    }

    pub fn chat(&self, agent: &str) -> Result<Chat> {
        let found = self.members.get(agent).map(|member| member.chat.clone());
        found.ok_or_else(|| Error::not_found(format!("there is no agent `{agent}`")))
    }

    /// What an agent has used up.
    pub fn spent(&self, agent: &str) -> Spent {
        self.ledger.spent(agent)
    }

    /// Forgets what an agent has used up: nothing is left of it.
    pub fn forget_spending(&self, agent: &str) {
        self.ledger.forget(agent);
    }

    /// Stops an agent's turns and removes it.
    pub fn remove(&self, agent: &str) {
        if let Some((_, member)) = self.members.remove(agent) {
            member.chat.stop();
        }
    }
}

/// The configuration of a model that the mountspec describes.
fn config(model: &spec::ModelSpec) -> Result<ModelConfig> {
    let word = serde_json::to_value(model.kind).unwrap_or_default();
    let mut kind =
        ModelConfig::read(word.as_str().unwrap_or_default(), model.name.as_deref(), model.base_url.as_deref())?;
    if let ModelConfig::Remote(remote) = &mut kind {
        let seconds = |limit: Option<u32>| limit.map(|seconds| Duration::from_secs(seconds.into()));
        remote.responses = model.api == spec::ModelApi::Responses;
        remote.silence = Silence { first_byte: seconds(model.first_byte_seconds), idle: seconds(model.idle_seconds) };
    }
    Ok(kind)
}

/// Checks the wake rules of an agent.
pub fn check_wake_rules(jobs: &Jobs, agent: &str, rules: &[spec::Wake]) -> Result<()> {
    wake::parsed(jobs, agent, rules).map(drop)
}

pub fn limits_of(limits: &spec::TurnLimits) -> BudgetLimits {
    let spec::TurnLimits { rounds, tokens, seconds, money } = *limits;
    BudgetLimits { rounds: Some(rounds.into()), tokens: Some(tokens), seconds: Some(seconds), money }
}

pub fn budget_of(budget: &spec::Budget) -> BudgetLimits {
    let spec::Budget { rounds, tokens, seconds, money } = *budget;
    BudgetLimits { rounds, tokens, seconds, money }
}

/// Reads `memory/active.json` with the rights of the agent; the most recently used item comes first.
fn active_memory(context: &Arc<ServiceContext>, agent: &str) -> Arc<Remember> {
    let (context, agent) = (Arc::downgrade(context), agent.to_owned());
    Arc::new(move || -> Remembering {
        let (context, agent) = (context.clone(), agent.clone());
        Box::pin(async move {
            let Some(tree) = context.upgrade().and_then(|context| context.tree().ok()) else { return Vec::new() };
            let path = format!("/agents/{agent}/memory/active.json");
            let Ok(bytes) = tree.read(&Caller::agent(&agent), &path).await else { return Vec::new() };
            let active: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let items = active["items"].as_array().into_iter().flatten().rev();
            let shown = items.map(|item| {
                let text = item["content"].as_str().map_or_else(|| item["content"].to_string(), str::to_owned);
                (item["memory_path"].as_str().unwrap_or("?").to_owned(), text)
            });
            shown.collect()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_to_no_server_but_those_of_the_mountspec() {
        let store = crate::state::TestStore::new();
        let runtimes = AgentRuntimes::new(
            store.clone(),
            Path::new("."),
            Box::new(|_| Some("sk-secret".to_owned())),
            Clock::real(),
        )
        .unwrap();
        let given = |url: Option<&str>| runtimes.key("OPENAI_API_KEY", url).is_some();
        assert!(given(None), "the provider's own");
        assert!(!given(Some("https://proxy")));
        let mut known = spec::Spec::default();
        known.model.base_url = Some("https://proxy".to_owned());
        runtimes.trust(&known);
        assert!(given(Some("https://proxy")) && !given(Some("https://proxy.evil")) && !given(Some("https://prox")));
        runtimes.trust(&spec::Spec::default());
        assert!(!given(Some("https://proxy")), "an edit takes it back");
    }
}
