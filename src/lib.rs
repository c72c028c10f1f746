//! Acheron: an agent host that you can `ls`.
//!
//! The modules stand in the order in which they read best, and each may use only those before it (a test reads every
//! `use crate::`). Below them are the crates: `acheron-base`, `acheron-http`, `acheron-store`, `acheron-sandbox`,
//! `acheron-vfs`, `acheron-fuse` and the cores `acheron-dm`, `acheron-gateway`, `acheron-mcp`, `acheron-prompts` and `acheron-recall`, none of which knows an
//! agent or a service. `docs/architecture.md` has the map.

#![forbid(unsafe_code)]

// As `crate::sync` in the files that `tests/models` compiles with other primitives.
use acheron_base::sync;

/// The contract of a service: README, schemas and checks from Rust types.
pub mod contract;

/// Access control: one list of rules per agent, and the one function that decides.
pub mod policy;

/// The tables of the database: migrations, jobs, events, audit.
pub mod state;

/// Jobs: every call with its directory, its journal and its runner.
pub mod jobs;

/// Events: one durable log per agent, and the files that wait for events.
pub mod events;

/// Approvals: what the operator is asked before an agent does it, and the files to decide it.
pub mod approvals;

/// Services: a command becomes a job, a contract becomes a directory.
pub mod service;

/// Language models behind one trait.
pub mod model;

/// The mountspec as plain data, checked completely.
pub mod spec;

/// The agent loop, its three tools, its transcript and its chat.
pub mod agent;

/// The model gateway: programs ask the model of an agent through it, and the agent pays.
pub mod gateway;

/// The services, one file or folder each, the pure core first.
pub mod services;

/// The doors: ways by which clients outside reach the tree.
pub mod doors;

/// Builds everything from a mountspec, and takes it down again.
pub mod host;

/// The commands, one file each.
pub mod cli;
