//! Durable storage of jobs: the trait, and its implementation by the database.

use serde_json::Value;

use super::{Job, JobSnapshot};
use crate::state::jobs as journal;
use acheron_base::{Error, Result};
use acheron_store::{Change, Store, Tx};
use acheron_vfs::{Answer, Later};

pub use crate::state::jobs::JobRow;

/// The journal row of a job.
pub fn row(job: &Job, now: &JobSnapshot) -> JobRow {
    let outcome = now.outcome.as_deref();
    JobRow {
        id: job.id.clone(),
        agent: job.call.agent.clone(),
        service: job.call.service.clone(),
        operation: job.call.operation.clone(),
        effect: job.call.effect.name().to_owned(),
        idempotent: job.call.idempotent,
        state: now.state,
        correlation_id: job.call.correlation_id.clone(),
        principal: job.call.principal.to_string(),
        request: if job.call.private { withheld() } else { job.call.arguments.clone() },
        result: outcome.and_then(|outcome| kept(job, outcome)),
        error: outcome.and_then(|outcome| outcome.as_ref().err().cloned()),
        created_at_ms: job.created_at_ms,
        started_at_ms: now.started_at_ms,
        updated_at_ms: now.updated_at_ms,
        attempt: now.attempt,
    }
}

/// The part of the outcome that is stored as the result.
fn kept(job: &Job, outcome: &Result<Value>) -> Option<Value> {
    match outcome {
        Ok(_) if job.call.private => Some(withheld()),
        Ok(result) => Some(result.clone()),
        Err(_) => None,
    }
}

/// Replaces private arguments and results in the journal.
fn withheld() -> Value {
    serde_json::json!({ "withheld": true })
}

/// Stores the jobs that have effects.
pub trait JobStore: Send + Sync {
    /// Inserts new jobs, all or none; they are durable when the answer resolves.
    fn accept(&self, rows: Vec<JobRow>) -> Answer<()>;

    /// Records that a job starts; durable when the future resolves. The job may start only then: a job that is found
    /// queued after a crash runs, and one that has run must not run again.
    fn begun(&self, id: &str, at_ms: u64) -> Later<()>;

    /// Records that a job was told to stop; durable when the future resolves.
    fn stopped(&self, id: &str, error: Error) -> Later<()>;

    /// The database change that records the end of a job. It is written together with the event about it, so that
    /// neither is stored without the other. `None` if nothing is stored.
    fn settling(&self, row: JobRow) -> Option<Change>;

    /// Reads an ended job that is no longer in memory.
    fn fetch(&self, id: &str) -> Answer<Option<JobRow>>;
}

/// Stores nothing: for tests and for hosts without a state directory.
pub struct NoJobStore;

impl JobStore for NoJobStore {
    fn accept(&self, _rows: Vec<JobRow>) -> Answer<()> {
        Answer::ok(())
    }

    fn begun(&self, _id: &str, _at_ms: u64) -> Later<()> {
        Box::pin(async { Result::Ok(()) })
    }

    fn stopped(&self, _id: &str, _error: Error) -> Later<()> {
        Box::pin(async { Result::Ok(()) })
    }

    fn settling(&self, _row: JobRow) -> Option<Change> {
        None
    }

    fn fetch(&self, _id: &str) -> Answer<Option<JobRow>> {
        Answer::ok(None)
    }
}

/// The journal in the database.
impl JobStore for Store {
    fn accept(&self, rows: Vec<JobRow>) -> Answer<()> {
        let accept = move |tx: &Tx<'_>| rows.iter().try_for_each(|row| journal::insert(tx, row));
        Answer::soon(self.write(accept))
    }

    fn begun(&self, id: &str, at_ms: u64) -> Later<()> {
        let id = id.to_owned();
        let begun = self.write(move |tx| journal::begin(tx, &id, at_ms));
        Box::pin(async { begun.await.map(|_| ()) })
    }

    fn stopped(&self, id: &str, error: Error) -> Later<()> {
        let id = id.to_owned();
        Box::pin(self.write(move |tx| journal::stop(tx, &id, &error)))
    }

    fn settling(&self, row: JobRow) -> Option<Change> {
        Some(Box::new(move |tx| {
            journal::settle(tx, &row.id, row.state, row.result.as_ref(), row.error.as_ref(), row.updated_at_ms)
                .map(drop)
        }))
    }

    fn fetch(&self, id: &str) -> Answer<Option<JobRow>> {
        let (store, id) = (self.clone(), id.to_owned());
        Answer::soon(async move { store.read(move |conn| journal::get(conn, &id)).await })
    }
}
