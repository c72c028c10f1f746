//! Limits the number of running and waiting calls.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::sync::atomic::{AtomicUsize, Ordering};
use acheron_base::{Error, Result};

pub struct CallQueue {
    slots: Semaphore,
    accepted: AtomicUsize,
    limit: usize,
}

impl CallQueue {
    pub fn new(running: usize, waiting: usize) -> Self {
        CallQueue { slots: Semaphore::new(running), accepted: AtomicUsize::new(0), limit: running + waiting }
    }

    /// Whether `calls` new calls can start without waiting.
    pub fn is_free(&self, calls: usize) -> bool {
        self.slots.available_permits() >= calls
    }

    /// Admits all of `calls` or none.
    pub fn admit(&self, calls: usize) -> Result<()> {
        let fits = |accepted: usize| (accepted + calls <= self.limit).then_some(accepted + calls);
        match self.accepted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::busy(format!("{} calls are queued already; try again later", self.limit))),
        }
    }

    /// Admits a call that was accepted earlier, even beyond the limit.
    pub fn readmit(&self) {
        self.accepted.fetch_add(1, Ordering::SeqCst);
    }

    pub fn release(&self, calls: usize) {
        self.accepted.fetch_sub(calls, Ordering::SeqCst);
    }

    /// Waits for a free slot; the slot is free again when the result is dropped.
    pub(super) async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        self.slots.acquire().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_all_of_several_calls_or_they_wait() {
        let queue = CallQueue::new(2, 1);
        assert!(queue.is_free(2) && !queue.is_free(3));
        (0..5).for_each(|_| queue.readmit());
        assert!(queue.admit(1).is_err());
        queue.release(3);
        assert!(queue.admit(1).is_ok(), "what was let in again was counted");
    }
}
