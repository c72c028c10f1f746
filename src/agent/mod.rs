//! One agent's turns: from an input to a reply, a call at a time.
//!
//! What is decided is decided by pure functions over the transcript ([`step`], [`protocol`], [`budget`], [`context`]);
//! the rest carries it out. An agent has no hands but the three file tools.

pub mod budget;
pub mod chat;
pub mod context;
pub mod history;
pub mod lifecycle;
pub mod own_model;
pub mod profiles;
pub mod protocol;
pub mod runtime;
pub mod runtimes;
pub mod step;
mod strict_json;
pub mod thoughts;
pub mod tools;
pub mod transcript;
mod turn;
pub mod wake;
