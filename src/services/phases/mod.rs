//! Phases: the recursive inference loop.
//!
//! A query goes through phases, each a prompt; a reply may ask the host for symbols and names the phase that follows. The
//! loop, its parsers and its budgets are pure; what touches models, symbols and disks stands at the edge.

pub mod action;
pub mod budget;
pub mod command;
pub mod context;
#[cfg(test)]
mod context_tests;
pub mod history;
#[cfg(test)]
mod history_tests;
pub mod library;
pub mod open;
pub mod payload;
pub mod perform;
#[cfg(test)]
mod perform_tests;
pub mod record;
pub mod run;
#[cfg(test)]
mod run_tests;
pub mod runs;
pub mod scan;
pub mod scene;
pub mod seal;
pub mod service;
#[cfg(test)]
mod service_tests;
pub mod set;
pub mod speaker;
pub mod step;
#[cfg(test)]
mod step_tests;
