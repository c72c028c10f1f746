//! The chat of an agent: inputs become turns, which run one after another; each turn is a job.
//!
//! [`Chat`] holds the queue, [`turn`](super::turn) runs a turn, [`files`] is the directory.

mod files;
mod input;
mod messages;
mod pending;
mod rewind;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::budget::{BudgetLimits, Spent};
use super::chat_session::ChatSession;
use super::pace::{AgentFacts, attention};
use super::runtime::AgentRuntime;
use super::transcript::TurnSource;
use super::turn::{self, CurrentTurn};
use super::turn_order::{TurnOrder, TurnPlace};
use crate::contract::Effect;
use crate::events::Commit;
use crate::jobs::{self, Call, Job};
use crate::policy::{Principal, PrincipalCaller};
use crate::service::runner::{CallQueue, JobWork, PlannedCall, RunWork, Work};
use acheron_base::{Code, Error, Result};
use acheron_vfs::{Answer, Caller};

/// The service name of turns in the journal.
pub const SERVICE: &str = jobs::TURN_SERVICE;
/// The longest text of `last` in `status.json`, in characters.
const LAST_WORDS: usize = 400;
/// The most waiting turns per agent.
const QUEUE: usize = 64;
/// A turn may wait for events, but not forever.
const DEADLINE: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone)]
pub struct Chat(Arc<ChatInner>);

struct ChatInner {
    agent_runtime: Arc<AgentRuntime>,
    call_queue: Arc<CallQueue>,
    order: TurnOrder,
    /// The queued and running turns, oldest first.
    queue: Mutex<Vec<Arc<CurrentTurn>>>,
    /// Counts the turns that come, go and are answered, for readers of `pending.json`.
    pending: watch::Sender<u64>,
    /// The number of queued and running turns. Readers of `latest.txt` wait until it is 0.
    busy: watch::Sender<usize>,
    paused: watch::Sender<bool>,
    current: Mutex<Option<Arc<CurrentTurn>>>,
    refusal: Mutex<Option<Error>>,
}

/// A turn that is not accepted yet.
struct QueuedTurn {
    /// Dropped when the turn has ended and is recorded.
    place: TurnPlace,
    current: Arc<OnceLock<Arc<CurrentTurn>>>,
    /// The event about its input.
    started: Arc<AtomicU64>,
}

/// A turn's entry in the count of queued and running turns, removed on drop.
struct QueueSlot {
    chat: Chat,
    job_id: String,
}

impl QueueSlot {
    fn take(chat: &Chat, job_id: &str) -> QueueSlot {
        chat.0.busy.send_modify(|busy| *busy += 1);
        QueueSlot { chat: chat.clone(), job_id: job_id.to_owned() }
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.chat.queue().retain(|turn| turn.job.id != self.job_id);
        self.chat.pending_changed();
        self.chat.0.busy.send_modify(|busy| *busy -= 1);
    }
}

/// A message that starts a turn.
#[derive(Clone, Debug)]
pub struct ChatMessage {
    pub source: TurnSource,
    pub text: String,
    pub from: Principal,
}

impl Chat {
    /// `call_queue` is shared by all agents.
    pub fn new(agent_runtime: Arc<AgentRuntime>, call_queue: Arc<CallQueue>) -> Self {
        let (queue, busy, paused) =
            (Mutex::default(), watch::Sender::new(0), watch::Sender::new(agent_runtime.settings().paused));
        let (current, refusal) = (Mutex::default(), Mutex::default());
        let (order, pending) = (TurnOrder::default(), watch::Sender::new(0));
        Chat(Arc::new(ChatInner { agent_runtime, call_queue, order, queue, pending, busy, paused, current, refusal }))
    }

    pub fn agent_runtime(&self) -> &Arc<AgentRuntime> {
        &self.0.agent_runtime
    }

    fn queue(&self) -> MutexGuard<'_, Vec<Arc<CurrentTurn>>> {
        self.0.queue.lock()
    }

    /// The running turn.
    pub fn current(&self) -> Option<Arc<CurrentTurn>> {
        self.0.current.lock().clone()
    }

    fn set_current(&self, current: Option<Arc<CurrentTurn>>) {
        *self.0.current.lock() = current;
    }

    /// Checks that the queue has space for another turn.
    pub fn check_queue(&self) -> Result<()> {
        match self.queue().len() {
            n if n >= QUEUE => {
                Err(Error::busy(format!("{n} messages already wait for {}", self.0.agent_runtime.agent)))
            }
            _ => Ok(()),
        }
    }

    /// Whether no turn is queued or running.
    pub fn idle(&self) -> bool {
        *self.0.busy.borrow() == 0
    }

    /// Waits until no turn is queued or running.
    pub async fn wait_idle(&self) {
        _ = self.0.busy.subscribe().wait_for(|busy| *busy == 0).await; // the sender lives as long as the chat
    }

    /// Queues a turn. It is durable when the answer resolves.
    pub fn say(&self, message: ChatMessage) -> Answer<Arc<Job>> {
        self.say_as(message, None, None)
    }

    /// The same in a conversation beside the main one, with a name by which its job is found.
    fn say_as(
        &self,
        message: ChatMessage,
        session: Option<ChatSession>,
        correlation_id: Option<String>,
    ) -> Answer<Arc<Job>> {
        let text = message.text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            return Answer::refuse(Error::invalid("the message is empty"));
        }
        if let Err(error) = self.check_queue() {
            return Answer::refuse(error);
        }
        let mut arguments = json!({"source": message.source, "input": text});
        if let Some(session) = session {
            arguments["session"] = json!(session);
        }
        let turn = self.queue_turn();
        let (chat, started) = (self.clone(), turn.started.clone());
        let announce = move |commit: &Commit<'_>, job: &Arc<Job>| chat.announce(commit, job, &started);
        let planned = PlannedCall {
            call: self.call(message.from, arguments, correlation_id),
            work: Work::Run(self.work(&turn)),
            accepted: Some(Box::new(announce)),
        };
        let chat = self.clone();
        let told = move |jobs: &[Arc<Job>]| {
            if let [job] = jobs {
                chat.follow(job, turn);
            }
        };
        let begun = self.0.agent_runtime.context.runner.begin(&self.0.call_queue, vec![planned], told);
        begun.and(|mut jobs| jobs.pop().ok_or_else(|| Error::internal("a turn without a job")))
    }

    fn call(&self, principal: Principal, arguments: Value, correlation_id: Option<String>) -> Call {
        Call {
            agent: self.0.agent_runtime.agent.clone(),
            service: SERVICE.to_owned(),
            operation: "turn".to_owned(),
            effect: Effect::Execute,
            idempotent: true, // its transcript knows how far it came
            private: false,
            correlation_id,
            principal,
            arguments,
            asks: false,
        }
    }

    /// Continues a turn from an earlier run of the host.
    pub fn resume(&self, job: Arc<Job>) {
        let turn = self.queue_turn();
        if let Ok(event_log) = self.0.agent_runtime.context.event_logs.of(&self.0.agent_runtime.agent) {
            turn.started.store(event_log.last(), Ordering::SeqCst);
        }
        let work = self.work(&turn);
        self.follow(&job, turn);
        self.0.agent_runtime.context.runner.resume(&self.0.call_queue, job, work);
    }

    /// A place at the end of the queue.
    fn queue_turn(&self) -> QueuedTurn {
        QueuedTurn { place: self.0.order.take_place(), current: Arc::default(), started: Arc::default() }
    }

    /// The work of a turn: waits for the previous one, then runs.
    fn work(&self, turn: &QueuedTurn) -> RunWork {
        let (first, mut paused) = (turn.place.is_first(), self.0.paused.subscribe());
        let previous = async move {
            first.await;
            _ = paused.wait_for(|paused| !paused).await; // the sender lives as long as the chat
        };
        let (chat, current, started) = (self.clone(), turn.current.clone(), turn.started.clone());
        let start = move |_| -> JobWork {
            let Some(current) = current.get().cloned() else {
                return Box::pin(async { Err(Error::internal("a turn without its input")) });
            };
            chat.set_current(Some(current.clone()));
            let agent_runtime = chat.0.agent_runtime.clone();
            if let Ok(event_log) = agent_runtime.context.event_logs.of(&agent_runtime.agent) {
                event_log.turn_began(started.load(Ordering::SeqCst));
            }
            Box::pin(turn::run(agent_runtime, current))
        };
        RunWork { start: Box::new(start), deadline: DEADLINE, quick: false, turn: Some(Box::pin(previous)) }
    }

    /// Emits an event about an input, together with the acceptance of its turn.
    fn announce(&self, commit: &Commit<'_>, job: &Job, started: &AtomicU64) -> Result<()> {
        let agent = &self.0.agent_runtime.agent;
        let event_log = self.0.agent_runtime.context.event_logs.of(agent)?;
        let mut payload = job.call.arguments.clone();
        payload["job_id"] = job.id.as_str().into();
        let seq = commit.emit(&event_log, "chat", &format!("/agents/{agent}/chat/control/input"), payload)?;
        started.store(seq, Ordering::SeqCst);
        Ok(())
    }

    /// Follows an accepted turn to its end, and records it in the history before the next one starts.
    fn follow(&self, job: &Arc<Job>, turn: QueuedTurn) {
        let slot = QueueSlot::take(self, &job.id);
        let current = Arc::new(CurrentTurn {
            job: job.clone(),
            source: serde_json::from_value(job.call.arguments["source"].clone()).unwrap_or(TurnSource::Chat),
            session: serde_json::from_value(job.call.arguments["session"].clone()).ok(),
            input: job.call.arguments["input"].as_str().unwrap_or_default().to_owned(),
            settings: self.0.agent_runtime.settings(),
            spent: Mutex::default(),
            reply: watch::Sender::new(None),
            kept: AtomicBool::new(false),
            progress: watch::Sender::new(None),
        });
        _ = turn.current.set(current.clone()); // nobody else sets it
        self.queue().push(current.clone());
        self.pending_changed();
        let (chat, job) = (self.clone(), job.clone());
        self.0.agent_runtime.context.runtime.spawn(async move {
            job.end().await;
            chat.record(&job, &current).await;
            if let Ok(checkpoints) = chat.0.agent_runtime.checkpoints()
                && !job.was_deferred()
            {
                checkpoints.keep(&chat.0.agent_runtime.agent, chat.0.agent_runtime.history.seq()).await;
            }
            drop(slot);
            drop(turn.place);
        });
    }

    async fn record(&self, job: &Job, current: &CurrentTurn) {
        if self.current().is_some_and(|current| current.job.id == job.id) {
            self.set_current(None);
        }
        self.0.agent_runtime.thoughts.end_turn();
        if job.was_deferred() {
            return; // to be carried on, so it is no history yet
        }
        // A turn that was interrupted could not record itself.
        let outcome = job.now().outcome;
        let (reply, error) = match outcome.as_deref() {
            Some(Ok(value)) => (value.as_str().map(str::to_owned), None),
            Some(Err(error)) => (None, Some(error.clone())),
            None => (None, None),
        };
        let spent = turn::spent(&self.0.agent_runtime, &job.id).await;
        if let Err(error) = turn::remember(&self.0.agent_runtime, current, reply, error, spent).await {
            tracing::error!(job = job.id, %error, "the history of a chat could not be written");
        }
    }

    /// The usage of all turns, including the running one, and of the services that asked the agent's model.
    pub fn spent(&self) -> Spent {
        self.0.agent_runtime.spent()
    }

    /// The limits of a turn that would start now: the limits of a turn, and what the agent has left beside `promised`.
    pub fn left(&self, promised: &Spent) -> BudgetLimits {
        let agent_runtime = &self.0.agent_runtime;
        agent_runtime.settings().limits.and(&agent_runtime.ledger.left(&agent_runtime.agent).less(promised))
    }

    /// Pauses or resumes: queued turns wait while paused.
    pub fn pause(&self, paused: bool) {
        self.0.agent_runtime.change(|settings| settings.paused = paused);
        self.0.paused.send_replace(paused);
    }

    /// Cancels the running turn and all queued ones.
    pub fn stop(&self) {
        for turn in &*self.queue() {
            turn.job.cancel.cancel();
        }
    }

    /// The last reply, once no turn is queued or running.
    fn last_reply(&self, caller: &Caller) -> Answer<bytes::Bytes> {
        let word = |chat: &Chat| match chat.0.agent_runtime.history.last() {
            None => bytes::Bytes::new(),
            Some(entry) => {
                let text = entry.reply.or(entry.error.map(|error| error.message)).unwrap_or_default();
                format!("{}\n", text.trim_end_matches('\n')).into()
            }
        };
        if self.idle() {
            return Answer::ok(word(self));
        }
        if let Err(error) = caller.may_await_turns(&self.0.agent_runtime.agent) {
            return Answer::refuse(error);
        }
        let chat = self.clone();
        Answer::later(async move {
            chat.wait_idle().await;
            Ok(word(&chat))
        })
    }

    /// The calls of the agent that wait for an approval.
    fn waiting_for_approval(&self) -> usize {
        let unfinished = self.0.agent_runtime.context.jobs.of(&self.0.agent_runtime.agent).unfinished();
        unfinished.iter().filter(|job| job.now().state.name() == "waiting_for_approval").count()
    }

    /// `status.json`.
    pub fn status(&self) -> Value {
        let agent_runtime = &self.0.agent_runtime;
        let settings = agent_runtime.settings();
        let refusal = self.0.refusal.lock().clone();
        // A turn has ended when its reply can be read, although it is not in the history yet.
        let (ended, jobs): (Vec<_>, Vec<_>) = self.queue().clone().into_iter().partition(|turn| turn.job.settled());
        let current = self.current().filter(|turn| !turn.job.settled());
        let last = ended
            .last()
            .map(|turn| ended_turn(&turn.job))
            .or_else(|| agent_runtime.history.last().map(|last| (last.job_id, last.ts_ms, last.error)));
        let state = match (&current, jobs.len(), &refusal) {
            (Some(_), _, _) => "running",
            (None, 1.., _) => "queued",
            (None, 0, Some(_)) => "refused",
            (None, 0, None) if settings.paused => "paused",
            (None, 0, None) => "idle",
        };
        let job = current.as_ref().or(jobs.first()).map(|turn| turn.job.clone());
        // The fields are about one turn: the first that is running or queued, else the last.
        let (job_id, updated_at_ms, error) = match (job, last) {
            (Some(job), _) => (Some(job.id.clone()), Some(job.now().updated_at_ms), None),
            (None, Some((job_id, at_ms, error))) => (Some(job_id), Some(at_ms), error),
            (None, None) => (None, None, None),
        };
        let now_ms = agent_runtime.context.clock.now_ms();
        let pace = agent_runtime.pace.view();
        let facts = AgentFacts {
            approvals: self.waiting_for_approval(),
            running: current.is_some(),
            queued: jobs.len(),
            paused: settings.paused,
            failed: job_id.as_ref().map(|_| error.as_ref().is_some_and(|error| error.code != Code::Cancelled)),
            pace,
        };
        let said = current.as_ref().and_then(|current| current.progress.borrow().clone());
        let last = said.clone().or_else(|| agent_runtime.history.last().and_then(last_words));
        json!({
            "state": state,
            "job_id": job_id,
            "operation": "turn",
            "updated_at_ms": updated_at_ms,
            "error": refusal.or(error),
            "queued": jobs.len().saturating_sub(usize::from(current.is_some())),
            "input": current.as_ref().map(|current| current.input.clone()),
            "said": said,
            "attention": attention(&facts, now_ms).name(),
            "last": last.map(|text| text.chars().take(LAST_WORDS).collect::<String>()),
            "step": pace.json(),
            "context": {"tokens": pace.context, "window": settings.window},
            "model": settings.model_name(),
            "limits": {"turn": settings.limits, "agent": settings.total},
            "deviations": agent_runtime.deviations.load(Ordering::SeqCst),
            "spent": self.spent(),
        })
    }
}

/// What an agent said last: its reply, or why there was none.
fn last_words(entry: super::history::HistoryEntry) -> Option<String> {
    entry.reply.or(entry.error.map(|error| error.message))
}

/// The job of a turn that has ended, when it did, and how it failed if it did.
fn ended_turn(job: &Job) -> (String, u64, Option<Error>) {
    let now = job.now();
    (job.id.clone(), now.updated_at_ms, now.outcome.and_then(|outcome| outcome.as_ref().as_ref().err().cloned()))
}
