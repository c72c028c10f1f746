//! The services of the house, one file or folder each: a pure core first, the service last.

pub mod phases;
pub mod symbols;
