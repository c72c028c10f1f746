//! The limit of accepted calls: it holds whoever comes at the same time, and every call that ends makes room.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acheron_models::call_queue::CallQueue;
use loom::thread;

use crate::most_orders;

#[test]
fn no_more_calls_are_accepted_than_fit_and_all_that_end_make_room() {
    most_orders(3, || {
        let (queue, held) = (Arc::new(CallQueue::new(1, 1)), Arc::new(AtomicUsize::new(0)));
        let call = |calls: usize| {
            let (queue, held) = (queue.clone(), held.clone());
            move || {
                if queue.admit(calls).is_ok() {
                    assert!(held.fetch_add(calls, Ordering::Relaxed) + calls <= 2, "too many calls");
                    queue.release(calls);
                    held.fetch_sub(calls, Ordering::Relaxed); // in the same step: this is no lock of loom's
                }
            }
        };
        let threads = [thread::spawn(call(2)), thread::spawn(call(1))];
        call(1)();
        threads.into_iter().for_each(|it| it.join().unwrap());
        assert!(queue.admit(2).is_ok(), "a call that has ended holds its place");
    });
}
