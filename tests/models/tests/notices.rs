//! Notices to the kernel: none is lost, a poller is not woken before them, and an answer that waits for them is given once.

use std::sync::Arc;

use acheron_models::notices::{self, Notice, NoticeSink, Notices};
use acheron_models::sync::oneshot;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::most_orders;

/// What the kernel was told and the callers were answered. No lock of loom's: looking at it is no step.
pub type Told = Arc<std::sync::Mutex<Vec<String>>>;

/// The kernel. The thread that sends drops it when it ends.
struct Kernel {
    told: Told,
    /// What an invalidated inode contains now. Loom's: others may run before a notice that is being sent arrives.
    version: Arc<AtomicUsize>,
    _ended: oneshot::Sender<()>,
}

impl NoticeSink for Kernel {
    fn send(&self, notice: &Notice) {
        let version = self.version.fetch_add(0, Ordering::SeqCst);
        self.told.lock().unwrap().push(match notice {
            Notice::Inode(ino) => format!("inode {ino} version {version}"),
            Notice::Attributes(ino) => format!("attributes {ino}"),
            Notice::Poll(handle) => format!("poll {handle}"),
            Notice::Entry { path, .. } => format!("entry {path}"),
        });
    }
}

pub struct Scene {
    pub notices: Arc<Notices>,
    pub told: Told,
    version: Arc<AtomicUsize>,
    ended: oneshot::Receiver<()>,
}

impl Scene {
    pub fn new() -> Scene {
        let (told, version): (Told, Arc<AtomicUsize>) = Default::default();
        let (tell, ended) = oneshot::channel();
        let notices = Arc::new(Notices::default());
        let kernel = Kernel { told: told.clone(), version: version.clone(), _ended: tell };
        notices::start(notices.clone(), kernel).unwrap();
        Scene { notices, told, version, ended }
    }

    /// Stops the thread; returns what was told, in order.
    pub fn end(self) -> Vec<String> {
        self.notices.stop();
        _ = loom::future::block_on(self.ended);
        self.told.lock().unwrap().clone()
    }
}

fn count(told: &[String], what: &str) -> usize {
    told.iter().filter(|it| *it == what).count()
}

#[test]
fn the_last_change_is_told_though_others_are_being_sent() {
    most_orders(3, || {
        let scene = Scene::new();
        let change = |scene: &Scene| {
            let (notices, version) = (scene.notices.clone(), scene.version.clone());
            move || {
                version.fetch_add(1, Ordering::SeqCst);
                notices.post(Notice::Inode(1));
            }
        };
        let other = thread::spawn(change(&scene));
        change(&scene)();
        other.join().unwrap();
        let told = scene.end();
        assert_eq!(told.last().unwrap(), "inode 1 version 2", "{told:?}");
    });
}

#[test]
fn a_poller_and_an_answer_come_after_the_notices_before_them() {
    most_orders(2, || {
        let scene = Scene::new();
        let (notices, told) = (scene.notices.clone(), scene.told.clone());
        let answer = thread::spawn(move || {
            notices.post(Notice::Inode(2));
            notices.after(move || told.lock().unwrap().push("answer".to_owned()));
        });
        scene.notices.post(Notice::Inode(1));
        scene.notices.poll(9);
        answer.join().unwrap();
        let told = scene.end();
        let place = |what: &str| told.iter().position(|it| it == what);
        assert_eq!((count(&told, "poll 9"), count(&told, "answer"), told.len()), (1, 1, 4), "{told:?}");
        assert!(place("inode 1 version 0") < place("poll 9"), "{told:?}");
        assert!(place("inode 2 version 0") < place("answer"), "{told:?}");
    });
}

#[test]
fn an_answer_that_waits_for_notices_is_given_though_the_session_ends() {
    most_orders(3, || {
        let scene = Scene::new();
        let (notices, told) = (scene.notices.clone(), scene.told.clone());
        let answer = thread::spawn(move || {
            notices.post(Notice::Inode(2));
            notices.after(move || told.lock().unwrap().push("answer".to_owned()));
        });
        scene.notices.stop();
        answer.join().unwrap();
        let told = scene.end();
        assert_eq!(count(&told, "answer"), 1, "{told:?}");
    });
}
