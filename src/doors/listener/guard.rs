//! What every request passes before it reaches a door: its host and origin, its token, its rate. What it is refused here is
//! written down. It ends when the rights of its caller end, and when the listener is closed.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::{self, Next};
use axum::response::Response;
use futures_util::future::Shared;
use futures_util::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::names::AllowedNames;
use super::rate::RequestRate;
use super::session::{self, SessionCookie};
use super::{HttpDoor, problem, respond};
use crate::doors::{DoorCaller, DoorContext};
use acheron_base::Error;
use acheron_http::router::RequestConnection;

/// The requests of one caller: per second, at once, and under way at the same time.
const PER_SECOND: u64 = 200;
const BURST: u64 = 1000;
const UNDER_WAY: usize = 512;
/// The requests without a valid token, of all that send them together.
const UNKNOWN_PER_SECOND: u64 = 50;
const UNKNOWN_BURST: u64 = 200;

/// Checks requests.
#[derive(Clone)]
pub struct Guard(Arc<GuardState>);

struct GuardState {
    context: DoorContext,
    names: AllowedNames,
    cookie: SessionCookie,
    doors: Vec<HttpDoor>,
    known: RequestRate,
    unknown: RequestRate,
    under_way: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A refusal: the status, why, and when to come again.
struct Refused(u16, Error, Option<u64>);

impl Guard {
    pub fn new(context: DoorContext, names: AllowedNames, cookie: SessionCookie, doors: Vec<HttpDoor>) -> Guard {
        let (known, unknown) =
            (RequestRate::new(PER_SECOND, BURST), RequestRate::new(UNKNOWN_PER_SECOND, UNKNOWN_BURST));
        Guard(Arc::new(GuardState { context, names, cookie, doors, known, unknown, under_way: Mutex::default() }))
    }

    /// The routes of all doors behind this guard.
    pub fn router(&self, context: DoorContext) -> Router {
        let mut router = Router::new();
        for door in &self.0.doors {
            router = router.merge((door.routes)(context.clone()));
        }
        let guard = self.clone();
        router
            .fallback(|request: Request| async move {
                problem::problem(&Error::not_found(format!("nothing is served at {}", quoted_path(&request))))
            })
            .layer(middleware::from_fn_with_state(guard, pass))
    }

    /// The token that a request shows: in its header, or in the cookie of a browser whose page is ours.
    fn token<'r>(&self, request: &'r Parts) -> Result<Option<&'r str>, Refused> {
        let headers = &request.headers;
        if headers.contains_key("authorization") {
            return Ok(bearer(headers));
        }
        let Some(word) = self.0.cookie.word(text(headers, "cookie")) else { return Ok(None) };
        let asked = session::BrowserRequest {
            changes: !matches!(request.method.as_str(), "GET" | "HEAD"),
            site: text(headers, "sec-fetch-site"),
            origin: text(headers, "origin"),
        };
        match session::foreign(&asked) {
            Some(why) => Err(self.refused("unknown client", request, Refused(403, Error::forbidden(why), None))),
            None => Ok(Some(word)),
        }
    }

    /// Lets a request pass, with its caller; without one if its path is open to all.
    async fn admitted(&self, request: &Parts) -> Result<Option<(DoorCaller, OwnedSemaphorePermit)>, Refused> {
        let (state, headers) = (&*self.0, &request.headers);
        if let Some(why) = state.names.refusal(text(headers, "host"), text(headers, "origin")) {
            return Err(self.refused("unknown client", request, Refused(403, Error::forbidden(why), None)));
        }
        let now = state.context.ids.clock().now_ms();
        let caller = match self.token(request)? {
            Some(word) => state.context.tokens.caller(word).await.map_err(|error| Refused(503, error, Some(1)))?,
            None => None,
        };
        let Some(caller) = caller else {
            if !state.unknown.take("", now) {
                return Err(Refused(429, Error::busy("too many requests without a valid token"), Some(1)));
            }
            if state.doors.iter().any(|door| door.open.contains(&request.uri.path())) {
                return Ok(None);
            }
            let why =
                "this needs a token that is valid: `Authorization: Bearer ach_…`; `acheron token create` makes one";
            return Err(self.refused("unknown client", request, Refused(401, Error::forbidden(why), None)));
        };
        if let Some(connection) = request.extensions.get::<RequestConnection>() {
            connection.set_known();
        }
        let name = caller.principal.to_string();
        if !state.known.take(&name, now) {
            let why = format!("more than {PER_SECOND} requests per second");
            return Err(self.refused(&name, request, Refused(429, Error::busy(why), Some(1))));
        }
        let slots =
            state.under_way.lock().entry(name.clone()).or_insert_with(|| Arc::new(Semaphore::new(UNDER_WAY))).clone();
        match slots.try_acquire_owned() {
            Ok(slot) => Ok(Some((caller, slot))),
            Err(_) => {
                let why = format!("{UNDER_WAY} requests of {name} are under way");
                Err(self.refused(&name, request, Refused(429, Error::busy(why), Some(1))))
            }
        }
    }

    /// Writes the refusal down.
    fn refused(&self, who: &str, request: &Parts, refused: Refused) -> Refused {
        let path: String = request.uri.path().chars().take(200).collect();
        self.0.context.refusals.refused(who, request.method.as_str(), &path, &refused.1.message);
        refused
    }

    /// A refusal as the clients of that path read it.
    fn answer(&self, path: &str, refused: Refused) -> Response {
        session::harmless(self.shaped(path, refused))
    }

    fn shaped(&self, path: &str, Refused(status, error, again): Refused) -> Response {
        let under = |door: &&HttpDoor| {
            path.strip_prefix(door.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let shape = self.0.doors.iter().find(under).map_or(problem::shape as _, |door| door.shape);
        shape(status, &error, again)
    }
}

async fn pass(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let (mut head, body) = request.into_parts();
    let admitted = match guard.admitted(&head).await {
        Ok(admitted) => admitted,
        Err(refused) => return guard.answer(&path, refused),
    };
    head.extensions.insert(guard.0.cookie.clone());
    let Some((caller, slot)) = admitted else {
        return session::harmless(next.run(Request::from_parts(head, body)).await);
    };
    let (over, down) = (over(&caller), guard.0.context.down.clone());
    head.extensions.insert(caller);
    let response = tokio::select! {
        response = next.run(Request::from_parts(head, body)) => response,
        () = over.clone() => {
            return guard.answer(&path, Refused(401, Error::forbidden("the token was revoked"), None));
        }
        () = down.cancelled() => {
            return guard.answer(&path, Refused(503, Error::unavailable("the listener was closed"), None));
        }
    };
    session::harmless(until_ended(response, over, down, slot))
}

/// The end of the rights of a caller.
fn over(caller: &DoorCaller) -> Shared<Pin<Box<dyn Future<Output = ()> + Send>>> {
    let (ended, lasts) = (caller.ended.clone(), caller.lasts);
    let over: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
        match lasts {
            Some(lasts) => _ = tokio::time::timeout(lasts, ended.cancelled_owned()).await,
            None => ended.cancelled_owned().await,
        }
    });
    over.shared()
}

/// A body that is streamed ends with the rights of its caller, and with the listener.
fn until_ended(
    response: Response,
    over: impl Future<Output = ()> + Send + 'static,
    down: CancellationToken,
    slot: OwnedSemaphorePermit,
) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let (head, body) = response.into_parts();
    let over = async move {
        tokio::select! {
            () = over => (),
            () = down.cancelled_owned() => (),
        }
    };
    let pieces = body.into_data_stream().take_until(Box::pin(over)).map(move |piece| {
        let _under_way = &slot;
        piece
    });
    Response::from_parts(head, Body::from_stream(pieces))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    // Two of them, or one that is no text, are none.
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => Some(value.to_str().unwrap_or("?")),
        (Some(_), Some(_)) => Some("?"),
        (None, _) => None,
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, word) = text(headers, "authorization")?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| word.trim())
}

fn quoted_path(request: &Request) -> String {
    acheron_base::quoted(request.uri().path())
}

/// An answer without a body.
pub fn empty(status: u16) -> Response {
    respond(status, &[], Body::empty())
}
