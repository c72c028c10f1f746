//! The services of the house, one file or folder each.

pub mod memory;
//! The services of this host, one file or folder each.
pub mod prompts;
