//! Where jobs are kept so that they outlive the host.

use serde_json::Value;

use super::{Job, State};
use crate::contract::Effect;
use crate::error::{Error, Result};
use crate::vfs::{Answer, Later};

/// All of a job that is worth keeping.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    pub agent: String,
    pub service: String,
    pub operation: String,
    pub effect: Effect,
    pub idempotent: bool,
    pub state: State,
    pub correlation_id: Option<String>,
    pub principal: String,
    pub arguments: Value,
    pub result: Option<Value>,
    pub error: Option<Error>,
    pub created_at_ms: u64,
    pub started_at_ms: Option<u64>,
    pub updated_at_ms: u64,
    pub attempt: u32,
}

impl Row {
    pub fn of(job: &Job) -> Row {
        let now = job.now();
        let outcome = now.outcome.as_deref();
        Row {
            id: job.id.clone(),
            agent: job.call.agent.clone(),
            service: job.call.service.clone(),
            operation: job.call.operation.clone(),
            effect: job.call.effect,
            idempotent: job.call.idempotent,
            state: now.state,
            correlation_id: job.call.correlation_id.clone(),
            principal: job.call.principal.to_string(),
            arguments: job.call.arguments.clone(),
            result: outcome.and_then(|outcome| outcome.as_ref().ok().cloned()),
            error: outcome.and_then(|outcome| outcome.as_ref().err().cloned()),
            created_at_ms: job.created_at_ms,
            started_at_ms: now.started_at_ms,
            updated_at_ms: now.updated_at_ms,
            attempt: now.attempt,
        }
    }
}

/// Keeps the jobs whose effects matter.
pub trait Keep: Send + Sync {
    /// Notes new jobs, all or none; they are safe when the answer is there.
    fn accept(&self, rows: Vec<Row>) -> Answer<()>;

    /// Notes that a job began. Nobody waits for it: a job found queued and one found running end alike.
    fn begun(&self, id: &str, at_ms: u64, attempt: u32);

    /// Notes how a job ended; safe when the future is done.
    fn settled(&self, row: Row) -> Later<()>;

    /// An ended job that is no longer in memory.
    fn fetch(&self, id: &str) -> Answer<Option<Row>>;
}

/// Keeps nothing: for tests, and for hosts that need not remember.
pub struct Forgetful;

impl Keep for Forgetful {
    fn accept(&self, _rows: Vec<Row>) -> Answer<()> {
        Answer::ok(())
    }

    fn begun(&self, _id: &str, _at_ms: u64, _attempt: u32) {}

    fn settled(&self, _row: Row) -> Later<()> {
        Box::pin(async { Result::Ok(()) })
    }

    fn fetch(&self, _id: &str) -> Answer<Option<Row>> {
        Answer::ok(None)
    }
}
