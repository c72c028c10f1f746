//! How many requests one caller may make: a bucket that fills with time. Pure but for its lock.

use std::collections::HashMap;

use parking_lot::Mutex;

/// The most callers that are remembered; those that may make all their requests again need not be.
const CALLERS: usize = 4096;

/// The requests of callers by name.
pub struct RequestRate {
    /// Requests per second, and how many may come at once.
    per_second: u64,
    burst: u64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    /// In thousandths of a request.
    left: u64,
    at_ms: u64,
}

impl RequestRate {
    pub fn new(per_second: u64, burst: u64) -> RequestRate {
        RequestRate { per_second, burst, buckets: Mutex::default() }
    }

    /// Takes one request of a caller; `false` if it has none left.
    pub fn take(&self, caller: &str, now_ms: u64) -> bool {
        let (full, mut buckets) = (self.burst * 1000, self.buckets.lock());
        if buckets.len() >= CALLERS && !buckets.contains_key(caller) {
            buckets.retain(|_, bucket| self.filled(bucket, now_ms) < full);
        }
        let bucket = buckets.entry(caller.to_owned()).or_insert(Bucket { left: full, at_ms: now_ms });
        (bucket.left, bucket.at_ms) = (self.filled(bucket, now_ms), now_ms);
        let may = bucket.left >= 1000;
        bucket.left -= if may { 1000 } else { 0 };
        may
    }

    fn filled(&self, bucket: &Bucket, now_ms: u64) -> u64 {
        let more = now_ms.saturating_sub(bucket.at_ms).saturating_mul(self.per_second);
        bucket.left.saturating_add(more).min(self.burst * 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_a_rate_of_its_own() {
        let rate = RequestRate::new(10, 3);
        let times = |caller: &str, now: u64| (0..5).filter(|_| rate.take(caller, now)).count();
        assert_eq!((times("ada", 0), times("ada", 50), times("bob", 50)), (3, 0, 3));
        assert_eq!((times("ada", 100), times("ada", 60_000)), (1, 3));
        assert_eq!(times("ada", 0), 0, "a clock that goes back gives nothing");
    }
}
