//! Memory: acknowledged writes and searches, against bare SQLite.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::Run;
use super::house::{Scratch, TestHost, ask, plain};
use super::method::{compare, compare_timed};
use super::table::{Aim, Figure};
use acheron::contract::Envelope;
use acheron::events::EventLogs;
use acheron::host::PolicyAccess;
use acheron::jobs::{JobState, Jobs};
use acheron::policy::{Policy, PrincipalCaller};
use acheron::service::{self, ServiceContext, typed};
use acheron::services::memory::{Memory, MemoryStore};
use acheron_base::{Clock, Ids, Random};
use acheron_vfs::Caller;

pub fn rows(run: &Run) -> Vec<Figure> {
    let mut figures: Vec<Figure> = [1, 8, 64].into_iter().map(|writers| written(run, writers)).collect();
    figures.push(found(run, 1_000, Aim::AtMost(4.0)));
    figures.push(found(run, if run.quick { 5_000 } else { 100_000 }, Aim::AtMost(1.3)));
    figures
}

/// Acknowledged: `close(2)` of the memory's file has returned 0.
fn written(run: &Run, writers: usize) -> Figure {
    let house = TestHost::start(&plain());
    let scratch = Scratch::new();
    let mut bare = SameRows::new(scratch.path());
    let crowd = Writers::start(&house, writers);
    let each = EACH * writers;
    let compared = compare(run.pace(12, 1), |_| crowd.go(), |_| (0..each).for_each(|_| bare.commit()));
    let a_second = |seconds: f64| each as f64 / seconds;
    let aim = if writers == 64 { Aim::AtLeast(4.0) } else { Aim::Told };
    let name =
        format!("acknowledged memory writes a second, {writers} writers ÷ bare SQLite, the same rows, a commit each");
    let mut figure = Figure::number(name, 1.0 / compared.ratio, "x", aim);
    figure.noise = Some(compared.noise);
    let speeds = format!("{:.0} / {:.0} a second", a_second(compared.ours), a_second(compared.base));
    figure
        .detail(speeds)
        .because("where a commit alone takes no longer than a write's processor time, there is little to share")
}

/// Bare SQLite that makes the rows of a new version of a memory: item, version, two indexes, event.
struct SameRows {
    conn: Connection,
    version: i64,
}

impl SameRows {
    fn new(dir: &Path) -> SameRows {
        crate::method::open_state(dir).close();
        let file = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
        let file = file.into_iter().find(|file| file.extension().is_some_and(|end| end == "db")).expect("a database");
        let conn = Connection::open(file).expect("a database");
        for (setting, value) in [("journal_mode", "wal"), ("synchronous", "full")] {
            conn.pragma_update(None, setting, value).expect("a setting");
        }
        conn.execute_batch(
            "INSERT INTO memory_agents (number, agent) VALUES (1, 'charon'); \
             INSERT INTO memories (id, agent, name, version, write_protected, unevictable) VALUES (1, 1, 'writer', 0, 0, 0)",
        )
        .expect("a memory");
        SameRows { conn, version: 0 }
    }

    fn commit(&mut self) {
        self.version += 1;
        let (version, text) = (self.version, format!("round {}, write 1", self.version));
        let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            self.conn.prepare_cached(sql).expect("a statement").execute(values).expect("a row");
        };
        self.conn.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
        run(
            "INSERT INTO memory_versions (memory, version, deleted, kind, tags, sources, form, content, tokens, created_at_ms) \
             VALUES (1, ?1, 0, 'note', '[]', '[]', 'text', ?2, 5, 1)",
            &[&version, &text],
        );
        run("UPDATE memories SET version = ?1, tokens = 5 WHERE id = 1", &[&version]);
        if version > 1 {
            run("DELETE FROM memory_now WHERE rowid = 1", &[]);
        }
        run("INSERT INTO memory_now (rowid, name, content) VALUES (1, 'writer', ?1)", &[&text]);
        run("INSERT INTO memory_ever (rowid, name, content) VALUES (?1, 'writer', ?2)", &[&version, &text]);
        run(
            "INSERT INTO event_logs (agent, last_seq) VALUES ('charon', 1) \
             ON CONFLICT (agent) DO UPDATE SET last_seq = last_seq + 1",
            &[],
        );
        run(
            "INSERT INTO events (agent, seq, kind, path, at_ms, payload) \
             VALUES ('charon', ?1, 'memory', '/agents/charon/memory/items/writer', 1, '{\"memory\":\"changed\"}')",
            &[&version],
        );
        self.conn.execute_batch("COMMIT").expect("a commit");
    }
}

/// Writes of each writer in a chunk.
const EACH: usize = 2;

/// Threads that write a memory each, over and over.
struct Writers {
    meet: Arc<Barrier>,
}

impl Writers {
    fn start(house: &TestHost, writers: usize) -> Writers {
        let meet = Arc::new(Barrier::new(writers + 1));
        for number in 0..writers {
            let path = house.own(&format!("memory/items/writer-{number}/content"));
            let new = json!({ "kind": "note", "name": format!("writer-{number}"), "content": "begun" });
            assert_eq!(ask(&house.own("memory/control/create.json"), &new)["ok"], true);
            let meet = meet.clone();
            std::thread::spawn(move || {
                for round in 0_u64.. {
                    meet.wait();
                    (0..EACH as u64).for_each(|write| kept(&path, &format!("round {round}, write {write}")));
                    meet.wait();
                }
            });
        }
        Writers { meet }
    }

    fn go(&self) {
        self.meet.wait();
        self.meet.wait();
    }
}

/// A new version, safe when this returns.
fn kept(path: &Path, text: &str) {
    let mut file = File::options().write(true).truncate(true).open(path).expect("a memory");
    file.write_all(text.as_bytes()).expect("a version");
    // Dropping a file hears no error; the acknowledgement is what `close(2)` answers.
    nix::unistd::close(file).expect("an acknowledged version");
}

const WORDS: [&str; 40] = [
    "river", "ferry", "coin", "shore", "boat", "oar", "night", "lamp", "rope", "harbour", "wind", "stone", "bridge",
    "letter", "market", "garden", "window", "winter", "summer", "bread", "water", "silver", "copper", "iron", "cloud",
    "forest", "meadow", "valley", "island", "tower", "castle", "village", "road", "wagon", "horse", "raven", "willow",
    "candle", "mirror", "clock",
];

/// A note of some twenty words, the same for the same number.
pub fn note(number: usize) -> String {
    let mut seed = number as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut word = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        WORDS[(seed >> 33) as usize % WORDS.len()]
    };
    let words: Vec<&str> = (0..18).map(|_| word()).collect();
    format!("{} number {number} rare{}", words.join(" "), number % 997)
}

/// Fills the memory of `charon` in a state directory, by its own operation and without a mount.
pub fn fill(state: &Path, count: usize) {
    fill_with(
        state,
        count,
        |number| json!({ "kind": "note", "name": format!("item-{number:06}"), "content": note(number) }),
    );
}

/// Fills a state with the memories that `made` gives as arguments of `create`.
pub fn fill_with(state: &Path, count: usize, made: impl Fn(usize) -> Value) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (store, clock) = (crate::method::open_state(state), Clock::real());
        let access = Arc::new(PolicyAccess::new(Policy::default(), store.clone(), clock.clone()));
        let book = Arc::new(Jobs::new(Arc::new(store.clone()), Ids::new(clock.clone(), Random::real())));
        let event_logs = Arc::new(EventLogs::new(store.clone(), clock.clone()));
        let event_log = event_logs.of("charon").expect("a diary");
        let runtime = tokio::runtime::Handle::current();
        let context = ServiceContext::new(book, event_logs, store.clone(), access, runtime);
        let memory = MemoryStore::open(store.clone(), event_log, clock, 8_000).expect("a memory");
        let memory = typed(Memory::new(memory, None)).expect("a service");
        let instance = service::ServiceInstance::of(&context, "charon", memory);
        for start in (0..count).step_by(512) {
            let one = |number: usize| {
                let call =
                    Envelope { op: "create".into(), arguments: made(number), correlation_id: None, reason: None };
                let begun = instance.begin(&Caller::operator(), vec![call]);
                async move {
                    let job = begun.wait().await.expect("a job").remove(0);
                    assert_eq!(job.now().state, JobState::Done);
                }
            };
            futures_util::future::join_all((start..count.min(start + 512)).map(one)).await;
        }
        store.close();
    });
}

/// Where the rest of a small search goes.
const SEARCH: &str = "profiled: the bare query asks for both words and finds nothing; this one asks again for the rarer word, reads what it found, and is two requests and two changes of thread";

/// A search by a rare word and a common one, through the mount; the baseline is the query alone.
fn found(run: &Run, count: usize, aim: Aim) -> Figure {
    let scratch = Scratch::new();
    let began = Instant::now();
    fill(&scratch.path().join("state"), count);
    let filled = began.elapsed();
    let bare = index(&scratch.path().join("fts.db"), count);
    let house = TestHost::in_scratch(scratch, &plain());
    let control: PathBuf = house.own("memory/control/search.json");
    let control = File::options().read(true).write(true).open(control).expect("a control file");
    let mut answer = vec![0; 1 << 20];
    let query = |number: usize| format!("rare{} {}", number * 31 % 997, WORDS[number % WORDS.len()]);
    let (mut ours, mut theirs) = (0, 0);
    let compared = compare_timed(
        run.pace(30, 10),
        || {
            ours += 1;
            let command = json!({ "query": query(ours), "limit": 10 }).to_string();
            let began = Instant::now();
            control.write_at(command.as_bytes(), 0).expect("a command");
            let length = control.read_at(&mut answer, 0).expect("an answer");
            let took = began.elapsed();
            assert!(answer[..length].starts_with(b"{\"ok\":true"));
            took
        },
        || {
            theirs += 1;
            let (rare, common) = (theirs * 31 % 997, WORDS[theirs % WORDS.len()]);
            let began = Instant::now();
            let sql = "SELECT rowid, rank FROM notes WHERE notes MATCH ?1 ORDER BY rank LIMIT 10";
            let mut select = bare.prepare_cached(sql).expect("a query");
            let rows = select.query_map([format!("rare{rare} {common}")], |row| row.get::<_, i64>(0)).expect("rows");
            assert!(rows.count() <= 10);
            began.elapsed()
        },
    );
    let figure = Figure::ratio(format!("memory search among {count} ÷ bare FTS5 query, p50"), compared, aim);
    let detail = format!("{}; filled at {:.0} a second", figure.detail, count as f64 / filled.as_secs_f64());
    figure.detail(detail).because(SEARCH)
}

fn index(file: &Path, count: usize) -> Connection {
    let conn = Connection::open(file).expect("a database");
    conn.execute_batch("PRAGMA journal_mode = wal; CREATE VIRTUAL TABLE notes USING fts5(text); BEGIN")
        .expect("a table");
    for number in 0..count {
        let mut insert = conn.prepare_cached("INSERT INTO notes (rowid, text) VALUES (?1, ?2)").expect("a statement");
        insert.execute(rusqlite::params![number as i64 + 1, note(number)]).expect("a row");
    }
    conn.execute_batch("COMMIT").expect("a commit");
    conn
}
