//! The door for editors that speak the Agent Client Protocol: an agent of the host is an agent of the editor.
//!
//! A session of the editor is a conversation of the agent (`session` of `chat/control/input.json`), a prompt is a turn, and what
//! the turn does comes from `jobs/<turn>/steps/`. All of it goes through the tree with the rights of the caller. The messages
//! themselves are `crates/acp`. Opened by `host`; without the feature `door-acp` it is left out.

mod approvals;
mod conversations;
mod prompt;
mod shown;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use acheron_acp::{AcpFault, AcpLine, AcpLines, AcpUpdate, AgentEvent, AgentSide, PermissionAnswer};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{DoorCaller, DoorContext};
use acheron_base::{Error, Result};
use prompt::PromptTurn;

/// The messages that wait for a client that reads slowly; beyond them, the connection waits.
const UNSENT: usize = 64;
const CHUNK: usize = 64 << 10;
/// How long an editor may take to read the last messages.
const FAREWELL: Duration = Duration::from_secs(2);

/// Paths of this machine and of the tree.
pub trait EditorPaths: Send + Sync {
    /// The path in the tree of a path of this machine, if a project shows it.
    fn place(&self, path: &str) -> Option<String>;
    /// The path on this machine of a path in the tree, if it has one.
    fn real(&self, path: &str) -> Option<String>;
}

/// What the host hands to this door.
#[derive(Clone)]
pub struct AcpDoor {
    pub context: DoorContext,
    pub caller: DoorCaller,
    /// The agent that is talked to.
    pub agent: String,
    pub paths: Arc<dyn EditorPaths>,
}

/// A session of the editor.
#[derive(Clone, Debug)]
struct EditorSession {
    directory: String,
    /// MCP servers of the editor that its user was not told about yet.
    servers: Vec<String>,
}

/// A turn that is under way.
struct RunningPrompt {
    cancel: CancellationToken,
    task: AbortOnDropHandle<()>,
}

/// One editor.
struct EditorConnection {
    door: AcpDoor,
    side: Mutex<AgentSide>,
    sessions: Mutex<HashMap<String, EditorSession>>,
    prompts: Mutex<HashMap<String, RunningPrompt>>,
    /// Questions that its user has not answered.
    questions: Mutex<HashMap<u64, oneshot::Sender<PermissionAnswer>>>,
    unsent: mpsc::Sender<Value>,
}

/// Serves one editor until it goes away, the host goes down, or its rights end. Turns that are under way are cancelled then.
pub async fn serve(
    door: AcpDoor,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) {
    let (down, ended) = (door.context.down.clone(), door.caller.ended.clone());
    let (unsent, lines) = mpsc::channel(UNSENT);
    let writing = AbortOnDropHandle::new(tokio::spawn(send_lines(lines, write)));
    let side = Mutex::new(AgentSide::new(env!("CARGO_PKG_VERSION")));
    let (sessions, prompts, questions) = (Mutex::default(), Mutex::default(), Mutex::default());
    let connection = Arc::new(EditorConnection { door, side, sessions, prompts, questions, unsent });
    tokio::select! {
        () = connection.clone().listen(read) => connection.leave().await,
        () = ended.cancelled() => connection.leave().await,
        // Turns go on when the host comes up again.
        () = down.cancelled() => (),
    }
    // Ends what holds the connection.
    connection.prompts.lock().clear();
    drop(connection);
    // What was answered already goes out, unless the editor does not read.
    _ = tokio::time::timeout(FAREWELL, writing).await;
}

async fn send_lines(mut lines: mpsc::Receiver<Value>, mut write: impl AsyncWrite + Unpin) {
    while let Some(message) = lines.recv().await {
        let line = format!("{message}\n");
        if write.write_all(line.as_bytes()).await.is_err() || write.flush().await.is_err() {
            return; // it has gone
        }
    }
}

impl EditorConnection {
    /// Reads messages to the end of the stream.
    async fn listen(self: Arc<Self>, mut read: impl AsyncRead + Unpin) {
        let (mut lines, mut room) = (AcpLines::default(), vec![0; CHUNK]);
        loop {
            let count = match read.read(&mut room).await {
                Ok(0) | Err(_) => return,
                Ok(count) => count,
            };
            for line in lines.take(&room[..count]) {
                let sent = match line {
                    AcpLine::TooLong => self.send(AgentSide::too_long()).await,
                    AcpLine::Whole(line) => self.take(&line).await,
                };
                if sent.is_err() {
                    return;
                }
            }
        }
    }

    /// The editor has gone: ends its turns, and waits for that, so that a host that ends with it does not take them up again.
    async fn leave(&self) {
        let running: Vec<RunningPrompt> = self.prompts.lock().drain().map(|(_, running)| running).collect();
        running.iter().for_each(|running| running.cancel.cancel());
        let ended = futures_util::future::join_all(running.into_iter().map(|running| running.task));
        // One that does not end by itself is cancelled when it is dropped.
        _ = tokio::time::timeout(FAREWELL, ended).await;
    }

    /// Sends a message; an error if the editor has gone.
    async fn send(&self, message: Value) -> Result<()> {
        self.unsent.send(message).await.map_err(|_| Error::unavailable("the editor has gone"))
    }

    async fn update(&self, session: &str, update: &AcpUpdate) -> Result<()> {
        self.send(AgentSide::update(session, update)).await
    }

    async fn take(self: &Arc<Self>, line: &[u8]) -> Result<()> {
        let step = self.side.lock().take(line);
        if let Some(message) = step.send {
            self.send(message).await?;
        }
        match step.event {
            None => Ok(()),
            Some(AgentEvent::New { request, directory, servers }) => {
                let session = self.door.context.ids.id("session");
                self.begin(&session, directory, servers);
                let answer = self.side.lock().answer(request, Ok(json!({ "sessionId": session })));
                self.send_some(answer).await
            }
            Some(AgentEvent::Load { request, session, directory, servers }) => {
                let loaded = self.load(&session).await;
                if loaded.is_ok() {
                    self.begin(&session, directory, servers);
                }
                let outcome = loaded.map(|()| json!({})).map_err(|error| AcpFault::from(&error));
                let answer = self.side.lock().answer(request, outcome);
                self.send_some(answer).await
            }
            Some(AgentEvent::List { request, directory }) => {
                let listed = self.list(directory.as_deref()).await.map_err(|error| AcpFault::from(&error));
                let answer = self.side.lock().answer(request, listed);
                self.send_some(answer).await
            }
            Some(AgentEvent::Prompt { session, blocks }) => {
                let cancel = CancellationToken::new();
                let turn = PromptTurn::new(self.clone(), session.clone(), cancel.clone());
                let task = AbortOnDropHandle::new(tokio::spawn(turn.run(blocks)));
                self.prompts.lock().insert(session, RunningPrompt { cancel, task });
                Ok(())
            }
            Some(AgentEvent::Cancel { session }) => {
                if let Some(running) = self.prompts.lock().get(&session) {
                    running.cancel.cancel();
                }
                Ok(())
            }
            Some(AgentEvent::Permission { question, answer }) => {
                if let Some(asker) = self.questions.lock().remove(&question) {
                    _ = asker.send(answer); // it may have been decided elsewhere
                }
                Ok(())
            }
        }
    }

    async fn send_some(&self, message: Option<Value>) -> Result<()> {
        match message {
            Some(message) => self.send(message).await,
            None => Ok(()),
        }
    }

    fn begin(&self, session: &str, directory: String, servers: Vec<String>) {
        self.side.lock().begin(session);
        self.sessions.lock().insert(session.to_owned(), EditorSession { directory, servers });
    }

    /// Shows an earlier conversation again.
    async fn load(&self, session: &str) -> Result<()> {
        let tree = self.door.context.tree_of(&self.door.caller)?;
        for turn in conversations::of(&conversations::read(&tree, &self.door.agent).await?, session)? {
            self.update(session, &AcpUpdate::UserMessage(turn.input.clone())).await?;
            let said = turn.reply.or(turn.error.map(|error| error.message)).unwrap_or_default();
            self.update(session, &AcpUpdate::Message(said)).await?;
        }
        Ok(())
    }

    async fn list(&self, directory: Option<&str>) -> Result<Value> {
        let tree = self.door.context.tree_of(&self.door.caller)?;
        Ok(conversations::listed(&conversations::read(&tree, &self.door.agent).await?, directory))
    }
}
