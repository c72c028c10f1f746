//! The side of an agent: what a client may ask when, and what is owed to it.
//!
//! [`AgentSide::take`] reads one line and returns what to send at once and what has to be done. What is done is answered with
//! [`AgentSide::answer`] and [`AgentSide::end_prompt`]: each request once, in any order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::message::{self, AcpFault, AcpMessage, one_line};
use crate::prompt::PromptBlock;
use crate::update::{AcpPermission, AcpUpdate};
use crate::{MOST_REQUESTS, MOST_SESSIONS, PROTOCOL};

/// A request that has to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenRequest(u64);

impl OpenRequest {
    pub(crate) fn numbered(number: u64) -> OpenRequest {
        OpenRequest(number)
    }
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// A session in this directory; `servers` are the names of MCP servers that the client would lend.
    New {
        request: OpenRequest,
        directory: String,
        servers: Vec<String>,
    },
    Load {
        request: OpenRequest,
        session: String,
        directory: String,
        servers: Vec<String>,
    },
    /// The sessions, of this directory only if one is named.
    List {
        request: OpenRequest,
        directory: Option<String>,
    },
    /// A turn; it ends with [`AgentSide::end_prompt`].
    Prompt {
        session: String,
        blocks: Vec<PromptBlock>,
    },
    /// The turn of this session must end soon.
    Cancel {
        session: String,
    },
    /// The answer to a question.
    Permission {
        question: u64,
        answer: PermissionAnswer,
    },
}

/// How a client answered a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// The id of an option that was offered.
    Chosen(String),
    /// The turn was cancelled, or the client cannot ask.
    Cancelled,
}

/// Why a turn has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    EndTurn,
    /// A limit of the turn or of the agent was reached.
    MaxTurnRequests,
    Cancelled,
}

impl StopReason {
    fn word(self) -> &'static str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTurnRequests => "max_turn_requests",
            StopReason::Cancelled => "cancelled",
        }
    }
}

#[derive(Default)]
struct AgentSession {
    /// The id of the prompt that is under way.
    prompt: Option<Value>,
    cancelled: bool,
}

/// A question that waits for its answer.
struct Question {
    session: String,
    options: Vec<String>,
}

/// The state of one connection.
pub struct AgentSide {
    version: String,
    greeted: bool,
    sessions: BTreeMap<String, AgentSession>,
    open: BTreeMap<OpenRequest, Value>,
    questions: BTreeMap<u64, Question>,
    number: u64,
}

/// What a line leads to.
#[derive(Debug, Default)]
pub struct AgentStep {
    /// To be sent now.
    pub send: Option<Value>,
    /// To be done now.
    pub event: Option<AgentEvent>,
}

impl AgentStep {
    fn answer(id: &Value, outcome: Result<Value, AcpFault>) -> AgentStep {
        AgentStep { send: Some(message::answer(id, outcome)), event: None }
    }

    fn event(event: AgentEvent) -> AgentStep {
        AgentStep { send: None, event: Some(event) }
    }
}

impl AgentSide {
    /// `version` is that of the program.
    pub fn new(version: &str) -> AgentSide {
        AgentSide {
            version: version.to_owned(),
            greeted: false,
            sessions: BTreeMap::new(),
            open: BTreeMap::new(),
            questions: BTreeMap::new(),
            number: 0,
        }
    }

    /// A line that was too long to be read.
    pub fn too_long() -> Value {
        let said = format!("a message has at most {} bytes", crate::LONGEST_MESSAGE);
        message::answer(&Value::Null, Err(AcpFault::new(AcpFault::INVALID_REQUEST, said)))
    }

    /// Reads one line.
    pub fn take(&mut self, line: &[u8]) -> AgentStep {
        match AcpMessage::read(line) {
            Err((id, fault)) => AgentStep::answer(&id, Err(fault)),
            Ok(AcpMessage::Request { id, method, params }) => match self.request(&id, &method, &params) {
                Ok(step) => step,
                Err(fault) => AgentStep::answer(&id, Err(fault)),
            },
            Ok(AcpMessage::Notification { method, params }) => self.notified(&method, &params),
            Ok(AcpMessage::Answer { id, outcome }) => self.answered(id, outcome),
        }
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> Result<AgentStep, AcpFault> {
        if method == "initialize" {
            self.greeted = true;
            return Ok(AgentStep::answer(id, Ok(self.greeting())));
        }
        if !self.greeted {
            return Err(AcpFault::new(AcpFault::INVALID_REQUEST, "a connection begins with `initialize`"));
        }
        if self.open.len() >= MOST_REQUESTS {
            let said = format!("{MOST_REQUESTS} requests are under way; wait for one of them");
            return Err(AcpFault::new(AcpFault::INVALID_REQUEST, said));
        }
        match method {
            "authenticate" => Ok(AgentStep::answer(id, Ok(json!({})))),
            "session/new" => {
                let (directory, servers) = (directory(params)?, servers(params));
                self.room(None)?;
                let request = self.opened(id);
                Ok(AgentStep::event(AgentEvent::New { request, directory, servers }))
            }
            "session/load" => {
                let (session, directory, servers) = (session_of(params)?, directory(params)?, servers(params));
                self.room(Some(&session))?;
                if self.sessions.get(&session).is_some_and(|known| known.prompt.is_some()) {
                    return Err(AcpFault::new(AcpFault::INVALID_REQUEST, "a turn of this session is under way"));
                }
                let request = self.opened(id);
                Ok(AgentStep::event(AgentEvent::Load { request, session, directory, servers }))
            }
            "session/list" => {
                let directory = params["cwd"].as_str().map(str::to_owned);
                let request = self.opened(id);
                Ok(AgentStep::event(AgentEvent::List { request, directory }))
            }
            "session/close" => {
                let session = session_of(params)?;
                let known = self.sessions.get(&session).ok_or_else(|| unknown(&session))?;
                if known.prompt.is_some() {
                    let said = "a turn of this session is under way: cancel it with `session/cancel` first";
                    return Err(AcpFault::new(AcpFault::INVALID_REQUEST, said));
                }
                self.sessions.remove(&session);
                Ok(AgentStep::answer(id, Ok(json!({}))))
            }
            "session/prompt" => {
                let session = session_of(params)?;
                let known = self.sessions.get_mut(&session).ok_or_else(|| unknown(&session))?;
                if known.prompt.is_some() {
                    let said =
                        "a turn of this session is under way: wait for its end, or cancel it with `session/cancel`";
                    return Err(AcpFault::new(AcpFault::INVALID_REQUEST, said));
                }
                let blocks = PromptBlock::read(&params["prompt"])?;
                *known = AgentSession { prompt: Some(id.clone()), cancelled: false };
                Ok(AgentStep::event(AgentEvent::Prompt { session, blocks }))
            }
            other => {
                let said = format!("there is no method `{}` here", one_line(other, 60));
                Err(AcpFault::new(AcpFault::UNKNOWN_METHOD, said))
            }
        }
    }

    /// Refuses one session too many.
    fn room(&self, session: Option<&str>) -> Result<(), AcpFault> {
        let known = session.is_some_and(|session| self.sessions.contains_key(session));
        match !known && self.sessions.len() + self.open.len() >= MOST_SESSIONS {
            true => {
                let said = format!("a connection has at most {MOST_SESSIONS} sessions; close one with `session/close`");
                Err(AcpFault::new(AcpFault::INVALID_REQUEST, said))
            }
            false => Ok(()),
        }
    }

    fn opened(&mut self, id: &Value) -> OpenRequest {
        self.number += 1;
        let request = OpenRequest(self.number);
        self.open.insert(request, id.clone());
        request
    }

    fn greeting(&self) -> Value {
        json!({
            "protocolVersion": PROTOCOL,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": false, "sse": false },
                "sessionCapabilities": { "list": {}, "close": {} },
            },
            "agentInfo": { "name": "acheron", "title": "Acheron", "version": self.version },
            "authMethods": [],
        })
    }

    fn notified(&mut self, method: &str, params: &Value) -> AgentStep {
        let session = match method {
            "session/cancel" => params["sessionId"].as_str().map(str::to_owned),
            // A request by its id: only a prompt takes long.
            "$/cancel_request" => {
                let running = |known: &AgentSession| known.prompt.as_ref() == Some(&params["requestId"]);
                self.sessions.iter().find(|(_, known)| running(known)).map(|(name, _)| name.clone())
            }
            _ => None, // unknown notifications are to be ignored
        };
        let known = session.as_ref().and_then(|session| self.sessions.get_mut(session));
        match (session, known) {
            (Some(session), Some(known)) if known.prompt.is_some() && !known.cancelled => {
                known.cancelled = true;
                AgentStep::event(AgentEvent::Cancel { session })
            }
            _ => AgentStep::default(),
        }
    }

    fn answered(&mut self, id: Option<u64>, outcome: Result<Value, AcpFault>) -> AgentStep {
        let Some((question, asked)) = id.and_then(|id| Some((id, self.questions.remove(&id)?))) else {
            return AgentStep::default(); // nothing was asked, or its turn has ended
        };
        let chosen = outcome.ok().and_then(|result| {
            let outcome = &result["outcome"];
            let chosen = outcome["optionId"].as_str().filter(|_| outcome["outcome"] == "selected")?;
            asked.options.iter().find(|option| *option == chosen).cloned()
        });
        let answer = chosen.map_or(PermissionAnswer::Cancelled, PermissionAnswer::Chosen);
        AgentStep::event(AgentEvent::Permission { question, answer })
    }

    /// Answers a request that was handed out; `None` if it has been.
    pub fn answer(&mut self, request: OpenRequest, outcome: Result<Value, AcpFault>) -> Option<Value> {
        let id = self.open.remove(&request)?;
        Some(message::answer(&id, outcome))
    }

    /// Begins a session, new or loaded.
    pub fn begin(&mut self, session: &str) {
        self.sessions.entry(session.to_owned()).or_default();
    }

    /// Ends the prompt of a session; `None` if there is none. Its questions are void.
    pub fn end_prompt(&mut self, session: &str, outcome: Result<StopReason, AcpFault>) -> Option<Value> {
        let known = self.sessions.get_mut(session)?;
        let (id, cancelled) = (known.prompt.take()?, std::mem::take(&mut known.cancelled));
        self.questions.retain(|_, question| question.session != session);
        // What fails because it was cancelled was cancelled.
        let outcome = if cancelled { Ok(StopReason::Cancelled) } else { outcome };
        Some(message::answer(&id, outcome.map(|stop| json!({ "stopReason": stop.word() }))))
    }

    /// The line of an update.
    pub fn update(session: &str, update: &AcpUpdate) -> Value {
        message::notification("session/update", json!({ "sessionId": session, "update": update.value() }))
    }

    /// Asks the client's user; `None` if no turn of the session is under way or it was cancelled. Returns the number of the
    /// question.
    pub fn ask(&mut self, session: &str, permission: &AcpPermission) -> Option<(u64, Value)> {
        self.sessions.get(session).filter(|known| known.prompt.is_some() && !known.cancelled)?;
        if self.questions.len() >= MOST_REQUESTS {
            return None;
        }
        self.number += 1;
        let options = permission.options.iter().map(|(id, ..)| id.clone()).collect();
        self.questions.insert(self.number, Question { session: session.to_owned(), options });
        let params = permission.params(session);
        Some((self.number, message::request(self.number, "session/request_permission", params)))
    }

    /// Nobody waits for the answer to this question any more.
    pub fn withdraw(&mut self, question: u64) {
        self.questions.remove(&question);
    }
}

fn session_of(params: &Value) -> Result<String, AcpFault> {
    let session = params["sessionId"].as_str().filter(|id| !id.is_empty() && id.len() <= 128);
    session.map(str::to_owned).ok_or_else(|| AcpFault::invalid("`sessionId` is the id of a session"))
}

fn unknown(session: &str) -> AcpFault {
    let said = format!("there is no session `{}`; begin one with `session/new`", one_line(session, 80));
    AcpFault::new(AcpFault::NOT_FOUND, said)
}

fn directory(params: &Value) -> Result<String, AcpFault> {
    let given = params["cwd"].as_str().filter(|path| path.starts_with('/') && path.len() <= 4096);
    let plain = given.filter(|path| !path.chars().any(char::is_control));
    plain.map(str::to_owned).ok_or_else(|| AcpFault::invalid("`cwd` is an absolute path"))
}

/// The names of the MCP servers that a client would lend.
fn servers(params: &Value) -> Vec<String> {
    let servers = params["mcpServers"].as_array().into_iter().flatten().take(16);
    servers.map(|server| one_line(server["name"].as_str().unwrap_or("?"), 60)).collect()
}

#[cfg(test)]
mod tests;
