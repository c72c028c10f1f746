//! The page: `/`, and its files at `/web/<file>`, embedded in the program.
//!
//! The page is a client of `/fs` with the rights of whoever has logged in, and has no way to the tree of its own. A browser logs in
//! with the URL that `acheron open` prints: its code is good once, and becomes a cookie that no script can read. Without a token
//! every path here is a 401, and never a redirect.

mod files;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};

use super::listener::guard::empty;
use super::listener::session::SessionCookie;
use super::listener::{HttpDoor, problem, respond};
use super::{DoorCaller, DoorContext};
use acheron_base::{Error, Result};
use files::EmbeddedFile;

pub use files::PAGE;

pub const DOOR: HttpDoor =
    HttpDoor { flag: "web", prefix: "/web", routes, shape: problem::shape, open: &["/", "/login"] };

/// Scripts, styles and requests of the page come from here and go nowhere else; nothing is made of strings.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// What a browser without a session sees.
const STRANGER: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
<title>Acheron</title><main><h1>Acheron</h1><p>This page needs a login that is valid.</p>\
<p>Run <code>acheron open</code> on the machine of the host: it prints an address that is good once.</p></main></html>";

/// What a browser sees that has logged in, for a moment. It goes on by itself: a redirect would be followed without the cookie
/// if the login was a link of another site.
const WELCOME: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
<meta http-equiv=\"refresh\" content=\"0;url=/\"><meta name=\"color-scheme\" content=\"light dark\">\
<link rel=\"icon\" href=\"/web/icon.svg\" type=\"image/svg+xml\"><title>Acheron</title><main><p><a href=\"/\">Acheron</a></p></main></html>";

fn routes(context: DoorContext) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/web/{*file}", get(file))
        .route("/login", get(log_in))
        .route("/logout", post(log_out))
        .with_state(context)
}

fn html(status: u16, text: &'static str) -> Response {
    respond(status, &[("content-type", "text/html; charset=utf-8"), ("content-security-policy", POLICY)], text)
}

/// Refuses a browser that is not known.
fn stranger(context: &DoorContext, request: &Request, why: &str) -> Response {
    context.refusals.refused("unknown client", request.method().as_str(), request.uri().path(), why);
    let mut response = html(401, STRANGER);
    response.headers_mut().insert("www-authenticate", axum::http::HeaderValue::from_static("Bearer"));
    response
}

async fn page(State(context): State<DoorContext>, caller: Option<Extension<DoorCaller>>, request: Request) -> Response {
    match caller {
        Some(_) => served("index.html", request.headers()),
        None => stranger(&context, &request, "the page needs a login"),
    }
}

async fn file(request: Request) -> Response {
    served(request.uri().path().strip_prefix("/web/").unwrap_or_default(), request.headers())
}

/// A file of the page; a browser that has it is told so.
fn served(name: &str, headers: &HeaderMap) -> Response {
    let Some(EmbeddedFile { kind, tag, bytes }) = files::find(name) else {
        return problem::problem(&Error::not_found(format!("the page has no file {}", acheron_base::quoted(name))));
    };
    let known = headers.get("if-none-match").and_then(|value| value.to_str().ok()) == Some(tag.as_str());
    // The names of the files do not change with their contents: a browser asks each time whether it has the right ones.
    let named = [
        ("content-type", kind),
        ("etag", tag.as_str()),
        ("cache-control", "private, no-cache"),
        ("content-security-policy", POLICY),
        ("cross-origin-opener-policy", "same-origin"),
    ];
    match known {
        true => respond(304, &named, axum::body::Body::empty()),
        false => respond(200, &named, bytes),
    }
}

async fn log_in(State(context): State<DoorContext>, cookie: Extension<SessionCookie>, request: Request) -> Response {
    // What a browser fetches ahead must not use the code up.
    let ahead = request.headers().contains_key("sec-purpose") || request.method() == "HEAD";
    let code = request.uri().query().and_then(|query| query.strip_prefix("code=")).filter(|_| !ahead);
    let Some(code) = code else { return stranger(&context, &request, "no code of a login") };
    match context.tokens.log_in(code).await {
        Ok(Some(session)) => {
            let mut response = html(200, WELCOME);
            if let Ok(value) = cookie.set(&session.word, session.seconds).parse() {
                response.headers_mut().insert("set-cookie", value);
            }
            response
        }
        Ok(None) => stranger(&context, &request, "the code of a login was used, is over, or was never one"),
        Err(error) => problem::problem(&error),
    }
}

async fn log_out(State(context): State<DoorContext>, cookie: Extension<SessionCookie>, request: Request) -> Response {
    let ended: Result<()> = match cookie.word(request.headers().get("cookie").and_then(|value| value.to_str().ok())) {
        Some(word) => context.tokens.log_out(word).await,
        None => Ok(()),
    };
    let mut response = ended.map_or_else(|error| problem::problem(&error), |()| empty(204));
    if let Ok(value) = cookie.set("", 0).parse() {
        response.headers_mut().insert("set-cookie", value);
    }
    response
}
