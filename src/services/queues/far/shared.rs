//! Which queues all hosts share, and the backend of them while this host is joined to the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::services::queues::backend::{DeadItem, LeasedItem, Queue, TakeRequest, Taken};
use crate::services::queues::lease::ItemEvent;
use acheron_base::{Clock, Error, Result};

/// Without a hint it is looked so often whether there is an item: hints may be lost.
const LOOK: Duration = Duration::from_secs(1);

/// A queue of the fabric: what it can do beside the trait of all queues.
#[async_trait]
pub trait FarQueue: Queue {
    /// [`Queue::settle`]; returns the time at which the item may be taken again, if it may.
    async fn settle_due(&self, event: &ItemEvent, error: Option<String>, now_ms: u64) -> Result<Option<u64>>;

    /// One dead item.
    async fn dead_one(&self, queue: &str, id: &str) -> Result<Option<DeadItem>>;

    /// The ids of dead items as they were last seen.
    fn known_dead(&self, queue: &str, most: usize) -> Vec<String>;

    /// Tells all hosts that there may be something to take.
    async fn hint(&self, queue: &str);
}

/// The queues that all hosts share.
pub struct FarQueues {
    names: BTreeSet<String>,
    /// With the runtime that its requests need; a reader's thread is not in it.
    current: RwLock<Option<(Arc<dyn FarQueue>, Handle)>>,
    /// Counts hints.
    hints: watch::Sender<u64>,
}

impl FarQueues {
    pub fn new(names: &[String]) -> FarQueues {
        FarQueues { names: names.iter().cloned().collect(), current: RwLock::default(), hints: watch::Sender::new(0) }
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn has(&self, queue: &str) -> bool {
        self.names.contains(queue)
    }

    pub fn names(&self) -> Vec<String> {
        self.names.iter().cloned().collect()
    }

    /// This host is joined to others, or no more.
    pub fn set(&self, queue: Option<(Arc<dyn FarQueue>, Handle)>) {
        *self.current.write() = queue;
        self.hinted();
    }

    /// There may be something to take.
    pub fn hinted(&self) {
        self.hints.send_modify(|count| *count += 1);
    }

    pub fn current(&self) -> Result<Arc<dyn FarQueue>> {
        let current = self.current.read().clone();
        current.map(|(queue, _)| queue).ok_or_else(|| {
            Error::unavailable("this queue is shared with other hosts, and this host is not joined to them now; meta/health.json says why")
        })
    }

    /// Asks on the runtime of the host.
    pub async fn ask<T, F>(&self, question: impl FnOnce(Arc<dyn FarQueue>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let queue = self.current()?;
        let runtime = self.current.read().as_ref().map(|(_, runtime)| runtime.clone());
        let runtime = runtime.ok_or_else(|| Error::unavailable("this host is not joined to others now"))?;
        runtime.spawn(question(queue)).await.map_err(|err| Error::internal(err.to_string()))?
    }

    /// Leases an item as soon as there is one; none if there is none in time.
    pub async fn take(&self, wanted: TakeRequest, wait: Duration, clock: &Clock) -> Result<Option<LeasedItem>> {
        let until = tokio::time::Instant::now() + wait;
        let mut hints = self.hints.subscribe();
        loop {
            hints.borrow_and_update();
            let wanted = TakeRequest { at_ms: clock.now_ms(), ..wanted.clone() };
            let due_ms = match self.current()?.take(wanted).await? {
                Taken::Leased { item, .. } => return Ok(Some(item)),
                Taken::Empty { due_ms } => due_ms,
            };
            let left =
                due_ms.map_or(LOOK, |due_ms| Duration::from_millis(due_ms.saturating_sub(clock.now_ms())).min(LOOK));
            if tokio::time::timeout_at(until.min(tokio::time::Instant::now() + left), hints.changed()).await.is_err()
                && tokio::time::Instant::now() >= until
            {
                return Ok(None);
            }
        }
    }
}
