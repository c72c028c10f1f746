//! `poll(2)`: a poller that is told "not yet" is notified when the file can be read.

use std::sync::Arc;

use acheron_models::poll_watch::PollWatch;
use acheron_models::sync::Runtime;
use acheron_models::turns::Turns;
use acheron_vfs::Answer;
use loom::thread;

use crate::event::Event;
use crate::every_order;
use crate::notices;

fn readable(event: &Event) -> Answer<()> {
    let fired = event.fired();
    Answer::later(async move { fired.await.map(drop) })
}

struct Scene {
    kernel: notices::Scene,
    runtime: Runtime,
    watch: Arc<PollWatch>,
}

impl Scene {
    fn new() -> Scene {
        let (kernel, runtime) = (notices::Scene::new(), Runtime::default());
        let watch = PollWatch::new(Turns::new(runtime.clone()), kernel.notices.clone());
        Scene { kernel, runtime, watch }
    }

    /// Whether the poller was notified.
    fn end(self, threads: impl IntoIterator<Item = thread::JoinHandle<()>>) -> bool {
        threads.into_iter().for_each(|it| it.join().unwrap());
        self.runtime.join();
        self.kernel.end().iter().any(|it| it == "poll 9")
    }
}

#[test]
fn a_poller_that_is_told_not_yet_is_notified() {
    every_order(|| {
        let (scene, event) = (Scene::new(), Event::new(1));
        let fired = event.clone();
        let fire = thread::spawn(move || fired.fire());
        let at_once = scene.watch.asked(Some(9), readable(&event));
        let notified = scene.end([fire]);
        assert!(at_once || notified, "the poller sleeps forever");
    });
}

/// The reader ends one answer while the next comes: an edge-triggered poller asks no more.
#[test]
fn a_poller_is_notified_of_the_answer_that_comes_while_another_is_read() {
    every_order(|| {
        let (scene, event) = (Scene::new(), Event::new(1));
        assert!(scene.watch.asked(Some(9), Answer::ok(())));
        let fired = event.clone();
        let fire = thread::spawn(move || fired.fire());
        scene.watch.was_read(3, Answer::ok(()));
        scene.watch.was_read(0, readable(&event));
        assert!(scene.end([fire]), "the poller sleeps forever");
    });
}
