//! The door over HTTP (`serve --mcp`, streamable HTTP): each request has its caller, and a session belongs to who began it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::any;
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::LONGEST_LINE;
use super::handler::TreeServer;
use crate::doors::listener::{HttpDoor, problem};
use crate::doors::{DoorCaller, DoorContext};
use acheron_base::Error;

pub const DOOR: HttpDoor = HttpDoor { flag: "mcp", prefix: "/mcp", routes, shape: problem::shape, open: &[] };

/// The header of the sessions of the old world.
const SESSION: &str = "mcp-session-id";
/// The most sessions that are remembered; the clients of others begin again.
const SESSIONS: usize = 4096;

struct HttpSessions {
    service: StreamableHttpService<TreeServer, LocalSessionManager>,
    /// Who began each session.
    owners: Mutex<HashMap<String, String>>,
}

fn routes(context: DoorContext) -> Router {
    // Names of this machine and origins are checked by the listener.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_cancellation_token(context.down.child_token())
        .with_max_request_body_bytes(LONGEST_LINE);
    let server = move || Ok(TreeServer::new(context.clone(), None));
    let service = StreamableHttpService::new(server, Arc::new(LocalSessionManager::default()), config);
    let sessions = Arc::new(HttpSessions { service, owners: Mutex::default() });
    Router::new().route(DOOR.prefix, any(answer)).with_state(sessions)
}

async fn answer(
    State(sessions): State<Arc<HttpSessions>>,
    Extension(caller): Extension<DoorCaller>,
    request: Request,
) -> Response {
    let named =
        |headers: &axum::http::HeaderMap| headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let owner = caller.principal.to_string();
    if let Some(session) = named(request.headers()) {
        // Another's session is as unknown as none.
        if sessions.owners.lock().get(&session) != Some(&owner) {
            return problem::problem(&Error::not_found("there is no such session; begin another"));
        }
        if request.method() == axum::http::Method::DELETE {
            sessions.owners.lock().remove(&session);
        }
    }
    let response = sessions.service.handle(request).await;
    if let Some(session) = named(response.headers()) {
        let mut owners = sessions.owners.lock();
        if owners.len() >= SESSIONS {
            owners.clear();
        }
        owners.insert(session, owner);
    }
    response.map(Body::new)
}

/// The caller whom the listener found for a request.
pub fn caller_of(extensions: &rmcp::model::Extensions) -> Option<DoorCaller> {
    extensions.get::<Parts>()?.extensions.get::<DoorCaller>().cloned()
}
