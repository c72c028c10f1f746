//! Decides when a request is repeated, and after how long. It is a pure function: the random numbers are an argument.
//! The client uses it.

use std::time::{Duration, SystemTime};

use rand::{Rng, RngCore};

/// Time-outs and retries of a request.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    pub connect: Duration,
    /// From sending the request to the head of the answer.
    pub first_byte: Duration,
    /// Between two chunks of the answer.
    pub idle: Duration,
    /// The number of attempts, including the first.
    pub attempts: u32,
    /// The pause after the first failure; it doubles from there.
    pub pause: Duration,
    /// The limit of a pause. A server that asks for a longer one is not waited for.
    pub longest_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            attempts: 4,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
        }
    }
}

/// Whether a request may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    Never,
    /// It may; the server may have said after how long.
    After(Option<Duration>),
}

impl RetryPolicy {
    /// The pause before the next attempt after `failed` failures; `None` gives up.
    ///
    /// A pause that the server asks for is kept exactly; our own is random between half and the whole of its length, so
    /// that clients that failed together do not return together.
    pub fn pause_after(&self, failed: u32, retry: Retry, rng: &mut dyn RngCore) -> Option<Duration> {
        let Retry::After(retry_after) = retry else { return None };
        if failed >= self.attempts {
            return None;
        }
        match retry_after {
            Some(retry_after) => (retry_after <= self.longest_pause).then_some(retry_after),
            None => {
                let doubled = self.pause.saturating_mul(1 << failed.saturating_sub(1).min(20));
                Some(doubled.min(self.longest_pause).mul_f64(rng.random_range(0.5..=1.0)))
            }
        }
    }
}

/// Reads a `Retry-After`: seconds, or a date. A date is counted from the clock of the server (its `Date`), because ours
/// may differ, or from `now` without one. A past date means immediately.
pub fn retry_after(header: Option<&str>, date: Option<&str>, now: SystemTime) -> Option<Duration> {
    let header = header?.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(1e9)));
    }
    let then = httpdate::parse_http_date(header).ok()?;
    let from = date.and_then(|date| httpdate::parse_http_date(date.trim()).ok()).unwrap_or(now);
    Some(then.duration_since(from).unwrap_or_default())
}

/// Whether a status is temporary: too many requests, a time-out, or a fault of the server.
pub fn transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599) && !matches!(status, 501 | 505)
}

#[cfg(test)]
mod tests;
