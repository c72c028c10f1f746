//! Asks the monitoring address of the server what only it tells: whether it writes to its disk before it answers.

use std::time::Duration;

use serde_json::Value;

use acheron_base::{Clock, Error, Result};
use acheron_http::{BodyBytes, Http, Request, RetryPolicy};

/// How long the server may take.
const ANSWER: Duration = Duration::from_secs(3);

/// Whether `sync_interval: always` is in force. (`sync_interval` itself goes on saying two minutes.)
pub async fn writes_at_once(monitor: &str) -> Result<bool> {
    let policy = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let url = format!("{}/varz", monitor.trim_end_matches('/'));
    let request = Request { first_byte: Some(ANSWER), idle: Some(ANSWER), ..Request::get(url) };
    let mut body = BodyBytes::default();
    // Only the pauses between attempts depend on chance and time, and there is one attempt.
    let mut dice: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(0);
    let http = Http::new(policy, Clock::at(0));
    http.fetch(&request, &mut dice, &mut body).await.map_err(|failure| failure.error)?;
    let told: Value = serde_json::from_slice(&body.0).map_err(|err| Error::unavailable(err.to_string()))?;
    Ok(told["jetstream"]["config"]["sync_always"] == true)
}
