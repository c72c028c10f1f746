//! The audit: every decision that matters is a line of one log per host, written in the same transaction as the thing that
//! it tells of. `crates/audit` chains and seals the lines; [`keeper`] writes them, [`read`] shows them, [`check`] verifies
//! them.
//!
//! Used by `service`, `agent`, `gateway`, `host` and `cli`.

pub mod check;
mod keeper;
pub mod read;
mod retention;

use serde::Serialize;

pub use acheron_audit::{Head, Record, TimelineLine, Verdict, digest, timeline_line};
use acheron_base::Result;
use acheron_store::Tx;
pub use keeper::{AuditSize, KEY, keep};
pub use retention::{AuditLimits, prune};

/// One access decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    pub at_ms: u64,
    pub principal: String,
    pub pid: u32,
    pub action: String,
    pub path: String,
    pub allowed: bool,
    pub reason: String,
}

/// Notes an access decision, as a part of this change.
pub fn insert(tx: &Tx<'_>, entry: &AuditEntry) -> Result<()> {
    let AuditEntry { at_ms, principal, pid, action, path, allowed, reason } = entry;
    let kind = if *allowed { "allowed" } else { "denied" };
    let record = Record::new(*at_ms, kind).with("principal", principal.as_str()).with("pid", *pid);
    note(tx, &record.with("action", action.as_str()).with("path", path.as_str()).with("reason", reason.as_str()));
    Ok(())
}

/// Notes anything else, as a part of this change: if the change is undone, so is the line.
pub fn note(tx: &Tx<'_>, record: &Record) {
    tx.note(record.render());
}

#[cfg(test)]
mod tests;
