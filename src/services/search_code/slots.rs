//! How many searches run at once, of one agent and of all. A search keeps a processor busy, and the thread that answers
//! everybody needs one, too: so few run at once, each on a thread that gives way to others.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use acheron_base::{Error, Result};

/// The priority of a searching thread: other threads have about ten times its share of a processor that both want.
const NICE: i32 = 10;

/// The searches of all agents.
pub struct SearchSlots {
    all: Arc<Semaphore>,
    /// Those of each agent that has some.
    own: Mutex<HashMap<String, Weak<Semaphore>>>,
    each: usize,
}

/// A place for one search; dropping it frees the place.
pub struct SearchSlot {
    _own: (OwnedSemaphorePermit, Arc<Semaphore>),
    _all: OwnedSemaphorePermit,
}

impl Default for SearchSlots {
    /// As many as there are processors, and half of them for one agent.
    fn default() -> Self {
        let all = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        SearchSlots::new(all, all / 2)
    }
}

impl SearchSlots {
    fn new(all: usize, each: usize) -> SearchSlots {
        SearchSlots { all: Arc::new(Semaphore::new(all)), own: Mutex::default(), each }
    }

    fn of(&self, agent: &str) -> Arc<Semaphore> {
        let mut own = self.own.lock();
        own.retain(|_, slots| slots.strong_count() > 0);
        if let Some(slots) = own.get(agent).and_then(Weak::upgrade) {
            return slots;
        }
        let slots = Arc::new(Semaphore::new(self.each));
        own.insert(agent.to_owned(), Arc::downgrade(&slots));
        slots
    }

    /// Waits for a place: first among those of the agent, so that before the others it waits with few of its own.
    pub async fn take(&self, agent: &str) -> Result<SearchSlot> {
        let gone = |_| Error::unavailable("the host is shutting down");
        let slots = self.of(agent);
        let own = slots.clone().acquire_owned().await.map_err(gone)?;
        let all = self.all.clone().acquire_owned().await.map_err(gone)?;
        Ok(SearchSlot { _own: (own, slots), _all: all })
    }
}

/// Runs a search on a thread of its own, which ends with it: a priority that was lowered is not raised again.
pub async fn on_quiet_thread<T: Send + 'static>(
    slot: SearchSlot,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (answer, found) = oneshot::channel();
    let search = move || {
        // Where it is refused the search is only louder.
        _ = rustix::process::setpriority_process(None, NICE);
        _ = answer.send(work());
        drop(slot);
    };
    std::thread::Builder::new().name("search".to_owned()).spawn(search)?;
    found.await.map_err(|_| Error::internal("the search broke down"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_agent_leaves_room_for_another() {
        use futures_util::FutureExt;
        let slots = SearchSlots::new(2, 1);
        let first = slots.take("mal").await.unwrap();
        let mut waiting: Vec<_> = (0..60).map(|_| Box::pin(slots.take("mal"))).collect();
        assert!(waiting.iter_mut().all(|slot| slot.as_mut().now_or_never().is_none()));
        let other = slots.take("vic").now_or_never().expect("there is room").unwrap();
        drop(first);
        assert!(waiting[0].as_mut().now_or_never().is_some(), "the next one of the same agent");
        drop((waiting, other));
        assert_eq!(slots.all.available_permits(), 2);
        assert_eq!(slots.of("mal").available_permits(), 1);
    }

    #[tokio::test]
    async fn the_place_is_taken_until_the_work_ends_even_if_nobody_waits_for_it() {
        let slots = SearchSlots::new(1, 1);
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let slot = slots.take("ada").await.unwrap();
        let mut searching = Box::pin(on_quiet_thread(slot, move || wait.recv().map_err(|_| Error::internal("gone"))));
        assert!(futures_util::poll!(searching.as_mut()).is_pending());
        drop(searching);
        assert_eq!(slots.all.available_permits(), 0);
        go.send(()).unwrap();
        slots.take("ada").await.unwrap();
    }
}
