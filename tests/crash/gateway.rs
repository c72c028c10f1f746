//! Programs ask a model through the gateway while the host is killed: what the server of the model was asked is in the books.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::life::{self, Life};
use super::load::until;

/// Programs that ask at the same time.
const PROGRAMS: usize = 6;
/// The tokens of every answer.
const INPUT: u64 = 11;
const OUTPUT: u64 = 40;

/// How often the host is killed, with `CRASH_ALL=1` fifty times.
fn kills() -> u64 {
    if std::env::var_os("CRASH_ALL").is_some() { 50 } else { 4 }
}

/// What the server was asked: each request, and whether all of its answer was sent.
type Counted = Arc<Mutex<BTreeMap<String, bool>>>;

/// A server of chat completions. It streams the answers to every second request, with a pause in the middle.
fn upstream(counted: &Counted) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, counted) = (listener.local_addr().unwrap(), counted.clone());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = counted.clone();
            thread::spawn(move || answer(stream, &counted));
        }
    });
    address
}

fn answer(mut stream: TcpStream, counted: &Counted) {
    let Some(body) = request(&mut stream) else { return };
    let id = body["user"].as_str().unwrap().to_owned();
    counted.lock().insert(id.clone(), false);
    let usage = json!({"prompt_tokens": INPUT, "completion_tokens": OUTPUT});
    let streamed = body["stream"] == true;
    let kind = if streamed { "text/event-stream" } else { "application/json" };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    let (first, rest) = match streamed {
        false => (
            String::new(),
            json!({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}], "usage": usage}).to_string(),
        ),
        true => {
            let piece = json!({"choices": [{"delta": {"content": "some words that come first "}}]});
            let last = json!({"choices": [{"delta": {"content": "and the rest"}, "finish_reason": "stop"}]});
            let end = json!({"choices": [], "usage": usage});
            (format!("data: {piece}\n\n"), format!("data: {last}\n\ndata: {end}\n\ndata: [DONE]\n\n"))
        }
    };
    let sent = stream.write_all(format!("{head}{first}").as_bytes());
    thread::sleep(Duration::from_millis(3));
    if sent.and_then(|()| stream.write_all(rest.as_bytes())).is_ok() {
        counted.lock().insert(id, true);
    }
}

fn request(stream: &mut TcpStream) -> Option<Value> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n")
            && let Ok(body) = serde_json::from_slice(&bytes[end + 4..])
        {
            return Some(body);
        }
        match stream.read(&mut chunk) {
            Ok(count @ 1..) => bytes.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
    }
}

/// A program: it asks until it is told to stop.
fn program(address: SocketAddr, next: &AtomicUsize, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        let number = next.fetch_add(1, Ordering::SeqCst);
        let id = format!("n{number}");
        let body = json!({"model": id, "user": id, "stream": number.is_multiple_of(2), "max_tokens": 100,
            "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": "go"}]})
        .to_string();
        let Ok(mut stream) = TcpStream::connect(address) else { return };
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        _ = stream.write_all(format!("{head}{body}").as_bytes());
        _ = stream.read_to_end(&mut Vec::new());
    }
}

/// The lines of all requests that have ended, and what the agent has spent: rounds, input, output.
fn books(place: &Path) -> (Vec<Value>, [u64; 3]) {
    let database = acheron_store::Connection::open(place.join("state").join(acheron_store::FILE)).unwrap();
    let rows = acheron::state::model_requests::tail(&database, life::AGENT, usize::MAX).unwrap();
    let lines = rows.iter().map(|row| serde_json::from_str(&row.line).unwrap()).collect();
    let spent = acheron::state::spending::of(&database, life::AGENT).unwrap().unwrap_or_default();
    (lines, [spent.rounds, spent.input, spent.output])
}

#[test]
fn what_the_server_of_a_model_was_asked_is_in_the_books_however_often_the_host_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let counted = Counted::default();
    let address = upstream(&counted);
    let model = json!({"kind": "vllm", "name": "m", "base_url": format!("http://{address}")});
    life::write_spec(
        place.path(),
        &json!({"layout": "acheron-1", "default_agent": life::AGENT, "model": model,
            "agents": {life::AGENT: {"budget": {"tokens": 100_000_000}}}}),
    );
    fs::write(place.path().join("gateway"), "").unwrap();
    let next = Arc::new(AtomicUsize::new(0));
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..kills() {
        let life = Life::begin(place.path(), &[]);
        let gateway = fs::read_to_string(place.path().join("gateway")).unwrap().parse().unwrap();
        let (stop, before) = (Arc::new(AtomicBool::new(false)), counted.lock().len());
        let programs: Vec<_> = (0..PROGRAMS)
            .map(|_| {
                let (next, stop) = (next.clone(), stop.clone());
                thread::spawn(move || program(gateway, &next, &stop))
            })
            .collect();
        until("some requests have come", || counted.lock().len() > before + 20);
        thread::sleep(Duration::from_micros(random.random_range(0..20_000)));
        life.kill();
        stop.store(true, Ordering::SeqCst);
        programs.into_iter().for_each(|program| program.join().unwrap());
    }
    Life::begin(place.path(), &[]).leave();
    let (lines, spent) = books(place.path());
    let mut known: BTreeMap<&str, &Value> = BTreeMap::new();
    for line in &lines {
        let twice = known.insert(line["asked_model"].as_str().unwrap(), line);
        assert_eq!(twice, None, "a request is in the books once");
    }
    let sum = |key: &str| lines.iter().map(|line| line[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(spent, [lines.len() as u64, sum("input"), sum("output")], "the lines are what was spent");
    let counted = counted.lock();
    for (id, whole) in counted.iter() {
        let line = known.get(id.as_str()).unwrap_or_else(|| panic!("{id} was asked and is not in the books"));
        let stopped = line["error"].as_str().is_some_and(|error| error.starts_with("host_stopped"));
        assert!(stopped || line["error"].is_null() && *whole, "{line}");
        if !stopped {
            assert_eq!((&line["input"], &line["output"]), (&INPUT.into(), &OUTPUT.into()), "{line}");
        }
        assert!(line["output"].as_u64().unwrap() <= OUTPUT, "{line}");
    }
    // What was written down and not sent any more, and what was under way: never more than there are programs.
    let stopped = lines.iter().filter(|line| line["error"].is_string()).count() as u64;
    assert!(stopped <= kills() * PROGRAMS as u64, "{stopped} of {}", lines.len());
    assert!(lines.len() as u64 - counted.len() as u64 <= stopped);
}
