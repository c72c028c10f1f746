//! Whose turn it is: waiters that were woken, on the thread that has time for them.
//!
//! A waker is called with the locks of whoever made the change, so it must not go on with the waiter at once. What was
//! woken by a request being served is gone on with at the end of that request, on the session's own thread and before
//! its writer is answered: no other processor has to be woken. What was woken elsewhere is gone on with by a task.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::runtime::Handle;

/// Something that can go on.
pub trait Turn: Send + Sync {
    fn take_turn(self: Arc<Self>);
}

/// How many take their turn before something else gets a chance: ten thousand waiters woken at once must not keep `ls`.
const AT_ONCE: usize = 64;

thread_local! {
    /// Those woken by the request that this thread is serving.
    static HERE: RefCell<Option<VecDeque<Arc<dyn Turn>>>> = const { RefCell::new(None) };
}

pub struct Turns {
    runtime: Handle,
    woken: Mutex<Woken>,
}

#[derive(Default)]
struct Woken {
    queue: VecDeque<Arc<dyn Turn>>,
    /// A task is at it.
    going: bool,
}

impl Turns {
    pub fn new(runtime: Handle) -> Arc<Self> {
        Arc::new(Turns { runtime, woken: Mutex::default() })
    }

    /// Lets `turn` go on soon.
    pub fn wake(self: &Arc<Self>, turn: Arc<dyn Turn>) {
        // A thread that is ending may wake somebody too, when it has no memory of its own any more.
        let here = HERE.try_with(|here| match &mut *here.borrow_mut() {
            Some(here) => {
                here.push_back(turn.clone());
                true
            }
            None => false,
        });
        if here != Ok(true) {
            self.queue([turn]);
        }
    }

    fn queue(self: &Arc<Self>, turns: impl IntoIterator<Item = Arc<dyn Turn>>) {
        let mut woken = self.woken.lock();
        woken.queue.extend(turns);
        if !woken.going && !woken.queue.is_empty() {
            woken.going = true;
            drop(woken);
            self.runtime.spawn(go_on(self.clone()));
        }
    }

    fn next(&self) -> Option<Arc<dyn Turn>> {
        let mut woken = self.woken.lock();
        let next = woken.queue.pop_front();
        woken.going = next.is_some();
        next
    }

    /// Serves a request: what it wakes stays with this thread until the request is over.
    pub fn serving<T>(self: &Arc<Self>, serve: impl FnOnce() -> T) -> T {
        struct Over<'a>(&'a Arc<Turns>);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                take_here();
                if let Some(rest) = HERE.take().filter(|rest| !rest.is_empty()) {
                    self.0.queue(rest);
                }
            }
        }

        HERE.set(Some(VecDeque::new()));
        let _over = Over(self);
        serve()
    }
}

/// Goes on with those that the request being served here has woken, as far as there is time.
pub fn take_here() {
    for _ in 0..AT_ONCE {
        let Some(turn) = HERE.with_borrow_mut(|here| here.as_mut().and_then(VecDeque::pop_front)) else { return };
        take(turn);
    }
}

/// A panic of one must not end the turns of all.
fn take(turn: Arc<dyn Turn>) {
    if catch_unwind(AssertUnwindSafe(|| turn.take_turn())).is_err() {
        tracing::error!("a waiter could not go on");
    }
}

async fn go_on(turns: Arc<Turns>) {
    loop {
        for _ in 0..AT_ONCE {
            let Some(turn) = turns.next() else { return };
            take(turn);
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Noted(usize, Arc<Mutex<Vec<usize>>>);

    impl Turn for Noted {
        fn take_turn(self: Arc<Self>) {
            self.1.lock().push(self.0);
        }
    }

    #[tokio::test]
    async fn what_a_request_wakes_goes_on_before_the_request_is_over() {
        let turns = Turns::new(Handle::current());
        let noted = Arc::new(Mutex::new(Vec::new()));
        turns.serving(|| {
            turns.wake(Arc::new(Noted(1, noted.clone())));
            assert!(noted.lock().is_empty());
            take_here();
            assert_eq!(*noted.lock(), [1]);
            turns.wake(Arc::new(Noted(2, noted.clone())));
        });
        assert_eq!(*noted.lock(), [1, 2]);
    }

    #[tokio::test]
    async fn what_is_too_much_for_a_request_is_left_to_a_task() {
        let turns = Turns::new(Handle::current());
        let noted = Arc::new(Mutex::new(Vec::new()));
        turns.serving(|| (0..1000).for_each(|i| turns.wake(Arc::new(Noted(i, noted.clone())))));
        assert_eq!(noted.lock().len(), AT_ONCE);
        while noted.lock().len() < 1000 {
            tokio::task::yield_now().await;
        }
        assert!(noted.lock().is_sorted());
        turns.wake(Arc::new(Noted(1000, noted.clone())));
        while noted.lock().len() < 1001 {
            tokio::task::yield_now().await;
        }
    }
}
