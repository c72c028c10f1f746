//! The side of a client: drives an agent outside through one session, and reads what it wants.
//!
//! The order is fixed: [`ClientSide::greet`], [`ClientSide::open`], then prompts, one at a time. Whatever comes out of order is
//! ignored or refused: an agent that is out of its mind cannot make a client do something twice.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::message::{self, AcpFault, AcpMessage, one_line};
use crate::received::{PermissionOption, ReceivedCall, ReceivedUpdate, options};
use crate::{LONGEST_MESSAGE, MOST_REQUESTS, OpenRequest, PROTOCOL};

/// What the agent does or wants.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// It has greeted. The ids of the ways to log in that it names.
    Greeted {
        logins: Vec<String>,
    },
    LoggedIn,
    /// The session is there.
    Opened,
    Update(ReceivedUpdate),
    /// It wants a file to be read or written.
    File {
        request: OpenRequest,
        file: FileRequest,
    },
    /// It asks whether it may.
    Permission {
        request: OpenRequest,
        call: ReceivedCall,
        options: Vec<PermissionOption>,
    },
    /// The turn has ended, with the reason in its own words.
    Ended {
        stop: String,
    },
    /// One of our requests was refused.
    Refused {
        method: &'static str,
        fault: AcpFault,
    },
}

/// A request of the agent about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRequest {
    /// From line `line` (1 is the first), at most `limit` lines.
    Read {
        path: String,
        line: Option<u64>,
        limit: Option<u64>,
    },
    Write {
        path: String,
        content: String,
    },
}

/// What a line leads to.
#[derive(Debug, Default)]
pub struct ClientStep {
    pub send: Option<Value>,
    pub event: Option<ClientEvent>,
}

impl ClientStep {
    fn event(event: ClientEvent) -> ClientStep {
        ClientStep { send: None, event: Some(event) }
    }

    fn send(value: Value) -> ClientStep {
        ClientStep { send: Some(value), event: None }
    }
}

/// The state of one connection.
#[derive(Default)]
pub struct ClientSide {
    session: Option<String>,
    /// Our requests that wait, by their ids.
    waiting: BTreeMap<u64, &'static str>,
    /// Requests of the agent that have to be answered.
    open: BTreeMap<OpenRequest, Value>,
    number: u64,
}

impl ClientSide {
    fn request(&mut self, method: &'static str, params: Value) -> Value {
        self.number += 1;
        self.waiting.insert(self.number, method);
        message::request(self.number, method, params)
    }

    /// The first message.
    pub fn greet(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": PROTOCOL,
            "clientCapabilities": { "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": false },
            "clientInfo": { "name": "acheron", "title": "Acheron", "version": version },
        });
        self.request("initialize", params)
    }

    pub fn log_in(&mut self, way: &str) -> Value {
        self.request("authenticate", json!({ "methodId": way }))
    }

    /// Begins the session in a directory.
    pub fn open(&mut self, directory: &str) -> Value {
        self.request("session/new", json!({ "cwd": directory, "mcpServers": [] }))
    }

    /// Begins a turn; `None` without a session, or while one runs.
    pub fn prompt(&mut self, text: &str) -> Option<Value> {
        let session = self.session.clone()?;
        if self.waiting.values().any(|method| *method == "session/prompt") {
            return None;
        }
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        Some(self.request("session/prompt", params))
    }

    /// Asks the agent to end its turn. Its questions must be answered as cancelled too.
    pub fn cancel(&self) -> Option<Value> {
        let session = self.session.as_ref()?;
        Some(message::notification("session/cancel", json!({ "sessionId": session })))
    }

    /// Reads one line.
    pub fn take(&mut self, line: &[u8]) -> ClientStep {
        match AcpMessage::read(line) {
            // A stray word on standard output is no message.
            Err(_) => ClientStep::default(),
            Ok(AcpMessage::Answer { id, outcome }) => self.answered(id, outcome),
            Ok(AcpMessage::Notification { method, params }) => match method.as_str() {
                "session/update" if self.is_own(&params) => {
                    ClientStep::event(ClientEvent::Update(ReceivedUpdate::read(&params["update"])))
                }
                _ => ClientStep::default(),
            },
            Ok(AcpMessage::Request { id, method, params }) => match self.asked(&id, &method, &params) {
                Ok(event) => ClientStep::event(event),
                Err(fault) => ClientStep::send(message::answer(&id, Err(fault))),
            },
        }
    }

    fn is_own(&self, params: &Value) -> bool {
        self.session.is_some() && params["sessionId"].as_str() == self.session.as_deref()
    }

    fn answered(&mut self, id: Option<u64>, outcome: Result<Value, AcpFault>) -> ClientStep {
        let Some(method) = id.and_then(|id| self.waiting.remove(&id)) else { return ClientStep::default() };
        let result = match outcome {
            Ok(result) => result,
            Err(fault) => return ClientStep::event(ClientEvent::Refused { method, fault }),
        };
        let wrong = |said: String| {
            let fault = AcpFault::new(AcpFault::INVALID_REQUEST, said);
            ClientStep::event(ClientEvent::Refused { method, fault })
        };
        match method {
            "initialize" => match result["protocolVersion"].as_u64() {
                Some(PROTOCOL) => {
                    let ways = result["authMethods"].as_array().into_iter().flatten().take(16);
                    let logins = ways.filter_map(|way| way["id"].as_str()).map(|way| one_line(way, 100)).collect();
                    ClientStep::event(ClientEvent::Greeted { logins })
                }
                version => {
                    let version = version.map_or("none".to_owned(), |version| version.to_string());
                    wrong(format!("it speaks version {version} of the protocol, and this host version {PROTOCOL}"))
                }
            },
            "authenticate" => ClientStep::event(ClientEvent::LoggedIn),
            "session/new" => match result["sessionId"].as_str().filter(|id| id.len() <= 1024) {
                Some(session) if self.session.is_none() => {
                    self.session = Some(session.to_owned());
                    ClientStep::event(ClientEvent::Opened)
                }
                _ => wrong("it gave no id of a session".to_owned()),
            },
            _ => {
                let stop = one_line(result["stopReason"].as_str().unwrap_or("none"), 40);
                ClientStep::event(ClientEvent::Ended { stop })
            }
        }
    }

    fn asked(&mut self, id: &Value, method: &str, params: &Value) -> Result<ClientEvent, AcpFault> {
        if self.open.len() >= MOST_REQUESTS {
            let said = format!("{MOST_REQUESTS} requests are under way; wait for one of them");
            return Err(AcpFault::new(AcpFault::INVALID_REQUEST, said));
        }
        let known = matches!(method, "fs/read_text_file" | "fs/write_text_file" | "session/request_permission");
        if known && !self.is_own(params) {
            return Err(AcpFault::new(AcpFault::NOT_FOUND, "`sessionId` is not the session of this connection"));
        }
        let file = match method {
            "fs/read_text_file" => {
                let (line, limit) = (params["line"].as_u64(), params["limit"].as_u64());
                FileRequest::Read { path: path(params)?, line, limit }
            }
            "fs/write_text_file" => {
                let content = params["content"].as_str().ok_or_else(|| AcpFault::invalid("`content` is a text"))?;
                FileRequest::Write { path: path(params)?, content: content.to_owned() }
            }
            "session/request_permission" => {
                let (call, options) = (ReceivedCall::read(&params["toolCall"]), options(params));
                let request = self.opened(id);
                return Ok(ClientEvent::Permission { request, call, options });
            }
            other => {
                let said = format!("this client has no method `{}`", one_line(other, 60));
                return Err(AcpFault::new(AcpFault::UNKNOWN_METHOD, said));
            }
        };
        let request = self.opened(id);
        Ok(ClientEvent::File { request, file })
    }

    fn opened(&mut self, id: &Value) -> OpenRequest {
        self.number += 1;
        let request = OpenRequest::numbered(self.number);
        self.open.insert(request, id.clone());
        request
    }

    /// Answers a request of the agent; `None` if it has been.
    pub fn answer(&mut self, request: OpenRequest, outcome: Result<Value, AcpFault>) -> Option<Value> {
        let id = self.open.remove(&request)?;
        Some(message::answer(&id, outcome))
    }

    /// Answers a question with one of its options, or as cancelled.
    pub fn decide(&mut self, request: OpenRequest, chosen: Option<&str>) -> Option<Value> {
        let outcome = match chosen {
            Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        };
        self.answer(request, Ok(outcome))
    }
}

fn path(params: &Value) -> Result<String, AcpFault> {
    let path = params["path"].as_str().filter(|path| path.starts_with('/') && path.len() <= LONGEST_MESSAGE.min(4096));
    path.map(str::to_owned).ok_or_else(|| AcpFault::invalid("`path` is an absolute path"))
}

#[cfg(test)]
mod tests;
