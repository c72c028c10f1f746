//! Waits against a model: in any order of arming, firing, reading and killing, no event is lost and none is delivered
//! again after its reader had it and closed the file.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::wait::{Armed, Wait};
use super::{EventLog, EventLogs, Selector, SignalType, Waiter};
use crate::jobs::Jobs;
use crate::policy::PrincipalCaller;
use crate::state::TestStore;
use acheron_base::{Clock, Ids, Random};
use acheron_vfs::replies::Replies;
use acheron_vfs::{Answer, Caller, File, Handle, Open, Reply};

/// One step of a test.
#[derive(Clone, Debug)]
enum Step {
    /// Sends the signal of that parameter.
    Fire(u8),
    /// Arms the shared wait for one parameter, or for all.
    Arm(Option<u8>),
    /// Reads `next.json` to its end and closes it.
    Read,
    /// Reads `next.json` from its start on a handle that stays open.
    ReadAgain,
    /// Reads only its first byte, and dies.
    ReadAndDie,
    /// Reads all of it, and is gone before its close arrives.
    ReadAndVanish,
    /// A reader that was parked is killed.
    Kill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![
        3 => (0u8..3).prop_map(Step::Fire),
        2 => prop::option::of(0u8..3).prop_map(Step::Arm),
        4 => Just(Step::Read),
        2 => Just(Step::ReadAgain),
        1 => Just(Step::ReadAndDie),
        1 => Just(Step::ReadAndVanish),
        1 => Just(Step::Kill),
    ];
    prop::collection::vec(act, 1..40)
}

/// The expected behaviour: the log, and the position of the shared reader.
#[derive(Default)]
struct WaitModel {
    log: Vec<(u64, u8)>,
    cursor: u64,
    armed: Option<Option<u8>>,
    /// The event that the reader with the open handle has, until the next arming.
    open: Option<u64>,
    /// Somebody had an event of this arming: whoever opens the file now does not wait.
    delivered: bool,
}

impl WaitModel {
    /// The event that a reader gets next.
    fn next(&self) -> Option<u64> {
        let wanted = self.armed?;
        let hears = |(seq, parameter): &&(u64, u8)| *seq > self.cursor && wanted.is_none_or(|it| it == *parameter);
        self.log.iter().find(hears).map(|(seq, _)| *seq)
    }
}

struct WaitBench {
    event_log: Arc<EventLog>,
    jobs: Arc<Jobs>,
    /// A store of its own.
    _store: Option<TestStore>,
}

impl WaitBench {
    fn new() -> WaitBench {
        WaitBench::at(Clock::real())
    }

    fn at(clock: Clock) -> WaitBench {
        let store = TestStore::new();
        let bench = WaitBench::on(&store, clock);
        WaitBench { _store: Some(store), ..bench }
    }

    /// A bench whose log is in `store`, as in one life of the host.
    fn on(store: &TestStore, clock: Clock) -> WaitBench {
        let event_log = EventLogs::new((**store).clone(), clock.clone()).of("ada").unwrap();
        let jobs = Jobs::new(Arc::new((**store).clone()), Ids::new(clock, Random::real()));
        WaitBench { event_log, jobs: Arc::new(jobs), _store: None }
    }

    async fn fire(&self, parameter: u8) -> u64 {
        let payload = json!({ "event_type": "user", "parameter": format!("p{parameter}") });
        let path = Selector::Signal(SignalType::User, Some(format!("p{parameter}"))).path("ada");
        self.event_log.add("signal", &path, payload).wait().await.unwrap()
    }

    async fn arm(&self, parameter: Option<u8>) {
        let path = match parameter {
            Some(parameter) => format!("/agents/self/events/sources/user/p{parameter}.json"),
            None => "/agents/self/events/sources/user.json".to_owned(),
        };
        let wait = Wait { paths: vec![path], timeout_ms: 600_000, since: None };
        self.event_log.arm(wait, Arc::default()).wait().await.unwrap();
    }

    fn open(&self) -> Box<dyn Handle> {
        let next = super::next::NextFile { event_log: self.event_log.clone(), jobs: self.jobs.clone() };
        next.open(&Caller::operator(), Open::READ).unwrap()
    }
}

/// The result of a read that does not have to wait.
fn at_once(answer: Answer<Bytes>) -> Option<Value> {
    match answer.poll_once() {
        Answer::Now(bytes) => Some(serde_json::from_slice(&bytes.unwrap()).unwrap()),
        _ => None,
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_comes_twice(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(follow(steps))?;
    }
}

async fn follow(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (wait_bench, mut model) = (WaitBench::new(), WaitModel::default());
    let kept = wait_bench.open();
    for act in steps {
        match act {
            Step::Fire(parameter) => {
                let seq = wait_bench.fire(parameter).await;
                model.log.push((seq, parameter));
            }
            Step::Arm(parameter) => {
                wait_bench.arm(parameter).await;
                if model.armed.is_none() {
                    model.cursor = model.log.last().map_or(0, |(seq, _)| *seq);
                }
                model.armed = Some(parameter);
                (model.open, model.delivered) = (None, false);
            }
            Step::Read => {
                let reader = wait_bench.open();
                let said = at_once(reader.read(0, 4096));
                reader.flush(false).wait().await.unwrap();
                match (model.armed, model.next()) {
                    (None, _) => prop_assert_eq!(&said.unwrap()["configured"], &json!(false)),
                    (_, None) if model.delivered => prop_assert_eq!(&said.unwrap()["timeout"], &json!(true)),
                    (_, None) => prop_assert_eq!(said, None, "a reader parks"),
                    (_, Some(seq)) => {
                        prop_assert_eq!(&said.unwrap()["event_id"], &json!(seq));
                        (model.cursor, model.delivered) = (seq, true);
                    }
                }
            }
            Step::ReadAgain => {
                let said = at_once(kept.read(0, 4096));
                model.delivered |= model.open.is_some();
                model.cursor = model.cursor.max(model.open.take().unwrap_or(0));
                model.open = model.next();
                let event = said.as_ref().and_then(|said| said["event_id"].as_u64());
                prop_assert_eq!(event, model.open);
            }
            Step::ReadAndDie => {
                if model.next().is_some() {
                    let reader = wait_bench.open();
                    prop_assert!(matches!(reader.read(0, 1).poll_once(), Answer::Now(Ok(_))));
                    reader.flush(false).wait().await.unwrap();
                    reader.closed();
                }
            }
            Step::ReadAndVanish => {
                if let Some(seq) = model.next() {
                    let said = at_once(wait_bench.open().read(0, 4096)).unwrap();
                    prop_assert_eq!(&said["event_id"], &json!(seq));
                }
            }
            // Polling parks the read; dropping it is what a signal does. A read that was ready would have been
            // read.
            Step::Kill => {
                if model.next().is_none() {
                    drop(wait_bench.open().read(0, 4096).poll_once());
                }
            }
        }
    }
    Ok(())
}

/// Several readers are parked; the signal wakes all of them.
#[tokio::test]
async fn all_who_wait_are_woken() {
    let wait_bench = WaitBench::new();
    wait_bench.arm(None).await;
    // Polling a read once parks it.
    let parked = (0..100).map(|_| match wait_bench.open().read(0, 4096).poll_once() {
        Answer::Later(reader) => reader,
        _ => panic!("nothing has happened yet"),
    });
    let waiting: Vec<_> = parked.collect();
    let seq = wait_bench.fire(1).await;
    let mut heard = BTreeSet::new();
    for reader in waiting {
        let said: Value = serde_json::from_slice(&reader.await.unwrap()).unwrap();
        heard.insert(said["event_id"].as_u64());
    }
    assert_eq!(heard, BTreeSet::from([Some(seq)]));
}

/// A stored log of `count` signals; only the `wanted`th has another parameter.
fn long(store: &TestStore, count: u64, wanted: u64) -> WaitBench {
    let fill = move |tx: &acheron_store::Tx<'_>| {
        for seq in 1..=count {
            let parameter = if seq == wanted { "p1" } else { "p0" };
            let payload = json!({ "event_type": "user", "parameter": parameter });
            crate::state::events::append(tx, "ada", "signal".to_owned(), "/x".to_owned(), 1, payload)?;
        }
        Ok(())
    };
    store.write_blocking(fill).unwrap();
    WaitBench::on(store, Clock::real())
}

fn wait(paths: &[&str], since: Option<u64>) -> Wait {
    Wait { paths: paths.iter().map(|path| (*path).to_owned()).collect(), timeout_ms: 600_000, since }
}

const P1: &str = "/agents/ada/events/sources/user/p1.json";

#[tokio::test]
async fn a_reader_far_behind_hears_of_all_in_order_even_if_it_never_waits() {
    let store = TestStore::new();
    let wait_bench = long(&store, 14_000, 9_000);
    wait_bench.event_log.arm(wait(&[P1], Some(0)), Arc::default()).wait().await.unwrap();
    let read = wait_bench.open().read(0, 4096).wait().await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&read).unwrap()["event_id"], 9_000);

    wait_bench.event_log.arm(wait(&[P1], Some(0)), Arc::default()).wait().await.unwrap();
    let patient = async {
        loop {
            match at_once(wait_bench.open().read(0, 4096)) {
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
    let wait_bench = WaitBench::new();
    wait_bench.event_log.arm(wait(&[P1], None), Arc::default()).wait().await.unwrap();
    let seqs = [wait_bench.fire(1).await, wait_bench.fire(1).await];
    let old = wait_bench.open();
    assert_eq!(old.read(0, 1).wait().await.unwrap().len(), 1);
    wait_bench.event_log.arm(wait(&[P1], Some(0)), Arc::default()).wait().await.unwrap();
    old.read(1, 4096).wait().await.unwrap();
    old.closed();
    for seq in seqs {
        let reader = wait_bench.open();
        assert_eq!(at_once(reader.read(0, 4096)).unwrap()["event_id"], seq);
        reader.closed();
    }
}

#[tokio::test]
async fn a_wait_for_a_job_that_is_gone_is_over() {
    let wait_bench = WaitBench::new();
    wait_bench.event_log.arm(wait(&["/agents/ada/jobs/job-1/status.json"], None), Arc::default()).wait().await.unwrap();
    let said = at_once(wait_bench.open().read(0, 4096)).unwrap();
    assert_eq!((&said["job"]["job_id"], &said["job"]["archived"]), (&json!("job-1"), &json!(true)));
}

#[tokio::test]
async fn an_event_that_a_reader_has_is_news_to_other_readers_and_not_to_its_own_poll() {
    let wait_bench = WaitBench::new();
    wait_bench.event_log.arm(wait(&[P1], None), Arc::default()).wait().await.unwrap();
    let (one, other) = (wait_bench.open(), wait_bench.open());
    let ready = |reader: &dyn Handle| matches!(reader.readable().poll_once(), Answer::Now(Ok(())));
    assert!(!ready(&*one));
    let first = wait_bench.fire(1).await;
    assert_eq!(at_once(one.read(0, 4096)).unwrap()["event_id"], first);
    // Another event passes, which none of them waits for.
    wait_bench.fire(2).await;
    assert!(!ready(&*one) && ready(&*other));
    let second = wait_bench.fire(1).await;
    assert!(ready(&*one));
    assert_eq!(at_once(other.read(0, 4096)).unwrap()["event_id"], first);
    assert_eq!(at_once(one.read(0, 4096)).unwrap()["event_id"], second);
    other.closed();
    assert_eq!(at_once(wait_bench.open().read(0, 4096)).unwrap()["event_id"], second);
}

/// A poll that is answered late must not decide which event the reader of the handle acknowledges.
#[tokio::test]
async fn a_poll_does_not_acknowledge_for_the_reader() {
    let clock = Clock::at(0);
    let wait_bench = WaitBench::at(clock.clone());
    let armed = Armed {
        selectors: [Selector::At(1000), Selector::Signal(SignalType::User, None)].into(),
        cursor: 0,
        armed_at_ms: 0,
        fired: BTreeSet::new(),
        turn: 0,
        watched: Arc::default(),
    };
    let waiter: Arc<dyn Reply> = Arc::new(Waiter::new(&wait_bench.event_log, &wait_bench.jobs, armed, None));
    let replies = Replies::default();
    replies.add(0, [waiter]);
    let Answer::Later(poll) = replies.readable().poll_once() else { panic!("nothing has happened yet") };
    let seq = wait_bench.fire(1).await;
    let said = at_once(replies.read(0, 4096)).unwrap();
    assert_eq!(said["event_id"], seq);
    clock.set(1000);
    poll.await.unwrap();
    assert!(replies.read(4096, 4096).wait().await.unwrap().is_empty());
    let said = at_once(replies.read(0, 4096)).unwrap();
    assert_eq!(said["time"]["due_ms"], 1000, "{said}");
}

/// Sends a signal; it is durable, and so is everything before it.
async fn fire_durably(bench: &WaitBench) -> u64 {
    let payload = json!({ "event_type": "user", "parameter": "p1" });
    bench.event_log.add("signal", P1, payload).wait().await.unwrap()
}

#[tokio::test]
async fn an_event_comes_again_after_a_crash_unless_its_reader_has_closed_the_file() {
    let store = TestStore::new();
    let first = WaitBench::on(&store, Clock::real());
    first.event_log.arm(wait(&[P1], None), Arc::default()).wait().await.unwrap();
    let seq = fire_durably(&first).await;
    let reader = first.open();
    let said: Value = serde_json::from_slice(&reader.read(0, 4096).wait().await.unwrap()).unwrap();
    assert_eq!(said["event_id"], seq);
    let next_seq = fire_durably(&first).await;

    // The host dies before the reader learns that this was all: its next read fails.
    let second = WaitBench::on(&store, Clock::real());
    let again = second.open();
    let said: Value = serde_json::from_slice(&again.read(0, 4096).wait().await.unwrap()).unwrap();
    assert_eq!(said["event_id"], seq);
    assert!(again.read(4096, 4096).wait().await.unwrap().is_empty());
    again.flush(false).wait().await.unwrap();
    fire_durably(&second).await;

    let third = WaitBench::on(&store, Clock::real());
    assert_eq!(at_once(third.open().read(0, 4096)).unwrap()["event_id"], next_seq);
}

#[tokio::test]
async fn the_first_arming_starts_at_the_end_of_the_log_and_a_later_one_where_the_reader_was() {
    let store = TestStore::new();
    let first = WaitBench::on(&store, Clock::real());
    fire_durably(&first).await;
    first.event_log.arm(wait(&[P1], None), Arc::default()).wait().await.unwrap();
    assert_eq!(at_once(first.open().read(0, 4096)), None, "nothing was armed when the signal was sent");
    let seq = fire_durably(&first).await;

    // The position is durable, and arming again does not lose what came since.
    let second = WaitBench::on(&store, Clock::real());
    assert_eq!(at_once(second.open().read(0, 4096)).unwrap()["event_id"], seq);
    second.event_log.arm(wait(&[P1], None), Arc::default()).wait().await.unwrap();
    assert_eq!(at_once(second.open().read(0, 4096)).unwrap()["event_id"], seq);
}
