//! One MCP server of one agent: it is started, asked what it offers, and started again when it has ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedMutexGuard, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::http::HttpServer;
use super::peer::{Peer, RequestFailure};
use super::servers::McpServers;
use super::service::McpService;
use super::stdio;
use crate::contract::Contract;
use crate::service::ServicePlace;
use crate::services::external::ProgramLaunch;
use crate::spec::OperationSpec;
use acheron_base::{Clock, Error, Result, blocking};
use acheron_mcp::catalogue::ServerLists;
use acheron_mcp::message;
use acheron_mcp::{Catalogue, MOST_RESOURCES, MOST_TOOLS, RpcError, ServerIdentity};
use acheron_vfs::Log;

/// The revision without `initialize`, for a server that knows no other.
const DISCOVERED: &str = "2026-07-28";
/// The pause before a server is started again; it doubles.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that ran so long is started again after the shortest pause.
const STEADY_MS: u64 = 60_000;
/// Changes of lists that come together are one.
const TOGETHER: Duration = Duration::from_millis(200);
/// As many pages of a list are read.
const PAGES: usize = 200;
/// The size of a server's log in bytes.
const LOG: usize = 512 << 10;

/// What a server is built from.
pub struct McpServerParts {
    /// The name of the service.
    pub name: String,
    /// The agent whose sandbox it runs in.
    pub agent: String,
    pub about: String,
    pub settings: BTreeMap<String, OperationSpec>,
    pub source: ServerSource,
    /// How long it may take to start and to answer.
    pub start: Duration,
    /// The most calls at once.
    pub concurrency: usize,
    /// Servers of the same description offer the same.
    pub key: String,
    pub clock: Clock,
    pub servers: Arc<McpServers>,
    pub runtime: tokio::runtime::Handle,
    /// Adds the flags of the mountspec to a contract.
    pub flagged: Box<dyn Fn(Contract) -> Contract + Send + Sync>,
}

/// Where a server is.
pub enum ServerSource {
    Program(Box<ProgramLaunch>),
    Url(Box<HttpServer>),
}

/// How a server is.
#[derive(Clone)]
pub enum ServerState {
    /// It is started by the first call: what it offers is known from another agent's.
    Waiting,
    Starting,
    Ready(Arc<Peer>),
    Down {
        error: Error,
        again_at_ms: u64,
    },
}

pub struct McpServer {
    pub parts: McpServerParts,
    pub log: Log,
    state: watch::Sender<ServerState>,
    wanted: Notify,
    begun: AtomicBool,
}

/// What the task of a server needs beside the server.
struct Supervised {
    place: Arc<ServicePlace>,
    /// Held by the versions of the service: the server ends with the last of them.
    guard: Weak<DropGuard>,
    stop: CancellationToken,
}

impl McpServer {
    pub fn new(parts: McpServerParts) -> Arc<McpServer> {
        let log = Log::new(LOG, parts.clock.clone());
        let (wanted, begun) = (Notify::new(), AtomicBool::new(false));
        Arc::new(McpServer { parts, log, state: watch::Sender::new(ServerState::Starting), wanted, begun })
    }

    pub fn state(&self) -> ServerState {
        self.state.borrow().clone()
    }

    /// Starts the task of the server, at most once. It ends when `guard` is dropped.
    pub fn begin(self: &Arc<Self>, place: ServicePlace, guard: &Arc<DropGuard>, stop: CancellationToken) {
        if self.begun.swap(true, Ordering::SeqCst) {
            return;
        }
        let (server, guard) = (self.clone(), Arc::downgrade(guard));
        let supervised = Supervised { place: Arc::new(place), guard, stop };
        let tasks = self.parts.servers.tasks.clone();
        tasks.spawn_on(async move { server.supervise(supervised).await }, &self.parts.runtime);
    }

    /// The server, when it is ready to be asked; starts it if it waits to be started.
    pub async fn ready(&self) -> Result<Arc<Peer>> {
        let mut state = self.state.subscribe();
        self.wanted.notify_one();
        loop {
            match &*state.borrow_and_update() {
                ServerState::Ready(peer) => return Ok(peer.clone()),
                ServerState::Down { error, .. } => {
                    let name = &self.parts.name;
                    return Err(Error::unavailable(format!("the MCP server {name} does not run: {}", error.message)));
                }
                ServerState::Waiting | ServerState::Starting => (),
            }
            // The sender lives as long as this.
            _ = state.changed().await;
        }
    }

    async fn supervise(self: Arc<Self>, supervised: Supervised) {
        let stop = supervised.stop.clone();
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.parts.servers.may_start() => (),
        }
        let known = self.parts.servers.known(&self.parts.key);
        // Of several servers of one description, the first is asked and the others wait for its answer.
        let mut asking = tokio::select! {
            () = stop.cancelled() => return,
            known = known.lock_owned() => Some(known),
        };
        if let Some(catalogue) = asking.as_ref().and_then(|known| known.as_ref()).cloned() {
            asking = None;
            self.state.send_replace(ServerState::Waiting);
            if !self.publish(&supervised, Some(catalogue)).await {
                return;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wanted.notified() => (),
            }
        }
        let (mut failures, mut shown) = (0, None);
        loop {
            self.state.send_replace(ServerState::Starting);
            let began = self.parts.clock.now_ms();
            let (error, answered) = self.session(&supervised, asking.take()).await;
            if stop.is_cancelled() {
                let error = Error::unavailable("the service was removed");
                self.state.send_replace(ServerState::Down { error, again_at_ms: 0 });
                return;
            }
            let now = self.parts.clock.now_ms();
            failures = if now.saturating_sub(began) >= STEADY_MS { 0 } else { failures };
            let pause = pause(failures);
            failures += 1;
            self.log.line(&format!("{}; it is started again in {} s", error.message, pause.as_secs()));
            let again_at_ms = now + pause.as_millis() as u64;
            self.state.send_replace(ServerState::Down { error: error.clone(), again_at_ms });
            // A server that has answered keeps its directory.
            if !answered && shown.as_ref() != Some(&error) && !self.publish(&supervised, None).await {
                return;
            }
            shown = if answered { None } else { Some(error) };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => (),
            }
        }
    }

    /// Runs the server until it ends; returns why it did, and whether it had answered.
    async fn session(
        self: &Arc<Self>,
        supervised: &Supervised,
        asking: Option<OwnedMutexGuard<Option<Arc<Catalogue>>>>,
    ) -> (Error, bool) {
        let removed = || Error::unavailable("the service was removed");
        let mut answered = false;
        let (peer, out) = Peer::new();
        let error = match &self.parts.source {
            ServerSource::Program(launch) => {
                let started = stdio::start(launch, &self.parts.agent, &self.log);
                let process = tokio::select! {
                    () = supervised.stop.cancelled() => return (removed(), false),
                    process = started => process,
                };
                let mut process = match process {
                    Ok(process) => process,
                    Err(error) => return (error, false),
                };
                let error = tokio::select! {
                    () = supervised.stop.cancelled() => removed(),
                    error = process.drive(&peer, out, &self.log) => error,
                    error = self.talk(&peer, supervised, asking, &mut answered) => error,
                };
                peer.close(error.clone());
                process.end().await;
                error
            }
            ServerSource::Url(server) => tokio::select! {
                () = supervised.stop.cancelled() => removed(),
                error = server.drive(&peer, out, &self.log) => error,
                error = self.talk(&peer, supervised, asking, &mut answered) => error,
            },
        };
        peer.close(error.clone());
        (error, answered)
    }

    /// Asks the server what it offers, shows it, and asks again when the server says that it has changed.
    async fn talk(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        supervised: &Supervised,
        asking: Option<OwnedMutexGuard<Option<Arc<Catalogue>>>>,
        answered: &mut bool,
    ) -> Error {
        let late = || {
            let ms = self.parts.start.as_millis();
            Error::unavailable(format!("the server did not answer within {ms} ms of its start"))
        };
        let learnt = tokio::time::timeout(self.parts.start, async {
            let identity = handshake(peer).await?;
            Ok::<_, Error>((list(peer, &identity).await?, identity))
        });
        let (lists, identity) = match learnt.await.unwrap_or_else(|_| Err(late())) {
            Ok(learnt) => learnt,
            Err(error) => return error,
        };
        let mut catalogue = Arc::new(Catalogue::of(identity.clone(), lists));
        if let Some(mut known) = asking {
            *known = Some(catalogue.clone());
        }
        if !self.publish(supervised, Some(catalogue.clone())).await {
            return Error::unavailable("the service was changed");
        }
        *answered = true;
        self.state.send_replace(ServerState::Ready(peer.clone()));
        self.log.line(&format!("the server answered: {} tools", catalogue.tools.len()));
        let listening = listen(peer);
        tokio::pin!(listening);
        loop {
            tokio::select! {
                () = peer.lists_changed.notified() => (),
                () = &mut listening => (),
            }
            tokio::time::sleep(TOGETHER).await;
            let lists = tokio::time::timeout(self.parts.start, list(peer, &identity)).await;
            let lists = match lists
                .unwrap_or_else(|_| Err(Error::unavailable("the server does not list its tools any more")))
            {
                Ok(lists) => lists,
                Err(error) => return error,
            };
            let now = Catalogue::of(identity.clone(), lists);
            if now == *catalogue {
                continue;
            }
            catalogue = Arc::new(now);
            self.log.line(&format!("the server changed what it offers: {} tools", catalogue.tools.len()));
            if !self.publish(supervised, Some(catalogue.clone())).await {
                return Error::unavailable("the service was changed");
            }
        }
    }

    /// Puts the service into the tree as it is now. Returns false if its place is no longer its own.
    async fn publish(self: &Arc<Self>, supervised: &Supervised, catalogue: Option<Arc<Catalogue>>) -> bool {
        let Some(guard) = supervised.guard.upgrade() else { return false };
        let (server, place, stop) = (self.clone(), supervised.place.clone(), supervised.stop.clone());
        // A thousand schemas take a while.
        let put = blocking(move || {
            let service = McpService::version(&server, catalogue, guard, stop)?;
            Ok(place.renew(Arc::new(service)))
        });
        put.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "an MCP server cannot be shown");
            self.log.line(&error.message);
            true
        })
    }
}

/// The pause after so many failures in a row.
fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE)
}

/// The error of a request in words for people.
pub fn in_words(failure: RequestFailure) -> Error {
    match failure {
        RequestFailure::Unanswered(error) => error,
        RequestFailure::Refused(RpcError { code: -32602, message }) => Error::invalid(message),
        RequestFailure::Refused(RpcError { message, .. }) => Error::failed(message),
    }
}

/// Greets the server, in the old way and, if it knows none, in the new one.
async fn handshake(peer: &Peer) -> Result<ServerIdentity> {
    let version = env!("CARGO_PKG_VERSION");
    match peer.request("initialize", message::initialize(version), None).await {
        Ok(result) => {
            peer.notify("notifications/initialized", Value::Null);
            Ok(ServerIdentity::of(&result))
        }
        Err(RequestFailure::Refused(_)) => {
            peer.set_meta(message::discovered_meta(DISCOVERED, version));
            let result = peer.request("server/discover", json!({}), None).await.map_err(in_words)?;
            Ok(ServerIdentity::of(&result))
        }
        Err(failure) => Err(in_words(failure)),
    }
}

/// Asks for notices of changes, where a server sends none unasked. Never ends.
async fn listen(peer: &Peer) {
    if peer.has_meta() {
        let wanted = json!({ "notifications": { "toolsListChanged": true, "resourcesListChanged": true } });
        // A server that refuses tells of no changes.
        _ = peer.request("subscriptions/listen", wanted, None).await;
    }
    std::future::pending::<()>().await;
}

/// The lists of a server.
async fn list(peer: &Peer, identity: &ServerIdentity) -> Result<ServerLists> {
    let mut lists = ServerLists::default();
    if identity.tools {
        lists.tools = entries(peer, "tools/list", "tools", MOST_TOOLS).await?;
    }
    if identity.resources {
        // Servers may offer resources and know no templates.
        lists.resources =
            entries(peer, "resources/list", "resources", MOST_RESOURCES).await.or_else(refused_is_none)?;
        let templates = entries(peer, "resources/templates/list", "resourceTemplates", MOST_RESOURCES).await;
        lists.templates = templates.or_else(refused_is_none)?;
    }
    Ok(lists)
}

fn refused_is_none(error: Error) -> Result<Vec<Value>> {
    if error.code == acheron_base::Code::Unavailable { Err(error) } else { Ok(Vec::new()) }
}

/// All pages of one list, until there are more entries than are shown.
async fn entries(peer: &Peer, method: &str, key: &str, most: usize) -> Result<Vec<Value>> {
    let (mut all, mut params) = (Vec::new(), json!({}));
    for _ in 0..PAGES {
        let mut page = peer.request(method, params, None).await.map_err(in_words)?;
        if let Some(Value::Array(entries)) = page.get_mut(key).map(Value::take) {
            all.extend(entries.into_iter().take(most + 1));
        }
        match page.get("nextCursor").filter(|cursor| cursor.is_string() && all.len() <= most) {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_and_has_an_end() {
        let seconds: Vec<u64> = (0..9).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }
}
