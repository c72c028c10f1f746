//! Phases: the recursive inference loop.
//!
//! A query goes through phases, each a prompt; a reply may ask the host for symbols and names the phase that follows. The
//! loop, its parsers and its budgets are pure; what touches models, symbols and disks stands at the edge.

pub mod action;
pub mod budget;
pub mod command;
pub mod context;
pub mod history;
pub mod library;
pub mod narrative;
pub mod open;
pub mod participants;
pub mod payload;
pub mod perform;
pub mod record;
pub mod run;
pub mod runs;
pub mod scan;
pub mod seal;
pub mod service;
pub mod set;
pub mod speaker;
pub mod step;
pub mod termination;
