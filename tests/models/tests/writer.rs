//! The writer's queue, with a real SQLite in memory: a change is answered once, after its commit, and a writer that closes
//! leaves nobody waiting.

use std::sync::Arc;

use acheron_base::{Code, Error, Result};
use acheron_models::tx::Tx;
use acheron_models::writer::{Writer, Written};
use loom::thread;
use rusqlite::Connection;

use crate::{every_order, most_orders};

/// What happened, in order. No lock of loom's: looking at it is no step.
#[derive(Clone, Default)]
struct Happened(Arc<std::sync::Mutex<Vec<String>>>);

impl Happened {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn place(&self, what: &str) -> Option<usize> {
        self.0.lock().unwrap().iter().position(|it| it == what)
    }

    fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|it| *it == what).count()
    }
}

#[derive(Clone)]
struct Scene {
    writer: Arc<Writer>,
    happened: Happened,
}

impl Scene {
    fn new() -> Scene {
        let happened = Happened::default();
        let committed = happened.clone();
        // The stack of a thread of loom is too small to open a database.
        let opened = std::thread::spawn(move || {
            let mut conn = Connection::open_in_memory().unwrap();
            conn.execute_batch("CREATE TABLE t (name TEXT)").unwrap();
            conn.commit_hook(Some(move || {
                committed.note("commit");
                false
            }))
            .unwrap();
            conn
        });
        Scene { writer: Arc::new(Writer::start(opened.join().unwrap()).unwrap()), happened }
    }

    /// Queues the change `name`; returns its answer.
    fn write(&self, name: &'static str, outcome: Result<()>) -> Written<()> {
        let (ran, shown) = (self.happened.clone(), self.happened.clone());
        let change = move |tx: &Tx<'_>| {
            ran.note(format!("{name} runs"));
            tx.execute("INSERT INTO t VALUES (?1)", [name])?;
            outcome
        };
        self.writer.write(change, move |()| shown.note(format!("{name} shown")))
    }

    /// Queues the change `name` and waits for its answer.
    fn write_and_wait(&self, name: &'static str) -> Result<()> {
        let answer = self.write(name, Ok(())).wait();
        self.happened.note(format!("{name} answered"));
        answer
    }

    /// A change that is answered with success ran once, then was committed, then shown, then answered; one that is refused
    /// did not run.
    fn check(&self, name: &str, answer: &Result<()>) {
        let place = |what: &str| self.happened.place(&format!("{name} {what}"));
        let happened = self.happened.0.lock().unwrap().clone();
        match answer {
            Ok(()) => {
                let (ran, shown) = (place("runs").unwrap(), place("shown").unwrap());
                assert!(happened[ran..shown].contains(&"commit".to_owned()), "{name} is shown too early: {happened:?}");
                assert!(shown < place("answered").unwrap(), "{name} is answered too early: {happened:?}");
                assert_eq!(self.happened.count(&format!("{name} runs")), 1, "{happened:?}");
                assert_eq!(self.happened.count(&format!("{name} shown")), 1, "{happened:?}");
            }
            Err(error) => {
                assert_eq!(error.code, Code::Unavailable, "{error}");
                assert_eq!((place("runs"), place("shown")), (None, None), "{name} was refused: {happened:?}");
            }
        }
    }
}

#[test]
fn a_change_is_answered_once_and_after_its_commit() {
    most_orders(2, || {
        let scene = Scene::new();
        let own = scene.clone();
        let other = thread::spawn(move || own.write_and_wait("one"));
        let two = scene.write_and_wait("two");
        let one = other.join().unwrap();
        scene.writer.close();
        assert_eq!((&one, &two), (&Ok(()), &Ok(())));
        scene.check("one", &one);
        scene.check("two", &two);
    });
}

#[test]
fn a_writer_that_closes_answers_all_that_it_took_and_refuses_the_rest() {
    most_orders(3, || {
        let scene = Scene::new();
        let own = scene.clone();
        let write = thread::spawn(move || own.write_and_wait("one"));
        scene.writer.close();
        scene.happened.note("closed");
        let one = write.join().unwrap();
        scene.check("one", &one);
        let (ran, closed) = (scene.happened.place("one runs"), scene.happened.place("closed"));
        assert!(ran.is_none() || ran < closed, "closed before the change was made");
    });
}

/// The caller no longer waits, and the change is made and shown all the same; a failed one beside it is not.
#[test]
fn a_change_whose_caller_has_gone_is_made_and_a_failed_one_is_undone_alone() {
    most_orders(3, || {
        let scene = Scene::new();
        drop(scene.write("one", Ok(())));
        let failed = scene.write("two", Err(Error::invalid("on purpose"))).wait();
        let kept = scene.writer.write(
            |tx| Ok(tx.query_row("SELECT group_concat(name) FROM t", [], |row| row.get(0))?),
            |_: &Option<String>| (),
        );
        assert_eq!(kept.wait(), Ok(Some("one".to_owned())));
        scene.writer.close();
        let count = |what| scene.happened.count(what);
        assert_eq!(failed.unwrap_err().code, Error::invalid("").code);
        assert_eq!((count("one runs"), count("one shown")), (1, 1));
        assert_eq!((count("two runs"), count("two shown")), (1, 0));
    });
}

/// The last reference to a store may be dropped by a change, on the writer's own thread.
#[test]
fn a_writer_that_is_closed_by_a_change_ends() {
    every_order(|| {
        let scene = Scene::new();
        let own = scene.clone();
        let close = move |_: &Tx<'_>| {
            own.writer.close();
            Ok(())
        };
        let answer = scene.writer.write(close, |()| ());
        assert_eq!(answer.wait(), Ok(()));
        assert_eq!(scene.write("one", Ok(())).wait().unwrap_err().code, Code::Unavailable);
    });
}
