//! The jobs table (the journal): each call with its request and outcome.

use acheron_base::{Error, Result};
use acheron_store::{Connection, OptionalExtension, Row, Tx, json, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of a job. A settled state never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
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
    const ALL: [JobState; 7] = [
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
        !matches!(self, JobState::Queued | JobState::Running)
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
}

const COLUMNS: &str = "id, agent, service, operation, effect, idempotent, state, correlation_id, principal, request, \
                       result, error, created_at_ms, started_at_ms, updated_at_ms, attempt";

/// Inserts a new job.
pub fn insert(tx: &Tx<'_>, job: &JobRow) -> Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO jobs (id, agent, service, operation, effect, idempotent, state, correlation_id, principal, \
         request, result, error, created_at_ms, started_at_ms, updated_at_ms, attempt) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
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
    ])?;
    Ok(())
}

/// Marks a queued job as running and counts the attempt. Returns false if the job is not queued.
pub fn begin(tx: &Tx<'_>, id: &str, now_ms: u64) -> Result<bool> {
    let mut update = tx.prepare_cached(
        "UPDATE jobs SET state = 'running', started_at_ms = ?2, updated_at_ms = ?2, attempt = attempt + 1 \
         WHERE id = ?1 AND state = 'queued'",
    )?;
    Ok(update.execute(params![id, now_ms])? == 1)
}

/// Records that a job was told to stop, so that it ends that way even if the host crashes first.
pub fn stop(tx: &Tx<'_>, id: &str, error: &Error) -> Result<()> {
    let mut update =
        tx.prepare_cached("UPDATE jobs SET error = ?2 WHERE id = ?1 AND state IN ('queued', 'running')")?;
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
    let mut update = tx.prepare_cached(
        "UPDATE jobs SET state = ?2, result = ?3, error = ?4, updated_at_ms = ?5 \
         WHERE id = ?1 AND state IN ('queued', 'running')",
    )?;
    let changed =
        update.execute(params![id, state.name(), result.map(Value::to_string), error.map(json::of), now_ms])?;
    Ok(changed == 1)
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

/// Every job that has not ended, oldest first.
pub fn unsettled(conn: &Connection) -> Result<Vec<JobRow>> {
    let sql = format!("SELECT {COLUMNS} FROM jobs WHERE state IN ('queued', 'running') ORDER BY id");
    let mut select = conn.prepare_cached(&sql)?;
    select.query_map([], |row| Ok(read(row)))?.map(|row| row?).collect()
}

/// Agent, id and correlation id of every job that has ended, oldest first.
pub fn names(conn: &Connection) -> Result<Vec<(String, String, Option<String>)>> {
    let mut select = conn.prepare_cached(
        "SELECT agent, id, correlation_id FROM jobs WHERE state NOT IN ('queued', 'running') ORDER BY id",
    )?;
    let found = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// The unfinished jobs that the host found at its start, oldest first.
#[derive(Debug, Default, PartialEq)]
pub struct Recovered {
    /// Jobs that were running and cannot run again.
    pub interrupted: Vec<JobRow>,
    /// Jobs to run: queued before, or running and idempotent. Jobs with an error only have to be ended.
    pub queued: Vec<JobRow>,
}

/// Recovers the journal at the start of the host. Jobs recorded as running were interrupted. Jobs that were told to
/// stop are queued with the reason, to be ended without running.
pub fn recover(tx: &Tx<'_>, now_ms: u64) -> Result<Recovered> {
    let error = Error::interrupted("the host stopped while the job was running");
    tx.execute(
        "UPDATE jobs SET state = 'queued', updated_at_ms = ?1 WHERE state = 'running' AND (idempotent OR error IS NOT NULL)",
        [now_ms],
    )?;
    let lost = unsettled(tx)?.into_iter().filter(|job| job.state == JobState::Running);
    let mut found = Recovered::default();
    for job in lost {
        settle(tx, &job.id, JobState::Interrupted, None, Some(&error), now_ms)?;
        found.interrupted.push(JobRow {
            state: JobState::Interrupted,
            error: Some(error.clone()),
            updated_at_ms: now_ms,
            ..job
        });
    }
    found.queued = unsettled(tx)?;
    Ok(found)
}

/// Deletes at most `batch` ended jobs: those unchanged since `before_ms`, and those beyond the newest `keep`. Returns
/// their ids; call again until there are none.
pub fn prune(tx: &Tx<'_>, keep: usize, before_ms: u64, batch: usize) -> Result<Vec<String>> {
    let mut delete = tx.prepare_cached(
        "DELETE FROM jobs WHERE id IN ( \
             SELECT id FROM jobs WHERE state NOT IN ('queued', 'running') \
             AND (updated_at_ms < ?2 OR id <= (SELECT id FROM jobs ORDER BY id DESC LIMIT 1 OFFSET ?1)) \
             ORDER BY id LIMIT ?3) RETURNING id",
    )?;
    let mut gone =
        delete.query_map(params![keep, before_ms, batch], |row| row.get(0))?.collect::<Result<Vec<_>, _>>()?;
    gone.sort();
    Ok(gone)
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
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::TestStore;

    fn job(id: &str) -> JobRow {
        JobRow {
            id: id.into(),
            agent: "charon".into(),
            service: "memory".into(),
            operation: "create".into(),
            effect: "write".into(),
            idempotent: false,
            state: JobState::Queued,
            correlation_id: Some(format!("c-{id}")),
            principal: "operator".into(),
            request: json!({"kind": "note", "content": null}),
            result: None,
            error: None,
            created_at_ms: 10,
            started_at_ms: None,
            updated_at_ms: 10,
            attempt: 0,
        }
    }

    #[test]
    fn a_job_is_read_as_it_was_written() {
        let store = TestStore::new();
        let ended = JobRow {
            state: JobState::Failed,
            result: Some(json!("text")),
            error: Some(Error::conflict("stale")),
            started_at_ms: Some(11),
            ..job("a")
        };
        let written = ended.clone();
        store.write_blocking(move |tx| insert(tx, &written)).unwrap();
        assert_eq!(store.look(|conn| get(conn, "a")).unwrap(), Some(ended.clone()));
        assert_eq!(store.look(|conn| correlated(conn, "charon", "c-a")).unwrap(), Some(ended));
        assert_eq!(store.look(|conn| correlated(conn, "other", "c-a")).unwrap(), None);
        assert_eq!(store.look(|conn| get(conn, "b")).unwrap(), None);
    }

    #[test]
    fn the_first_ending_counts() {
        let store = TestStore::new();
        let seen = store.write_blocking(|tx| {
            insert(tx, &job("a"))?;
            let said = json!({"n": 1});
            let mut seen = vec![begin(tx, "a", 20)?, begin(tx, "a", 21)?];
            seen.push(settle(tx, "a", JobState::Done, Some(&said), None, 30)?);
            seen.push(settle(tx, "a", JobState::Cancelled, None, None, 31)?);
            seen.push(settle(tx, "nobody", JobState::Done, None, None, 31)?);
            assert!(settle(tx, "a", JobState::Running, None, None, 32).is_err());
            Ok(seen)
        });
        assert_eq!(seen.unwrap(), [true, false, true, false, false]);
        let job = store.look(|conn| get(conn, "a")).unwrap().unwrap();
        assert_eq!((job.state, job.attempt, job.started_at_ms, job.updated_at_ms), (JobState::Done, 1, Some(20), 30));
        assert_eq!(job.result, Some(json!({"n": 1})));
    }

    #[test]
    fn what_was_running_is_interrupted_unless_it_may_run_again() {
        let store = TestStore::new();
        let found = store.write_blocking(|tx| {
            for (id, idempotent) in [("a", false), ("b", true), ("c", false), ("d", false)] {
                insert(tx, &JobRow { idempotent, ..job(id) })?;
            }
            for id in ["a", "b", "d"] {
                begin(tx, id, 20)?;
            }
            settle(tx, "d", JobState::Done, None, None, 25)?;
            recover(tx, 30)
        });
        let found = found.unwrap();
        let ids = |jobs: &[JobRow]| jobs.iter().map(|job| job.id.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!((ids(&found.interrupted), ids(&found.queued)), ("a".into(), "b c".into()));
        let after = store.look(|conn| get(conn, "a")).unwrap().unwrap();
        assert_eq!(after, found.interrupted[0]);
        assert_eq!(store.write_blocking(|tx| recover(tx, 40)).unwrap().interrupted, []);
    }

    #[test]
    fn what_was_told_to_stop_is_found_with_the_reason_whatever_it_was_doing() {
        let store = TestStore::new();
        let found = store.write_blocking(|tx| {
            for id in ["a", "b", "c"] {
                insert(tx, &job(id))?;
            }
            begin(tx, "b", 20)?;
            settle(tx, "c", JobState::Done, None, None, 25)?;
            for id in ["a", "b", "c"] {
                stop(tx, id, &Error::cancelled("enough"))?;
            }
            recover(tx, 30)
        });
        let found = found.unwrap();
        let reasons: Vec<_> = found.queued.iter().map(|job| (job.id.as_str(), job.error.is_some())).collect();
        assert_eq!((reasons, found.interrupted), (vec![("a", true), ("b", true)], vec![]));
        assert_eq!(store.look(|conn| get(conn, "c")).unwrap().unwrap().error, None, "it had ended before");
    }

    #[test]
    fn retention_keeps_the_young_the_newest_and_the_unfinished() {
        let store = TestStore::new();
        let fill = |tx: &Tx<'_>| {
            for n in 0..10u64 {
                let state = if n == 3 { JobState::Running } else { JobState::Done };
                insert(tx, &JobRow { state, updated_at_ms: n, ..job(&format!("j{n}")) })?;
            }
            Ok(())
        };
        store.write_blocking(fill).unwrap();
        let gone =
            |keep, before, batch| store.write_blocking(move |tx| prune(tx, keep, before, batch)).unwrap().join(" ");
        assert_eq!(gone(100, 2, 10), "j0 j1");
        assert_eq!(gone(4, 0, 2), "j2 j4");
        assert_eq!(gone(4, 0, 2), "j5");
        assert_eq!(gone(4, 0, 2), "");
        let left: u64 =
            store.look(|conn| Ok(conn.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))?)).unwrap();
        assert_eq!(left, 5);
        assert!(store.look(|conn| get(conn, "j9")).unwrap().is_some());
    }

    #[test]
    fn a_state_has_the_same_name_in_json_and_in_the_journal() {
        for state in JobState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), json!(state.name()));
            assert_eq!(JobState::named(state.name()).unwrap(), state);
        }
    }
}
