//! A few threads for work that waits for a disk, so that the thread of the session never does. Each caller waits for
//! its answer, so there is never more work than callers. The passthrough uses it; it knows nothing of files.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, umask};
use parking_lot::{Condvar, Mutex, MutexGuard};

/// The number of threads.
const THREADS: usize = 8;
/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub struct Pool {
    state: Mutex<PoolState>,
    arrived: Condvar,
}

#[derive(Default)]
struct PoolState {
    work: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    /// Runs `work` on one of the threads.
    pub fn run(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        state.work.push_back(Box::new(work));
        if state.idle >= state.work.len() || state.threads == THREADS {
            drop(state);
            self.arrived.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let pool = self.clone();
        let started = std::thread::Builder::new().name("mirror".to_owned()).spawn(move || pool.serve());
        if started.is_err() {
            // No thread can be started: another thread of the pool, or this one, does the work.
            self.state().threads -= 1;
            if let Some(work) = self.next_now() {
                work();
            }
        }
    }

    fn next_now(&self) -> Option<Work> {
        self.state().work.pop_front()
    }

    /// The next piece of work; `None` after an idle time.
    fn next(&self) -> Option<Work> {
        let mut state = self.state();
        loop {
            if let Some(work) = state.work.pop_front() {
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
        while let Some(work) = self.next() {
            // The dropped reply has answered EIO.
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                tracing::error!("a request to a mirrored directory panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_continues_beside_stuck_work_and_after_a_panic() {
        let pool = Arc::new(Pool::default());
        let (let_go, stuck) = mpsc::channel::<()>();
        let (say, heard) = mpsc::channel();
        pool.run(move || stuck.recv().unwrap());
        pool.run(|| panic!("on purpose"));
        for number in 0..100 {
            let say = say.clone();
            pool.run(move || say.send(number).unwrap());
        }
        let mut done: Vec<i32> = heard.iter().take(100).collect();
        done.sort_unstable();
        assert!(done.into_iter().eq(0..100));
        assert!(pool.state().threads <= THREADS);
        let_go.send(()).unwrap();
    }
}
