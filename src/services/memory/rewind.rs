//! What has changed in an agent's memory since a moment: for the way back to an earlier turn.

use super::rows;
use acheron_base::Result;
use acheron_store::{Connection, params};

/// A memory that has changed since, and the version that it had then; none if it was not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryChange {
    pub name: String,
    pub version: Option<u64>,
}

/// The newest version of any memory of an agent: versions that are made later have a higher number.
pub fn marker(conn: &Connection, agent: &str) -> Result<i64> {
    let agent = rows::agent(conn, agent)?;
    let sql =
        "SELECT coalesce(max(v.id), 0) FROM memory_versions v JOIN memories m ON m.id = v.memory WHERE m.agent = ?1";
    Ok(conn.prepare_cached(sql)?.query_row([agent], |row| row.get(0))?)
}

/// The memories that are not as they were at `marker`. Versions with the same text and kind are the same.
pub fn changed_since(conn: &Connection, agent: &str, marker: i64) -> Result<Vec<MemoryChange>> {
    let agent = rows::agent(conn, agent)?;
    let mut select = conn.prepare_cached(
        "SELECT m.name, old.version, coalesce(old.deleted, 1), now.deleted, \
                old.content IS now.content AND old.kind IS now.kind AND old.tags IS now.tags \
         FROM memories m \
         JOIN memory_versions now ON now.memory = m.id AND now.version = m.version \
         LEFT JOIN memory_versions old ON old.memory = m.id AND old.id = \
             (SELECT max(id) FROM memory_versions WHERE memory = m.id AND id <= ?2) \
         WHERE m.agent = ?1 AND now.id > ?2 ORDER BY m.name",
    )?;
    let rows = select.query_map(params![agent, marker], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, Option<u64>>(1)?,
            row.get::<_, bool>(2)?,
            row.get::<_, bool>(3)?,
            row.get::<_, bool>(4)?,
        ))
    })?;
    let mut changed = Vec::new();
    for row in rows {
        let (name, version, was_deleted, is_deleted, same) = row?;
        match (was_deleted, is_deleted) {
            (true, true) => (),
            (true, false) => changed.push(MemoryChange { name, version: None }),
            (false, false) if same => (),
            (false, _) => changed.push(MemoryChange { name, version }),
        }
    }
    Ok(changed)
}
