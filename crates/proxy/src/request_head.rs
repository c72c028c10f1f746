//! The head of a request to a proxy: `CONNECT host:port`, or a whole URL of plain HTTP.
//!
//! It is read strictly: what a server could read in another way than this proxy is refused.

use super::destination::Destination;
use super::{HTTP_PORT, forwarding};
use acheron_base::{Error, Result};

/// The size limit of a head in bytes.
pub const MAX_HEAD: usize = 64 << 10;

/// What a client asks of the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyRequest {
    /// A tunnel.
    Connect(Destination),
    /// One request of plain HTTP: the head for the server, and the size of the body that follows.
    Forward { to: Destination, head: Vec<u8>, body: u64 },
}

/// A head that is refused, and the status of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadFault {
    pub status: u16,
    pub why: String,
}

/// The lines of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    pub method: &'a str,
    pub target: &'a str,
    pub version: &'a str,
    pub headers: Vec<(&'a str, &'a str)>,
}

impl ProxyRequest {
    /// Reads the head at the beginning of the bytes, and its size; `None` if it is not whole.
    pub fn read(bytes: &[u8]) -> Result<Option<(ProxyRequest, usize)>, HeadFault> {
        let window = &bytes[..bytes.len().min(MAX_HEAD)];
        let Some(end) = window.windows(4).position(|four| four == b"\r\n\r\n") else {
            return match window.len() == MAX_HEAD {
                true => Err(fault(431, format!("the head of the request is larger than {MAX_HEAD} bytes"))),
                false => Ok(None),
            };
        };
        let head = RequestHead::parse(&bytes[..end])?;
        Ok(Some((head.request()?, end + 4)))
    }
}

impl<'a> RequestHead<'a> {
    fn parse(bytes: &'a [u8]) -> Result<RequestHead<'a>, HeadFault> {
        let bad = |why: &str| fault(400, why.to_owned());
        let text = core::str::from_utf8(bytes).map_err(|_| bad("the head of the request is not text"))?;
        if text.bytes().any(|byte| byte.is_ascii_control() && !b"\r\n\t".contains(&byte)) {
            return Err(bad("the head of the request has control characters"));
        }
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target, version) = match (words.next(), words.next(), words.next(), words.next()) {
            (Some(method), Some(target), Some(version @ ("HTTP/1.0" | "HTTP/1.1")), None) => (method, target, version),
            _ => return Err(bad("the first line is not METHOD TARGET HTTP/1.1")),
        };
        if !is_token(method) {
            return Err(bad("the method is no word"));
        }
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
            // A name with a space, and a line that goes on with the one before, are read in more than one way.
            if !is_token(name) || line.contains(['\r', '\n']) {
                return Err(bad("a header has no proper name"));
            }
            headers.push((name, value.trim_matches([' ', '\t'])));
        }
        Ok(RequestHead { method, target, version, headers })
    }

    fn request(&self) -> Result<ProxyRequest, HeadFault> {
        let about = |error: Error| fault(400, error.message);
        if self.method == "CONNECT" {
            return Ok(ProxyRequest::Connect(Destination::parse(self.target, None).map_err(about)?));
        }
        let Some((scheme, rest)) = self.target.split_once("://") else {
            let said = "this is the proxy to the network and serves no pages: it takes CONNECT and http:// URLs";
            return Err(fault(400, said.to_owned()));
        };
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(fault(400, "only http:// URLs are taken as a whole; use CONNECT for others".to_owned()));
        }
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let to = Destination::parse(authority, Some(HTTP_PORT)).map_err(about)?;
        let head = forwarding::head_for_server(self, authority, path);
        Ok(ProxyRequest::Forward { head, body: self.body()?, to })
    }

    pub fn all<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'a str> + 'b {
        let own = self.headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name));
        own.map(|(_, value)| *value)
    }

    /// The size of the body. One of unknown size could hide a second request, which nothing has checked.
    fn body(&self) -> Result<u64, HeadFault> {
        if self.all("transfer-encoding").next().is_some() {
            let said = "over plain HTTP only bodies with a content-length are passed on; use https";
            return Err(fault(411, said.to_owned()));
        }
        let mut sizes = self.all("content-length");
        match (sizes.next(), sizes.next()) {
            (None, _) => Ok(0),
            (Some(size), None) if !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()) => {
                size.parse().map_err(|_| fault(413, "the content-length is too large".to_owned()))
            }
            _ => Err(fault(400, "the content-length is not one number".to_owned())),
        }
    }
}

fn is_token(text: &str) -> bool {
    let symbols = b"!#$%&'*+-.^_`|~";
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || symbols.contains(&byte))
}

fn fault(status: u16, why: String) -> HeadFault {
    HeadFault { status, why }
}

#[cfg(test)]
mod tests;
