//! The far end of a connection: requests that wait for their answers, and what comes unasked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use acheron_base::Error;
use acheron_mcp::{Incoming, RpcError, message};

/// As many messages wait for a server that does not read.
const WAITING: usize = 256;

/// Called with each progress of a request.
pub type OnProgress = Arc<dyn Fn(Value) + Send + Sync>;

/// Why a request has no result.
#[derive(Clone, Debug)]
pub enum RequestFailure {
    /// The server refused it.
    Refused(RpcError),
    /// There is no server to answer, or it does not read.
    Unanswered(Error),
}

type RequestOutcome = Result<Value, RequestFailure>;

struct PendingRequest {
    answer: oneshot::Sender<RequestOutcome>,
    progress: Option<OnProgress>,
}

/// A server, as long as one connection to it lasts.
pub struct Peer {
    out: mpsc::Sender<Value>,
    pending: Mutex<HashMap<u64, PendingRequest>>,
    next: AtomicU64,
    /// What each request carries, in a revision without `initialize`.
    meta: OnceLock<Map<String, Value>>,
    /// Told when the lists of the server have changed.
    pub lists_changed: Notify,
    /// Why the connection is over.
    closed: OnceLock<Error>,
}

impl Peer {
    /// A peer, and the messages to send to it.
    pub fn new() -> (Arc<Peer>, mpsc::Receiver<Value>) {
        let (out, messages) = mpsc::channel(WAITING);
        let (pending, next, meta) = (Mutex::default(), AtomicU64::new(1), OnceLock::new());
        (Arc::new(Peer { out, pending, next, meta, lists_changed: Notify::new(), closed: OnceLock::new() }), messages)
    }

    /// From now on each request carries this.
    pub fn set_meta(&self, meta: Map<String, Value>) {
        _ = self.meta.set(meta); // there is one handshake
    }

    /// Whether the server speaks a revision without `initialize`.
    pub fn has_meta(&self) -> bool {
        self.meta.get().is_some()
    }

    /// Takes a message of the server. Returns a line for the log, if it has one.
    pub fn receive(&self, incoming: Incoming) -> Option<String> {
        match incoming {
            Incoming::Answer { id, outcome } => {
                // An answer to what was cancelled meanwhile is nobody's.
                if let Some(pending) = self.pending.lock().remove(&id) {
                    _ = pending.answer.send(outcome.map_err(RequestFailure::Refused));
                }
            }
            // A server that floods and does not read gets no answer.
            Incoming::Request { id, method } => _ = self.out.try_send(message::answer(id, &method)),
            Incoming::Notification { method, params } => return self.told(&method, &params),
        }
        None
    }

    fn told(&self, method: &str, params: &Value) -> Option<String> {
        match method {
            "notifications/progress" => {
                let (token, progress) = message::progress(params)?;
                let told = self.pending.lock().get(&token).and_then(|pending| pending.progress.clone());
                if let Some(told) = told {
                    told(progress);
                }
                None
            }
            "notifications/tools/list_changed" | "notifications/resources/list_changed" => {
                self.lists_changed.notify_one();
                None
            }
            "notifications/message" => {
                let data = &params["data"];
                let said = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
                Some(acheron_mcp::text::one_line(&said, 2000))
            }
            _ => None,
        }
    }

    /// Fails one request, such as one whose exchange broke.
    pub fn fail(&self, id: u64, error: Error) {
        if let Some(pending) = self.pending.lock().remove(&id) {
            _ = pending.answer.send(Err(RequestFailure::Unanswered(error)));
        }
    }

    /// Ends the connection: all requests fail with this error, now and later.
    pub fn close(&self, error: Error) {
        let mut pending = self.pending.lock();
        _ = self.closed.set(error.clone()); // the first reason counts
        for (_, pending) in pending.drain() {
            _ = pending.answer.send(Err(RequestFailure::Unanswered(error.clone())));
        }
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Value) {
        _ = self.out.try_send(message::notification(method, params)); // a full queue is told by the next request
    }

    /// Asks the server. Dropping the future cancels the request.
    pub async fn request(&self, method: &str, params: Value, progress: Option<OnProgress>) -> RequestOutcome {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, outcome) = oneshot::channel();
        let params = self.with_meta(id, params, progress.is_some());
        {
            let mut pending = self.pending.lock();
            if let Some(error) = self.closed.get() {
                return Err(RequestFailure::Unanswered(error.clone()));
            }
            pending.insert(id, PendingRequest { answer, progress });
        }
        let _cancelled = CancelRequest { peer: self, id, told: method != "initialize" };
        if self.out.try_send(message::request(id, method, params)).is_err() {
            self.pending.lock().remove(&id);
            let error = Error::unavailable("the server does not read what it is sent");
            return Err(RequestFailure::Unanswered(error));
        }
        let gone = || Err(RequestFailure::Unanswered(Error::unavailable("the connection to the server is over")));
        outcome.await.unwrap_or_else(|_| gone())
    }

    fn with_meta(&self, id: u64, params: Value, progress: bool) -> Value {
        let mut meta = self.meta.get().cloned().unwrap_or_default();
        if progress {
            meta.insert("progressToken".to_owned(), id.into());
        }
        let mut params = params;
        if !meta.is_empty() {
            params["_meta"] = Value::Object(meta);
        }
        params
    }
}

/// Tells the server that an answer is not wanted any more, unless it came.
struct CancelRequest<'a> {
    peer: &'a Peer,
    id: u64,
    told: bool,
}

impl Drop for CancelRequest<'_> {
    fn drop(&mut self) {
        let open = self.peer.pending.lock().remove(&self.id).is_some();
        if open && self.told {
            self.peer
                .notify("notifications/cancelled", json!({ "requestId": self.id, "reason": "the caller cancelled" }));
        }
    }
}

#[cfg(test)]
mod tests;
