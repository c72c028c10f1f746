//! Core of the network by name: which hosts a program may reach, and what its requests say of where they go.
//!
//! Rules are data ([`HostRules`]), requests are bytes ([`ProxyRequest`], [`FirstBytes`]), and addresses have kinds
//! ([`AddressKind`]). Nothing here resolves a name or opens a connection: `crates/http` does. Used by `src/spec`,
//! `src/services`, `src/host` and `src/cli`. Uses `acheron-base`.

mod address;
mod client_hello;
mod destination;
mod first_bytes;
mod forwarding;
mod request_head;
mod rules;

pub use address::AddressKind;
pub use client_hello::ClientHello;
pub use destination::{Destination, HostName, TargetHost};
pub use first_bytes::FirstBytes;
pub use request_head::{HeadFault, MAX_HEAD, ProxyRequest};
pub use rules::{HostRefusal, HostRule, HostRules};

/// The port of TLS, which a rule means that names none.
pub const HTTPS_PORT: u16 = 443;
/// The port of plain HTTP.
pub const HTTP_PORT: u16 = 80;
