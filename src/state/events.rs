//! The event tables: one log per agent, with the cursor and the armed wait of its shared reader.

use std::collections::HashMap;

use serde_json::Value;

use acheron_base::Result;
use acheron_store::{Connection, OptionalExtension, Row, Rows, Tx, json, params};

/// One event. Sequence numbers of an agent rise by one and are never reused.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub seq: u64,
    pub kind: String,
    /// The path in the tree that the event is about.
    pub path: String,
    pub at_ms: u64,
    pub payload: Value,
}

/// The position of the agent's shared reader, which has read everything up to the cursor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cursor {
    pub cursor: u64,
    /// The content of `wait.json`, once written.
    pub wait: Option<Value>,
    pub armed_at_ms: Option<u64>,
}

/// Appends an event, with the next number of its agent.
pub fn append(tx: &Tx<'_>, agent: &str, kind: String, path: String, at_ms: u64, payload: Value) -> Result<Event> {
    let mut next = tx.prepare_cached(
        "INSERT INTO event_logs (agent, last_seq) VALUES (?1, 1) \
         ON CONFLICT (agent) DO UPDATE SET last_seq = last_seq + 1 RETURNING last_seq",
    )?;
    let seq: u64 = next.query_row([agent], |row| row.get(0))?;
    let mut insert = tx.prepare_cached(
        "INSERT INTO events (agent, seq, kind, path, at_ms, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    insert.execute(params![agent, seq, kind, path, at_ms, payload.to_string()])?;
    Ok(Event { seq, kind, path, at_ms, payload })
}

/// The last assigned number; 0 before the first event.
pub fn last(conn: &Connection, agent: &str) -> Result<u64> {
    let mut select = conn.prepare_cached("SELECT last_seq FROM event_logs WHERE agent = ?1")?;
    Ok(select.query_row([agent], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// The limits of a page of events, so that it fits into memory.
#[derive(Clone, Copy)]
pub struct PageLimits {
    pub events: usize,
    /// At least one event is read, however long it is.
    pub bytes: usize,
}

/// Reads rows until a limit is reached; the second value says whether it was.
fn page(mut rows: Rows<'_>, limits: PageLimits) -> Result<(Vec<Event>, bool)> {
    let (mut events, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        events.push(read(row)?);
        bytes += row.get_ref(4)?.as_str().map_or(0, str::len);
        if events.len() >= limits.events || bytes >= limits.bytes {
            return Ok((events, true));
        }
    }
    Ok((events, false))
}

/// The events after a number, oldest first, without those that retention has deleted; and whether there may be more.
pub fn since(conn: &Connection, agent: &str, after: u64, limits: PageLimits) -> Result<(Vec<Event>, bool)> {
    let mut select = conn.prepare_cached(
        "SELECT seq, kind, path, at_ms, payload FROM events WHERE agent = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    // SQLite integers end at i64::MAX; a larger number is past every event
    let after = after.min(i64::MAX as u64);
    page(select.query(params![agent, after, limits.events])?, limits)
}

/// An event and whose it is, by its place in the order of all agents.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedEvent {
    pub place: u64,
    pub agent: String,
    pub event: Event,
}

/// The events of all agents after a place, in the order in which they came.
pub fn placed_after(conn: &Connection, place: u64, limits: PageLimits) -> Result<Vec<PlacedEvent>> {
    let mut select = conn.prepare_cached(
        "SELECT seq, kind, path, at_ms, payload, id, agent FROM events WHERE id > ?1 ORDER BY id LIMIT ?2",
    )?;
    let mut rows = select.query(params![place, limits.events])?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()?.filter(|_| bytes < limits.bytes) {
        bytes += row.get_ref(4)?.as_str().map_or(0, str::len);
        found.push(PlacedEvent { place: row.get(5)?, agent: row.get(6)?, event: read(row)? });
    }
    Ok(found)
}

/// The place before the first event since then, and that of the last event of all.
pub fn places(conn: &Connection, since_ms: u64) -> Result<(u64, u64)> {
    let last: u64 = conn.query_row("SELECT coalesce(max(id), 0) FROM events", [], |row| row.get(0))?;
    let mut select = conn.prepare_cached("SELECT id FROM events WHERE at_ms >= ?1 ORDER BY at_ms, id LIMIT 1")?;
    let first: Option<u64> = select.query_row([since_ms], |row| row.get(0)).optional()?;
    Ok((first.map_or(last, |first| first - 1), last))
}

/// The newest events, oldest first.
pub fn tail(conn: &Connection, agent: &str, limits: PageLimits) -> Result<Vec<Event>> {
    let mut select = conn.prepare_cached(
        "SELECT seq, kind, path, at_ms, payload FROM events WHERE agent = ?1 ORDER BY seq DESC LIMIT ?2",
    )?;
    let (mut found, _) = page(select.query(params![agent, limits.events])?, limits)?;
    found.reverse();
    Ok(found)
}

/// The newest events of all agents with their agents, oldest first.
pub fn newest(conn: &Connection, limits: PageLimits) -> Result<Vec<(String, Event)>> {
    let mut select =
        conn.prepare_cached("SELECT seq, kind, path, at_ms, payload, agent FROM events ORDER BY id DESC LIMIT ?1")?;
    let (mut rows, mut found, mut bytes) = (select.query([limits.events])?, Vec::new(), 0);
    while let Some(row) = rows.next()? {
        bytes += row.get_ref(4)?.as_str().map_or(0, str::len);
        found.push((row.get(5)?, read(row)?));
        if bytes >= limits.bytes {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

/// The bytes of the signals in the log of an agent, by their sender.
pub fn signal_bytes(conn: &Connection, agent: &str) -> Result<HashMap<String, u64>> {
    let mut select = conn.prepare_cached(
        "SELECT coalesce(json_extract(payload, '$.from'), ''), sum(length(payload)) FROM events \
         WHERE agent = ?1 AND kind = 'signal' GROUP BY 1",
    )?;
    Ok(select.query_map([agent], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
}

pub fn cursor(conn: &Connection, agent: &str) -> Result<Cursor> {
    let mut select = conn.prepare_cached("SELECT cursor, wait, armed_at_ms FROM event_logs WHERE agent = ?1")?;
    let found = select.query_row([agent], |row| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?, row.get(2)?)));
    let Some((cursor, wait, armed_at_ms)) = found.optional()? else { return Ok(Cursor::default()) };
    Ok(Cursor { cursor, wait: wait.map(|text| json::read(&text)).transpose()?, armed_at_ms })
}

/// Arms the agent's shared wait. The cursor stays where it is unless `since` is given.
pub fn arm(tx: &Tx<'_>, agent: &str, wait: &Value, since: Option<u64>, now_ms: u64) -> Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO event_logs (agent, cursor, wait, armed_at_ms) VALUES (?1, coalesce(?2, 0), ?3, ?4) \
         ON CONFLICT (agent) DO UPDATE SET cursor = coalesce(?2, cursor), wait = ?3, armed_at_ms = ?4",
    )?;
    insert.execute(params![agent, since, wait.to_string(), now_ms])?;
    Ok(())
}

/// Moves the cursor forward: everything up to `seq` was read. It never moves back.
pub fn advance(tx: &Tx<'_>, agent: &str, seq: u64) -> Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO event_logs (agent, cursor) VALUES (?1, ?2) \
         ON CONFLICT (agent) DO UPDATE SET cursor = max(cursor, ?2)",
    )?;
    insert.execute(params![agent, seq])?;
    Ok(())
}

/// Deletes at most `batch` events: those older than `before_ms`, and those beyond each agent's newest `keep`. Returns
/// the number; call again until it is 0.
pub fn prune(tx: &Tx<'_>, keep: u64, before_ms: u64, batch: usize) -> Result<usize> {
    let mut old =
        tx.prepare_cached("DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at_ms < ?1 LIMIT ?2)")?;
    let gone = old.execute(params![before_ms, batch])?;
    let mut many = tx.prepare_cached(
        "DELETE FROM events WHERE id IN ( \
             SELECT events.id FROM event_logs JOIN events \
             ON events.agent = event_logs.agent AND seq <= last_seq - ?1 LIMIT ?2)",
    )?;
    Ok(gone + many.execute(params![keep, batch - gone.min(batch)])?)
}

fn read(row: &Row<'_>) -> Result<Event> {
    Ok(Event {
        seq: row.get(0)?,
        kind: row.get(1)?,
        path: row.get(2)?,
        at_ms: row.get(3)?,
        payload: json::read(&row.get::<_, String>(4)?)?,
    })
}

#[cfg(test)]
mod tests;
