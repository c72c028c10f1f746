//! The services of the house, one file or folder each: a pure core first, the service last.

pub mod memory;
pub mod phases;
pub mod prompts;
pub mod symbols;
pub mod terminal;
