//! Calling an operation that does next to nothing: 64 callers at once, each of another agent's service, on a handle that
//! it keeps open.
//!
//! Of another agent's, because the kernel sends one write at a time to a file whose end it does not know: callers of one
//! control file come one after the other, whatever the daemon does.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Barrier};

use parking_lot::Mutex;
use rusqlite::Connection;

use super::Run;
use super::bare;
use super::house::{Scratch, again};
use super::method::{Compared, compare};
use super::table::{Aim, Figure};
use super::workshop::{AGENTS, Workshop};

const CALLERS: usize = AGENTS;
/// Calls of each caller in a chunk.
const EACH: usize = 4;

const COMMAND: &[u8] = b"{\"number\":42}";

pub fn rows(run: &Run) -> Vec<Figure> {
    let workshop = Workshop::start();
    let bare = bare::Mounted::start(128);
    let crowd = Crowd::start(&workshop, &bare);
    let scratch = Scratch::new();
    let mut ledger = Ledger::new(scratch.path());

    let pace = run.pace(80, 1);
    let note = compare(
        pace,
        |_| crowd.go(Side::Note),
        |_| {
            crowd.go(Side::Bare);
            (0..EACH).for_each(|_| ledger.group(CALLERS));
        },
    );
    let both = |path: &Path| OpenOptions::new().read(true).write(true).open(path).expect("a control file");
    let (own, plain) = (both(&workshop.path("agents/agent-0/trivial/control/note.json")), both(&bare.file()));
    let alone = compare(
        run.pace(80, 20),
        |_| call(&own, true),
        |_| {
            call(&plain, false);
            ledger.group(1);
        },
    );
    let look = compare(pace, |_| crowd.go(Side::Look), |_| crowd.go(Side::Bare));
    let shared = compare(pace, |_| crowd.go(Side::Shared), |_| crowd.go(Side::Bare));
    let http = compare(pace, |_| crowd.go(Side::Look), |_| crowd.go(Side::Client));
    let by_hand = compare(pace, |_| crowd.go(Side::Look), |_| crowd.go(Side::Http));
    let ground = compare(pace, |_| crowd.go(Side::Bare), |_| crowd.go(Side::Http));
    vec![
        Figure::ratio(
            "invoke, effect write, 64 at once ÷ (two bare round trips + a group commit ÷ its calls)",
            per_call(note),
            Aim::AtMost(2.5),
        )
        .because("profiled: of the daemon's time, 63 % the session (half of that in the kernel, to take and to answer requests), 31 % the writer's thread (rows, then the log), 6 % waking callers"),
        Figure::ratio(
            "one caller, effect write, open handle ÷ a bare commit + two bare round trips",
            alone,
            Aim::AtMost(1.5),
        )
        .because("1.49, 1.65 and 1.68 in three runs: the rows of the job and its event, and two changes of thread, are what is added"),
        Figure::ratio("invoke, effect read, 64 at once ÷ two bare round trips", per_call(look), Aim::AtMost(1.35))
            .because("measured, of 34 µs a call: 24 the session, 10 the callers; a job has a name, a status and an entry in the job list"),
        Figure::ratio("the same, 64 callers of one control file", per_call(shared), Aim::Told),
        Figure::ratio("invoke, effect read, 64 at once ÷ loopback HTTP JSON call", per_call(http), Aim::Below(0.5))
            .because("see the next two rows: two bare round trips alone are most of what a bare HTTP call costs"),
        Figure::ratio("the same ÷ a call in HTTP written by hand on both sides", per_call(by_hand), Aim::Told),
        Figure::ratio("two bare round trips ÷ that", per_call(ground), Aim::Told),
    ]
}

fn per_call(compared: Compared) -> Compared {
    let calls = (CALLERS * EACH) as f64;
    Compared { ours: compared.ours / calls, base: compared.base / calls, ..compared }
}

#[derive(Clone, Copy)]
enum Side {
    Note,
    Look,
    Shared,
    Bare,
    Http,
    Client,
    Over,
}

/// Callers that wait for the word, do their calls, and meet again.
struct Crowd {
    side: Arc<Mutex<Side>>,
    meet: Arc<Barrier>,
    tool_server: Child,
}

impl Crowd {
    fn start(workshop: &Workshop, bare: &bare::Mounted) -> Crowd {
        let (side, meet) = (Arc::new(Mutex::new(Side::Bare)), Arc::new(Barrier::new(CALLERS + 1)));
        let (tool_server, address) = tool_server();
        for number in 0..CALLERS {
            let both = |path: &Path| OpenOptions::new().read(true).write(true).open(path).expect("a control file");
            let note = both(&workshop.path(&format!("agents/agent-{number}/trivial/control/note.json")));
            let look = both(&workshop.path(&format!("agents/agent-{number}/trivial/control/look.json")));
            let shared = both(&workshop.path("trivial/control/look.json"));
            let plain = both(&bare.file());
            let http = TcpStream::connect(&address).expect("the tool server");
            http.set_nodelay(true).expect("an option");
            let (side, meet) = (side.clone(), meet.clone());
            let (mut http, client) = (BufReader::new(http), Client::new(&address));
            std::thread::spawn(move || {
                loop {
                    meet.wait();
                    let side = *side.lock();
                    for _ in 0..EACH {
                        match side {
                            Side::Note => call(&note, true),
                            Side::Look => call(&look, true),
                            Side::Shared => call(&shared, true),
                            Side::Bare => call(&plain, false),
                            Side::Http => call_http(&mut http),
                            Side::Client => client.call(),
                            Side::Over => return,
                        }
                    }
                    meet.wait();
                }
            });
        }
        Crowd { side, meet, tool_server }
    }

    fn go(&self, side: Side) {
        *self.side.lock() = side;
        self.meet.wait();
        self.meet.wait();
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        *self.side.lock() = Side::Over;
        self.meet.wait();
        let _ = self.tool_server.kill();
        let _ = self.tool_server.wait();
    }
}

/// One write and one read.
fn call(file: &File, answered: bool) {
    let mut answer = [0; 1024];
    file.write_at(COMMAND, 0).expect("a command");
    let length = file.read_at(&mut answer, 0).expect("an answer");
    assert!(
        !answered || answer[..length].starts_with(b"{\"ok\":true"),
        "{}",
        String::from_utf8_lossy(&answer[..length])
    );
}

/// What a tool server costs: the same command as a POST over a connection that is kept.
fn call_http(stream: &mut BufReader<TcpStream>) {
    let head = format!(
        "POST /trivial/look HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n\
         content-length: {}\r\n\r\n",
        COMMAND.len()
    );
    let request = [head.as_bytes(), COMMAND].concat();
    stream.get_mut().write_all(&request).expect("a request");
    let body = message(stream).expect("an answer");
    let answer: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(answer["ok"], true);
}

/// The same by the client library of the house, as a program would that has no time to write HTTP by hand.
struct Client {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    url: String,
}

impl Client {
    fn new(address: &str) -> Client {
        // Plain HTTP, but the library wants to know how it would encrypt. Said once; the second time it is known.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Client { runtime, client: reqwest::Client::new(), url: format!("http://{address}/trivial/look") }
    }

    fn call(&self) {
        let body = self.runtime.block_on(async {
            let asked = self.client.post(&self.url).header("content-type", "application/json").body(COMMAND);
            asked.send().await.expect("an answer").bytes().await.expect("a body")
        });
        let answer: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(answer["ok"], true);
    }
}

/// Reads one HTTP message and returns its body.
fn message(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

/// Starts the tool server, a thread for each connection, and returns its address.
fn tool_server() -> (Child, String) {
    let scratch = Scratch::new();
    let file = scratch.path().join("address");
    let server = again(&["__tool_server", &file.to_string_lossy()]);
    (server, std::fs::read_to_string(file).expect("an address"))
}

/// The tool server's side.
pub fn serve_http(file: &Path) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    std::fs::write(file, listener.local_addr()?.to_string())?;
    super::house::ready();
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            while let Some(body) = message(&mut stream) {
                let asked: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
                let answer = serde_json::json!({ "ok": true, "result": { "number": asked["number"] } }).to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                if stream.get_mut().write_all(format!("{head}{answer}").as_bytes()).is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

/// Bare SQLite, with the settings of the house.
pub struct Ledger {
    conn: Connection,
    next: u64,
}

impl Ledger {
    pub fn new(dir: &Path) -> Ledger {
        let conn = Connection::open(dir.join("bare.db")).expect("a database");
        for (setting, value) in [("journal_mode", "wal"), ("synchronous", "full")] {
            conn.pragma_update(None, setting, value).expect("a setting");
        }
        conn.execute_batch("CREATE TABLE rows (id TEXT PRIMARY KEY, at INTEGER, text TEXT)").expect("a table");
        Ledger { conn, next: 0 }
    }

    /// One transaction of so many rows.
    pub fn group(&mut self, rows: usize) {
        self.conn.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
        for _ in 0..rows {
            self.next += 1;
            let mut insert = self.conn.prepare_cached("INSERT INTO rows VALUES (?1, ?2, ?3)").expect("a statement");
            let id = format!("row-{:012}", self.next);
            insert.execute(rusqlite::params![id, self.next, "{\"number\":42}"]).expect("a row");
        }
        self.conn.execute_batch("COMMIT").expect("a commit");
    }
}
