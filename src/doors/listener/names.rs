//! The names under which a listener may be asked, and the pages that may ask it. A page of another site that has its name lead
//! here (DNS rebinding) is refused by the name, a script of another page by its origin. Pure.

use std::net::SocketAddr;

/// The names of a listener.
#[derive(Clone, Debug)]
pub struct AllowedNames {
    scheme: &'static str,
    names: Vec<String>,
}

impl AllowedNames {
    pub fn new(scheme: &'static str, address: SocketAddr, more: &[String]) -> AllowedNames {
        let mut names: Vec<String> = more.iter().map(|name| name.to_ascii_lowercase()).collect();
        if !address.ip().is_unspecified() {
            names.push(bare(&address.to_string()).to_owned());
        }
        if address.ip().is_loopback() || address.ip().is_unspecified() {
            names.extend(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned));
        }
        AllowedNames { scheme, names }
    }

    /// The reason why a request with these headers is refused, if it is.
    pub fn refusal(&self, host: Option<&str>, origin: Option<&str>) -> Option<String> {
        let Some(host) = host.map(str::to_ascii_lowercase) else {
            return Some("the request names no host".to_owned());
        };
        if !self.names.iter().any(|name| name == bare(&host)) {
            let quoted = acheron_base::quoted(&host);
            return Some(format!("this listener is not called {quoted}; `acheron serve --name` adds a name"));
        }
        let origin = origin?.to_ascii_lowercase();
        match origin == format!("{}://{host}", self.scheme) {
            true => None,
            false => Some(format!("a page of {} may not ask this listener", acheron_base::quoted(&origin))),
        }
    }
}

/// A host without its port.
fn bare(host: &str) -> &str {
    match host.rfind(']') {
        Some(end) => &host[..=end],
        None => host.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_and_another_page_are_refused() {
        let local = AllowedNames::new("http", "127.0.0.1:80".parse().unwrap(), &["Box.Lan".to_owned()]);
        let public = AllowedNames::new("https", "192.0.2.1:443".parse().unwrap(), &[]);
        for (names, host, origin, allowed) in [
            (&local, Some("127.0.0.1:80"), None, true),
            (&local, Some("LOCALHOST:80"), None, true),
            (&local, Some("[::1]:80"), None, true),
            (&local, Some("box.lan"), None, true),
            (&local, Some("evil.example:80"), None, false),
            (&local, Some("localhost.evil.example"), None, false),
            (&local, Some("localhost@evil.example"), None, false),
            (&local, Some(""), None, false),
            (&local, None, None, false),
            (&local, Some("localhost:80"), Some("http://localhost:80"), true),
            (&local, Some("localhost:80"), Some("http://localhost:81"), false),
            (&local, Some("localhost:80"), Some("https://localhost:80"), false),
            (&local, Some("localhost:80"), Some("http://evil.example"), false),
            (&local, Some("localhost:80"), Some("null"), false),
            (&public, Some("192.0.2.1"), Some("https://192.0.2.1"), true),
            (&public, Some("localhost"), None, false),
        ] {
            assert_eq!(names.refusal(host, origin).is_none(), allowed, "{host:?} {origin:?}");
        }
    }
}
