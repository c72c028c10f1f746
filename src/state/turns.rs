//! The records of turns. Used by `agent`.

use acheron_base::{Error, Result};
use acheron_store::{Connection, OptionalExtension as _, Store, Tx, params};

/// Records deleted per transaction.
const BATCH: usize = 1024;

/// Appends records to a turn that has `before` of them. Others may not be missing: a record that follows one that the disk
/// refused is refused too.
pub fn append(tx: &Tx<'_>, agent: &str, job: &str, before: usize, records: &[String]) -> Result<()> {
    if before == 0 {
        tx.prepare_cached("INSERT INTO turns (agent, job) VALUES (?1, ?2)")?.execute([agent, job])?;
    }
    let turn = number(tx, agent, job)?.ok_or_else(|| Error::internal(format!("there is no turn {job}")))?;
    let mut last = tx.prepare_cached("SELECT coalesce(max(seq), 0) FROM turn_records WHERE turn = ?1")?;
    if last.query_row([turn], |row| row.get::<_, usize>(0))? != before {
        return Err(Error::internal(format!("a record of turn {job} is missing")));
    }
    let mut insert = tx.prepare_cached("INSERT INTO turn_records (turn, seq, record) VALUES (?1, ?2, ?3)")?;
    for (at, record) in records.iter().enumerate() {
        insert.execute(params![turn, before + at + 1, record])?;
    }
    Ok(())
}

fn number(conn: &Connection, agent: &str, job: &str) -> Result<Option<i64>> {
    let mut select = conn.prepare_cached("SELECT number FROM turns WHERE agent = ?1 AND job = ?2")?;
    Ok(select.query_row([agent, job], |row| row.get(0)).optional()?)
}

/// The records of a turn; none if there is no such turn.
pub fn records(conn: &Connection, agent: &str, job: &str) -> Result<Vec<String>> {
    let Some(turn) = number(conn, agent, job)? else { return Ok(Vec::new()) };
    let mut select = conn.prepare_cached("SELECT record FROM turn_records WHERE turn = ?1 ORDER BY seq")?;
    let rows = select.query_map([turn], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The last record of a turn.
pub fn last(conn: &Connection, agent: &str, job: &str) -> Result<Option<String>> {
    let Some(turn) = number(conn, agent, job)? else { return Ok(None) };
    let mut select =
        conn.prepare_cached("SELECT record FROM turn_records WHERE turn = ?1 ORDER BY seq DESC LIMIT 1")?;
    Ok(select.query_row([turn], |row| row.get(0)).optional()?)
}

/// The jobs of an agent's turns, oldest first.
pub fn jobs(conn: &Connection, agent: &str) -> Result<Vec<String>> {
    let mut select = conn.prepare_cached("SELECT job FROM turns WHERE agent = ?1 ORDER BY number")?;
    let rows = select.query_map([agent], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The jobs of an agent's turns with the bytes of their records, oldest first.
pub fn sizes(conn: &Connection, agent: &str) -> Result<Vec<(String, u64)>> {
    let mut select = conn.prepare_cached(
        "SELECT job, (SELECT coalesce(sum(octet_length(record)), 0) FROM turn_records WHERE turn = turns.number) \
         FROM turns WHERE agent = ?1 ORDER BY number",
    )?;
    let rows = select.query_map([agent], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Deletes a turn, the last records first and few at a time: other changes go on in between. Blocks.
pub fn delete(store: &Store, agent: &str, job: &str) -> Result<()> {
    let Some(turn) = store.look(|conn| number(conn, agent, job))? else { return Ok(()) };
    loop {
        let gone = store.write_blocking(move |tx| {
            let mut delete = tx.prepare_cached(
                "DELETE FROM turn_records WHERE turn = ?1 AND seq > \
                 (SELECT max(seq) FROM turn_records WHERE turn = ?1) - ?2",
            )?;
            let gone = delete.execute(params![turn, BATCH])?;
            if gone < BATCH {
                tx.prepare_cached("DELETE FROM turns WHERE number = ?1")?.execute([turn])?;
            }
            Ok(gone)
        })?;
        if gone < BATCH {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
