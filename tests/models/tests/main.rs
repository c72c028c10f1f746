//! Every order in which up to three threads can arm, fire, read, interrupt and close: no wake-up is lost, and nothing is
//! answered twice. `LOOM_MAX_PREEMPTIONS` sets another limit for the larger models, `LOOM_LOCATION=1` shows where
//! each thread stood.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

mod call_queue;
mod event;
mod notices;
mod parking;
mod poll;
mod turn_order;
mod turns;
mod writer;

/// Runs `model` in every order of its threads. loom fails where no thread can continue: that is how it finds a lost
/// wake-up.
fn every_order(model: impl Fn() + Send + Sync + 'static) {
    orders(None, model);
}

/// [`every_order`] in which at most `preemptions` times a thread that could continue does not. For models of so many
/// steps that all orders would take minutes; nearly all faults need one or two.
fn most_orders(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    orders(Some(preemptions), model);
}

fn orders(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let tried = Arc::new(AtomicUsize::new(0));
    let counted = tried.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions.map(|usual| builder.preemption_bound.unwrap_or(usual));
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let tried = tried.load(Ordering::Relaxed);
    println!("{tried} orders");
    assert!(tried > 1, "the threads did not meet");
}
