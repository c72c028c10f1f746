//! The tables of approvals: what was asked and decided, and the exceptions that answers have made. Used by `approvals` and
//! `service`.

use acheron_approvals::{Exception, Request, State};
use acheron_base::{Error, Result};
use acheron_store::{Connection, OptionalExtension, Row, Tx, json, params};

/// One approval.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRow {
    /// Sorts by time.
    pub id: String,
    pub state: State,
    pub request: Request,
    pub created_at_ms: u64,
    pub expires_at_ms: u64,
    pub decision: Option<DecisionRow>,
    /// The job that has done it.
    pub used_by: Option<String>,
}

/// How an approval ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRow {
    pub at_ms: u64,
    /// The principal that decided, or `host`.
    pub by: String,
    /// The answer as it is written, or why there is none.
    pub answer: String,
}

const COLUMNS: &str = "id, state, request, created_at_ms, expires_at_ms, decided_at_ms, decided_by, answer, used_by";

pub fn insert(tx: &Tx<'_>, row: &ApprovalRow) -> Result<()> {
    tx.execute(
        "INSERT INTO approvals (id, agent, state, request, created_at_ms, expires_at_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            row.id,
            row.request.agent,
            row.state.name(),
            json::of(&row.request),
            row.created_at_ms,
            row.expires_at_ms
        ],
    )?;
    Ok(())
}

pub fn get(conn: &Connection, id: &str) -> Result<Option<ApprovalRow>> {
    let mut select = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM approvals WHERE id = ?1"))?;
    select.query_row([id], |row| Ok(read(row))).optional()?.transpose()
}

/// All approvals that are kept, oldest first.
pub fn all(conn: &Connection) -> Result<Vec<ApprovalRow>> {
    let mut select = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM approvals ORDER BY id"))?;
    select.query_map([], |row| Ok(read(row)))?.map(|row| row?).collect()
}

/// Ends an approval that waits. Returns false if it does not wait: the first end counts.
pub fn settle(tx: &Tx<'_>, id: &str, state: State, decision: &DecisionRow) -> Result<bool> {
    let changed = tx.execute(
        "UPDATE approvals SET state = ?2, decided_at_ms = ?3, decided_by = ?4, answer = ?5 \
         WHERE id = ?1 AND state = 'waiting'",
        params![id, state.name(), decision.at_ms, decision.by, decision.answer],
    )?;
    Ok(changed == 1)
}

/// Deletes a request that waits; whether there was one.
pub fn remove_waiting(tx: &Tx<'_>, id: &str) -> Result<bool> {
    Ok(tx.execute("DELETE FROM approvals WHERE id = ?1 AND state = 'waiting'", [id])? == 1)
}

/// Takes back an answer that was not used, because what it allowed has changed.
pub fn void(tx: &Tx<'_>, id: &str) -> Result<bool> {
    let changed = tx
        .execute("UPDATE approvals SET state = 'void' WHERE id = ?1 AND state = 'allowed' AND used_by IS NULL", [id])?;
    Ok(changed == 1)
}

/// Uses an approval for the one deed that it allows; returns the job that has used it, this one or an earlier one.
pub fn take(tx: &Tx<'_>, id: &str, job: &str) -> Result<String> {
    tx.execute(
        "UPDATE approvals SET used_by = ?2 WHERE id = ?1 AND state = 'allowed' AND used_by IS NULL",
        params![id, job],
    )?;
    let mut select = tx.prepare_cached("SELECT used_by FROM approvals WHERE id = ?1 AND state = 'allowed'")?;
    let used: Option<Option<String>> = select.query_row([id], |row| row.get(0)).optional()?;
    used.flatten().ok_or_else(|| Error::forbidden(format!("{id} does not allow it")))
}

/// Deletes approvals that ended before this time; returns their ids.
pub fn prune(tx: &Tx<'_>, before_ms: u64, keep: usize) -> Result<Vec<String>> {
    let mut delete = tx.prepare_cached(
        "DELETE FROM approvals WHERE state != 'waiting' \
         AND id NOT IN (SELECT approval FROM jobs WHERE approval IS NOT NULL AND state = 'waiting_for_approval') \
         AND (created_at_ms < ?1 OR id NOT IN (SELECT id FROM approvals ORDER BY id DESC LIMIT ?2)) RETURNING id",
    )?;
    let gone = delete.query_map(params![before_ms, keep], |row| row.get(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(gone)
}

pub fn insert_exception(tx: &Tx<'_>, exception: &Exception) -> Result<()> {
    tx.execute(
        "INSERT INTO approval_exceptions (id, agent, exception) VALUES (?1, ?2, ?3)",
        params![exception.id, exception.agent, json::of(exception)],
    )?;
    Ok(())
}

/// All exceptions, oldest first.
pub fn exceptions(conn: &Connection) -> Result<Vec<Exception>> {
    let mut select = conn.prepare_cached("SELECT exception FROM approval_exceptions ORDER BY id")?;
    select.query_map([], |row| row.get::<_, String>(0))?.map(|text| json::read(&text?)).collect()
}

/// Deletes an exception; whether there was one.
pub fn remove_exception(tx: &Tx<'_>, id: &str) -> Result<bool> {
    Ok(tx.execute("DELETE FROM approval_exceptions WHERE id = ?1", [id])? > 0)
}

/// The key that signs links; made from `fresh` the first time.
pub fn key(tx: &Tx<'_>, fresh: &[u8]) -> Result<Vec<u8>> {
    tx.execute("INSERT OR IGNORE INTO approval_key (one, key) VALUES (1, ?1)", [fresh])?;
    Ok(tx.query_row("SELECT key FROM approval_key WHERE one = 1", [], |row| row.get(0))?)
}

fn read(row: &Row<'_>) -> Result<ApprovalRow> {
    let state: String = row.get(1)?;
    let state = State::named(&state).ok_or_else(|| Error::internal(format!("an approval in the state `{state}`")))?;
    let (at_ms, by, answer): (Option<u64>, Option<String>, Option<String>) = (row.get(5)?, row.get(6)?, row.get(7)?);
    let decision = match (at_ms, by, answer) {
        (Some(at_ms), Some(by), Some(answer)) => Some(DecisionRow { at_ms, by, answer }),
        _ => None,
    };
    Ok(ApprovalRow {
        id: row.get(0)?,
        state,
        request: json::read(&row.get::<_, String>(2)?)?,
        created_at_ms: row.get(3)?,
        expires_at_ms: row.get(4)?,
        decision,
        used_by: row.get(8)?,
    })
}
