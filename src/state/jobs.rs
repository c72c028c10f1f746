//! The jobs table (the journal): each call with its request and outcome.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::file_plans;
use acheron_base::{Error, Result};
use acheron_store::{Connection, OptionalExtension, Row, Tx, json, params};

/// The state of a job. A settled state never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// A rule asks the operator first. Nothing is done before the decision.
    WaitingForApproval,
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
    TimedOut,
    /// The job was running when the host stopped.
    Interrupted,
}

impl JobState {
    const ALL: [JobState; 8] = [
        JobState::WaitingForApproval,
        JobState::Queued,
        JobState::Running,
        JobState::Done,
        JobState::Failed,
        JobState::Cancelled,
        JobState::TimedOut,
        JobState::Interrupted,
    ];

    pub fn name(self) -> &'static str {
        match self {
            JobState::WaitingForApproval => "waiting_for_approval",
            JobState::Queued => "queued",
            JobState::Running => "running",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::TimedOut => "timed_out",
            JobState::Interrupted => "interrupted",
        }
    }

    pub fn settled(self) -> bool {
        !matches!(self, JobState::WaitingForApproval | JobState::Queued | JobState::Running)
    }

    fn named(name: &str) -> Result<JobState> {
        let found = JobState::ALL.into_iter().find(|state| state.name() == name);
        found.ok_or_else(|| Error::internal(format!("the journal has a job in the unknown state `{name}`")))
    }
}

/// One row of the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// Sorts by time.
    pub id: String,
    pub agent: String,
    pub service: String,
    pub operation: String,
    pub effect: String,
    /// The job may run again after it was interrupted.
    pub idempotent: bool,
    pub state: JobState,
    pub correlation_id: Option<String>,
    /// The principal that made the call.
    pub principal: String,
    pub request: Value,
    pub result: Option<Value>,
    pub error: Option<Error>,
    pub created_at_ms: u64,
    pub started_at_ms: Option<u64>,
    pub updated_at_ms: u64,
    pub attempt: u32,
    /// The approval that it waits for, or that allowed it.
    pub approval: Option<String>,
}

/// The states of jobs that have not ended.
macro_rules! unsettled {
    () => {
        "('queued', 'running', 'waiting_for_approval')"
    };
}
const UNSETTLED: &str = unsettled!();

const COLUMNS: &str = "id, agent, service, operation, effect, idempotent, state, correlation_id, principal, request, \
                       result, error, created_at_ms, started_at_ms, updated_at_ms, attempt, approval";

/// Inserts a new job.
pub fn insert(tx: &Tx<'_>, job: &JobRow) -> Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO jobs (id, agent, service, operation, effect, idempotent, state, correlation_id, principal, \
         request, result, error, created_at_ms, started_at_ms, updated_at_ms, attempt, approval) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    insert.execute(params![
        job.id,
        job.agent,
        job.service,
        job.operation,
        job.effect,
        job.idempotent,
        job.state.name(),
        job.correlation_id,
        job.principal,
        job.request.to_string(),
        job.result.as_ref().map(Value::to_string),
        job.error.as_ref().map(json::of),
        job.created_at_ms,
        job.started_at_ms,
        job.updated_at_ms,
        job.attempt,
        job.approval,
    ])?;
    Ok(())
}

/// Marks a job that is queued, or was allowed, as running and counts the attempt. Returns false if the job is neither.
pub fn begin(tx: &Tx<'_>, id: &str, now_ms: u64) -> Result<bool> {
    let mut update = tx.prepare_cached(
        "UPDATE jobs SET state = 'running', started_at_ms = ?2, updated_at_ms = ?2, attempt = attempt + 1 \
         WHERE id = ?1 AND state IN ('queued', 'waiting_for_approval')",
    )?;
    Ok(update.execute(params![id, now_ms])? == 1)
}

/// Records that a job was told to stop, so that it ends that way even if the host crashes first.
pub fn stop(tx: &Tx<'_>, id: &str, error: &Error) -> Result<()> {
    let mut update =
        tx.prepare_cached(concat!("UPDATE jobs SET error = ?2 WHERE id = ?1 AND state IN ", unsettled!()))?;
    update.execute(params![id, json::of(error)])?;
    Ok(())
}

/// Records the end of a job. Returns false if the job is unknown or had already ended: the first end counts.
pub fn settle(
    tx: &Tx<'_>,
    id: &str,
    state: JobState,
    result: Option<&Value>,
    error: Option<&Error>,
    now_ms: u64,
) -> Result<bool> {
    if !state.settled() {
        return Err(Error::internal(format!("a job cannot end as {}", state.name())));
    }
    let mut update = tx.prepare_cached(concat!(
        "UPDATE jobs SET state = ?2, result = ?3, error = ?4, updated_at_ms = ?5 WHERE id = ?1 AND state IN ",
        unsettled!()
    ))?;
    let changed =
        update.execute(params![id, state.name(), result.map(Value::to_string), error.map(json::of), now_ms])?;
    Ok(changed == 1)
}

/// Records the approval that a job waits for now.
pub fn set_approval(tx: &Tx<'_>, id: &str, approval: &str) -> Result<()> {
    tx.execute("UPDATE jobs SET approval = ?2 WHERE id = ?1", params![id, approval])?;
    Ok(())
}

pub fn get(conn: &Connection, id: &str) -> Result<Option<JobRow>> {
    let mut select = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1"))?;
    select.query_row([id], |row| Ok(read(row))).optional()?.transpose()
}

/// The newest job of an agent with this correlation id.
pub fn correlated(conn: &Connection, agent: &str, correlation_id: &str) -> Result<Option<JobRow>> {
    let sql = format!("SELECT {COLUMNS} FROM jobs WHERE agent = ?1 AND correlation_id = ?2 ORDER BY id DESC LIMIT 1");
    let mut select = conn.prepare_cached(&sql)?;
    select.query_row([agent, correlation_id], |row| Ok(read(row))).optional()?.transpose()
}

/// The jobs that ended after a place in the journal and before a time, in the order of their ends; at most `limit`.
pub fn ended_after(conn: &Connection, at_ms: u64, id: &str, before_ms: u64, limit: usize) -> Result<Vec<JobRow>> {
    let mut select = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM jobs WHERE (updated_at_ms, id) > (?1, ?2) AND updated_at_ms < ?3 \
         AND state NOT IN {UNSETTLED} ORDER BY updated_at_ms, id LIMIT ?4"
    ))?;
    select.query_map(params![at_ms, id, before_ms, limit], |row| Ok(read(row)))?.map(|row| row?).collect()
}

/// The newest jobs without their requests and results, newest first: of one agent, or of all.
pub fn newest(conn: &Connection, agent: Option<&str>, limit: usize) -> Result<Vec<JobRow>> {
    let mut select = conn.prepare_cached(
        "SELECT id, agent, service, operation, effect, idempotent, state, correlation_id, principal, 'null', NULL, error, \
         created_at_ms, started_at_ms, updated_at_ms, attempt, approval FROM jobs WHERE ?1 IS NULL OR agent = ?1 \
         ORDER BY id DESC LIMIT ?2",
    )?;
    select.query_map(params![agent, limit], |row| Ok(read(row)))?.map(|row| row?).collect()
}

/// Every job that has not ended, oldest first.
pub fn unsettled(conn: &Connection) -> Result<Vec<JobRow>> {
    let sql = format!("SELECT {COLUMNS} FROM jobs WHERE state IN {UNSETTLED} ORDER BY id");
    let mut select = conn.prepare_cached(&sql)?;
    select.query_map([], |row| Ok(read(row)))?.map(|row| row?).collect()
}

/// Hands jobs that have ended to `take`, the newest first, until it returns false. Their arguments and results are not read.
pub fn newest_ended(conn: &Connection, mut take: impl FnMut(JobRow) -> bool) -> Result<()> {
    let sql = COLUMNS.replace("request", "'null'").replace("result", "NULL");
    let mut select =
        conn.prepare_cached(&format!("SELECT {sql} FROM jobs WHERE state NOT IN {UNSETTLED} ORDER BY id DESC"))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if !take(read(row)?) {
            return Ok(());
        }
    }
    Ok(())
}

/// Agent, id and correlation id of every job that has ended, oldest first.
pub fn names(conn: &Connection) -> Result<Vec<(String, String, Option<String>)>> {
    let mut select = conn.prepare_cached(&format!(
        "SELECT agent, id, correlation_id FROM jobs WHERE state NOT IN {UNSETTLED} ORDER BY id"
    ))?;
    let found = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// The unfinished jobs that the host found at its start, oldest first.
#[derive(Debug, Default, PartialEq)]
pub struct Recovered {
    /// Jobs that were running: those whose change was decided have their result, the others were interrupted.
    pub ended: Vec<JobRow>,
    /// Jobs to run: queued before, waiting for approval, or running and idempotent. Jobs with an error only have to be ended.
    pub queued: Vec<JobRow>,
}

/// Recovers the journal at the start of the host. Jobs recorded as running were interrupted, but for those in `decided`:
/// they end with the outcome there. Jobs that were told to stop are queued with the reason, to be ended without running.
pub fn recover(tx: &Tx<'_>, decided: &BTreeMap<String, Result<Value>>, now_ms: u64) -> Result<Recovered> {
    let mut found = Recovered::default();
    for (id, outcome) in decided {
        let state = if outcome.is_ok() { JobState::Done } else { JobState::Failed };
        if settle(tx, id, state, outcome.as_ref().ok(), outcome.as_ref().err(), now_ms)? {
            found.ended.extend(get(tx, id)?);
        }
        file_plans::delete(tx, id)?;
    }
    let error = Error::interrupted("the host stopped while the job was running");
    tx.execute(
        "UPDATE jobs SET state = 'queued', updated_at_ms = ?1 WHERE state = 'running' AND (idempotent OR error IS NOT NULL)",
        [now_ms],
    )?;
    let lost = unsettled(tx)?.into_iter().filter(|job| job.state == JobState::Running);
    for job in lost {
        settle(tx, &job.id, JobState::Interrupted, None, Some(&error), now_ms)?;
        found.ended.push(JobRow {
            state: JobState::Interrupted,
            error: Some(error.clone()),
            updated_at_ms: now_ms,
            ..job
        });
    }
    found.queued = unsettled(tx)?;
    Ok(found)
}

/// Deletes at most `batch` ended jobs that are unchanged since `before_ms`. Returns their ids; call again until there are
/// none.
pub fn prune(tx: &Tx<'_>, before_ms: u64, batch: usize) -> Result<Vec<String>> {
    let mut delete = tx.prepare_cached(&format!(
        "DELETE FROM jobs WHERE id IN ( \
             SELECT id FROM jobs WHERE state NOT IN {UNSETTLED} \
             AND updated_at_ms < ?1 ORDER BY id LIMIT ?2) RETURNING id"
    ))?;
    let mut gone = delete.query_map(params![before_ms, batch], |row| row.get(0))?.collect::<Result<Vec<_>, _>>()?;
    gone.sort();
    Ok(gone)
}

/// The oldest ended jobs of each agent that has more than `keep` jobs, or jobs of more than `bytes` in all, newest first:
/// without them it has no more. Counted for each agent, so that none pushes out the jobs of another.
pub fn beyond(conn: &Connection, keep: usize, bytes: u64) -> Result<Vec<String>> {
    // `octet_length` does not read the value.
    const BYTES: &str = "octet_length(request) + coalesce(octet_length(result), 0)";
    let mut jobs = conn.prepare_cached(&format!("SELECT id, state, agent, {BYTES} FROM jobs ORDER BY id DESC"))?;
    let (mut totals, mut beyond) = (HashMap::<String, (usize, u64)>::new(), Vec::new());
    let mut rows = jobs.query([])?;
    while let Some(row) = rows.next()? {
        let (count, total) = totals.entry(row.get(2)?).or_default();
        (*count, *total) = (*count + 1, total.saturating_add(row.get(3)?));
        let state: String = row.get(1)?;
        if (*count > keep || *total > bytes) && JobState::named(&state)?.settled() {
            beyond.push(row.get(0)?);
        }
    }
    Ok(beyond)
}

/// Deletes these jobs; returns their ids.
pub fn remove(tx: &Tx<'_>, ids: &[String]) -> Result<Vec<String>> {
    let mut delete = tx.prepare_cached("DELETE FROM jobs WHERE id = ?1")?;
    ids.iter().try_for_each(|id| delete.execute([id]).map(drop))?;
    Ok(ids.to_vec())
}

fn read(row: &Row<'_>) -> Result<JobRow> {
    Ok(JobRow {
        id: row.get(0)?,
        agent: row.get(1)?,
        service: row.get(2)?,
        operation: row.get(3)?,
        effect: row.get(4)?,
        idempotent: row.get(5)?,
        state: JobState::named(&row.get::<_, String>(6)?)?,
        correlation_id: row.get(7)?,
        principal: row.get(8)?,
        request: json::read(&row.get::<_, String>(9)?)?,
        result: row.get::<_, Option<String>>(10)?.map(|text| json::read(&text)).transpose()?,
        error: row.get::<_, Option<String>>(11)?.map(|text| json::read(&text)).transpose()?,
        created_at_ms: row.get(12)?,
        started_at_ms: row.get(13)?,
        updated_at_ms: row.get(14)?,
        attempt: row.get(15)?,
        approval: row.get(16)?,
    })
}

#[cfg(test)]
mod tests;
