//! Runs waiters that were woken, on a thread that has time for them. A waker is called with the locks of the code that
//! made the change, so it must not run the waiter immediately. A waiter that a request wakes runs at the end of that
//! request, on the thread of the session and before the writer is answered: no other processor has to wake up. A waiter
//! that is woken elsewhere runs in a task. Parking and poll watches use it; it knows nothing of files.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::sync::{Mutex, Runtime, thread_local};

/// A waiter that can continue.
pub trait Turn: Send + Sync {
    fn take_turn(self: Arc<Self>);
}

/// The number of waiters that run before other work gets a chance: ten thousand waiters that wake at the same time must
/// not block `ls`.
const BATCH: usize = 64;

thread_local! {
    /// The waiters woken by the request that this thread serves.
    static LOCAL: RefCell<Option<VecDeque<Arc<dyn Turn>>>> = const { RefCell::new(None) };
}

pub struct Turns {
    runtime: Runtime,
    woken: Mutex<Woken>,
}

#[derive(Default)]
struct Woken {
    queue: VecDeque<Arc<dyn Turn>>,
    /// A task is running the queue.
    running: bool,
}

impl Turns {
    pub fn new(runtime: Runtime) -> Arc<Self> {
        Arc::new(Turns { runtime, woken: Mutex::default() })
    }

    /// Runs `turn` soon.
    pub fn wake(self: &Arc<Self>, turn: Arc<dyn Turn>) {
        // A thread that is ending may wake a waiter after its thread-local storage is gone.
        let here = LOCAL.try_with(|here| match &mut *here.borrow_mut() {
            Some(here) => {
                here.push_back(turn.clone());
                true
            }
            None => false,
        });
        if !here.unwrap_or(false) {
            self.queue([turn]);
        }
    }

    fn queue(self: &Arc<Self>, turns: impl IntoIterator<Item = Arc<dyn Turn>>) {
        let mut woken = self.woken.lock();
        woken.queue.extend(turns);
        if !woken.running && !woken.queue.is_empty() {
            woken.running = true;
            drop(woken);
            self.runtime.spawn(run_queue(self.clone()));
        }
    }

    fn next(&self) -> Option<Arc<dyn Turn>> {
        let mut woken = self.woken.lock();
        let next = woken.queue.pop_front();
        woken.running = next.is_some();
        next
    }

    /// Serves a request: the waiters that it wakes stay with this thread until the request is done.
    pub fn serve_request<T>(self: &Arc<Self>, serve: impl FnOnce() -> T) -> T {
        struct Over<'a>(&'a Arc<Turns>);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                run_local();
                if let Some(rest) = LOCAL.with(RefCell::take).filter(|rest| !rest.is_empty()) {
                    self.0.queue(rest);
                }
            }
        }

        LOCAL.with(|here| here.replace(Some(VecDeque::new())));
        let _over = Over(self);
        serve()
    }
}

/// Runs the waiters that the current request has woken, up to the limit.
pub fn run_local() {
    for _ in 0..BATCH {
        let Some(turn) = LOCAL.with(|here| here.borrow_mut().as_mut().and_then(VecDeque::pop_front)) else { return };
        take(turn);
    }
}

/// A panic of one waiter must not end the others.
fn take(turn: Arc<dyn Turn>) {
    if catch_unwind(AssertUnwindSafe(|| turn.take_turn())).is_err() {
        tracing::error!("a waiter panicked");
    }
}

async fn run_queue(turns: Arc<Turns>) {
    loop {
        for _ in 0..BATCH {
            let Some(turn) = turns.next() else { return };
            take(turn);
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests;
