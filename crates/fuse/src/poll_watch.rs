//! `poll(2)`, `select(2)` and `epoll(7)`: notifies the pollers of a file once it can be read.
//!
//! The kernel asks before it sleeps and when it is notified. Edge-triggered `epoll` does not ask after each read, so
//! every new answer on a handle that was ever polled is announced. One watch belongs to one open file; it uses turns
//! and notices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::notices::Notices;
use super::turns::{Turn, Turns};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard};
use acheron_vfs::{Answer, Later};

/// The state of one polled file.
pub struct PollWatch {
    state: Mutex<WatchState>,
    woken: AtomicBool,
    turns: Arc<Turns>,
    notices: Arc<Notices>,
}

#[derive(Default)]
struct WatchState {
    /// The number by which the kernel knows the pollers of this file.
    poller: Option<u64>,
    /// Ready when the file can be read.
    waits: Option<Later<()>>,
    /// Whether a read since the last end of file gave bytes.
    reading: bool,
}

impl PollWatch {
    pub fn new(turns: Arc<Turns>, notices: Arc<Notices>) -> Arc<Self> {
        Arc::new(PollWatch { state: Mutex::default(), woken: AtomicBool::new(false), turns, notices })
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock()
    }

    /// A poller asks whether the file is `readable`. If it gives its number, it wants to be notified later.
    pub fn asked(self: &Arc<Self>, poller: Option<u64>, readable: Answer<()>) -> bool {
        if poller.is_some() {
            self.state().poller = poller;
        }
        self.follow(readable)
    }

    /// A read gave `bytes` bytes; after it the file is `readable` or not.
    pub fn was_read(self: &Arc<Self>, bytes: usize, readable: Answer<()>) {
        let ended = {
            let mut state = self.state();
            let was_reading = std::mem::replace(&mut state.reading, bytes > 0);
            was_reading && bytes == 0
        };
        // This was the end of one answer: if the next is there already, edge-triggered pollers must be notified now.
        if self.follow(readable) && ended {
            self.announce();
        }
    }

    /// A write may have produced an answer.
    pub fn was_written(self: &Arc<Self>, readable: Answer<()>) {
        if self.follow(readable) {
            self.announce();
        }
    }

    /// The file is closed. The future is held by the one that would wake it and holds this watch: without this call
    /// both would stay alive.
    pub fn stop(&self) {
        let over = std::mem::take(&mut *self.state());
        drop(over);
    }

    /// Whether the file can be read now; if not, its pollers will be notified.
    fn follow(self: &Arc<Self>, readable: Answer<()>) -> bool {
        match readable {
            Answer::Now(_) => {
                let before = self.state().waits.take();
                drop(before);
                true
            }
            Answer::Soon(future) | Answer::Later(future) => {
                let before = self.state().waits.replace(future);
                drop(before);
                self.look()
            }
        }
    }

    fn announce(&self) {
        let poller = self.state().poller;
        if let Some(poller) = poller {
            self.notices.poll(poller);
        }
    }

    /// Polls the future; returns whether the file can be read.
    fn look(self: &Arc<Self>) -> bool {
        self.woken.store(false, Ordering::SeqCst);
        let waker = Waker::from(self.clone());
        let mut state = self.state();
        let Some(future) = state.waits.as_mut() else { return false };
        let looked = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        if matches!(looked, Ok(Poll::Pending)) {
            return false;
        }
        let over = state.waits.take();
        drop(state);
        drop(over);
        true
    }
}

impl Turn for PollWatch {
    fn take_turn(self: Arc<Self>) {
        if self.look() {
            self.announce();
        }
    }
}

impl Wake for PollWatch {
    fn wake(self: Arc<Self>) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.turns.clone().wake(self);
        }
    }
}
