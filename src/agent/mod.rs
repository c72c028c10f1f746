//! The turns of an agent: from an input to a reply, one tool call at a time.
//!
//! Pure functions over the transcript decide ([`step`], [`protocol`], [`budget`], [`context`]); the rest carries their
//! decisions out. An agent acts only through the three file tools. Used by `services`, `host` and `cli`. Uses `jobs`,
//! `events`, `service`, `model` and `spec`.

pub mod ask;
pub mod budget;
pub mod chat;
pub mod chat_session;
pub mod context;
mod deviation;
pub mod history;
pub mod ledger;
pub mod lifecycle;
pub mod mail;
pub mod mind;
pub mod native;
pub mod own_model;
pub mod pace;
pub mod profiles;
pub mod protocol;
pub mod rewind;
pub mod runtime;
pub mod runtimes;
pub mod step;
mod strict_json;
#[cfg(test)]
pub(crate) mod test_paid;
pub mod thoughts;
pub mod tools;
pub mod transcript;
mod turn;
pub mod turn_order;
mod turn_steps;
pub mod wake;
mod written_call;
