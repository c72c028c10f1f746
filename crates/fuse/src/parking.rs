//! Replies that cannot be given yet, each under the number of its request. A waiter is a future and a reply; it costs
//! no thread and no task. The server uses it; it knows nothing of files.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::interrupt::Interrupts;
use super::turns::{Turn, Turns};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard};
use acheron_base::{Code, Error, Result};
use acheron_vfs::Later;

/// Sends the answer to the kernel.
pub trait Responder<T>: Send + 'static {
    fn respond(self, outcome: Result<T>);
}

/// What a reply waits for. It decides the effect of a signal to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// An event: a signal ends the wait.
    Event,
    /// A fetch that ends by itself: a signal ends the wait, but it may begin even while the mount is being unmounted.
    Fetch,
    /// A change in progress: a signal does not interrupt it.
    Change,
}

pub struct Parking {
    state: Mutex<ParkingState>,
    turns: Arc<Turns>,
}

#[derive(Default)]
struct ParkingState {
    parked: BTreeMap<u64, Arc<dyn Parked>>,
    /// Interrupts that arrived before their request was parked, or just after it was answered; so their number must be
    /// bounded.
    early: BTreeSet<u64>,
    stopped: bool,
}

/// More than the requests that can be between their arrival and their parking (`arrivals`).
const EARLY: usize = 8192;

trait Parked: Send + Sync {
    fn wait(&self) -> Wait;
    fn give_up(&self, error: Error);
}

impl Parking {
    pub fn new(turns: Arc<Turns>) -> Arc<Self> {
        Arc::new(Parking { state: Mutex::default(), turns })
    }

    fn state(&self) -> MutexGuard<'_, ParkingState> {
        self.state.lock()
    }

    /// Answers request `unique` when `future` is ready, or when the request is interrupted.
    pub fn park<T, R>(self: &Arc<Self>, unique: u64, wait: Wait, future: Later<T>, reply: R)
    where
        T: Send + 'static,
        R: Responder<T>,
    {
        let held = Mutex::new(Some((future, reply)));
        let waiter = Arc::new(Waiter { unique, wait, parking: self.clone(), woken: AtomicBool::new(false), held });
        let mut state = self.state();
        if state.stopped && wait == Wait::Event {
            drop(state);
            return waiter.give_up(unmounting());
        }
        if state.early.remove(&unique) && wait != Wait::Change {
            drop(state);
            return waiter.give_up(interrupted());
        }
        state.parked.insert(unique, waiter.clone());
        drop(state);
        waiter.take_turn();
    }

    pub fn parked(&self) -> usize {
        self.state().parked.len()
    }

    /// Refuses every new wait for an event.
    pub fn stop(&self) {
        self.state().stopped = true;
    }

    /// Answers every parked request with an error, in the order of their arrival.
    pub fn answer_all(&self) {
        let parked = std::mem::take(&mut self.state().parked);
        for waiter in parked.into_values() {
            waiter.give_up(unmounting());
        }
    }
}

impl Interrupts for Parking {
    fn interrupted(&self, unique: u64) {
        let mut state = self.state();
        let waiter = match state.parked.get(&unique).map(|waiter| waiter.wait()) {
            Some(Wait::Change) => None,
            Some(Wait::Event | Wait::Fetch) => state.parked.remove(&unique),
            None => {
                state.early.insert(unique);
                if state.early.len() > EARLY {
                    state.early.pop_first();
                }
                None
            }
        };
        drop(state);
        if let Some(waiter) = waiter {
            waiter.give_up(interrupted());
        }
    }
}

fn interrupted() -> Error {
    Error::interrupted("the wait was interrupted by a signal")
}

fn unmounting() -> Error {
    Error::new(Code::Os(libc::ESHUTDOWN), "the file system is being unmounted")
}

struct Waiter<T, R> {
    unique: u64,
    wait: Wait,
    parking: Arc<Parking>,
    /// Its turn is already queued: another wake-up has no effect.
    woken: AtomicBool,
    /// Empty once the answer was given.
    held: Mutex<Option<(Later<T>, R)>>,
}

impl<T: Send + 'static, R: Responder<T>> Waiter<T, R> {
    fn held(&self) -> MutexGuard<'_, Option<(Later<T>, R)>> {
        self.held.lock()
    }
}

impl<T: Send + 'static, R: Responder<T>> Turn for Waiter<T, R> {
    fn take_turn(self: Arc<Self>) {
        self.woken.store(false, Ordering::SeqCst);
        let waker = Waker::from(self.clone());
        let mut held = self.held();
        let Some((future, _)) = held.as_mut() else { return };
        let looked = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        let outcome = match looked {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(outcome)) => outcome,
            Err(_) => Err(Error::internal("the answer could not be computed")),
        };
        let answered = held.take();
        drop(held);
        self.parking.state().parked.remove(&self.unique);
        if let Some((_, reply)) = answered {
            reply.respond(outcome);
        }
    }
}

impl<T: Send + 'static, R: Responder<T>> Wake for Waiter<T, R> {
    fn wake(self: Arc<Self>) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.parking.turns.wake(self.clone());
        }
    }
}

impl<T: Send + 'static, R: Responder<T>> Parked for Waiter<T, R> {
    fn wait(&self) -> Wait {
        self.wait
    }

    fn give_up(&self, error: Error) {
        let held = self.held().take();
        if let Some((future, reply)) = held {
            // Dropping the future may take time; the reader must not wait for that.
            reply.respond(Err(error));
            let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
        }
    }
}

#[cfg(test)]
mod tests;
