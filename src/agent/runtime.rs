//! The runtime of one agent: its model, limits, history and files, shared by all its turns.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use serde_json::{Value, json};

use super::ask::{OpenedModel, PaidModel};
use super::budget::{BudgetLimits, Spent};
use super::history::History;
use super::ledger::{AccountTerms, Ledger, LimitListener, PassedLimit};
use super::mail::IncomingMail;
use super::mind::Mind;
use super::pace::Pace;
use super::rewind::TurnCheckpoints;
use super::thoughts::Thoughts;
use super::transcript::TurnStore;
use crate::agent::tools::tree::{Parked, TreeTools};
use crate::events::EventLogs;
use crate::model::{ModelProtocol, Prices};
use crate::policy::PrincipalCaller;
use crate::service::ServiceContext;
use acheron_base::{ConfinedDir, Error, Result, if_exists};
use acheron_vfs::Caller;

/// The number of transcripts whose thoughts are restored at the start.
const RESTORED_TRANSCRIPTS: usize = 8;
/// The number of transcripts that are kept; older ones are deleted.
const MAX_TRANSCRIPTS: usize = 256;
/// The directory of replies whose turns have not ended.
const REPLIES: &str = "replies";

/// Where the budget of an agent was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetSource {
    /// With `agents.update`.
    Agents,
    /// In the mountspec, and no `agents.update` has changed it.
    Mountspec,
    /// With `acheron run --budget`.
    Run,
}

/// Settings that can change while an agent runs.
#[derive(Clone)]
pub struct Settings {
    /// `None`: an external process reads the input and writes the reply.
    pub model: Option<OpenedModel>,
    /// A program that runs whole turns in place of a model.
    pub mind: Option<Arc<dyn Mind>>,
    /// The limits of each turn.
    pub limits: BudgetLimits,
    /// The limits of all turns together.
    pub total: BudgetLimits,
    /// Where `total` was said, which the message at its end names.
    pub budget_source: BudgetSource,
    pub prices: Prices,
    /// The context window and the longest answer of the model, in tokens.
    pub window: u64,
    pub answer: u64,
    /// Answers that are not written as the contract asks are faults.
    pub strict: bool,
    /// How the model calls tools.
    pub protocol: ModelProtocol,
    /// New turns wait while this is set.
    pub paused: bool,
    /// The agent whose helper this one is: it pays as well.
    pub parent: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            model: None,
            mind: None,
            limits: BudgetLimits { rounds: Some(32), tokens: Some(200_000), seconds: Some(600), money: None },
            total: BudgetLimits::default(),
            budget_source: BudgetSource::Agents,
            prices: Prices::default(),
            window: 32_768,
            answer: 4096,
            strict: false,
            protocol: ModelProtocol::default(),
            paused: false,
            parent: None,
        }
    }
}

impl Settings {
    /// Whether a process outside answers turns.
    pub fn is_external(&self) -> bool {
        self.model.is_none() && self.mind.is_none()
    }

    /// The name of what answers turns.
    pub fn model_name(&self) -> String {
        match (&self.model, &self.mind) {
            (Some(model), _) => model.name(),
            (None, Some(mind)) => mind.name(),
            (None, None) => "external".to_owned(),
        }
    }
}

/// Names and texts of active memory, most important first.
pub type Remembering = Pin<Box<dyn Future<Output = Vec<(String, String)>> + Send>>;
pub type Remember = dyn Fn() -> Remembering + Send + Sync;
/// Renders the runtime contract for an agent whose model calls tools in this way.
pub type Core = dyn Fn(&str, ModelProtocol) -> String + Send + Sync;

/// Where the state of an agent is.
pub struct AgentState {
    pub dir: Arc<ConfinedDir>,
    pub turns: TurnStore,
    pub ledger: Ledger,
    pub mail: Arc<dyn IncomingMail>,
}

pub struct AgentRuntime {
    pub agent: String,
    pub context: Arc<ServiceContext>,
    /// The directory of the agent's history.
    pub dir: Arc<ConfinedDir>,
    pub turns: TurnStore,
    pub thoughts: Thoughts,
    pub history: History,
    /// What the agent may use up and has used up.
    pub ledger: Ledger,
    pub core: Arc<Core>,
    pub remember: Arc<Remember>,
    /// Messages that come while a turn runs, or before it.
    pub mail: Arc<dyn IncomingMail>,
    /// Calls that were understood though not written as the contract asks, since the host started.
    pub deviations: AtomicU64,
    /// How it gets on.
    pub pace: Pace,
    settings: RwLock<Settings>,
    checkpoints: OnceLock<Arc<dyn TurnCheckpoints>>,
}

impl AgentRuntime {
    pub fn set_checkpoints(&self, checkpoints: Arc<dyn TurnCheckpoints>) {
        _ = self.checkpoints.set(checkpoints); // there is only one
    }

    pub fn checkpoints(&self) -> Result<&Arc<dyn TurnCheckpoints>> {
        self.checkpoints.get().ok_or_else(|| Error::unavailable("turns are not kept here"))
    }

    /// Opens the runtime of `agent` with the state found.
    pub fn open(
        agent: &str,
        context: Arc<ServiceContext>,
        state: AgentState,
        core: Arc<Core>,
        remember: Arc<Remember>,
        settings: Settings,
    ) -> Result<AgentRuntime> {
        let AgentState { dir, turns, ledger, mail } = state;
        turns.take_files(&dir)?;
        let history = History::open(dir.clone(), context.clock.clone())?;
        ledger.account(agent, terms(agent, &settings, &context.event_logs), || spent_before(&turns, &history))?;
        let (thoughts, settings) = (Thoughts::new(context.clock.clone()), RwLock::new(settings));
        let (agent, deviations) = (agent.to_owned(), AtomicU64::new(0));
        let agent_runtime = AgentRuntime {
            agent,
            context,
            dir,
            turns,
            thoughts,
            history,
            ledger,
            core,
            remember,
            mail,
            deviations,
            pace: Pace::default(),
            settings,
            checkpoints: OnceLock::new(),
        };
        agent_runtime.restore_thoughts()?;
        Ok(agent_runtime)
    }

    pub fn settings(&self) -> Settings {
        self.settings.read().clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.settings.write();
        change(&mut settings);
        let terms = terms(&self.agent, &settings, &self.context.event_logs);
        self.ledger.change(&self.agent, |now| *now = terms);
    }

    /// What the agent has used up, by its turns and by its services.
    pub fn spent(&self) -> Spent {
        self.ledger.spent(&self.agent)
    }

    /// The model of these settings, paid for by the agent; `None` if there is none.
    pub fn paid_model(&self, settings: &Settings) -> Option<PaidModel> {
        let Settings { model, prices, window, .. } = settings;
        let (ledger, payer) = (self.ledger.clone(), self.agent.clone());
        Some(PaidModel { model: model.clone()?, prices: *prices, window: *window, ledger, payer })
    }

    /// Emits an event about a budget.
    pub fn note_budget(&self, said: Value) {
        note_budget(&self.context.event_logs, &self.agent, said);
    }

    /// The three file tools for a turn of this agent.
    pub fn tools(&self, parked: Parked) -> Result<TreeTools> {
        let ids = self.context.ids.clone();
        let id = Arc::new(move || ids.id("c"));
        Ok(TreeTools { tree: self.context.tree()?, caller: Caller::agent_in_turn(&self.agent), id, parked })
    }

    /// Stores a reply that was written from outside the turn, before the write is acknowledged. It is on disk on
    /// return.
    pub fn keep_reply(&self, job_id: &str, text: &str) -> Result<()> {
        self.dir.write(&format!("{REPLIES}/{job_id}"), text.as_bytes())
    }

    /// The reply that a turn received before the host stopped.
    pub fn kept_reply(&self, job_id: &str) -> Result<Option<String>> {
        if_exists(self.dir.read_text(&format!("{REPLIES}/{job_id}")))
    }

    /// Deletes the stored reply of a turn that has ended; its transcript has it.
    pub fn forget_reply(&self, job_id: &str) -> Result<()> {
        if_exists(self.dir.remove(&format!("{REPLIES}/{job_id}"))).map(drop)
    }

    /// Restores the thoughts of the last transcripts.
    fn restore_thoughts(&self) -> Result<()> {
        let turns = self.turns.jobs()?;
        for job in &turns[turns.len().saturating_sub(RESTORED_TRANSCRIPTS)..] {
            if let Ok(transcript) = self.turns.transcript(job) {
                self.thoughts.restore(transcript.records());
                self.pace.restore(transcript.records());
            }
        }
        Ok(())
    }

    /// Deletes ended turns: the oldest transcripts beyond the limits of number and bytes, and all from before `before_ms`.
    pub fn tidy(&self, before_ms: u64, turns_bytes: u64) -> Result<()> {
        let alive = self.context.jobs.of(&self.agent).unfinished();
        let turns = self.turns.sizes()?;
        let many = turns.len().saturating_sub(MAX_TRANSCRIPTS);
        let mut bytes: u64 = turns.iter().map(|(_, bytes)| bytes).sum();
        for (number, (turn, size)) in turns.iter().enumerate() {
            let lives = alive.iter().any(|job| *turn == job.id);
            if !lives && (number < many || bytes > turns_bytes || self.turns.changed_ms(turn)? < before_ms) {
                self.turns.delete(turn)?;
                bytes -= size;
            }
        }
        for reply in if_exists(self.dir.list(REPLIES))?.unwrap_or_default() {
            if !alive.iter().any(|job| job.id == reply.name) {
                self.forget_reply(&reply.name)?; // it came when the turn was ending
            }
        }
        self.history.forget(before_ms)
    }
}

fn note_budget(event_logs: &EventLogs, agent: &str, said: Value) {
    if let Ok(event_log) = event_logs.of(agent) {
        event_log.note("budget", &format!("/agents/{agent}/chat/status.json"), said);
    }
}

/// What an agent may use up, how that is raised, and the event at 80 %, whoever asked a model: a turn or a service.
fn terms(agent: &str, settings: &Settings, event_logs: &Arc<EventLogs>) -> AccountTerms {
    let raise = match settings.budget_source {
        BudgetSource::Mountspec => {
            format!("raise agents.{agent}.budget in the mountspec, or its budget with agents.update")
        }
        BudgetSource::Agents => "raise its budget with agents.update".to_owned(),
        BudgetSource::Run => "run it again with a larger --budget".to_owned(),
    };
    let (event_logs, payer) = (Arc::downgrade(event_logs), agent.to_owned());
    let listener: LimitListener = Arc::new(move |passed: &PassedLimit| {
        let Some(event_logs) = event_logs.upgrade() else { return };
        let PassedLimit { what, limits, spent } = passed;
        note_budget(&event_logs, &payer, json!({"budget": what, "of": "agent", "limits": limits, "spent": spent}));
    });
    AccountTerms { limits: settings.total, parent: settings.parent.clone(), raise, listener: Some(listener) }
}

/// What an agent had used up before there was a ledger: by turns of the history, and by turns that have not ended.
fn spent_before(turns: &TurnStore, history: &History) -> Result<Spent> {
    let mut spent = history.total();
    for job in turns.jobs()?.iter().rev().take_while(|job| !history.has(job)) {
        spent = spent.plus(&turns.transcript(job)?.spent());
    }
    Ok(spent)
}
