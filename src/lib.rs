//! Acheron: an agent host that you can `ls`.

pub mod error;
pub mod sandbox;
