//! The current time. Code gets a clock instead of asking the system, so that a run can be replayed. Deadlines belong to
//! the runtime and not to this clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NS_PER_MS: u64 = 1_000_000;

/// The clock of the system, or one that stands still until it is set. Cheap to clone; clones of a set clock agree.
#[derive(Clone, Debug)]
pub struct Clock(Option<Arc<AtomicU64>>);

impl Clock {
    /// The clock of the system.
    pub fn real() -> Clock {
        Clock(None)
    }

    /// A clock that shows `ms` until it is set.
    pub fn at(ms: u64) -> Clock {
        Clock(Some(Arc::new(AtomicU64::new(ms.saturating_mul(NS_PER_MS)))))
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.now_ns() / NS_PER_MS
    }

    /// The time as files have it.
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.now_ns())
    }

    /// Nanoseconds since 1970; enough until the year 2554.
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Some(set) => set.load(Ordering::SeqCst),
            // A system clock before 1970 reads as 1970.
            None => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
        }
    }

    /// Sets a clock made by [`Clock::at`]; has no effect on the real one.
    pub fn set(&self, ms: u64) {
        if let Some(set) = &self.0 {
            set.store(ms.saturating_mul(NS_PER_MS), Ordering::SeqCst);
        }
    }

    /// Moves a clock made by [`Clock::at`] forward.
    pub fn advance(&self, ms: u64) {
        if let Some(set) = &self.0 {
            set.fetch_add(ms.saturating_mul(NS_PER_MS), Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_clock_stands_still_and_its_clones_agree() {
        let clock = Clock::at(5);
        let other = clock.clone();
        other.advance(2);
        assert_eq!((clock.now_ms(), clock.now_ns()), (7, 7_000_000));
        clock.set(1);
        assert_eq!(other.now_ms(), 1);
    }

    #[test]
    fn the_real_clock_cannot_be_set() {
        let clock = Clock::real();
        clock.set(1);
        assert!(clock.now_ms() > 1_600_000_000_000);
    }
}
