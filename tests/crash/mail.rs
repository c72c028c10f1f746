//! Mail and queues under `kill -9`: every message that was acknowledged is there once, every item is done once, and a lease
//! belongs to the job that tells of it. The load is written against the traits, so that another backend can be put under it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use regex::Regex;
use serde_json::{Value, json};

use super::life::{AGENT, Life};
use super::load::put;
use acheron::services::mail::message::NewMail;
use acheron::services::mail::{Address, Mailbox, SqliteMailbox};
use acheron::services::queues::backend::{NewItem, TakeRequest, Taken};
use acheron::services::queues::lease::ItemEvent;
use acheron::services::queues::{Queue, SqliteQueue};
use acheron::state::jobs;
use acheron_base::Code;

/// The variable with the directory of the state, and the one with what is known to be acknowledged.
const PLACE: &str = "ACHERON_MAIL_STATE";
const SENDERS: u64 = 64;
const WORKERS: usize = 16;
/// Long enough for a worker, short enough for the next life.
const LEASE_MS: u64 = 300;

/// How many messages are sent at least, and how often the sender is killed: with `MAIL_ALL=1` ten times as many messages, in a
/// soak a hundred times as many.
fn load() -> (usize, usize) {
    match (super::soaking().is_some(), std::env::var_os("MAIL_ALL").is_some()) {
        (true, _) => (1_000_000, 50),
        (_, true) => (100_000, 20),
        _ => (10_000, 20),
    }
}

fn now_ms() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64
}

fn inbox() -> Address {
    Address::Agent("many".to_owned())
}

async fn send(mailbox: &dyn Mailbox, life: u64, key: u64) {
    let from = Address::Agent(format!("s{}", key % SENDERS));
    let (id, subject, body) = (format!("mail-{life}-{key}"), String::new(), key.to_string());
    let key = Some(key.to_string());
    let mail = NewMail { id, key, from, to: inbox(), subject, body, reply_to: None, thread: None, at_ms: now_ms() };
    mailbox.send(mail).await.unwrap();
}

async fn put_item(queue: &dyn Queue, key: u64) {
    let (id, by) = (format!("i{key}"), "operator".to_owned());
    let (queue_name, body) = ("work".to_owned(), json!(key));
    let item = NewItem {
        queue: queue_name,
        id,
        body,
        priority: 0,
        not_before_ms: None,
        max_attempts: 1000,
        by,
        at_ms: now_ms(),
    };
    queue.put(item).await.unwrap();
}

/// Takes one item and ends it: its id if that was acknowledged.
async fn work(queue: &dyn Queue, token: String) -> Option<String> {
    let (name, by) = ("work".to_owned(), "operator".to_owned());
    let wanted = TakeRequest { queue: name, token: format!("work.{token}"), lease_ms: LEASE_MS, by, at_ms: now_ms() };
    match queue.take(wanted).await.unwrap() {
        Taken::Leased { item, .. } => match queue.settle(ItemEvent::Done { token: item.lease }, None, now_ms()).await {
            Ok(()) => Some(item.id),
            Err(error) => {
                assert_eq!(error.code, Code::Fenced);
                Some(String::new())
            }
        },
        Taken::Empty { .. } => None,
    }
}

fn said(word: &str, what: impl std::fmt::Display) {
    _ = std::io::stdout().write_all(format!("{word} {what}\n").as_bytes());
}

/// Not a test of its own: the load, when this program was started for it. It says what was acknowledged.
#[test]
fn the_senders_live_here() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let begin: BTreeMap<String, u64> = serde_json::from_slice(&fs::read(place.join("begin.json")).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = crate::open_state(&place.join("state"));
        let (mailbox, queue) = open(&store);
        let (mailbox, queue) = (Arc::new(mailbox), Arc::new(queue));
        let life = begin["life"];
        println!("\nthe load is up");
        for sender in 0..SENDERS {
            let (mailbox, first) = (mailbox.clone(), begin[&format!("m{sender}")]);
            tokio::spawn(async move {
                for key in (first..).step_by(SENDERS as usize) {
                    send(&*mailbox, life, key).await;
                    said("m", key);
                }
            });
        }
        let (putting, first) = (queue.clone(), begin["p"]);
        tokio::spawn(async move {
            for first in (first..).step_by(16) {
                let put = |key| {
                    let putting = putting.clone();
                    async move {
                        put_item(&*putting, key).await;
                        said("p", key);
                    }
                };
                futures_util::future::join_all((first..first + 16).map(put)).await;
            }
        });
        let worker = |worker: usize| {
            let queue = queue.clone();
            async move {
                for turn in 0.. {
                    match work(&*queue, format!("{life}-{worker}-{turn}")).await {
                        Some(id) if !id.is_empty() => said("d", id),
                        Some(_) => (),
                        None => tokio::time::sleep(Duration::from_millis(5)).await,
                    }
                }
            }
        };
        futures_util::future::join_all((0..WORKERS).map(worker)).await;
    });
}

fn open(store: &acheron_store::Store) -> (SqliteMailbox, SqliteQueue) {
    let limits = acheron::state::quota::ByteLimits { mail_messages: 4_000_000, ..Default::default() };
    let quotas = Arc::new(acheron::state::quota::Quotas::default());
    quotas.set(limits);
    (SqliteMailbox::new(store.clone(), quotas.clone()), SqliteQueue::new(store.clone(), quotas))
}

/// What was said to be acknowledged.
#[derive(Default)]
struct Said {
    mails: BTreeSet<u64>,
    put: BTreeSet<u64>,
    done: Vec<String>,
}

impl Said {
    /// Where the next life goes on: with what was not acknowledged, once more.
    fn begin(&self, life: u64) -> Value {
        let mut begin = json!({ "life": life, "p": self.put.last().map_or(0, |last| last + 1) });
        for sender in 0..SENDERS {
            let last = self.mails.iter().rev().find(|key| *key % SENDERS == sender);
            begin[format!("m{sender}")] = last.map_or(sender, |last| last + SENDERS).into();
        }
        begin
    }

    fn hear(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("m", key)) => self.mails.extend(key.parse::<u64>()),
            Some(("p", key)) => self.put.extend(key.parse::<u64>()),
            Some(("d", id)) => self.done.push(id.to_owned()),
            _ => (),
        }
    }

    /// One life of the load, ended by `kill -9`.
    fn one_life(&mut self, place: &Path, life: u64, time: Duration) {
        fs::write(place.join("begin.json"), self.begin(life).to_string()).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "mail::the_senders_live_here", "--nocapture", "--test-threads=1"]);
        let mut child = command.env(PLACE, place).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.by_ref().map_while(Result::ok).any(|line| line == "the load is up"), "it did not come up");
        let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
        std::thread::spawn(move || {
            std::thread::sleep(time);
            _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL);
        });
        // The last line may be half written.
        let heard: Vec<String> = lines.map_while(Result::ok).collect();
        _ = child.wait();
        let whole = heard.len().saturating_sub(1);
        heard[..whole].iter().for_each(|line| self.hear(line));
    }
}

#[test]
fn of_many_messages_and_twenty_kills_none_is_lost_and_none_comes_twice() {
    let place = tempfile::tempdir().unwrap();
    let (messages, kills) = load();
    let mut random = StdRng::seed_from_u64(21);
    let (mut known, mut lives, began) = (Said::default(), 0, Instant::now());
    while lives < kills || known.mails.len() < messages {
        known.one_life(place.path(), lives as u64, Duration::from_millis(random.random_range(100..900)));
        lives += 1;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = crate::open_state(&place.path().join("state"));
    assert_eq!(acheron::state::faults(&place.path().join("state")).unwrap(), Some(vec![]));
    runtime.block_on(async {
        let (mailbox, queue) = open(&store);
        let (mut after, mut found) = (0, Vec::new());
        loop {
            let page = mailbox.list(&inbox(), after, 20_000).await.unwrap();
            let Some(last) = page.last() else { break };
            after = last.number;
            found.extend(page.into_iter().map(|mail| mail.body.parse::<u64>().unwrap()));
        }
        let once: BTreeSet<u64> = found.iter().copied().collect();
        assert_eq!(once.len(), found.len(), "a message is there twice");
        let lost: Vec<_> = known.mails.difference(&once).collect();
        assert!(lost.is_empty(), "{} messages were lost: {:?}", lost.len(), &lost[..lost.len().min(9)]);

        // What was leased by the killed comes back; then everything is done, and known by its id.
        let mut turn = 0;
        while queue.status("work", now_ms()).await.unwrap().is_some_and(|it| it.ready + it.delayed + it.leased > 0) {
            turn += 1;
            match work(&queue, format!("end-{turn}")).await {
                Some(id) if !id.is_empty() => known.done.push(id),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        let done: BTreeSet<&String> = known.done.iter().collect();
        assert_eq!(done.len(), known.done.len(), "an item was done twice");
        for key in &known.put {
            put_item(&queue, *key).await;
        }
        let left = queue.status("work", now_ms()).await.unwrap().unwrap();
        assert_eq!((left.ready, left.dead), (0, 0), "items were lost: their ids are not known");
    });
    store.close();
    println!("{} messages, {} items, {lives} kills in {:?}", known.mails.len(), known.done.len(), began.elapsed());
    assert!(!known.mails.is_empty() && !known.done.is_empty());
}

/// Every step that a take passes, as the sources name them.
fn steps() -> BTreeSet<String> {
    let named = Regex::new(r#"failpoint::step\("([^"]+)"\)"#).unwrap();
    let files = ["crates/store/src/writer.rs", "src/service/runner/mod.rs", "src/service/runner/execute.rs"];
    let files = files.into_iter().chain(["src/service/runner/end_with.rs"]);
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text: String = files.map(|file| fs::read_to_string(top.join(file)).unwrap()).collect();
    named.captures_iter(&text).map(|found| found[1].to_owned()).collect()
}

#[test]
fn a_take_that_is_killed_at_any_step_has_its_lease_or_nobody_has_it() {
    let place = tempfile::tempdir().unwrap();
    let (state, arm) = (place.path().join("state"), place.path().join("step"));
    let steps = steps();
    assert!(steps.contains("end_with.changed") && steps.len() > 5, "{steps:?}");
    let mut outcomes = BTreeSet::new();
    for (n, step) in steps.iter().enumerate() {
        let life = super::steps::begin(place.path());
        let control = |op: &str| life.agent().join("queues/control").join(op);
        let queue = format!("q-{n}");
        put(&control("put.json"), &json!({"queue": queue, "body": n, "id": "x"}).to_string()).unwrap();
        fs::write(&arm, step).unwrap();
        let name = format!("take-{n}");
        let taken = json!({"queue": queue, "wait_ms": 0, "lease_ms": 600_000, "_meta": {"correlation_id": name}});
        if put(&control("take.json"), &taken.to_string()).is_ok() {
            life.wait_for_death();
        }
        life.kill();
        fs::remove_file(&arm).unwrap();
        let store = crate::open_state(&state);
        let lease: Option<String> = store
            .look(|conn| {
                Ok(conn.query_row("SELECT lease FROM queue_items WHERE queue = ?1", [&queue], |row| row.get(0))?)
            })
            .unwrap();
        let job = store.look(|conn| jobs::correlated(conn, AGENT, &name)).unwrap();
        store.close();
        let told = job.as_ref().and_then(|job| job.result.as_ref()?["lease"].as_str().map(str::to_owned));
        assert_eq!(lease, told, "killed at {step}: {:?}", job.map(|job| job.state.name()));
        outcomes.insert(lease.is_some());
    }
    assert_eq!(outcomes, [false, true].into(), "some were killed before the lease and some after");
    // Whoever asks next gets what nobody has.
    let life = Life::begin(place.path(), &[]);
    let control = life.agent().join("queues/control/take.json");
    for (n, _) in steps.iter().enumerate() {
        put(&control, &json!({"queue": format!("q-{n}"), "wait_ms": 0}).to_string()).unwrap();
    }
    life.leave();
}
