//! `poll(2)` and its kin: telling who asked once that a file can be read now.
//!
//! The kernel asks before it sleeps and when it is told to ask again; an edge-triggered `epoll` does not ask after each
//! read, so every new answer on a handle that was ever polled is announced, asked or not.

use parking_lot::{Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::notices::Notices;
use super::turns::{Turn, Turns};
use acheron_vfs::{Answer, Later};

/// One open file that somebody polls.
pub struct Watch {
    state: Mutex<State>,
    woken: AtomicBool,
    turns: Arc<Turns>,
    notices: Arc<Notices>,
}

#[derive(Default)]
struct State {
    /// The kernel's number for the pollers of this file.
    poller: Option<u64>,
    /// Ready when the file can be read.
    waits: Option<Later<()>>,
    /// Something was read since the last end of file.
    reading: bool,
}

impl Watch {
    pub fn new(turns: Arc<Turns>, notices: Arc<Notices>) -> Arc<Self> {
        Arc::new(Watch { state: Mutex::default(), woken: AtomicBool::new(false), turns, notices })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A poller asks whether the file is `readable`; it wants to be told later if it gives its number.
    pub fn asked(self: &Arc<Self>, poller: Option<u64>, readable: Answer<()>) -> bool {
        if poller.is_some() {
            self.state().poller = poller;
        }
        self.follow(readable)
    }

    /// A read gave so many bytes, after which the file is `readable` or not.
    pub fn was_read(self: &Arc<Self>, bytes: usize, readable: Answer<()>) {
        let ended = {
            let mut state = self.state();
            let was_reading = std::mem::replace(&mut state.reading, bytes > 0);
            was_reading && bytes == 0
        };
        // The end of one answer: if the next is there already, its edge is due now.
        if self.follow(readable) && ended {
            self.announce();
        }
    }

    /// Something was written: an answer may be there, or come.
    pub fn was_written(self: &Arc<Self>, readable: Answer<()>) {
        if self.follow(readable) {
            self.announce();
        }
    }

    /// The file is closed. What waits is held by whoever would wake it, and holds us: without this it would stay.
    pub fn stop(&self) {
        let over = std::mem::take(&mut *self.state());
        drop(over);
    }

    /// Whether the file can be read now; if not, it will be announced.
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

    /// Whether what is waited for is there.
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

impl Turn for Watch {
    fn take_turn(self: Arc<Self>) {
        if self.look() {
            self.announce();
        }
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.turns.clone().wake(self);
        }
    }
}
