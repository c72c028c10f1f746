//! Reads the lines of the audit. Used by the tree's `meta/audit.ndjson` and by `acheron audit`.

use acheron_audit::{Hash, Head, Seam};
use acheron_base::{Error, Result};
use acheron_store::{Connection, OptionalExtension, params};

/// The head that is kept apart, with its code.
pub fn head(conn: &Connection) -> Result<Option<(Head, Vec<u8>)>> {
    let row = conn
        .prepare_cached("SELECT seq, hash, code FROM audit_head")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    row.map(|(seq, hash, code): (u64, Vec<u8>, Vec<u8>)| Ok((Head { seq, hash: hash_of(hash)? }, code))).transpose()
}

/// The last line that is there.
pub fn last_block(conn: &Connection) -> Result<Option<Head>> {
    let row: Option<(u64, String)> = conn
        .prepare_cached("SELECT last, lines FROM audit_blocks ORDER BY first DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(row.and_then(|(seq, lines)| {
        let line = lines.lines().next_back()?;
        Some(Head { seq, hash: Hash::of(line.as_bytes()) })
    }))
}

/// Where the retention has cut the log.
pub fn seam(conn: &Connection) -> Result<Option<Seam>> {
    let row = conn
        .prepare_cached("SELECT seq, hash, at_ms, signature FROM audit_seam")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    let seam = |(seq, hash, at_ms, signature): (u64, Vec<u8>, u64, Vec<u8>)| {
        Ok(Seam { cut: Head { seq, hash: hash_of(hash)? }, at_ms, signature })
    };
    row.map(seam).transpose()
}

fn hash_of(bytes: Vec<u8>) -> Result<Hash> {
    bytes.try_into().map(Hash).map_err(|_| Error::internal("a hash of the audit has another length"))
}

/// The offset after the last line, counted from the first line that was ever written.
pub fn end(conn: &Connection) -> Result<u64> {
    let end = conn
        .prepare_cached("SELECT start + length(CAST(lines AS BLOB)) FROM audit_blocks ORDER BY first DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(end.unwrap_or(0))
}

/// The offset of the first line that is still there.
pub fn begin(conn: &Connection) -> Result<u64> {
    let begin = conn
        .prepare_cached("SELECT start FROM audit_blocks ORDER BY first LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(begin.unwrap_or(0))
}

/// The bytes from `offset`, counted from the first line that was ever written: at least one if there are any, at most
/// `size`.
pub fn bytes(conn: &Connection, offset: u64, size: usize) -> Result<Vec<u8>> {
    let mut select = conn.prepare_cached(
        "SELECT start, lines FROM audit_blocks \
         WHERE start >= coalesce((SELECT max(start) FROM audit_blocks WHERE start <= ?1), 0) ORDER BY start",
    )?;
    let mut rows = select.query(params![offset])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()?.filter(|_| found.len() < size) {
        let (start, lines): (u64, String) = (row.get(0)?, row.get(1)?);
        let skip = usize::try_from((offset + found.len() as u64).saturating_sub(start)).unwrap_or(usize::MAX);
        found.extend_from_slice(lines.as_bytes().get(skip..).unwrap_or_default());
    }
    found.truncate(size);
    Ok(found)
}

/// The lines after a number, in their order and those of one commit together, until they have `bytes`. None if there are no more.
pub fn after(conn: &Connection, seq: u64, bytes: usize) -> Result<String> {
    let mut select = conn.prepare_cached("SELECT lines FROM audit_blocks WHERE first > ?1 ORDER BY first")?;
    let mut rows = select.query(params![seq])?;
    let mut found = String::new();
    while let Some(row) = rows.next()?.filter(|_| found.len() < bytes) {
        found.push_str(row.get_ref(0)?.as_str().map_err(|_| Error::internal("a line of the audit is not text"))?);
    }
    Ok(found)
}

/// The number before the first line of a commit that was made since then.
pub fn before(conn: &Connection, since_ms: u64) -> Result<u64> {
    let first: Option<u64> = conn
        .prepare_cached("SELECT min(first) FROM audit_blocks WHERE at_ms >= ?1")?
        .query_row([since_ms], |row| row.get(0))?;
    match first {
        Some(first) => Ok(first - 1),
        None => Ok(head(conn)?.map_or(0, |(head, _)| head.seq)),
    }
}

/// Hands every line from `since_ms` on to `take`, until it returns false.
pub fn each(conn: &Connection, since_ms: u64, mut take: impl FnMut(&str) -> bool) -> Result<()> {
    let mut select = conn.prepare("SELECT lines FROM audit_blocks WHERE at_ms >= ?1 ORDER BY first")?;
    let mut rows = select.query(params![since_ms])?;
    while let Some(row) = rows.next()? {
        let lines = row.get_ref(0)?.as_str().map_err(|_| Error::internal("a line of the audit is not text"))?;
        if !lines.lines().all(&mut take) {
            return Ok(());
        }
    }
    Ok(())
}
