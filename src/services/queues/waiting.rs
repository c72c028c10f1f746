//! Who waits for items: one signal per queue, kept in memory. Nobody polls: a put wakes one, and a delay or a lease that ends
//! wakes all at its time.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{Notify, watch};

use acheron_base::Clock;

/// No delay and no lease is known to end.
const NEVER: u64 = u64::MAX;

/// The signals of all queues.
#[derive(Default)]
pub struct QueueSignals(DashMap<String, Arc<QueueSignal>>);

impl QueueSignals {
    pub fn of(&self, queue: &str) -> Arc<QueueSignal> {
        self.0.entry(queue.to_owned()).or_default().clone()
    }

    /// The signal of a queue, if somebody waits.
    pub fn of_waiting(&self, queue: &str) -> Option<Arc<QueueSignal>> {
        self.0.get(queue).map(|signal| signal.clone())
    }

    /// Drops the signal of a queue for which nobody waits any more.
    pub fn leave(&self, queue: &str, signal: Arc<QueueSignal>) {
        drop(signal);
        self.0.remove_if(queue, |_, signal| Arc::strong_count(signal) == 1);
    }
}

pub struct QueueSignal {
    ready: Notify,
    due_ms: watch::Sender<u64>,
}

impl Default for QueueSignal {
    fn default() -> Self {
        QueueSignal { ready: Notify::new(), due_ms: watch::Sender::new(NEVER) }
    }
}

impl QueueSignal {
    /// An item is ready: somebody may take it.
    pub fn ready(&self) {
        self.ready.notify_one();
    }

    /// Something ends at this time, perhaps earlier than all that was known.
    pub fn due(&self, due_ms: u64) {
        self.due_ms.send_if_modified(|known| {
            let is_earlier = due_ms < *known;
            *known = due_ms.min(*known);
            is_earlier
        });
    }

    /// This is the first end that the database knows.
    pub fn first_due(&self, due_ms: Option<u64>) {
        self.due_ms.send_replace(due_ms.unwrap_or(NEVER));
    }

    /// A place among those that wait. What becomes ready from now on is not missed.
    pub fn place(self: &Arc<Self>) -> WaitingPlace<'_> {
        let mut ready = Box::pin(self.ready.notified());
        ready.as_mut().enable();
        WaitingPlace { ready, due_ms: self.due_ms.subscribe() }
    }
}

pub struct WaitingPlace<'a> {
    ready: std::pin::Pin<Box<tokio::sync::futures::Notified<'a>>>,
    due_ms: watch::Receiver<u64>,
}

impl WaitingPlace<'_> {
    /// Waits until an item may be ready.
    pub async fn wait(&mut self, clock: &Clock) {
        loop {
            let due_ms = *self.due_ms.borrow_and_update();
            let left = std::time::Duration::from_millis(due_ms.saturating_sub(clock.now_ms()).min(3_600_000));
            tokio::select! {
                () = &mut self.ready => return,
                // A due time that moved is only waited for anew.
                changed = self.due_ms.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(left), if due_ms != NEVER => return,
            }
        }
    }
}

/// Hands the turn to another waiter if this one goes without having taken the item that it was woken for.
pub struct PassOn(Option<Arc<QueueSignal>>);

impl PassOn {
    pub fn new(signal: &Arc<QueueSignal>) -> PassOn {
        PassOn(Some(signal.clone()))
    }

    pub fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for PassOn {
    fn drop(&mut self) {
        if let Some(signal) = self.0.take() {
            signal.ready();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_put_wakes_one_and_what_comes_before_the_wait_is_not_missed() {
        let (signal, clock) = (Arc::new(QueueSignal::default()), Clock::real());
        let mut place = signal.place();
        signal.ready();
        place.wait(&clock).await;
        let (mut one, mut other) = (signal.place(), signal.place());
        signal.ready();
        one.wait(&clock).await;
        assert!(futures_util::poll!(Box::pin(other.wait(&clock))).is_pending());
        // One that was woken and goes hands its turn on.
        drop(PassOn::new(&signal));
        other.wait(&clock).await;
    }

    #[tokio::test]
    async fn a_due_time_wakes_and_may_become_earlier() {
        let (signal, clock) = (Arc::new(QueueSignal::default()), Clock::real());
        signal.first_due(Some(clock.now_ms() + 3_000_000));
        let mut place = signal.place();
        signal.due(clock.now_ms() + 5);
        place.wait(&clock).await;
    }
}
