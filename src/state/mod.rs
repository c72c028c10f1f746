//! The tables of the host: its migrations, and the queries for jobs, events, turns, spending, requests to models, tokens, approvals and the audit; and backups of the whole state
//! directory.
//!
//! Used by `jobs`, `events`, `approvals`, `agent`, `gateway`, `doors`, `host` and `cli`; services with tables of their own append a migration here and keep their queries
//! to themselves. Uses `acheron-store`.

pub mod approvals;
pub mod audit;
pub mod backup;
pub mod events;
pub mod file_plans;
pub mod jobs;
pub mod model_requests;
mod purge;
pub mod quota;
pub mod restore;
mod retention;
pub mod spending;
#[cfg(test)]
mod test_store;
pub mod tokens;
pub mod turns;

use std::path::Path;

use acheron_base::{Clock, Random, Result};
use acheron_store::Store;
use audit::AuditSize;

pub use purge::purge;
pub use retention::{Pruned, RetentionLimits, prune};
#[cfg(test)]
pub(crate) use test_store::{TestStore, open_in};

/// A migration that was released is never changed; a new one is appended.
const MIGRATIONS: &[&str] = &[
    include_str!("steps/1-journal.sql"),
    include_str!("steps/2-memory.sql"),
    include_str!("steps/3-symbols.sql"),
    include_str!("steps/4-file-plans.sql"),
    include_str!("steps/5-turns.sql"),
    include_str!("steps/6-events-in-order.sql"),
    include_str!("steps/7-spending.sql"),
    include_str!("steps/8-memory-words.sql"),
    include_str!("steps/9-memory-facts.sql"),
    include_str!("steps/11-model-requests.sql"),
    include_str!("steps/12-door-tokens.sql"),
    include_str!("steps/13-mail.sql"),
    include_str!("steps/14-queues.sql"),
    include_str!("steps/15-audit-chain.sql"),
    include_str!("steps/16-approvals.sql"),
    include_str!("steps/17-token-expiry.sql"),
    include_str!("steps/18-far-mail.sql"),
];

/// The version of the tables: how many migrations there are.
pub const SCHEMA: usize = MIGRATIONS.len();

/// Opens the database of a state directory, applies missing migrations, and goes on with its audit, whose size is returned too.
pub fn open(dir: &Path, clock: &Clock, random: &Random) -> Result<(Store, AuditSize)> {
    let store = Store::open(dir, MIGRATIONS)?;
    let size = audit::keep(dir, &store, clock, random)?;
    Ok((store, size))
}

/// Checks the database of a state directory and lists its faults; `None` if there is no database.
pub fn faults(dir: &Path) -> Result<Option<Vec<String>>> {
    acheron_store::faults(dir, MIGRATIONS.len())
}

#[cfg(test)]
mod tests;
