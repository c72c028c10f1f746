//! Acheron: an agent host that you can `ls`.

pub mod clock;
pub mod contract;
pub mod error;
pub mod events;
pub mod jobs;
pub mod place;
pub mod policy;
pub mod sandbox;
pub mod services;
pub mod store;
pub mod vfs;
