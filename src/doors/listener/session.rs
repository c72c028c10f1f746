//! Browsers: the cookie by which one is known, what it says of the page that asks, and the headers with which every answer is
//! harmless in one. Pure.

use axum::http::HeaderValue;
use axum::response::Response;

/// For every answer that says nothing else: nothing of it runs, loads or is framed, whatever its content is.
const NOTHING: &str = "default-src 'none'; sandbox; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The cookie of a session. Browsers do not tell ports apart, so that its name does.
#[derive(Clone, Debug)]
pub struct SessionCookie {
    name: String,
    secure: bool,
}

impl SessionCookie {
    pub fn new(port: u16, secure: bool) -> SessionCookie {
        SessionCookie { name: format!("acheron-{port}"), secure }
    }

    /// The word of the session in the header `Cookie`. Two of them are none.
    pub fn word<'h>(&self, header: Option<&'h str>) -> Option<&'h str> {
        let pairs = header?.split(';').filter_map(|pair| pair.trim().split_once('='));
        let mut words = pairs.filter(|(name, _)| *name == self.name).map(|(_, word)| word);
        match (words.next(), words.next()) {
            (Some(word), None) => Some(word),
            _ => None,
        }
    }

    /// The header `Set-Cookie` that begins a session of so many seconds; 0 ends it.
    pub fn set(&self, word: &str, seconds: u64) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{}={word}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}", self.name)
    }
}

/// A request that shows a cookie.
pub struct BrowserRequest<'h> {
    /// It may change something.
    pub changes: bool,
    /// The header `Sec-Fetch-Site`, and `Origin`, which was found to be ours if it is there.
    pub site: Option<&'h str>,
    pub origin: Option<&'h str>,
}

/// The reason why a request with a cookie is refused, if it is. `SameSite` does not tell ports of this machine apart: a page of
/// another program here could send it.
pub fn foreign(request: &BrowserRequest<'_>) -> Option<&'static str> {
    match (request.site, request.changes) {
        (Some("same-origin"), _) | (Some("none"), false) => None,
        (None, false) => None,
        (None, true) if request.origin.is_some() => None,
        _ => Some("only the page of this listener may ask with its cookie"),
    }
}

/// Adds what keeps browsers from taking an answer for something else than it is.
pub fn harmless(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("x-frame-options", HeaderValue::from_static("DENY"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry("content-security-policy").or_insert(HeaderValue::from_static(NOTHING));
    headers.entry("cache-control").or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
