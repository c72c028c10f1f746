//! The services of the house, one file or folder each.

pub mod memory;
