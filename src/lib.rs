//! Acheron: an agent host that you can `ls`.

pub mod contract;
pub mod error;
pub mod events;
pub mod place;
pub mod policy;
pub mod spec;
pub mod vfs;
