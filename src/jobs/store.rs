//! Durable storage of jobs: the trait, and its implementation by the database.

use serde_json::Value;

use super::{Job, JobSnapshot};
use crate::state::{jobs as journal, turns};
use acheron_base::Error;
use acheron_store::Store;
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
        result: outcome.and_then(|outcome| outcome.as_ref().ok()).map(|result| stored_result(job, result.clone())),
        error: outcome.and_then(|outcome| outcome.as_ref().err().cloned()),
        created_at_ms: job.created_at_ms,
        started_at_ms: now.started_at_ms,
        updated_at_ms: now.updated_at_ms,
        attempt: now.attempt,
        approval: job.approval(),
    }
}

/// What is stored of a result.
pub fn stored_result(job: &Job, result: Value) -> Value {
    if job.call.private { withheld() } else { result }
}

/// Replaces private arguments and results in the journal.
fn withheld() -> Value {
    serde_json::json!({ "withheld": true })
}

/// What the jobs in memory ask of the journal.
pub trait JobStore: Send + Sync {
    /// Records that a job was told to stop; durable when the future resolves.
    fn stopped(&self, id: &str, error: Error) -> Later<()>;

    /// Reads an ended job that is no longer in memory.
    fn fetch(&self, id: &str) -> Answer<Option<JobRow>>;

    /// The newest jobs of the journal without requests and results, newest first: of one agent, or of all.
    fn newest(&self, agent: Option<&str>, most: usize) -> Answer<Vec<JobRow>>;

    /// The records of a turn, one JSON object each.
    fn transcript(&self, agent: &str, id: &str) -> Answer<Vec<String>>;
}

/// The journal in the database.
impl JobStore for Store {
    fn stopped(&self, id: &str, error: Error) -> Later<()> {
        let id = id.to_owned();
        Box::pin(self.write(move |tx| journal::stop(tx, &id, &error)))
    }

    fn fetch(&self, id: &str) -> Answer<Option<JobRow>> {
        let (store, id) = (self.clone(), id.to_owned());
        Answer::soon(async move { store.read(move |conn| journal::get(conn, &id)).await })
    }

    fn newest(&self, agent: Option<&str>, most: usize) -> Answer<Vec<JobRow>> {
        let (store, agent) = (self.clone(), agent.map(str::to_owned));
        Answer::soon(async move { store.read(move |conn| journal::newest(conn, agent.as_deref(), most)).await })
    }

    fn transcript(&self, agent: &str, id: &str) -> Answer<Vec<String>> {
        let (store, agent, id) = (self.clone(), agent.to_owned(), id.to_owned());
        Answer::soon(async move { store.read(move |conn| turns::records(conn, &agent, &id)).await })
    }
}
