//! Mail and queues: acknowledged messages and items through the mount, against bare SQLite that makes the same rows.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

use rusqlite::Connection;
use serde_json::json;

use super::Run;
use super::house::{Scratch, TestHost, ask, plain, write_once};
use super::method::compare;
use super::table::{Aim, Figure};

/// Calls of each caller in a chunk.
const EACH: usize = 4;

pub fn rows(run: &Run) -> Vec<Figure> {
    let mut figures: Vec<Figure> = [1, 8, 64].into_iter().map(|senders| sent(run, senders)).collect();
    figures.extend([1, 8].map(|workers| worked(run, workers)));
    figures
}

/// Acknowledged: the write of `send.json` has returned.
fn sent(run: &Run, senders: usize) -> Figure {
    let house = TestHost::start(&plain());
    let scratch = Scratch::new();
    let mut bare = SameRows::new(scratch.path());
    let control = house.own("mail/control/send.json");
    let send = move |_: usize| {
        let mail = json!({"to": "charon", "subject": "toll", "body": "One obol, and not a word about it."});
        write_once(&control, mail.to_string().as_bytes());
    };
    let crowd = Crowd::start(senders, send);
    let each = EACH * senders;
    let compared = compare(run.pace(12, 1), |_| crowd.go(), |_| (0..each).for_each(|_| bare.mail()));
    let name = format!("acknowledged messages a second, {senders} senders ÷ bare SQLite, the same rows, a commit each");
    figure(name, each, compared, if senders == 64 { Aim::AtLeast(2.0) } else { Aim::Told })
}

/// One item: put, taken, and done.
fn worked(run: &Run, workers: usize) -> Figure {
    let house = TestHost::start(&plain());
    let scratch = Scratch::new();
    let mut bare = SameRows::new(scratch.path());
    let (put, take) = (house.own("queues/control/put.json"), house.own("queues/control/take.json"));
    let done: PathBuf = house.own("queues/control/done.json");
    let work = move |worker: usize| {
        let queue = format!("q{worker}");
        write_once(&put, json!({"queue": queue, "body": {"soul": "Orpheus"}}).to_string().as_bytes());
        let taken = ask(&take, &json!({ "queue": queue }));
        write_once(&done, json!({"lease": taken["result"]["lease"]}).to_string().as_bytes());
    };
    let crowd = Crowd::start(workers, work);
    let each = EACH * workers;
    let compared = compare(run.pace(12, 1), |_| crowd.go(), |_| (0..each).for_each(|_| bare.item()));
    let name =
        format!("items put, taken and done a second, {workers} workers ÷ bare SQLite, the same rows, a commit each");
    figure(name, each, compared, Aim::Told)
}

fn figure(name: String, each: usize, compared: super::method::Compared, aim: Aim) -> Figure {
    let a_second = |seconds: f64| each as f64 / seconds;
    let speeds = format!("{:.0} / {:.0} a second", a_second(compared.ours), a_second(compared.base));
    let mut figure = Figure::number(name, 1.0 / compared.ratio, "x", aim).detail(speeds);
    figure.noise = Some(compared.noise);
    figure
}

/// Threads that do the same over and over.
struct Crowd {
    meet: Arc<Barrier>,
}

impl Crowd {
    fn start(count: usize, work: impl Fn(usize) + Clone + Send + 'static) -> Crowd {
        let meet = Arc::new(Barrier::new(count + 1));
        for number in 0..count {
            let (meet, work) = (meet.clone(), work.clone());
            std::thread::spawn(move || {
                loop {
                    meet.wait();
                    (0..EACH).for_each(|_| work(number));
                    meet.wait();
                }
            });
        }
        Crowd { meet }
    }

    fn go(&self) {
        self.meet.wait();
        self.meet.wait();
    }
}

/// Bare SQLite with the tables of the host.
struct SameRows {
    conn: Connection,
    number: i64,
}

impl SameRows {
    fn new(dir: &Path) -> SameRows {
        crate::method::open_state(dir).close();
        let conn = Connection::open(dir.join("acheron.db")).expect("a database");
        for (setting, value) in [("journal_mode", "wal"), ("synchronous", "full")] {
            conn.pragma_update(None, setting, value).expect("a setting");
        }
        SameRows { conn, number: 0 }
    }

    fn run(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) {
        self.conn.prepare_cached(sql).expect("a statement").execute(values).expect("a row");
    }

    /// A message: itself, its id, the count of its inbox, its job and three events.
    fn mail(&mut self) {
        self.number += 1;
        let id = format!("mail-{}", self.number);
        self.conn.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
        self.run(
            "INSERT INTO mail (id, sender, recipient, subject, body, thread, at_ms) \
             VALUES (?1, 'operator', 'charon', 'toll', 'One obol, and not a word about it.', ?1, 1)",
            &[&id],
        );
        self.run(
            "INSERT INTO mail_sent (sender, key, id, recipient, thread, at_ms) VALUES ('operator', ?1, ?1, 'charon', ?1, 1)",
            &[&id],
        );
        self.run(
            "INSERT INTO mail_boxes (recipient, sender, messages, bytes) VALUES ('charon', 'operator', 1, 40) \
             ON CONFLICT (recipient, sender) DO UPDATE SET messages = messages + 1, bytes = bytes + 40",
            &[],
        );
        self.journal("send", 3);
        self.conn.execute_batch("COMMIT").expect("a commit");
    }

    /// An item, in three commits: put, leased, done.
    fn item(&mut self) {
        self.number += 1;
        let id = format!("item-{}", self.number);
        self.conn.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
        self.run(
            "INSERT INTO queue_items (queue, id, state, priority, due_ms, attempt, max_attempts, put_by, put_at_ms, bytes, body) \
             VALUES ('q', ?1, 'ready', 0, 0, 0, 5, 'operator', 1, 18, '{\"soul\":\"Orpheus\"}')",
            &[&id],
        );
        self.journal("put", 1);
        self.conn.execute_batch("COMMIT; BEGIN IMMEDIATE").expect("a commit");
        self.run("UPDATE queue_items SET state = 'leased', lease = ?1, due_ms = 9 WHERE id = ?1", &[&id]);
        self.journal("take", 1);
        self.conn.execute_batch("COMMIT; BEGIN IMMEDIATE").expect("a commit");
        self.run("DELETE FROM queue_items WHERE lease = ?1", &[&id]);
        self.run("INSERT INTO queue_done (queue, id, lease, at_ms) VALUES ('q', ?1, ?1, 1)", &[&id]);
        self.journal("done", 1);
        self.conn.execute_batch("COMMIT").expect("a commit");
    }

    /// The job of a call, and so many events.
    fn journal(&self, operation: &str, events: i64) {
        let id = format!("job-{operation}-{}", self.number);
        self.run(
            "INSERT INTO jobs (id, agent, service, operation, effect, idempotent, state, principal, request, created_at_ms, updated_at_ms, attempt) \
             VALUES (?1, 'charon', 'mail', ?2, 'write', 0, 'done', 'operator', '{}', 1, 1, 1)",
            &[&id, &operation],
        );
        for _ in 0..events {
            self.run(
                "INSERT INTO event_logs (agent, last_seq) VALUES ('charon', 1) \
                 ON CONFLICT (agent) DO UPDATE SET last_seq = last_seq + 1",
                &[],
            );
            self.run(
                "INSERT INTO events (agent, seq, kind, path, at_ms, payload) VALUES ('charon', \
                 (SELECT last_seq FROM event_logs WHERE agent = 'charon'), 'mail', '/agents/charon/mail', 1, '{\"mail\":\"stored\"}')",
                &[],
            );
        }
    }
}
