//! The services of the house, one file or folder each.

pub mod memory;
//! The services of this host, one file or folder each.
pub mod prompts;
//! The services of the house, one file or folder each: a pure core first, the service last.
pub mod phases;
pub mod symbols;
//! The services that ship with the host.
pub mod terminal;
