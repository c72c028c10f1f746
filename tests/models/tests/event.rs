//! What a reader waits for in the models: a count that must be reached.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use acheron_base::Result;
use acheron_models::sync::Mutex;

/// Has happened once it was fired `needed` times.
#[derive(Clone)]
pub struct Event(Arc<Mutex<EventState>>);

struct EventState {
    needed: u32,
    waiting: Vec<Waker>,
}

impl Event {
    pub fn new(needed: u32) -> Event {
        Event(Arc::new(Mutex::new(EventState { needed, waiting: Vec::new() })))
    }

    pub fn fire(&self) {
        let mut state = self.0.lock();
        state.needed -= 1;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    pub fn fired(&self) -> impl Future<Output = Result<u32>> + Send + use<> {
        let event = self.clone();
        poll_fn(move |cx| {
            let mut state = event.0.lock();
            if state.needed == 0 {
                return Poll::Ready(Ok(7));
            }
            state.waiting.push(cx.waker().clone());
            Poll::Pending
        })
    }
}
