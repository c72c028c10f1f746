//! Which hosts a program may reach: `api.github.com:443`, `*.example.org:443`, `10.0.0.0/8:5432`. What no rule names is
//! refused.
//!
//! A name is allowed by a rule that names it. The address behind it must be a public one, or be named by a rule of its own:
//! who owns a name decides where it leads, and must not decide that it leads into a private network.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use super::HTTPS_PORT;
use super::address::AddressKind;
use super::destination::{Destination, HostName, TargetHost, split_port};
use acheron_base::{Error, Result, quoted};

/// One rule. Without a port it means 443.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRule {
    pattern: HostPattern,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Name(HostName),
    /// `*.example.org`: every name below, at any depth, and not the name itself.
    Below(HostName),
    /// `*`: every name, and no address.
    AnyName,
    /// An address, or as many as have these first bits.
    Network(IpAddr, u8),
}

/// Why a host is refused, and the rule that would allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRefusal {
    pub why: String,
    pub allow: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRules(Vec<HostRule>);

/// The name of the machine itself, on which a resolver has no say (RFC 6761).
const LOCALHOST: &str = "localhost";

impl HostRules {
    pub fn new(rules: Vec<HostRule>) -> HostRules {
        HostRules(rules)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, more: impl IntoIterator<Item = HostRule>) {
        self.0.extend(more);
    }

    pub fn iter(&self) -> impl Iterator<Item = &HostRule> {
        self.0.iter()
    }

    /// Whether a program may ask for this host, before its name is resolved.
    pub fn check_host(&self, to: &Destination) -> Result<(), HostRefusal> {
        match self.0.iter().any(|rule| rule.port == to.port && rule.pattern.names(&to.host)) {
            true => Ok(()),
            false => {
                let why = format!("{to} is not in network");
                Err(HostRefusal { why, allow: Some(to.to_string()) })
            }
        }
    }

    /// Whether the host that was asked for may be reached at this address, which its name was resolved to.
    pub fn check_address(&self, to: &Destination, address: IpAddr) -> Result<(), HostRefusal> {
        let kind = AddressKind::of(address);
        if kind == AddressKind::Public || self.names_address(address, to.port) {
            return Ok(());
        }
        let local = matches!(&to.host, TargetHost::Name(name) if name.as_str() == LOCALHOST);
        if local && kind == AddressKind::Loopback && self.names_localhost(to.port) {
            return Ok(());
        }
        Err(self.refused_address(to, address, &kind.to_string()))
    }

    /// The refusal of an address because of what it is.
    pub fn refused_address(&self, to: &Destination, address: IpAddr, what: &str) -> HostRefusal {
        let named = Destination { host: TargetHost::Address(address), port: to.port };
        HostRefusal {
            why: format!("{to} leads to {address}, {what}, and only a rule that names it allows that"),
            allow: Some(named.to_string()),
        }
    }

    /// Whether a rule names this address.
    pub fn names_address(&self, address: IpAddr, port: u16) -> bool {
        let host = TargetHost::Address(address);
        self.0.iter().any(|rule| rule.port == port && rule.pattern.names(&host))
    }

    fn names_localhost(&self, port: u16) -> bool {
        let exact = |rule: &&HostRule| matches!(&rule.pattern, HostPattern::Name(name) if name.as_str() == LOCALHOST);
        self.0.iter().filter(exact).any(|rule| rule.port == port)
    }
}

impl FromIterator<HostRule> for HostRules {
    fn from_iter<I: IntoIterator<Item = HostRule>>(rules: I) -> HostRules {
        HostRules(rules.into_iter().collect())
    }
}

impl HostPattern {
    fn names(&self, host: &TargetHost) -> bool {
        match (self, host) {
            (HostPattern::Name(own), TargetHost::Name(name)) => own == name,
            (HostPattern::Below(own), TargetHost::Name(name)) => {
                name.as_str().strip_suffix(own.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (HostPattern::AnyName, TargetHost::Name(_)) => true,
            (HostPattern::Network(own, bits), TargetHost::Address(address)) => same_bits(*own, *address, *bits),
            _ => false,
        }
    }
}

/// Whether two addresses of the same family have the same first bits. A mapped address is compared as what it stands for.
fn same_bits(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    match (one, other.to_canonical()) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(bits),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(bits),
        _ => false,
    }
}

impl FromStr for HostRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<HostRule> {
        let (host, port) = split_port(text)?;
        let port = port.unwrap_or(HTTPS_PORT);
        if host == "*" {
            return Ok(HostRule { pattern: HostPattern::AnyName, port });
        }
        if let Some(below) = host.strip_prefix("*.") {
            return Ok(HostRule { pattern: HostPattern::Below(below.parse()?), port });
        }
        if host.contains('*') {
            let said =
                format!("{}: `*` stands for a whole name, or at its beginning as in *.example.org", quoted(text));
            return Err(Error::invalid(said));
        }
        let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let pattern = match inner.unwrap_or(host).split_once('/') {
            Some((address, bits)) => network(text, address, bits)?,
            None => match host.parse()? {
                TargetHost::Name(name) => HostPattern::Name(name),
                TargetHost::Address(address) => {
                    let address = address.to_canonical();
                    HostPattern::Network(address, width(address))
                }
            },
        };
        Ok(HostRule { pattern, port })
    }
}

fn network(text: &str, address: &str, bits: &str) -> Result<HostPattern> {
    let fault = || Error::invalid(format!("{} is no network: write 10.0.0.0/8:443 or [fd00::/8]:443", quoted(text)));
    let address = address.parse::<IpAddr>().map_err(|_| fault())?;
    let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= width(address)).ok_or_else(fault)?;
    Ok(HostPattern::Network(address, bits))
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            HostPattern::Name(name) => write!(f, "{name}")?,
            HostPattern::Below(name) => write!(f, "*.{name}")?,
            HostPattern::AnyName => write!(f, "*")?,
            HostPattern::Network(address, bits) => {
                let all = *bits == width(*address);
                match (address, all) {
                    (IpAddr::V4(address), true) => write!(f, "{address}")?,
                    (IpAddr::V4(address), false) => write!(f, "{address}/{bits}")?,
                    (IpAddr::V6(address), true) => write!(f, "[{address}]")?,
                    (IpAddr::V6(address), false) => write!(f, "[{address}/{bits}]")?,
                }
            }
        }
        write!(f, ":{}", self.port)
    }
}

#[cfg(test)]
mod tests;
