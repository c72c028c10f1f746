//! The services that ship with the host.

pub mod terminal;
