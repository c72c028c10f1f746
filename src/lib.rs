//! Acheron: an agent host that you can `ls`.

pub mod clock;
pub mod error;
pub mod store;
