//! The turns of an agent: one at a time, in the order in which they were queued, whatever becomes of those before.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use acheron_models::turn_order::{TurnOrder, TurnPlace};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::most_orders;

/// The turns that ran. No lock of loom's: looking at them is no step.
#[derive(Clone, Default)]
struct Ran {
    turns: Arc<std::sync::Mutex<Vec<u32>>>,
    /// Loom's, so that others may run while a turn works.
    running: Arc<AtomicUsize>,
}

impl Ran {
    /// Runs a turn as the runner does: waits for its place, works, is recorded.
    fn turn(&self, name: u32, place: TurnPlace) {
        loom::future::block_on(place.is_first());
        assert_eq!(self.running.fetch_add(1, Ordering::Relaxed), 0, "two turns run at once");
        self.turns.lock().unwrap().push(name);
        self.running.fetch_sub(1, Ordering::Relaxed);
        drop(place);
    }

    fn turns(&self) -> Vec<u32> {
        self.turns.lock().unwrap().clone()
    }
}

#[test]
fn turns_run_one_at_a_time_in_the_order_of_the_queue() {
    most_orders(3, || {
        let (order, ran) = (TurnOrder::default(), Ran::default());
        let places = [order.take_place(), order.take_place(), order.take_place()];
        let [one, two, three] = places;
        let (for_one, for_two) = (ran.clone(), ran.clone());
        let threads = [thread::spawn(move || for_one.turn(1, one)), thread::spawn(move || for_two.turn(2, two))];
        ran.turn(3, three);
        threads.into_iter().for_each(|it| it.join().unwrap());
        assert_eq!(ran.turns(), [1, 2, 3]);
    });
}

#[test]
fn a_turn_that_is_cancelled_while_it_waits_keeps_nobody() {
    most_orders(3, || {
        let (order, ran) = (TurnOrder::default(), Ran::default());
        let (one, two, three) = (order.take_place(), order.take_place(), order.take_place());
        let for_one = ran.clone();
        let first = thread::spawn(move || for_one.turn(1, one));
        let cancelled = thread::spawn(move || {
            let mut waits = pin!(two.is_first());
            _ = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        });
        ran.turn(3, three);
        first.join().unwrap();
        cancelled.join().unwrap();
        assert_eq!(ran.turns(), [1, 3]);
    });
}

/// A message is queued while the turn before it ends.
#[test]
fn a_turn_that_is_queued_while_another_ends_runs() {
    most_orders(3, || {
        let (order, ran) = (TurnOrder::default(), Ran::default());
        let one = order.take_place();
        let (for_one, for_two, own) = (ran.clone(), ran.clone(), order.clone());
        let first = thread::spawn(move || for_one.turn(1, one));
        let second = thread::spawn(move || for_two.turn(2, own.take_place()));
        ran.turn(3, order.take_place());
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(ran.turns()[0], 1);
        assert_eq!(ran.turns().len(), 3);
    });
}
