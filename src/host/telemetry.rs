//! Traces for OpenTelemetry: the jobs and turns that have ended are read from the journal now and then, and sent to a collector as
//! OTLP in JSON. Where no collector is named nothing is read, and nothing that works is slowed down in any case: no span is kept
//! while something runs. What a collector does not take is dropped and counted.

mod spans;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use crate::agent::transcript::TranscriptRecord;
use crate::jobs::TURN_SERVICE;
use crate::state::{jobs, turns};
use acheron_base::{Clock, Random, Result, blocking};
use acheron_http::retry::RetryPolicy;
use acheron_http::{BodyBytes, Http, Request};
use acheron_store::Store;
use spans::Span;

/// The time between two looks at the journal.
const EVERY: Duration = Duration::from_secs(2);
/// What ended so recently is left for the next look: commits are grouped, and one may be later than its time says.
const SETTLED_MS: u64 = 1500;
/// The jobs of one export.
const BATCH: usize = 200;

/// Sends traces as long as it is held.
pub struct TraceExport {
    dropped: Arc<AtomicU64>,
    _task: AbortOnDropHandle<()>,
}

impl TraceExport {
    /// The number of spans that no collector took.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Begins to send to the collector at `endpoint`: `/v1/traces` is added. Must be called within a runtime.
pub fn begin(endpoint: &str, host: String, store: Store, clock: Clock, random: Random) -> TraceExport {
    let dropped = Arc::new(AtomicU64::new(0));
    let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let (lost, http) = (dropped.clone(), Http::new(RetryPolicy::default(), clock.clone()));
    let task = tokio::spawn(async move {
        let mut after = (clock.now_ms(), String::new());
        loop {
            tokio::time::sleep(EVERY).await;
            let before_ms = clock.now_ms().saturating_sub(SETTLED_MS);
            let (read, place) = (store.clone(), after.clone());
            let found = match blocking(move || ended(&read, &place, before_ms)).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(%error, "the journal could not be read for traces");
                    continue;
                }
            };
            let Some((last, spans)) = found else { continue };
            after = last;
            let request = Request::post(&url, &spans::document(&spans, &host));
            // Only the pauses between attempts depend on it.
            let mut dice: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(random.number());
            if let Err(failure) = http.fetch(&request, &mut dice, &mut BodyBytes::default()).await {
                lost.fetch_add(spans.len() as u64, Ordering::Relaxed);
                tracing::warn!(error = %failure.error, spans = spans.len(), "a collector did not take traces");
            }
        }
    });
    TraceExport { dropped, _task: AbortOnDropHandle::new(task) }
}

/// A place in the journal: when a job ended, and its id.
type Place = (u64, String);

/// The spans of the jobs that ended after a place, and the place of the last.
fn ended(store: &Store, after: &Place, before_ms: u64) -> Result<Option<(Place, Vec<Span>)>> {
    let rows = store.look(|conn| jobs::ended_after(conn, after.0, &after.1, before_ms, BATCH))?;
    let Some(last) = rows.last().map(|row| (row.updated_at_ms, row.id.clone())) else { return Ok(None) };
    let mut spans = Vec::new();
    for row in rows {
        let records = match row.service == TURN_SERVICE {
            true => store.look(|conn| turns::records(conn, &row.agent, &row.id))?,
            false => Vec::new(),
        };
        // One that another version wrote is left out.
        let records: Vec<TranscriptRecord> =
            records.iter().filter_map(|record| serde_json::from_str(record).ok()).collect();
        spans.extend(spans::of_job(&row, &records));
    }
    Ok(Some((last, spans)))
}
