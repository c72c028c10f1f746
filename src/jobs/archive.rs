//! The directory of an archived job, whose files are fetched from the store when they are read.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::files::{ResultPage, plain, request, transcript};
use super::{JobRow, JobStatus, JobStore};
use acheron_base::{Error, Result};
use acheron_vfs::{ComputedFile, Listing, Node, line};

/// The directory of the job `id` of `agent`, read from `store`. Whether it was a turn is known by reading: its transcript is not listed.
pub fn directory(store: &Arc<dyn JobStore>, agent: &str, id: &str) -> Listing {
    let file = |show: fn(&JobRow) -> Bytes| {
        let (store, id) = (store.clone(), id.to_owned());
        ComputedFile::fetched(move |_| store.fetch(&id).and(move |row| Ok(show(&row.ok_or_else(gone)?))))
    };
    Listing::default()
        .file("status.json", file(|row| line(&status(row))))
        .file("progress.json", file(|row| line(&status(row))))
        .file("result.txt", file(|row| plain(&Arc::new(outcome(row)))))
        .file("result.json", file(answer))
        .file("request.json", file(|row| request(&row.service, &row.operation, &row.request)))
        .unlisted("transcript.ndjson", Node::file(transcript(store, agent, id)))
}

fn gone() -> Error {
    Error::not_found("this job is no longer kept")
}

fn status(row: &JobRow) -> JobStatus<'_> {
    JobStatus {
        job_id: &row.id,
        state: row.state,
        service: &row.service,
        operation: &row.operation,
        agent: &row.agent,
        correlation_id: row.correlation_id.as_deref(),
        created_at_ms: row.created_at_ms,
        started_at_ms: row.started_at_ms,
        updated_at_ms: row.updated_at_ms,
        attempt: row.attempt,
        error: row.error.as_ref(),
    }
}

/// The status of a journaled job as JSON.
pub fn status_json(row: &JobRow) -> Value {
    serde_json::to_value(status(row)).unwrap_or_default()
}

fn outcome(row: &JobRow) -> Result<Value> {
    match (&row.result, &row.error) {
        (_, Some(error)) => Err(error.clone()),
        (Some(result), None) => Ok(result.clone()),
        (None, None) => Ok(Value::Null),
    }
}

fn answer(row: &JobRow) -> Bytes {
    let (result, error) = (row.result.as_ref(), row.error.as_ref());
    line(&ResultPage { ok: error.is_none(), operation: Some(&row.operation), job_id: Some(&row.id), result, error })
}
