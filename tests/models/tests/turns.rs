//! Woken waiters: each gets its turn, whether a request woke it or not.

use std::sync::Arc;

use acheron_models::sync::Runtime;
use acheron_models::turns::{Turn, Turns};
use loom::thread;

use crate::every_order;

/// A waiter that notes its turns. No lock of loom's: looking at them is no step.
struct Waiter(u32, Arc<std::sync::Mutex<Vec<u32>>>);

impl Turn for Waiter {
    fn take_turn(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn every_waiter_that_is_woken_gets_its_turn_once() {
    every_order(|| {
        let (runtime, taken) = (Runtime::default(), Arc::default());
        let turns = Turns::new(runtime.clone());
        let waiters = [1, 2, 3].map(|name| Arc::new(Waiter(name, Arc::clone(&taken))));
        let [one, two, three] = waiters;
        let (own, other) = (turns.clone(), turns.clone());
        let threads =
            [thread::spawn(move || own.wake(two)), thread::spawn(move || other.serve_request(|| other.wake(three)))];
        turns.wake(one);
        threads.into_iter().for_each(|it| it.join().unwrap());
        runtime.join();
        let mut taken = taken.lock().unwrap().clone();
        taken.sort_unstable();
        assert_eq!(taken, [1, 2, 3]);
    });
}
