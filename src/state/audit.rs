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

/// A principal with more entries than are kept, and the newest of those beyond.
pub type Surplus = (String, i64);

/// The principals with more than `keep` entries: each has its own, so that none can push out those of another.
pub fn surplus(conn: &Connection, keep: usize) -> Result<Vec<Surplus>> {
    let mut many = conn.prepare_cached("SELECT principal FROM audit GROUP BY principal HAVING count(*) > ?1")?;
    let many: Vec<String> = many.query_map([keep], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut last =
        conn.prepare_cached("SELECT id FROM audit WHERE principal = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2")?;
    let found =
        many.into_iter().map(|principal| Ok((last.query_row(params![principal, keep], |row| row.get(0))?, principal)));
    found.map(|found: Result<(i64, String)>| found.map(|(id, principal)| (principal, id))).collect()
}

/// Deletes at most `batch` entries of each kind: those older than `before_ms`, and the surplus of each principal. Returns
/// the number; call again until it is 0.
pub fn prune(tx: &Tx<'_>, surplus: &[Surplus], before_ms: u64, batch: usize) -> Result<usize> {
    let mut old =
        tx.prepare_cached("DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at_ms < ?1 LIMIT ?2)")?;
    let mut gone = old.execute(params![before_ms, batch])?;
    let mut many = tx.prepare_cached(
        "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE principal = ?1 AND id <= ?2 ORDER BY id LIMIT ?3)",
    )?;
    for (principal, last) in surplus {
        gone += many.execute(params![principal, last, batch])?;
    }
    Ok(gone)
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
mod tests;
