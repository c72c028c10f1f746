//! The chat of an agent: inputs become turns, which run one after another; each turn is a job.
//!
//! [`Chat`] holds the queue, [`turn`](super::turn) runs a turn, [`files`] is the directory.

mod files;
mod messages;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::budget::{BudgetLimits, Spent};
use super::runtime::AgentRuntime;
use super::transcript::TurnSource;
use super::turn::{self, CurrentTurn};
use crate::contract::Effect;
use crate::jobs::{self, CallQueue, Job};
use crate::policy::{Principal, PrincipalCaller};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller};

/// The service name of turns in the journal.
pub const SERVICE: &str = jobs::TURN_SERVICE;
/// The most waiting turns per agent.
const QUEUE: usize = 64;
/// A turn may wait for events, but not forever.
const DEADLINE: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone)]
pub struct Chat(Arc<ChatInner>);

struct ChatInner {
    agent_runtime: Arc<AgentRuntime>,
    call_queue: Arc<CallQueue>,
    queue: Mutex<Queue>,
    /// The number of queued and running turns. Readers of `latest.txt` wait until it is 0.
    busy: watch::Sender<usize>,
    paused: watch::Sender<bool>,
    current: Mutex<Option<Arc<CurrentTurn>>>,
    refusal: Mutex<Option<Error>>,
}

#[derive(Default)]
struct Queue {
    /// Resolves when the last turn of the queue has ended.
    last: Option<oneshot::Receiver<()>>,
    jobs: Vec<Arc<Job>>,
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
        self.chat.queue().jobs.retain(|job| job.id != self.job_id);
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
        Chat(Arc::new(ChatInner { agent_runtime, call_queue, queue, busy, paused, current, refusal }))
    }

    pub fn agent_runtime(&self) -> &Arc<AgentRuntime> {
        &self.0.agent_runtime
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
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
        match self.queue().jobs.len() {
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
        let text = message.text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            return Answer::refuse(Error::invalid("the message is empty"));
        }
        match self.accept(&ChatMessage { text: text.to_owned(), ..message }) {
            Err(error) => Answer::refuse(error),
            Ok((job, safe)) => self.enqueue(job, Some(safe)),
        }
    }

    fn accept(&self, message: &ChatMessage) -> Result<(Arc<Job>, Answer<()>)> {
        self.check_queue()?;
        let call = jobs::JobCall {
            agent: self.0.agent_runtime.agent.clone(),
            service: SERVICE.to_owned(),
            operation: "turn".to_owned(),
            effect: Effect::Execute,
            idempotent: true, // its transcript knows how far it came
            private: false,
            correlation_id: None,
            principal: message.from.clone(),
            arguments: json!({"source": message.source, "input": message.text}),
        };
        self.0.call_queue.admit(1)?;
        let accepted = self.0.agent_runtime.context.jobs.accept(vec![call], false);
        let (mut jobs, safe) = accepted.inspect_err(|_| self.0.call_queue.release(1))?;
        let job = jobs.pop().ok_or_else(|| Error::internal("a turn without a job"))?;
        Ok((job, safe))
    }

    /// Continues a turn from an earlier run of the host.
    pub fn resume(&self, job: Arc<Job>) {
        self.0.call_queue.readmit();
        drop(self.enqueue(job, None));
    }

    /// Adds an accepted turn to the end of the queue and runs it.
    fn enqueue(&self, job: Arc<Job>, safe: Option<Answer<()>>) -> Answer<Arc<Job>> {
        let (done, next) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let before = {
            let mut queue = self.queue();
            queue.jobs.push(job.clone());
            queue.last.replace(next)
        };
        let slot = QueueSlot::take(self, &job.id);
        let (chat, turn) = (self.clone(), job.clone());
        self.0.agent_runtime.context.runtime.spawn(async move {
            let fresh = safe.is_some();
            let accepted = match safe {
                Some(safe) => safe.wait().await,
                None => Ok(()),
            };
            let ok = accepted.is_ok();
            if ok {
                let seq = chat.announce(&turn, fresh).await;
                _ = tell.send(accepted); // the writer may be gone
                chat.take_turn(&turn, seq, before).await;
            } else {
                chat.0.agent_runtime.context.jobs.retract(std::slice::from_ref(&turn));
                chat.0.call_queue.release(1);
                _ = tell.send(accepted);
            }
            drop((slot, done));
        });
        Answer::soon(async move {
            told.await.unwrap_or_else(|_| Err(Error::internal("the queue is gone")))?;
            Ok(job)
        })
    }

    /// Emits an event about an input; returns its number.
    async fn announce(&self, job: &Job, fresh: bool) -> u64 {
        let Ok(event_log) = self.0.agent_runtime.context.event_logs.of(&self.0.agent_runtime.agent) else { return 0 };
        if !fresh {
            return event_log.last();
        }
        let path = format!("/agents/{}/chat/control/input", self.0.agent_runtime.agent);
        let mut payload = job.call.arguments.clone();
        payload["job_id"] = job.id.as_str().into();
        event_log.add("chat", &path, payload).wait().await.unwrap_or_default()
    }

    /// Waits for the previous turn, then runs this one. A turn that is cancelled earlier does not wait.
    async fn take_turn(&self, job: &Arc<Job>, seq: u64, before: Option<oneshot::Receiver<()>>) {
        let mut paused = self.0.paused.subscribe();
        let mut before = before;
        let previous = async {
            if let Some(turn) = &mut before {
                _ = turn.await; // it ends by being dropped
                before = None;
            }
            _ = paused.wait_for(|paused| !paused).await;
        };
        tokio::select! {
            () = previous => (),
            () = job.cancel.cancelled() => (),
        }
        let (context, early) = (self.0.agent_runtime.context.clone(), job.cancel.is_cancelled());
        let current = Arc::new(CurrentTurn {
            job: job.clone(),
            source: serde_json::from_value(job.call.arguments["source"].clone()).unwrap_or(TurnSource::Chat),
            input: job.call.arguments["input"].as_str().unwrap_or_default().to_owned(),
            settings: self.0.agent_runtime.settings(),
            spent: Mutex::default(),
            reply: watch::Sender::new(None),
            kept: AtomicBool::new(false),
            progress: watch::Sender::new(None),
        });
        let work = {
            let (chat, agent_runtime, current) = (self.clone(), self.0.agent_runtime.clone(), current.clone());
            move || -> jobs::JobWork {
                if early {
                    let error = current.job.stopped("the turn was cancelled before it began");
                    return Box::pin(async { Err(error) });
                }
                chat.set_current(Some(current.clone()));
                if let Ok(event_log) = agent_runtime.context.event_logs.of(&agent_runtime.agent) {
                    event_log.turn_began(seq);
                }
                Box::pin(turn::run(agent_runtime, current))
            }
        };
        let task = jobs::Task { work, deadline: DEADLINE };
        jobs::run(&context.jobs, &self.0.call_queue, job.clone(), task, |end| context.ended(end)).await;
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
        if let Err(error) = turn::remember(&self.0.agent_runtime, &current, reply, error, spent).await {
            tracing::error!(job = job.id, %error, "the history of a chat could not be written");
        }
        // The next turn starts only after the previous one, even if this one was cancelled early.
        if let Some(before) = before {
            _ = before.await;
        }
    }

    /// The usage of all turns, including the running one.
    pub fn spent(&self) -> Spent {
        let history = &self.0.agent_runtime.history;
        // An ended turn is in the history before it is no longer current.
        let current = self.current().filter(|current| !history.has(&current.job.id));
        history.total().plus(&current.map(|current| current.spent()).unwrap_or_default())
    }

    /// The limits of a turn that would start now: the limits of a turn, and what the agent has left beside `promised`.
    pub fn left(&self, promised: &Spent) -> BudgetLimits {
        let settings = self.0.agent_runtime.settings();
        settings.limits.and(&settings.total.less(&self.spent().plus(promised)))
    }

    /// Pauses or resumes: queued turns wait while paused.
    pub fn pause(&self, paused: bool) {
        self.0.agent_runtime.change(|settings| settings.paused = paused);
        self.0.paused.send_replace(paused);
    }

    /// Cancels the running turn and all queued ones.
    pub fn stop(&self) {
        for job in &self.queue().jobs {
            job.cancel.cancel();
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

    fn status(&self) -> Value {
        let (agent_runtime, jobs) = (&self.0.agent_runtime, self.queue().jobs.clone());
        let settings = agent_runtime.settings();
        let refusal = self.0.refusal.lock().clone();
        let current = self.current();
        let last = agent_runtime.history.last();
        let state = match (&current, jobs.len(), &refusal) {
            (Some(_), _, _) => "running",
            (None, 1.., _) => "queued",
            (None, 0, Some(_)) => "refused",
            (None, 0, None) if settings.paused => "paused",
            (None, 0, None) => "idle",
        };
        let job = current.as_ref().map(|current| current.job.clone()).or_else(|| jobs.first().cloned());
        // The fields are about one turn: the first that is running or queued, else the last.
        let (job_id, updated_at_ms, error) = match (job, last) {
            (Some(job), _) => (Some(job.id.clone()), Some(job.now().updated_at_ms), None),
            (None, Some(last)) => (Some(last.job_id), Some(last.ts_ms), last.error),
            (None, None) => (None, None, None),
        };
        json!({
            "state": state,
            "job_id": job_id,
            "operation": "turn",
            "updated_at_ms": updated_at_ms,
            "error": refusal.or(error),
            "queued": jobs.len().saturating_sub(usize::from(current.is_some())),
            "input": current.as_ref().map(|current| current.input.clone()),
            "said": current.as_ref().and_then(|current| current.progress.borrow().clone()),
            "model": settings.model.map_or("external".to_owned(), |model| model.name()),
            "limits": {"turn": settings.limits, "agent": settings.total},
            "spent": self.spent(),
        })
    }
}
