//! How long the thread of the session is kept by one request: while it is, no other request is answered. The server uses
//! it; it knows the kinds of requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::request_counts::Operation;

/// The upper limits of the buckets in microseconds; the last bucket has none.
const LIMITS: [u64; 8] = [100, 300, 1_000, 3_000, 10_000, 50_000, 250_000, 1_000_000];

/// The times of one kind of request.
#[derive(Default)]
struct Histogram {
    buckets: [AtomicU64; LIMITS.len() + 1],
    longest_us: AtomicU64,
}

#[derive(Default)]
pub struct RequestTimes {
    kinds: [Histogram; Operation::COUNT],
    worst_us: AtomicU64,
    worst: Mutex<Option<WorstRequest>>,
}

/// The request that kept the thread for the longest time.
#[derive(Clone, Debug)]
pub struct WorstRequest {
    /// The kind of the request.
    pub kind: &'static str,
    /// The part of the tree, without the names that callers chose.
    pub place: String,
    /// How long it took.
    pub took: Duration,
}

/// The times of one kind of request, as they are shown.
#[derive(Clone, Debug)]
pub struct KindTimes {
    /// The number of requests in each bucket; a limit in microseconds, `None` for the last.
    pub buckets: Vec<(Option<u64>, u64)>,
    /// The longest.
    pub longest: Duration,
}

impl RequestTimes {
    /// Counts a request; `place` is called if it is the longest so far.
    pub fn count(&self, operation: Operation, took: Duration, place: impl FnOnce() -> String) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let kind = &self.kinds[operation as usize];
        let bucket = LIMITS.partition_point(|limit| *limit <= us);
        kind.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        kind.longest_us.fetch_max(us, Ordering::Relaxed);
        if self.worst_us.fetch_max(us, Ordering::Relaxed) < us {
            *self.worst.lock() = Some(WorstRequest { kind: operation.word(), place: place(), took });
        }
    }

    pub fn worst(&self) -> Option<WorstRequest> {
        self.worst.lock().clone()
    }

    /// Every kind with at least one request.
    pub fn kinds(&self) -> BTreeMap<&'static str, KindTimes> {
        let shown = self.kinds.iter().enumerate().filter_map(|(at, kind)| {
            let counts = kind.buckets.iter().map(|count| count.load(Ordering::Relaxed));
            let limits = LIMITS.iter().copied().map(Some).chain([None]);
            let buckets: Vec<_> = limits.zip(counts).filter(|(_, count)| *count > 0).collect();
            let longest = Duration::from_micros(kind.longest_us.load(Ordering::Relaxed));
            (!buckets.is_empty()).then(|| (Operation::WORDS[at], KindTimes { buckets, longest }))
        });
        shown.collect()
    }
}

/// The part of the tree that `path` belongs to: an agent's name is replaced, and what is deeper than a part of a service
/// is left out.
pub fn place_of(path: &str) -> String {
    let shown = |(depth, name): (usize, &str)| match depth {
        1 => "*".to_owned(),
        _ => name.to_owned(),
    };
    path.split('/').filter(|name| !name.is_empty()).enumerate().take(4).map(shown).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_in_its_bucket_and_the_worst_is_kept() {
        let times = RequestTimes::default();
        for (operation, us) in [(Operation::Lookup, 99), (Operation::Lookup, 100), (Operation::Read, 2_000_000)] {
            times.count(operation, Duration::from_micros(us), || format!("after {us}"));
        }
        times.count(Operation::Read, Duration::from_micros(5), || "not the worst".to_owned());
        let kinds = times.kinds();
        assert_eq!(kinds["lookup"].buckets, [(Some(100), 1), (Some(300), 1)]);
        assert_eq!(kinds["read"].buckets, [(Some(100), 1), (None, 1)]);
        assert_eq!(kinds["read"].longest, Duration::from_secs(2));
        let worst = times.worst().unwrap();
        assert_eq!((worst.kind, worst.place.as_str()), ("read", "after 2000000"));
    }

    #[test]
    fn a_place_tells_no_name_that_a_caller_chose() {
        assert_eq!(place_of("/agents/ada/recall/by/broken/Secret.md"), "agents/*/recall/by");
        assert_eq!((place_of("/meta/metrics.json"), place_of("/")), ("meta/*".to_owned(), String::new()));
    }
}
