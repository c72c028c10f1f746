//! The services of this host, one file or folder each.

pub mod prompts;
