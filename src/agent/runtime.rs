//! What one agent thinks with: its model, its limits, its places. Shared by all its turns.

use crate::policy::PrincipalCaller;
use parking_lot::RwLock;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use super::budget::Limits;
use super::history::History;
use super::thoughts::Thoughts;
use super::transcript::{self, Transcript};
use crate::agent::tools::tree::{Inside, Parked};
use crate::model::{Model, Prices};
use crate::service::ServiceContext;
use acheron_base::confined_dir::{ConfinedDir, Entry};
use acheron_base::{Result, if_exists};
use acheron_vfs::Caller;

/// How many transcripts are looked through for thoughts at the start.
const REMEMBERED: usize = 8;
/// Transcripts that are kept; older ones are removed.
const KEPT: usize = 256;
/// Where replies are kept until their turns have ended.
const REPLIES: &str = "replies";

/// What can change while an agent lives.
#[derive(Clone)]
pub struct Settings {
    /// None: whoever reads the input and writes the reply serves the turn.
    pub model: Option<Arc<dyn Model>>,
    /// Of each turn.
    pub limits: Limits,
    /// Of all its turns together.
    pub total: Limits,
    pub prices: Prices,
    /// The window of the model, and the longest answer, in tokens.
    pub window: u64,
    pub answer: u64,
    /// New turns wait.
    pub paused: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            model: None,
            limits: Limits { rounds: Some(32), tokens: Some(200_000), seconds: Some(600), money: None },
            total: Limits::default(),
            prices: Prices::default(),
            window: 32_768,
            answer: 4096,
            paused: false,
        }
    }
}

/// The names and texts of active memory, the most important first.
pub type Remembering = Pin<Box<dyn Future<Output = Vec<(String, String)>> + Send>>;
pub type Remember = dyn Fn() -> Remembering + Send + Sync;
/// The runtime contract for the agent of that name.
pub type Core = dyn Fn(&str) -> String + Send + Sync;

pub struct AgentRuntime {
    pub agent: String,
    pub context: Arc<ServiceContext>,
    /// Where its turns are written down.
    pub place: Arc<ConfinedDir>,
    pub thoughts: Thoughts,
    pub history: History,
    pub core: Arc<Core>,
    pub remember: Arc<Remember>,
    settings: RwLock<Settings>,
}

impl AgentRuntime {
    /// The mind of `agent` as it was left in `place`.
    pub fn open(
        agent: &str,
        context: Arc<ServiceContext>,
        place: Arc<ConfinedDir>,
        core: Arc<Core>,
        remember: Arc<Remember>,
        settings: Settings,
    ) -> Result<AgentRuntime> {
        let history = History::open(place.clone())?;
        let (thoughts, settings) = (Thoughts::default(), RwLock::new(settings));
        let agent_runtime =
            AgentRuntime { agent: agent.to_owned(), context, place, thoughts, history, core, remember, settings };
        agent_runtime.recollect()?;
        Ok(agent_runtime)
    }

    pub fn settings(&self) -> Settings {
        self.settings.read().clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings.write());
    }

    /// Makes what there is to say about a budget an event.
    pub fn note_budget(&self, said: Value) {
        if let Ok(event_log) = self.context.event_logs.of(&self.agent) {
            event_log.note("budget", &format!("/agents/{}/chat/status.json", self.agent), said);
        }
    }

    /// The three tools in this agent's hands, for a turn.
    pub fn hands(&self, parked: Parked) -> Result<Inside> {
        let id = Arc::new(|| format!("c-{}", uuid::Uuid::now_v7()));
        Ok(Inside { tree: self.context.tree()?, caller: Caller::agent_in_turn(&self.agent), id, parked })
    }

    /// The transcript of a turn: what there is of it, or a new one.
    pub fn transcript(&self, job_id: &str) -> Result<Transcript> {
        let name = format!("turns/{job_id}.ndjson");
        let opened = if_exists(Transcript::open(self.place.clone(), name.clone()))?;
        Ok(opened.unwrap_or_else(|| Transcript::new(self.place.clone(), name)))
    }

    /// Keeps a reply that came from outside the turn, before whoever wrote it is told so. It is on the disk when this
    /// returns.
    pub fn keep_reply(&self, job_id: &str, text: &str) -> Result<()> {
        self.place.write(&format!("{REPLIES}/{job_id}"), text.as_bytes())
    }

    /// The reply that a turn got before the host stopped.
    pub fn kept_reply(&self, job_id: &str) -> Result<Option<String>> {
        if_exists(self.place.read_text(&format!("{REPLIES}/{job_id}")))
    }

    /// The turn has ended, and its transcript says how.
    pub fn forget_reply(&self, job_id: &str) -> Result<()> {
        if_exists(self.place.remove(&format!("{REPLIES}/{job_id}"))).map(drop)
    }

    /// The transcripts, oldest first: ids of jobs are in order of time, and so are the names.
    fn turns(&self) -> Result<Vec<Entry>> {
        let mut turns = self.listed("turns")?;
        turns.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(turns)
    }

    fn listed(&self, dir: &str) -> Result<Vec<Entry>> {
        Ok(if_exists(self.place.list(dir))?.unwrap_or_default())
    }

    /// Thinks the last thoughts again.
    fn recollect(&self) -> Result<()> {
        let turns = self.turns()?;
        for turn in &turns[turns.len().saturating_sub(REMEMBERED)..] {
            if let Ok((records, _)) = transcript::read(&self.place.read(&format!("turns/{}", turn.name))?) {
                self.thoughts.restore(&records);
            }
        }
        Ok(())
    }

    /// Forgets turns that are over: transcripts beyond the newest, and all from before a moment.
    pub fn tidy(&self, before_ms: u64) -> Result<()> {
        let alive = self.context.book.shelf(&self.agent).alive();
        let turns = self.turns()?;
        let many = turns.len().saturating_sub(KEPT);
        for (number, turn) in turns.iter().enumerate() {
            let lives = alive.iter().any(|job| turn.name.strip_suffix(".ndjson") == Some(&job.id));
            if !lives && (number < many || turn.modified_ms < before_ms) {
                self.place.remove(&format!("turns/{}", turn.name))?;
            }
        }
        for reply in self.listed(REPLIES)? {
            if !alive.iter().any(|job| job.id == reply.name) {
                self.forget_reply(&reply.name)?; // it came when the turn was ending
            }
        }
        self.history.forget(before_ms)
    }
}
