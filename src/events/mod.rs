//! What happened, and waiting for it.

pub mod selector;
