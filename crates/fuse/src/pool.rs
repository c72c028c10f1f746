//! A few threads for work that waits for a disk or takes long, so that the thread of the session never does. Callers are
//! served in turn, and none has more than a part of the threads: what one of them waits for delays no other. The server
//! and the passthrough use it; it knows nothing of files.

use std::collections::HashMap;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, umask};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::fair_queue::FairQueue;

/// The number of threads.
const THREADS: usize = 24;
/// The number of threads that work for one caller at the same time.
const EACH: usize = 8;
/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// The threads, shared by callers `K`.
pub struct Pool<K> {
    state: Mutex<PoolState<K>>,
    arrived: Condvar,
}

struct PoolState<K> {
    work: FairQueue<K, Work>,
    /// The number of threads that work for each caller.
    busy: HashMap<K, usize>,
    threads: usize,
    idle: usize,
}

impl<K> Default for Pool<K> {
    fn default() -> Self {
        let state = PoolState { work: FairQueue::default(), busy: HashMap::new(), threads: 0, idle: 0 };
        Pool { state: Mutex::new(state), arrived: Condvar::new() }
    }
}

impl<K: Clone + Eq + Hash> PoolState<K> {
    /// The next piece of work of a caller that has not enough threads yet.
    fn take(&mut self) -> Option<(K, Work)> {
        let PoolState { work, busy, .. } = self;
        let (caller, work) = work.pop_if(|caller| busy.get(caller).is_none_or(|threads| *threads < EACH))?;
        *busy.entry(caller.clone()).or_default() += 1;
        Some((caller, work))
    }

    fn finished(&mut self, caller: &K) {
        if let Some(threads) = self.busy.get_mut(caller) {
            *threads -= 1;
            if *threads == 0 {
                self.busy.remove(caller);
            }
        }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static> Pool<K> {
    fn state(&self) -> MutexGuard<'_, PoolState<K>> {
        self.state.lock()
    }

    /// Runs `work` for `caller` on one of the threads.
    pub fn run(self: &Arc<Self>, caller: K, work: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        state.work.push(caller, Box::new(work));
        if state.idle >= state.work.len() || state.threads == THREADS {
            drop(state);
            self.arrived.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let pool = self.clone();
        let started = std::thread::Builder::new().name("pool".to_owned()).spawn(move || pool.serve());
        if started.is_err() {
            // No thread can be started: another thread of the pool, or this one, does the work.
            let mut state = self.state();
            state.threads -= 1;
            let work = if state.threads == 0 { state.work.pop() } else { None };
            drop(state);
            if let Some((_, work)) = work {
                work();
            }
        }
    }

    /// The next piece of work; `None` after an idle time.
    fn next(&self) -> Option<(K, Work)> {
        let mut state = self.state();
        loop {
            if let Some(work) = state.take() {
                return Some(work);
            }
            state.idle += 1;
            let waited = self.arrived.wait_for(&mut state, IDLE);
            state.idle -= 1;
            if waited.timed_out() && state.work.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }

    fn serve(&self) {
        // The kernel has already applied the caller's umask to the mode; ours must not be applied too.
        match unshare(CloneFlags::CLONE_FS) {
            Ok(()) => _ = umask(Mode::empty()),
            Err(error) => tracing::warn!(%error, "new files get the umask of this process"),
        }
        while let Some((caller, work)) = self.next() {
            // The dropped reply has answered EIO.
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                tracing::error!("a request panicked");
            }
            self.state().finished(&caller);
        }
    }
}

#[cfg(test)]
mod tests;
