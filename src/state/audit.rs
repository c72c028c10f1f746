//! The audit table: access decisions, with principal, action and time.

use serde::Serialize;

use acheron_base::Result;
use acheron_store::{Connection, Row, Tx, params};

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

pub fn insert(tx: &Tx<'_>, entry: &AuditEntry) -> Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO audit (at_ms, principal, pid, action, path, allowed, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let AuditEntry { at_ms, principal, pid, action, path, allowed, reason } = entry;
    insert.execute(params![at_ms, principal, pid, action, path, allowed, reason])?;
    Ok(())
}

/// The newest entries, newest first.
pub fn newest(conn: &Connection, limit: usize) -> Result<Vec<AuditEntry>> {
    let mut select = conn.prepare_cached(
        "SELECT at_ms, principal, pid, action, path, allowed, reason FROM audit ORDER BY id DESC LIMIT ?1",
    )?;
    Ok(select.query_map([limit], read)?.collect::<Result<_, _>>()?)
}

/// Deletes at most `batch` entries: those older than `before_ms`, and those beyond the newest `keep`. Returns the
/// number; call again until it is 0.
pub fn prune(tx: &Tx<'_>, keep: usize, before_ms: u64, batch: usize) -> Result<usize> {
    let mut delete = tx.prepare_cached(
        "DELETE FROM audit WHERE id IN ( \
             SELECT id FROM audit WHERE at_ms < ?2 OR id <= (SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?1) \
             ORDER BY id LIMIT ?3)",
    )?;
    Ok(delete.execute(params![keep, before_ms, batch])?)
}

fn read(row: &Row<'_>) -> acheron_store::Sql<AuditEntry> {
    Ok(AuditEntry {
        at_ms: row.get(0)?,
        principal: row.get(1)?,
        pid: row.get(2)?,
        action: row.get(3)?,
        path: row.get(4)?,
        allowed: row.get(5)?,
        reason: row.get(6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::TestStore;

    #[test]
    fn entries_come_newest_first_and_go_by_age_and_count() {
        let store = TestStore::new();
        let entry = |at_ms| AuditEntry {
            at_ms,
            principal: "charon".into(),
            pid: 7,
            action: "write".into(),
            path: "/agents/styx/chat".into(),
            allowed: false,
            reason: "no rule allows it".into(),
        };
        store.write_blocking(move |tx| (1..=6).try_for_each(|at| insert(tx, &entry(at)))).unwrap();
        assert_eq!(store.look(|conn| newest(conn, 1)).unwrap(), [entry(6)]);
        let gone = |keep, before, batch| store.write_blocking(move |tx| prune(tx, keep, before, batch)).unwrap();
        assert_eq!((gone(100, 3, 10), gone(2, 0, 1), gone(2, 0, 10), gone(2, 0, 10)), (2, 1, 1, 0));
        assert_eq!(store.look(|conn| newest(conn, 10)).unwrap(), [entry(6), entry(5)]);
    }
}
