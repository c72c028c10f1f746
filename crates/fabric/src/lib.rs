//! Core of the fabric: what hosts that are joined by a NATS server say to each other, as data.
//!
//! [`names`] are the tokens of subjects, [`subjects`] who speaks to whom about what, [`streams`] what the server keeps,
//! [`rights`] what the server lets a host do, [`messages`] and [`letters`] what is said, [`lease`] when a host may still act
//! under its name, [`engine`] which servers will do. Nothing here connects to anything: `crates/nats` does. Used by `crates/nats`,
//! `src/services`, `src/host` and `src/cli`. Uses `acheron-base`.

#![forbid(unsafe_code)]

pub mod engine;
pub mod lease;
pub mod letters;
pub mod messages;
pub mod names;
pub mod rights;
pub mod streams;
pub mod subjects;
