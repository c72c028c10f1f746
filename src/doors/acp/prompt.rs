//! A prompt: a turn of the agent that is followed to its end, and cancelled if the editor wants it or goes away.

use std::sync::Arc;

use acheron_acp::{AcpFault, AcpUpdate, PromptBlock, StopReason, prompt_text};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::approvals::{self, AgentApprovals};
use super::conversations::MAIN;
use super::{EditorConnection, shown};
use crate::agent::chat_session::ChatSession;
use crate::doors::tree::{DoorTree, DoorWrite, Wait};
use acheron_base::{Code, Error, Result};

/// The most bytes of steps that are read at once.
const STEPS: usize = 2 << 20;

/// The end of a turn, as `chat/control/input.json` answers it.
#[derive(Deserialize)]
struct TurnAnswer {
    reply: Option<String>,
    error: Option<Error>,
}

/// One prompt of one session.
pub struct PromptTurn {
    connection: Arc<EditorConnection>,
    session: String,
    cancel: CancellationToken,
}

/// The turn in the tree. Dropping it before its end cancels it.
struct FollowedTurn {
    tree: DoorTree,
    agent: String,
    job: String,
    /// The number of the last step that was shown.
    seen: u64,
    /// What the model has said since its last call, which may be the reply.
    words: String,
    ended: bool,
}

impl PromptTurn {
    pub fn new(connection: Arc<EditorConnection>, session: String, cancel: CancellationToken) -> PromptTurn {
        PromptTurn { connection, session, cancel }
    }

    pub async fn run(self, blocks: Vec<PromptBlock>) {
        let outcome = self.turn(&blocks).await;
        self.connection.questions.lock().retain(|_, asker| !asker.is_closed());
        let answer = self.connection.side.lock().end_prompt(&self.session, outcome);
        // If the editor has gone, nobody waits for it.
        _ = self.connection.send_some(answer).await;
    }

    /// Runs the turn; an error is one of the protocol.
    async fn turn(&self, blocks: &[PromptBlock]) -> Result<StopReason, AcpFault> {
        let fault = |error: Error| AcpFault::from(&error);
        self.introduce().await.map_err(fault)?;
        let (written, mut followed) = self.begin(blocks).await.map_err(fault)?;
        let end = self.follow(&written, &mut followed).await.map_err(fault)?;
        match (end.reply, end.error) {
            (_, Some(error)) if error.code == Code::Cancelled => Ok(StopReason::Cancelled),
            (_, Some(error)) if error.code == Code::BudgetExceeded => {
                self.say(error.message).await.map_err(fault)?;
                Ok(StopReason::MaxTurnRequests)
            }
            (_, Some(error)) => Err(fault(error)),
            (reply, None) => {
                let reply = reply.unwrap_or_default();
                if reply.trim() != followed.words.trim() {
                    self.say(reply).await.map_err(fault)?;
                }
                Ok(StopReason::EndTurn)
            }
        }
    }

    async fn say(&self, text: String) -> Result<()> {
        self.connection.update(&self.session, &AcpUpdate::Message(text)).await
    }

    /// Tells once per session what of the editor is not used.
    async fn introduce(&self) -> Result<()> {
        let servers = {
            let mut sessions = self.connection.sessions.lock();
            sessions.get_mut(&self.session).map(|session| std::mem::take(&mut session.servers)).unwrap_or_default()
        };
        if servers.is_empty() {
            return Ok(());
        }
        let said = format!(
            "The MCP servers of the editor ({}) are not connected: an agent of this host uses the services that its mountspec \
             names.\n\n",
            servers.join(", ")
        );
        self.connection.update(&self.session, &AcpUpdate::Thought(said)).await
    }

    /// Writes the message to the agent's chat.
    async fn begin(&self, blocks: &[PromptBlock]) -> Result<(DoorWrite, FollowedTurn)> {
        let door = &self.connection.door;
        let tree = door.context.tree_of(&door.caller)?;
        let mut message = json!({ "input": prompt_text(blocks, &|path| door.paths.place(path)) });
        if self.session != MAIN {
            let directory = self.connection.sessions.lock().get(&self.session).map(|session| session.directory.clone());
            let place = directory.as_deref().and_then(|path| door.paths.place(path));
            message["session"] = json!(ChatSession { id: self.session.clone(), directory, place });
        }
        let input = format!("/agents/{}/chat/control/input.json", door.agent);
        let written = tree.write(&input, message.to_string().as_bytes(), false, true).await?;
        let job = written.job.clone().ok_or_else(|| Error::internal("a message without a turn"))?;
        let (agent, words) = (door.agent.clone(), String::new());
        Ok((written, FollowedTurn { tree, agent, job, seen: 0, words, ended: false }))
    }

    /// Shows the steps of the turn until it has ended.
    async fn follow(&self, written: &DoorWrite, turn: &mut FollowedTurn) -> Result<TurnAnswer> {
        let answer = written.answer();
        tokio::pin!(answer);
        let (mut following, mut cancelled, mut asking) = (true, false, true);
        let mut approvals = AgentApprovals::of(&turn.tree, &turn.agent);
        // Dropped with the turn: what nobody answers here can be answered elsewhere.
        let mut questions = JoinSet::new();
        let end = loop {
            tokio::select! {
                steps = turn.next(), if following => match steps {
                    Ok(steps) if !steps.is_empty() => self.show(turn, &steps).await?,
                    // The turn has ended, or its steps are gone: its answer comes.
                    _ => following = false,
                },
                () = self.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    turn.cancel("the editor cancelled the turn").await;
                }
                request = approvals.next(), if asking => match request {
                    Ok(id) => {
                        let (connection, session) = (self.connection.clone(), self.session.clone());
                        questions.spawn(approvals::ask(connection, session, turn.tree.clone(), id));
                    }
                    // This host asks nobody.
                    Err(_) => asking = false,
                },
                end = &mut answer => break end,
            }
        };
        turn.ended = true;
        if let Ok(steps) = turn.next().await {
            self.show(turn, &steps).await?;
        }
        serde_json::from_slice(&end?).map_err(|err| Error::internal(format!("the end of a turn: {err}")))
    }

    async fn show(&self, turn: &mut FollowedTurn, steps: &[u8]) -> Result<()> {
        let paths = &self.connection.door.paths;
        for line in steps.split(|byte| *byte == b'\n') {
            let Ok(step) = serde_json::from_slice::<Value>(line) else { continue };
            turn.seen = step["seq"].as_u64().unwrap_or(turn.seen);
            match step["step"].as_str() {
                Some("text") => turn.words.push_str(step["text"].as_str().unwrap_or_default()),
                Some("call") => turn.words.clear(),
                _ => (),
            }
            if let Some(update) = shown::update(&step, &turn.job, &|path| paths.real(path)) {
                self.connection.update(&self.session, &update).await?;
            }
        }
        Ok(())
    }
}

impl FollowedTurn {
    /// The next steps; waits for them. Empty when the turn has ended. May be dropped and called again.
    async fn next(&self) -> Result<bytes::Bytes> {
        let path = format!("/agents/{}/jobs/{}/steps/{}.ndjson", self.agent, self.job, self.seen);
        let wait = if self.ended { Wait::Never } else { Wait::UntilReady };
        self.tree.read(&path, STEPS, wait).await
    }

    async fn cancel(&self, why: &str) {
        let path = format!("/agents/{}/jobs/{}/control/cancel", self.agent, self.job);
        // A turn that has just ended cannot be cancelled, and need not be.
        _ = self.tree.write(&path, format!("{why}\n").as_bytes(), false, false).await;
    }
}

impl Drop for FollowedTurn {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let turn = FollowedTurn {
            tree: self.tree.clone(),
            agent: self.agent.clone(),
            job: self.job.clone(),
            seen: 0,
            words: String::new(),
            ended: true,
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { turn.cancel("the editor has gone").await });
        }
    }
}
