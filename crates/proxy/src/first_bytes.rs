//! Whether what a client sends first through a tunnel fits the host that it asked for.

use super::HTTPS_PORT;
use super::client_hello::ClientHello;
use super::destination::{Destination, TargetHost};
use super::rules::HostRefusal;

/// What is decided by the first bytes of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstBytes {
    /// More bytes decide.
    Pending,
    Pass,
    Refused(HostRefusal),
}

impl FirstBytes {
    /// TLS must name the host that was asked for, at whatever port; at the port of TLS nothing else is spoken.
    pub fn check(to: &Destination, bytes: &[u8]) -> FirstBytes {
        let refused = |why: String| FirstBytes::Refused(HostRefusal { why, allow: None });
        match (ClientHello::read(bytes), &to.host) {
            (ClientHello::Incomplete, _) if bytes.len() > ClientHello::MAX => refused(format!("{to}: TLS is broken")),
            (ClientHello::Incomplete, _) => FirstBytes::Pending,
            (ClientHello::NotTls, _) if to.port == HTTPS_PORT => {
                refused(format!("{to} was asked for and not TLS sent"))
            }
            (ClientHello::NotTls, _) => FirstBytes::Pass,
            (ClientHello::Broken, _) => refused(format!("{to}: TLS is broken")),
            // The rule names the address, and whatever answers there.
            (ClientHello::Unnamed | ClientHello::Named(_), TargetHost::Address(_)) => FirstBytes::Pass,
            (ClientHello::Unnamed, TargetHost::Name(_)) => {
                refused(format!("{to} was asked for and TLS names no server"))
            }
            (ClientHello::Named(said), TargetHost::Name(name)) if said == *name => FirstBytes::Pass,
            (ClientHello::Named(said), _) => refused(format!("{to} was asked for and TLS names {said}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_hello::tests::hello;

    fn refusal(to: &str, bytes: &[u8]) -> String {
        match FirstBytes::check(&Destination::parse(to, None).unwrap(), bytes) {
            FirstBytes::Refused(refusal) => refusal.why,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn tls_names_the_host_that_was_asked_for() {
        let (own, other, none) = (hello(Some("a.example")), hello(Some("b.example")), hello(None));
        assert_eq!(refusal("a.example:443", &own), "Pass");
        assert_eq!(refusal("a.example:443", &other), "a.example:443 was asked for and TLS names b.example");
        assert_eq!(refusal("a.example:8443", &other), "a.example:8443 was asked for and TLS names b.example");
        assert_eq!(refusal("a.example:443", &none), "a.example:443 was asked for and TLS names no server");
        assert_eq!(refusal("10.0.0.1:443", &other), "Pass");
        assert_eq!(refusal("a.example:443", &own[..20]), "Pending");
        assert_eq!(refusal("a.example:443", b"GET / HTTP/1.1"), "a.example:443 was asked for and not TLS sent");
        assert_eq!(refusal("a.example:22", b"SSH-2.0-x"), "Pass");
    }
}
