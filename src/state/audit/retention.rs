//! Cuts the audit at a checkpoint, and signs the cut. Used by the retention of the state.

use std::path::Path;

use acheron_audit::{Hash, Head};
use acheron_base::{Error, Result};
use acheron_store::{Connection, OptionalExtension, Store, params};

use super::keeper::{AuditSize, existing_key};
use super::read;

/// What is kept of the log.
#[derive(Clone, Copy, Debug)]
pub struct AuditLimits {
    pub lines: u64,
    pub before_ms: u64,
}

/// Removes lines beyond the limits, up to a checkpoint. Returns how many.
pub fn prune(dir: &Path, store: &Store, size: &AuditSize, keep: AuditLimits, now_ms: u64) -> Result<u64> {
    let Some((first, cut)) = store.look(|conn| place(conn, keep))? else { return Ok(0) };
    let key = existing_key(dir)?.ok_or_else(|| Error::unavailable("the key of the audit is missing"))?;
    let seam = key.seam(cut, now_ms);
    store.write_blocking(move |tx| {
        let mut keep = tx.prepare_cached(
            "INSERT INTO audit_seam (one, seq, hash, at_ms, signature) VALUES (1, ?1, ?2, ?3, ?4) ON CONFLICT (one) \
             DO UPDATE SET seq = excluded.seq, hash = excluded.hash, at_ms = excluded.at_ms, signature = excluded.signature",
        )?;
        keep.execute(params![seam.cut.seq, seam.cut.hash.0, seam.at_ms, seam.signature])?;
        tx.execute("DELETE FROM audit_blocks WHERE last <= ?1", [seam.cut.seq])?;
        Ok(())
    })?;
    size.begins_at(store.look(read::begin)?);
    Ok(cut.seq + 1 - first)
}

/// The first line that is there, and the last one that may go: a checkpoint at the end of a commit.
fn place(conn: &Connection, keep: AuditLimits) -> Result<Option<(u64, Head)>> {
    let range: (Option<u64>, Option<u64>) =
        conn.query_row("SELECT min(first), max(last) FROM audit_blocks", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(first), Some(last)) = range else { return Ok(None) };
    let by_count = last.saturating_sub(keep.lines);
    let by_age: Option<u64> = conn
        .query_row("SELECT max(last) FROM audit_blocks WHERE at_ms < ?1", [keep.before_ms], |row| row.get(0))
        .optional()?
        .flatten();
    let upto = by_count.max(by_age.unwrap_or(0)).min(last.saturating_sub(1));
    let sealed: Option<(u64, String)> = conn
        .query_row(
            "SELECT last, lines FROM audit_blocks WHERE last <= ?1 AND lines LIKE '%,\"kind\":\"checkpoint\",%' \
             ORDER BY first DESC LIMIT 1",
            [upto],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    Ok(sealed.and_then(|(seq, lines)| {
        let line = lines.lines().next_back()?;
        Some((first, Head { seq, hash: Hash::of(line.as_bytes()) }))
    }))
}
