//! Where a request wants to go: a name or an address, and a port.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;

use acheron_base::{Error, Result, quoted};

/// A name of the domain name system, in lower case and without the dot at its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HostName {
    type Err = Error;

    /// A name whose last part is a number is refused: resolvers take `127.1` and `0x7f000001` for addresses.
    fn from_str(text: &str) -> Result<HostName> {
        let refused = |why: &str| Err(Error::invalid(format!("{} is no name of a host: {why}", quoted(text))));
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() || name.len() > 253 {
            return refused("it has 1 to 253 characters");
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !name.chars().all(|c| plain(c) || c == '.') {
            return refused("letters, digits, `-`, `_` and `.` are its characters; write other scripts as xn--");
        }
        if name.split('.').any(|label| label.is_empty() || label.len() > 63) {
            return refused("each part between dots has 1 to 63 characters");
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
        if last.chars().all(|c| c.is_ascii_digit()) || last.strip_prefix("0x").is_some_and(digits) {
            return refused("it ends in a number, as an address does");
        }
        Ok(HostName(name))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetHost {
    Name(HostName),
    Address(IpAddr),
}

impl FromStr for TargetHost {
    type Err = Error;

    fn from_str(text: &str) -> Result<TargetHost> {
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address = inner.parse::<Ipv6Addr>();
            let address = address.map_err(|_| Error::invalid(format!("{} is no address in brackets", quoted(text))))?;
            return Ok(TargetHost::Address(address.into()));
        }
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(TargetHost::Address(address)),
            Err(_) => Ok(TargetHost::Name(text.parse()?)),
        }
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetHost::Name(name) => name.fmt(f),
            TargetHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            TargetHost::Address(address) => address.fmt(f),
        }
    }
}

/// A host and a port, as `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    pub host: TargetHost,
    pub port: u16,
}

impl Destination {
    /// Reads `host`, `host:port` or `[address]:port`.
    pub fn parse(text: &str, usual_port: Option<u16>) -> Result<Destination> {
        let (host, port) = split_port(text)?;
        let port = port.or(usual_port).ok_or_else(|| Error::invalid(format!("{} names no port", quoted(text))))?;
        Ok(Destination { host: host.parse()?, port })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The part before the port, and the port. What stands in brackets has colons of its own, and so has a bare address.
pub(crate) fn split_port(text: &str) -> Result<(&str, Option<u16>)> {
    let bare = text.matches(':').count() > 1 && !text.contains(']');
    let end = text.rfind(']').map_or(0, |at| at + 1);
    match text[end..].rfind(':').filter(|_| !bare) {
        None => Ok((text, None)),
        Some(at) => {
            let (host, digits) = (&text[..end + at], &text[end + at + 1..]);
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            match digits.parse::<u16>() {
                Ok(port @ 1..) if plain => Ok((host, Some(port))),
                _ => Err(Error::invalid(format!("{}: a port is a number from 1 to 65535", quoted(text)))),
            }
        }
    }
}

#[cfg(test)]
mod tests;
