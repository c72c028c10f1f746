//! Parked readers: armed, fired, read, interrupted, closed.

use std::sync::Arc;

use acheron_base::Result;
use acheron_models::interrupt::Interrupts;
use acheron_models::parking::{Parking, Responder, Wait};
use acheron_models::sync::Runtime;
use acheron_models::turns::Turns;
use loom::thread;

use crate::event::Event;
use crate::{every_order, most_orders};

/// The answers that the kernel got. No lock of loom's: looking at them is no step.
#[derive(Clone, Default)]
struct Answers(Arc<std::sync::Mutex<Vec<Given>>>);

/// A request and its answer: a value or an error number.
type Given = (u64, Result<u32, i32>);

#[derive(Clone)]
struct Reply(u64, Answers);

impl Responder<u32> for Reply {
    fn respond(self, outcome: Result<u32>) {
        self.1.0.lock().unwrap().push((self.0, outcome.map_err(|error| error.errno())));
    }
}

#[derive(Clone)]
struct Scene {
    runtime: Runtime,
    turns: Arc<Turns>,
    parking: Arc<Parking>,
    answers: Answers,
}

const EINTR: Result<u32, i32> = Err(libc::EINTR);
const ESHUTDOWN: Result<u32, i32> = Err(libc::ESHUTDOWN);

impl Scene {
    fn new() -> Scene {
        let runtime = Runtime::default();
        let turns = Turns::new(runtime.clone());
        Scene { parking: Parking::new(turns.clone()), turns, runtime, answers: Answers::default() }
    }

    /// As the thread of the session does: a request that must wait.
    fn arm(&self, unique: u64, wait: Wait, event: &Event) {
        let (event, reply) = (event.clone(), Reply(unique, self.answers.clone()));
        self.turns.serve_request(|| self.parking.park(unique, wait, Box::pin(event.fired()), reply));
    }

    /// As unmounting does.
    fn close(&self) {
        self.parking.stop();
        self.parking.answer_all();
    }

    fn spawn(&self, act: impl FnOnce(&Scene) + 'static) -> thread::JoinHandle<()> {
        let scene = self.clone();
        thread::spawn(move || act(&scene))
    }

    /// Waits for the threads and for what they woke; every request of `expected` must have one answer of those allowed.
    fn end(&self, threads: impl IntoIterator<Item = thread::JoinHandle<()>>, expected: &[(u64, &[Result<u32, i32>])]) {
        threads.into_iter().for_each(|it| it.join().unwrap());
        self.runtime.join();
        let answers = self.answers.0.lock().unwrap();
        for (unique, allowed) in expected {
            let given: Vec<_> = answers.iter().filter(|(it, _)| it == unique).map(|(_, answer)| answer).collect();
            assert_eq!(given.len(), 1, "request {unique} was answered {given:?}");
            assert!(allowed.contains(given[0]), "request {unique} was answered {given:?}");
        }
        assert_eq!(answers.len(), expected.len(), "{answers:?}");
        drop(answers);
        assert_eq!(self.parking.parked(), 0, "a request is still parked");
    }
}

#[test]
fn a_reader_that_is_fired_and_interrupted_has_one_answer() {
    every_order(|| {
        let (scene, event) = (Scene::new(), Event::new(1));
        let fired = event.clone();
        let fire = scene.spawn(move |_| fired.fire());
        let interrupt = scene.spawn(|scene| scene.parking.interrupted(2));
        scene.arm(2, Wait::Event, &event);
        scene.end([fire, interrupt], &[(2, &[Ok(7), EINTR])]);
    });
}

#[test]
fn a_reader_that_is_fired_while_the_mount_closes_has_one_answer() {
    every_order(|| {
        let (scene, event) = (Scene::new(), Event::new(1));
        let fired = event.clone();
        let fire = scene.spawn(move |_| fired.fire());
        let close = scene.spawn(Scene::close);
        scene.arm(2, Wait::Event, &event);
        scene.end([fire, close], &[(2, &[Ok(7), ESHUTDOWN])]);
    });
}

#[test]
fn a_reader_that_is_interrupted_while_the_mount_closes_has_one_answer_and_none_stays() {
    every_order(|| {
        let (scene, event) = (Scene::new(), Event::new(1));
        let interrupt = scene.spawn(|scene| scene.parking.interrupted(2));
        let close = scene.spawn(Scene::close);
        scene.arm(2, Wait::Event, &event);
        scene.arm(4, Wait::Event, &event);
        scene.end([interrupt, close], &[(2, &[EINTR, ESHUTDOWN]), (4, &[ESHUTDOWN])]);
    });
}

/// The interrupt may come before its request is parked.
#[test]
fn a_reader_that_only_an_interrupt_ends_is_interrupted() {
    every_order(|| {
        let (scene, event) = (Scene::new(), Event::new(2));
        let fired = event.clone();
        let interrupt = scene.spawn(|scene| scene.parking.interrupted(2));
        let fire = scene.spawn(move |_| fired.fire());
        scene.arm(2, Wait::Event, &event);
        scene.end([interrupt, fire], &[(2, &[EINTR])]);
    });
}

#[test]
fn a_change_in_progress_is_never_interrupted() {
    every_order(|| {
        let (scene, event) = (Scene::new(), Event::new(1));
        let fired = event.clone();
        let fire = scene.spawn(move |_| fired.fire());
        let interrupt = scene.spawn(|scene| scene.parking.interrupted(2));
        scene.arm(2, Wait::Change, &event);
        scene.end([fire, interrupt], &[(2, &[Ok(7)])]);
    });
}

/// A waiter that is woken while it looks looks again.
#[test]
fn a_reader_that_needs_two_changes_sees_both() {
    every_order(|| {
        let (scene, event) = (Scene::new(), Event::new(2));
        let (one, two) = (event.clone(), event.clone());
        let fire = scene.spawn(move |_| one.fire());
        let request = scene.spawn(move |scene| scene.turns.serve_request(|| two.fire()));
        scene.arm(2, Wait::Event, &event);
        scene.end([fire, request], &[(2, &[Ok(7)])]);
    });
}

#[test]
fn all_readers_of_one_event_are_answered_though_one_is_interrupted() {
    most_orders(4, || {
        let (scene, event) = (Scene::new(), Event::new(1));
        let fired = event.clone();
        scene.arm(2, Wait::Event, &event);
        let fire = scene.spawn(move |_| fired.fire());
        let interrupt = scene.spawn(|scene| scene.parking.interrupted(4));
        scene.arm(4, Wait::Event, &event);
        scene.end([fire, interrupt], &[(2, &[Ok(7)]), (4, &[Ok(7), EINTR])]);
    });
}
