//! The listener that all doors over HTTP share: TLS, names, tokens, rates, and the end of what is under way.
//!
//! It knows no door: `host` hands it those that are to be served ([`HttpDoor`]), each with its routes. A request reaches a route
//! only with a [`DoorCaller`](super::DoorCaller) in its extensions.

pub mod guard;
pub mod names;
pub mod problem;
mod rate;
pub mod session;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::DoorContext;
use acheron_base::{Error, Result};
use acheron_http::router::{RouterLimits, RouterListener, serve_router, tls_from_files};
use guard::Guard;
use names::AllowedNames;
use problem::RefusalShape;
use session::SessionCookie;

/// How long the body of a request may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A door over HTTP.
#[derive(Clone, Copy)]
pub struct HttpDoor {
    /// The word by which it is chosen: `acheron serve --<flag>`.
    pub flag: &'static str,
    /// Where its paths begin.
    pub prefix: &'static str,
    pub routes: fn(DoorContext) -> Router,
    /// How its clients read refusals.
    pub shape: RefusalShape,
    /// Paths that it answers without a token too: there is no caller then, and it must tell nothing.
    pub open: &'static [&'static str],
}

/// Where and how to listen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenOptions {
    /// `ADDRESS:PORT`.
    pub listen: String,
    /// Files with the certificates and the key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Names of this machine that requests may name beside its address.
    #[serde(default)]
    pub names: Vec<String>,
    /// Other machines may connect.
    #[serde(default)]
    pub public: bool,
    /// The doors that are served; all if none is named.
    #[serde(default)]
    pub doors: Vec<String>,
}

/// A listener that is open. Dropping it ends everything at once.
pub struct OpenListener {
    pub url: String,
    /// The flags of the doors that are served.
    pub doors: Vec<&'static str>,
    listener: RouterListener,
    stop: CancellationToken,
}

impl OpenListener {
    /// Ends waits and streams, and then the listener.
    pub async fn close(self) {
        self.stop.cancel();
        self.listener.close().await;
    }
}

/// Opens a listener for those of `doors` that the options name. Must be called within a runtime.
pub fn open(context: DoorContext, doors: &[HttpDoor], options: &ListenOptions) -> Result<OpenListener> {
    let doors = chosen(doors, &options.doors)?;
    let address = address(options)?;
    let tls = options.tls.as_ref().map(|(certificates, key)| tls_from_files(certificates, key)).transpose()?;
    let listener =
        TcpListener::bind(address).map_err(|err| Error::from(err).about(format!("--listen {}", options.listen)))?;
    let address = listener.local_addr()?;
    let stop = context.down.child_token();
    let context = DoorContext { down: stop.clone(), ..context };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let names = AllowedNames::new(scheme, address, &options.names);
    let cookie = SessionCookie::new(address.port(), tls.is_some());
    let guard = Guard::new(context.clone(), names, cookie, doors.clone());
    let listener = serve_router(listener, tls, guard.router(context), RouterLimits::default())?;
    let doors = doors.iter().map(|door| door.flag).collect();
    Ok(OpenListener { url: format!("{scheme}://{address}"), doors, listener, stop })
}

fn chosen(doors: &[HttpDoor], named: &[String]) -> Result<Vec<HttpDoor>> {
    if let Some(unknown) = named.iter().find(|flag| !doors.iter().any(|door| door.flag == **flag)) {
        return Err(Error::invalid(format!("this host was built without the door `{unknown}`")));
    }
    Ok(doors.iter().filter(|door| named.is_empty() || named.iter().any(|flag| flag == door.flag)).copied().collect())
}

/// The address, if it may be listened at.
fn address(options: &ListenOptions) -> Result<SocketAddr> {
    let word = &options.listen;
    let numeric = || Error::invalid(format!("--listen {word}: an address is IP:PORT, such as 127.0.0.1:8377"));
    let address: SocketAddr = match word.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse().map_err(|_| numeric())?,
        // Not looked up: a name that leads elsewhere tomorrow must not decide who can connect.
        None => word.parse().map_err(|_| numeric())?,
    };
    match (address.ip().is_loopback(), options.tls.is_some(), options.public) {
        (true, _, _) | (false, true, true) => Ok(address),
        (false, false, _) => Err(Error::invalid(format!(
            "--listen {word}: other machines could connect, so that it needs TLS: add --tls-cert FILE, --tls-key FILE and --public"
        ))),
        (false, true, false) => {
            Err(Error::invalid(format!("--listen {word}: other machines could connect; add --public if they may")))
        }
    }
}

/// Reads the body of a request, up to `limit` bytes.
pub async fn read_body(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes> {
    let declared = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let too_large = || Error::too_large(format!("the body of a request has at most {limit} bytes"));
    if declared.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.to_string().contains("length limit") => Err(too_large()),
        Ok(Err(error)) => Err(Error::invalid(format!("the body of the request could not be read: {error}"))),
        Err(_) => Err(Error::timeout("the body of the request did not come in time")),
    }
}

/// An answer with these headers.
pub fn respond(status: u16, headers: &[(&'static str, &str)], body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    for (name, value) in headers {
        // A value that no header can have is left out.
        if let Ok(value) = axum::http::HeaderValue::from_str(value) {
            response.headers_mut().insert(*name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_loopback_address_is_listened_at_without_more() {
        let may = |listen: &str, tls: bool, public: bool| {
            let tls = tls.then(|| (PathBuf::from("c"), PathBuf::from("k")));
            address(&ListenOptions { listen: listen.to_owned(), tls, public, ..ListenOptions::default() }).is_ok()
        };
        for (listen, tls, public, expected) in [
            ("127.0.0.1:0", false, false, true),
            ("localhost:80", false, false, true),
            ("[::1]:80", false, false, true),
            ("0.0.0.0:80", false, true, false),
            ("0.0.0.0:80", true, false, false),
            ("0.0.0.0:80", true, true, true),
            ("example.org:80", true, true, false),
            ("127.0.0.1", false, false, false),
            ("127.0.0.1.evil.example:80", false, false, false),
        ] {
            assert_eq!(may(listen, tls, public), expected, "{listen} {tls} {public}");
        }
    }
}
