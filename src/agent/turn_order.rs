//! The order of turns: one at a time, as they were queued. The chat uses it for an agent, recall for a conversation; it knows
//! nothing of jobs.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::sync::Mutex;

/// The turns that are queued or run. A clone is the same order.
#[derive(Clone, Default)]
pub struct TurnOrder(Arc<Mutex<TakenPlaces>>);

#[derive(Default)]
struct TakenPlaces {
    next: u64,
    /// The places that are taken, each with the waker of its turn if that waits.
    taken: BTreeMap<u64, Option<Waker>>,
}

/// The place of one turn. The next turn begins when it is dropped, and so are all before it.
pub struct TurnPlace {
    order: TurnOrder,
    number: u64,
}

impl TurnOrder {
    /// Takes a place at the end.
    pub fn take_place(&self) -> TurnPlace {
        let mut places = self.0.lock();
        let number = places.next;
        places.next += 1;
        places.taken.insert(number, None);
        TurnPlace { order: self.clone(), number }
    }

    fn poll(&self, number: u64, cx: &Context<'_>) -> Poll<()> {
        let mut places = self.0.lock();
        if places.taken.first_key_value().is_none_or(|(first, _)| *first >= number) {
            return Poll::Ready(());
        }
        match places.taken.get_mut(&number) {
            Some(waker) => *waker = Some(cx.waker().clone()),
            None => return Poll::Ready(()), // its turn is over
        }
        Poll::Pending
    }

    fn leave(&self, number: u64) {
        let mut places = self.0.lock();
        places.taken.remove(&number);
        let next = places.taken.first_entry().and_then(|mut next| next.get_mut().take());
        drop(places);
        if let Some(next) = next {
            next.wake();
        }
    }
}

impl TurnPlace {
    /// Resolves when all turns before this one are over. One task at a time may wait for it.
    pub fn is_first(&self) -> impl Future<Output = ()> + Send + use<> {
        let (order, number) = (self.order.clone(), self.number);
        poll_fn(move |cx| order.poll(number, cx))
    }
}

impl Drop for TurnPlace {
    fn drop(&mut self) {
        self.order.leave(self.number);
    }
}
