//! Agents whose mind is a program that speaks the Agent Client Protocol: `"model": {"kind": "acp", "command": […]}`.
//!
//! The program runs in the sandbox of its agent, with the gateway to the model that `gateway` names. It keeps running between
//! turns, in one session for one conversation; a turn of another conversation, or one after a while, starts it anew and tells it
//! what was said before. Its requests for files are served by the tree with the rights of the agent. Used by the wiring of the
//! chat; uses the plan of runs, the gateway and the tree.

mod files;
mod launch;
mod process;
mod progress;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::{HostState, upgrade};
use crate::agent::mind::{Mind, MindTurn};
use crate::spec::ModelSpec;
use acheron_base::{Error, Result};
use process::MindProcess;

/// How long a program is kept that has nothing to do.
const IDLE: Duration = Duration::from_secs(600);
/// How much of a conversation is told again to a program that was started anew, in bytes.
const EARLIER: usize = 16 << 10;

/// The minds of all agents. An agent keeps its mind as long as its model is described the same.
#[derive(Default)]
pub struct AcpMinds {
    host: OnceLock<Weak<HostState>>,
    made: Mutex<HashMap<String, (ModelSpec, Arc<AcpMind>)>>,
}

impl AcpMinds {
    /// Names the host, once it is there.
    pub fn of_host(&self, host: &Arc<HostState>) {
        _ = self.host.set(Arc::downgrade(host)); // there is only one
    }

    pub fn mind(&self, agent: &str, model: &ModelSpec) -> Result<Arc<dyn Mind>> {
        let host = self.host.get().cloned().ok_or_else(|| Error::unavailable("the host is not ready"))?;
        let mut made = self.made.lock();
        if let Some((known, mind)) = made.get(agent)
            && known == model
        {
            return Ok(mind.clone());
        }
        let mind = Arc::new(AcpMind { host, agent: agent.to_owned(), model: model.clone(), waiting: Arc::default() });
        made.insert(agent.to_owned(), (model.clone(), mind.clone()));
        Ok(mind)
    }
}

/// The program between two turns.
type WaitingProcess = Arc<Mutex<Option<KeptProcess>>>;

/// A program that waits for its next turn.
struct KeptProcess {
    process: MindProcess,
    /// Ends it when it must end or nobody needs it; dropped with it.
    _watcher: AbortOnDropHandle<()>,
}

/// The mind of one agent.
pub struct AcpMind {
    host: Weak<HostState>,
    agent: String,
    model: ModelSpec,
    waiting: WaitingProcess,
}

#[async_trait]
impl Mind for AcpMind {
    async fn turn(&self, turn: MindTurn) -> Result<String> {
        let conversation = turn.session.as_ref().map(|session| session.id.clone());
        let known = self.waiting.lock().take().map(|kept| kept.process);
        let (process, prompt) = match known {
            Some(process) if process.conversation == conversation && process.lives() => (process, turn.input.clone()),
            other => {
                drop(other);
                let host = upgrade(&self.host)?;
                let process = MindProcess::start(&host, &self.agent, &self.model, conversation, &turn.job).await?;
                (process, introduced(&self.agent, &turn))
            }
        };
        // Dropped before its end, it cancels the turn of the program.
        let mut running = RunningMind { process: Some(process), waiting: self.waiting.clone() };
        let Some(process) = running.process.as_mut() else { return Err(Error::internal("no program")) };
        let outcome = process.turn(&self.host, &turn.job, &prompt).await;
        let process = running.process.take();
        // After a failure nothing is known about its state.
        if outcome.is_ok()
            && let Some(process) = process
        {
            keep(&self.waiting, process);
        }
        outcome
    }

    fn name(&self) -> String {
        format!("acp:{}", self.model.command.first().map_or("", |program| launch::word(program)))
    }
}

/// A turn under way.
struct RunningMind {
    process: Option<MindProcess>,
    waiting: WaitingProcess,
}

impl Drop for RunningMind {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let waiting = self.waiting.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if process.cancel().await {
                    keep(&waiting, process);
                }
            });
        }
    }
}

/// Keeps a program for the next turn, until it must end, ends by itself, or nobody needs it.
fn keep(waiting: &WaitingProcess, process: MindProcess) {
    let (program, number, weak) = (process.program.clone(), process.number, Arc::downgrade(waiting));
    let watcher = tokio::spawn(async move {
        // However it comes, it is over.
        _ = tokio::time::timeout(IDLE, program.taken_away()).await;
        if let Some(waiting) = weak.upgrade() {
            let kept = waiting.lock().take_if(|kept| kept.process.number == number);
            drop(kept);
        }
    });
    let mut slot = waiting.lock();
    // Another may have been started meanwhile.
    if slot.is_none() {
        *slot = Some(KeptProcess { process, _watcher: AbortOnDropHandle::new(watcher) });
    }
}

/// The first prompt of a program: where it is, and what was said in this conversation before.
fn introduced(agent: &str, turn: &MindTurn) -> String {
    let mut earlier: Vec<String> = Vec::new();
    let mut bytes = 0;
    for (input, reply) in turn.earlier.iter().rev() {
        let said = format!("User: {}\nYou: {}\n", input.trim(), reply.trim());
        bytes += said.len();
        if bytes > EARLIER {
            break;
        }
        earlier.push(said);
    }
    earlier.reverse();
    let before = match earlier.is_empty() {
        true => String::new(),
        false => format!("Earlier in this conversation:\n{}\n", earlier.concat()),
    };
    format!("(You are the agent {agent} of this host; /AGENTS.md says what is here.)\n\n{before}{}", turn.input)
}
