//! How an agent gets on: how long its steps take, when the last one ended, and how much of the context window it uses. A step is
//! an answer of the model, or a call of a tool without the time for which it waited for an event.
//!
//! [`attention`] says from this who needs a person most; it is pure.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::transcript::TranscriptRecord;

/// The steps of which the median is taken, and the fewest that have one.
const STEPS: usize = 64;
const FEWEST: usize = 3;
/// A step that takes less than this is no sign that an agent does not move, however short its steps are.
const SHORTEST_STALL_MS: u64 = 1000;

/// The steps of one agent.
#[derive(Default)]
pub struct Pace(Mutex<PaceState>);

#[derive(Default)]
struct PaceState {
    steps: VecDeque<u64>,
    /// When the last step ended, or the turn began.
    last_at_ms: Option<u64>,
    /// A call waits for an event.
    waiting: bool,
    context: Option<u64>,
}

/// The pace as files show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaceView {
    pub median_ms: Option<u64>,
    pub last_at_ms: Option<u64>,
    pub waiting: bool,
    /// The tokens of the last question and its answer.
    pub context: Option<u64>,
}

impl PaceView {
    pub fn json(&self) -> Value {
        json!({"median_ms": self.median_ms, "last_at_ms": self.last_at_ms, "waiting": self.waiting})
    }

    /// Whether the agent works on one step for more than twice its median.
    fn stalls(&self, now_ms: u64) -> bool {
        let (Some(median), Some(last)) = (self.median_ms, self.last_at_ms) else { return false };
        !self.waiting && now_ms.saturating_sub(last) > median.saturating_mul(2).max(SHORTEST_STALL_MS)
    }
}

impl Pace {
    /// A turn begins.
    pub fn begin(&self, now_ms: u64) {
        let mut state = self.0.lock();
        (state.last_at_ms, state.waiting) = (Some(now_ms), false);
    }

    /// A step has taken so long.
    pub fn step(&self, ms: u64, now_ms: u64) {
        let mut state = self.0.lock();
        state.steps.push_back(ms);
        if state.steps.len() > STEPS {
            state.steps.pop_front();
        }
        (state.last_at_ms, state.waiting) = (Some(now_ms), false);
    }

    /// A call begins or ends to wait for an event.
    pub fn wait(&self, waiting: bool, now_ms: u64) {
        let mut state = self.0.lock();
        (state.last_at_ms, state.waiting) = (Some(now_ms), waiting);
    }

    /// The last question and its answer had so many tokens.
    pub fn set_context(&self, tokens: u64) {
        self.0.lock().context = Some(tokens);
    }

    /// Takes the steps of a turn from an earlier run of the host.
    pub fn restore(&self, records: &[TranscriptRecord]) {
        for record in records {
            match record {
                TranscriptRecord::Said { at_ms, ms, said, .. } => {
                    self.step(*ms, *at_ms);
                    self.set_context(said.usage.total());
                }
                TranscriptRecord::Outcome { at_ms, ms, parked_ms, .. } => {
                    self.step(ms.saturating_sub(*parked_ms), *at_ms);
                }
                _ => (),
            }
        }
    }

    pub fn view(&self) -> PaceView {
        let state = self.0.lock();
        let mut steps: Vec<u64> = state.steps.iter().copied().collect();
        steps.sort_unstable();
        let median_ms = (steps.len() >= FEWEST).then(|| steps[steps.len() / 2]);
        PaceView { median_ms, last_at_ms: state.last_at_ms, waiting: state.waiting, context: state.context }
    }
}

/// Who needs a person: the first needs one most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// Something waits for an approval.
    Approval,
    /// It cannot go on: its last turn failed, or turns wait while it is paused.
    Blocked,
    /// It works on one step for more than twice its median.
    Stalled,
    Working,
    /// It has had no turn yet.
    Idle,
    /// Its last turn ended with a reply.
    Done,
}

impl Attention {
    pub fn name(self) -> &'static str {
        match self {
            Attention::Approval => "approval",
            Attention::Blocked => "blocked",
            Attention::Stalled => "stalled",
            Attention::Working => "working",
            Attention::Idle => "idle",
            Attention::Done => "done",
        }
    }
}

/// What is known of an agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentFacts {
    /// The jobs that wait for an approval.
    pub approvals: usize,
    /// A turn runs; so many wait behind it, or altogether.
    pub running: bool,
    pub queued: usize,
    pub paused: bool,
    /// How the last turn ended, if there was one: whether it failed by itself.
    pub failed: Option<bool>,
    pub pace: PaceView,
}

/// How much an agent needs a person.
pub fn attention(facts: &AgentFacts, now_ms: u64) -> Attention {
    match facts {
        AgentFacts { approvals: 1.., .. } => Attention::Approval,
        AgentFacts { running: true, pace, .. } if pace.stalls(now_ms) => Attention::Stalled,
        AgentFacts { running: true, .. } => Attention::Working,
        AgentFacts { queued: 1.., paused: true, .. } => Attention::Blocked,
        AgentFacts { queued: 1.., .. } => Attention::Working,
        AgentFacts { failed: Some(true), .. } => Attention::Blocked,
        AgentFacts { failed: Some(false), .. } => Attention::Done,
        AgentFacts { failed: None, .. } => Attention::Idle,
    }
}

#[cfg(test)]
mod tests;
