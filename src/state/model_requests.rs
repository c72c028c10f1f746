//! The requests of programs to models, as `requests.ndjson` shows them. Used by `gateway`.

use acheron_base::Result;
use acheron_store::{Connection, Tx, params};

/// A request that has ended, and the bodies that were kept of it.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestRow {
    pub line: String,
    pub bodies: Option<String>,
}

/// Notes a request that is about to be sent.
pub fn begin(tx: &Tx<'_>, id: &str, agent: &str, at_ms: u64, line: &str) -> Result<()> {
    let mut insert =
        tx.prepare_cached("INSERT INTO model_requests (id, agent, at_ms, line) VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![id, agent, at_ms, line])?;
    Ok(())
}

/// Notes how far a request has come.
pub fn progress(tx: &Tx<'_>, id: &str, line: &str) -> Result<()> {
    tx.prepare_cached("UPDATE model_requests SET line = ?2 WHERE id = ?1 AND ended = 0")?.execute([id, line])?;
    Ok(())
}

/// Notes the end of a request, whether or not its beginning was noted.
pub fn end(tx: &Tx<'_>, id: &str, agent: &str, at_ms: u64, row: &RequestRow) -> Result<()> {
    let mut upsert = tx.prepare_cached(
        "INSERT INTO model_requests (id, agent, at_ms, line, bodies, ended) VALUES (?1, ?2, ?3, ?4, ?5, 1) \
         ON CONFLICT (id) DO UPDATE SET line = excluded.line, bodies = excluded.bodies, ended = 1",
    )?;
    upsert.execute(params![id, agent, at_ms, row.line, row.bodies])?;
    Ok(())
}

/// Ends the requests that a host left behind; `change` makes the line of an ended one. Returns how many there were.
pub fn end_left(tx: &Tx<'_>, change: impl Fn(&str) -> String) -> Result<usize> {
    let mut select = tx.prepare("SELECT number, line FROM model_requests WHERE ended = 0")?;
    let left = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let left: Vec<(i64, String)> = left.collect::<Result<_, _>>()?;
    for (number, line) in &left {
        tx.execute("UPDATE model_requests SET line = ?2, ended = 1 WHERE number = ?1", params![number, change(line)])?;
    }
    Ok(left.len())
}

/// The last requests of an agent that have ended, oldest first, up to so many bytes.
pub fn tail(conn: &Connection, agent: &str, bytes: usize) -> Result<Vec<RequestRow>> {
    let mut select = conn.prepare_cached(
        "SELECT line, bodies FROM model_requests WHERE agent = ?1 AND ended = 1 ORDER BY number DESC LIMIT 65536",
    )?;
    let rows = select.query_map([agent], |row| Ok(RequestRow { line: row.get(0)?, bodies: row.get(1)? }))?;
    let mut found = Vec::new();
    let mut size = 0;
    for row in rows {
        let row = row?;
        size += row.line.len() + row.bodies.as_ref().map_or(0, String::len);
        found.push(row);
        if size > bytes {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

/// The bytes of bodies that are kept of each agent.
const BODIES: u64 = 64 << 20;

/// Deletes ended requests: those from before `before_ms`, and all but the newest `keep` of each agent; and the bodies of
/// requests whose agent has newer ones with enough bytes. At most `batch` of each kind; returns how many.
pub fn prune(tx: &Tx<'_>, keep: u64, before_ms: u64, batch: usize) -> Result<usize> {
    let old = tx.execute(
        "DELETE FROM model_requests WHERE number IN \
         (SELECT number FROM model_requests WHERE ended = 1 AND at_ms < ?1 LIMIT ?2)",
        params![before_ms, batch],
    )?;
    let many = tx.execute(
        "DELETE FROM model_requests WHERE number IN (SELECT number FROM (SELECT number, ended, \
         row_number() OVER (PARTITION BY agent ORDER BY number DESC) AS place FROM model_requests) \
         WHERE place > ?1 AND ended = 1 LIMIT ?2)",
        params![keep, batch],
    )?;
    let bodies = tx.execute(
        "UPDATE model_requests SET bodies = NULL WHERE number IN (SELECT number FROM (SELECT number, \
         sum(octet_length(bodies)) OVER (PARTITION BY agent ORDER BY number DESC) AS bytes FROM model_requests \
         WHERE bodies IS NOT NULL AND ended = 1) WHERE bytes > ?1 LIMIT ?2)",
        params![BODIES, batch],
    )?;
    Ok(old + many + bodies)
}

#[cfg(test)]
mod tests;
