//! Waits against a model: whatever is armed, fired, read and killed in whatever order, nothing is lost and nothing comes
//! twice after it was read to its end.

use crate::policy::PrincipalCaller;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::wait::Wait;
use super::{EventLog, EventLogs, Selector, Voice};
use crate::jobs::{Forgetful, Jobs};
use crate::state::events::Event;
use acheron_base::{Clock, Ids, Random};
use acheron_vfs::{Answer, Caller, File, Handle, Open};

/// What a test does, one after the other.
#[derive(Clone, Debug)]
enum Act {
    /// Sends the signal of that parameter.
    Fire(u8),
    /// Arms the shared wait for one parameter, or for all.
    Arm(Option<u8>),
    /// Reads `next.json` to its end.
    Read,
    /// Reads only its first byte, and dies.
    ReadAndDie,
    /// A reader that was parked is killed.
    Kill,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0u8..3).prop_map(Act::Fire),
        2 => prop::option::of(0u8..3).prop_map(Act::Arm),
        4 => Just(Act::Read),
        1 => Just(Act::ReadAndDie),
        1 => Just(Act::Kill),
    ];
    prop::collection::vec(act, 1..40)
}

/// What should come: the log, and how far the shared reader has come in it.
#[derive(Default)]
struct Model {
    log: Vec<(u64, u8)>,
    cursor: u64,
    armed: Option<Option<u8>>,
}

impl Model {
    /// The event that a reader is to hear next.
    fn next(&self) -> Option<u64> {
        let wanted = self.armed?;
        let hears = |(seq, parameter): &&(u64, u8)| *seq > self.cursor && wanted.is_none_or(|it| it == *parameter);
        self.log.iter().find(hears).map(|(seq, _)| *seq)
    }
}

struct Bench {
    event_log: Arc<EventLog>,
    book: Arc<Jobs>,
}

impl Bench {
    fn new() -> Bench {
        let clock = Clock::real();
        let event_log = EventLogs::new(None, clock.clone()).of("ada").unwrap();
        Bench { event_log, book: Arc::new(Jobs::new(Arc::new(Forgetful), Ids::new(clock, Random::real()))) }
    }

    fn fire(&self, parameter: u8) -> u64 {
        let payload = json!({ "event_type": "user", "parameter": format!("p{parameter}") });
        let path = Selector::Signal(Voice::User, Some(format!("p{parameter}"))).path("ada");
        let Answer::Now(Ok(seq)) = self.event_log.add("signal", &path, payload) else { panic!("there is no disk") };
        seq
    }

    fn arm(&self, parameter: Option<u8>) {
        let path = match parameter {
            Some(parameter) => format!("/agents/self/events/sources/user/p{parameter}.json"),
            None => "/agents/self/events/sources/user.json".to_owned(),
        };
        let wait = Wait { paths: vec![path], timeout_ms: 600_000, since: None };
        assert!(matches!(self.event_log.arm(wait), Answer::Now(Ok(()))));
    }

    fn open(&self) -> Box<dyn Handle> {
        let next = super::next::Next { event_log: self.event_log.clone(), book: self.book.clone() };
        next.open(&Caller::operator(), Open::READ).unwrap()
    }
}

/// What a read says if it need not wait.
fn at_once(answer: Answer<Bytes>) -> Option<Value> {
    match answer.looked_at() {
        Answer::Now(bytes) => Some(serde_json::from_slice(&bytes.unwrap()).unwrap()),
        _ => None,
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_comes_twice(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _inside = runtime.enter();
        let (bench, mut model) = (Bench::new(), Model::default());
        for act in acts {
            match act {
                Act::Fire(parameter) => {
                    let seq = bench.fire(parameter);
                    model.log.push((seq, parameter));
                }
                Act::Arm(parameter) => {
                    bench.arm(parameter);
                    model.armed = Some(parameter);
                }
                Act::Read => {
                    let said = at_once(bench.open().read(0, 4096));
                    match (model.armed, model.next()) {
                        (None, _) => prop_assert_eq!(&said.unwrap()["configured"], &json!(false)),
                        (_, None) => prop_assert_eq!(said, None, "a reader parks"),
                        (_, Some(seq)) => {
                            prop_assert_eq!(&said.unwrap()["event_id"], &json!(seq));
                            model.cursor = seq;
                        }
                    }
                }
                Act::ReadAndDie => {
                    if model.next().is_some() {
                        let first = bench.open().read(0, 1).looked_at();
                        prop_assert!(matches!(first, Answer::Now(Ok(_))));
                    }
                }
                // Looking at it parks it; dropping it is what a signal does. Whether it was ready is not asked: then it
                // would have been read.
                Act::Kill => {
                    if model.next().is_none() {
                        drop(bench.open().read(0, 4096).looked_at());
                    }
                }
            }
        }
    }
}

/// Several readers park; every one of them hears the signal.
#[tokio::test]
async fn all_who_wait_are_woken() {
    let bench = Bench::new();
    bench.arm(None);
    // Looking at a read once parks it.
    let parked = (0..100).map(|_| match bench.open().read(0, 4096).looked_at() {
        Answer::Later(reader) => reader,
        _ => panic!("nothing has happened yet"),
    });
    let waiting: Vec<_> = parked.collect();
    let seq = bench.fire(1);
    let mut heard = BTreeSet::new();
    for reader in waiting {
        let said: Value = serde_json::from_slice(&reader.await.unwrap()).unwrap();
        heard.insert(said["event_id"].as_u64());
    }
    assert_eq!(heard, BTreeSet::from([Some(seq)]));
}

/// A log of `count` signals on a disk; the `wanted`th is another than the rest.
fn long(store: &crate::state::Trial, count: u64, wanted: u64) -> Bench {
    let fill = move |tx: &acheron_store::Tx<'_>| {
        for seq in 1..=count {
            let parameter = if seq == wanted { "p1" } else { "p0" };
            let payload = json!({ "event_type": "user", "parameter": parameter });
            let (kind, path) = ("signal".to_owned(), "/x".to_owned());
            crate::state::events::put(tx, "ada", &Event { seq, kind, path, at_ms: 1, payload })?;
        }
        Ok(())
    };
    store.write_blocking(fill).unwrap();
    let clock = Clock::real();
    let event_log = EventLogs::new(Some((**store).clone()), clock.clone()).of("ada").unwrap();
    Bench { event_log, book: Arc::new(Jobs::new(Arc::new(Forgetful), Ids::new(clock, Random::real()))) }
}

fn wait(paths: &[&str], since: Option<u64>) -> Wait {
    Wait { paths: paths.iter().map(|path| (*path).to_owned()).collect(), timeout_ms: 600_000, since }
}

const P1: &str = "/agents/ada/events/sources/user/p1.json";

#[tokio::test]
async fn a_reader_far_behind_hears_of_all_in_order_even_if_it_never_waits() {
    let store = crate::state::Trial::new();
    let bench = long(&store, 14_000, 9_000);
    bench.event_log.arm(wait(&[P1], None)).wait().await.unwrap();
    let read = bench.open().read(0, 4096).wait().await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&read).unwrap()["event_id"], 9_000);

    bench.event_log.arm(wait(&[P1], Some(0))).wait().await.unwrap();
    let patient = async {
        loop {
            match at_once(bench.open().read(0, 4096)) {
                Some(said) => return said,
                None => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
            }
        }
    };
    let said = tokio::time::timeout(std::time::Duration::from_secs(60), patient).await.expect("it is heard of");
    assert_eq!(said["event_id"], 9_000);
}

#[tokio::test]
async fn what_a_reader_of_an_earlier_wait_heard_does_not_count_for_a_new_one() {
    let bench = Bench::new();
    let seqs = [bench.fire(1), bench.fire(1)];
    bench.event_log.arm(wait(&[P1], None)).wait().await.unwrap();
    let old = bench.open();
    assert_eq!(old.read(0, 1).wait().await.unwrap().len(), 1);
    bench.event_log.arm(wait(&[P1], Some(0))).wait().await.unwrap();
    old.read(1, 4096).wait().await.unwrap();
    assert_eq!(at_once(bench.open().read(0, 4096)).unwrap()["event_id"], seqs[0]);
    assert_eq!(at_once(bench.open().read(0, 4096)).unwrap()["event_id"], seqs[1]);
}

#[tokio::test]
async fn a_wait_for_a_job_that_is_gone_is_over() {
    let bench = Bench::new();
    bench.event_log.arm(wait(&["/agents/ada/jobs/job-1/status.json"], None)).wait().await.unwrap();
    let said = at_once(bench.open().read(0, 4096)).unwrap();
    assert_eq!((&said["job"]["job_id"], &said["job"]["archived"]), (&json!("job-1"), &json!(true)));
}
