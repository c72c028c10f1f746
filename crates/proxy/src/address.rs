//! Kinds of addresses. Only what is known to be an address of the public internet counts as one; an IPv6 address that
//! carries an IPv4 address counts as that.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of place an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    Public,
    Loopback,
    Private,
    LinkLocal,
    /// Shared by the customers of a provider (RFC 6598), where clouds have servers of their own too.
    Shared,
    Multicast,
    /// A server that tells a machine of a cloud its secrets.
    Metadata,
    /// For no host: unspecified, broadcast, documentation, benchmarks, or not assigned.
    Reserved,
}

impl AddressKind {
    pub fn of(address: IpAddr) -> AddressKind {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressKind::Public => "a public address",
            AddressKind::Loopback => "an address of this machine itself",
            AddressKind::Private => "an address of a private network",
            AddressKind::LinkLocal => "an address of the local link",
            AddressKind::Shared => "an address of a provider's own network",
            AddressKind::Multicast => "a multicast address",
            AddressKind::Metadata => "an address of a cloud's metadata",
            AddressKind::Reserved => "a reserved address",
        })
    }
}

/// Metadata and control servers of clouds that lie in no range of their own: AWS, Google and Azure (link), Oracle, Alibaba,
/// and Azure's wire server, which has a public address.
const METADATA: [[u8; 4]; 4] = [[169, 254, 169, 254], [192, 0, 0, 192], [100, 100, 100, 200], [168, 63, 129, 16]];

fn of_v4(address: Ipv4Addr) -> AddressKind {
    let bytes = address.octets();
    if METADATA.contains(&bytes) {
        return AddressKind::Metadata;
    }
    match bytes {
        [127, ..] => AddressKind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [169, 254, ..] => AddressKind::LinkLocal,
        [100, 64..=127, ..] => AddressKind::Shared,
        [224..=239, ..] => AddressKind::Multicast,
        [0, ..] | [240..=255, ..] | [192, 0, 0, _] | [192, 0, 2, _] | [192, 88, 99, _] => AddressKind::Reserved,
        [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

/// AWS serves its metadata here too.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

fn of_v6(address: Ipv6Addr) -> AddressKind {
    if address == Ipv6Addr::LOCALHOST {
        return AddressKind::Loopback;
    }
    if address == METADATA_V6 {
        return AddressKind::Metadata;
    }
    if address.is_unspecified() {
        return AddressKind::Reserved;
    }
    if let Some(inner) = carried(address) {
        return of_v4(inner);
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        // Site-local: deprecated, and still routed here and there.
        [0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        // Teredo and other special purposes, documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressKind::Reserved,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, NAT64 (RFC 6052) or 6to4.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let whole = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => whole(high, low),
        [0, 0, 0, 0, 0xffff, 0, high, low] => whole(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => whole(high, low),
        [0x2002, high, low, ..] => whole(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
