//! What the model gateway adds to a call, and to a piece of a stream: a program asks a server of a model on this machine directly,
//! and through the gateway.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use acheron::gateway::{GatewayClient, GatewayGuard};
use acheron::host::{Host, Options};
use acheron::spec::Spec;
use acheron_base::{Clock, Random};
use serde_json::json;

use super::Run;
use super::house::Scratch;
use super::method::compare_timed;
use super::table::{Aim, Figure};

/// The pieces of a stream.
const PIECES: usize = 400;

pub fn rows(run: &Run) -> Vec<Figure> {
    let upstream = serve_upstream();
    let scratch = Scratch::new();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (_host, gateway, _guard) = runtime.block_on(async { gateway(&scratch, upstream) });
    let call = |address: SocketAddr| {
        let mut connection = Connection::open(address);
        move || connection.ask(false)
    };
    let (mut ours, mut base) = (call(gateway), call(upstream));
    for _ in 0..20 {
        _ = (ours(), base()); // both sides warm
    }
    let calls = compare_timed(run.pace(18, 30), &mut ours, &mut base);
    let stream = |address: SocketAddr| {
        let mut connection = Connection::open(address);
        move || connection.ask(true)
    };
    let streams = compare_timed(run.pace(18, 4), stream(gateway), stream(upstream));
    vec![
        Figure::number("a call through the gateway: milliseconds over direct", (calls.ours - calls.base) * 1e3, "ms", Aim::AtMost(0.6))
            .detail(format!("{:.2} ms ÷ {:.2} ms direct", calls.ours * 1e3, calls.base * 1e3))
            .because("the reservation is on the disk before the request is sent, and the settlement before the answer: two commits"),
        Figure::ratio("a piece of a stream through the gateway ÷ direct", streams, Aim::AtMost(1.2))
            .because("pieces pass as they come; the settlement is one commit for all of them"),
    ]
}

fn gateway(scratch: &Scratch, upstream: SocketAddr) -> (Host, SocketAddr, GatewayGuard) {
    let spec = json!({"layout": "acheron-1", "default_agent": "charon",
        "model": {"kind": "vllm", "name": "m", "base_url": format!("http://{upstream}")}, "agents": {"charon": {}}});
    let file = scratch.path().join("spec.json");
    std::fs::write(&file, spec.to_string()).expect("a mountspec");
    let (here, state) = (scratch.make("here"), scratch.make("state"));
    let spec = Spec::load(&file).expect("a mountspec");
    let (clock, random) = (Clock::real(), Random::real());
    let host = Host::start(Options { spec, here, state, mountpoint: None, clock, random }).expect("a host");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = GatewayClient { agent: "charon".to_owned(), program: "bench".to_owned(), record: None };
    let guard = host.state.gateway().serve(listener, client).expect("a gateway");
    (host, address, guard)
}

/// A connection of a program, which it keeps.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        Connection(BufReader::new(stream))
    }

    /// Asks once, and reads the whole answer. For a stream, the time of one piece.
    fn ask(&mut self, stream: bool) -> Duration {
        let body = json!({"model": "m", "stream": stream, "stream_options": {"include_usage": true},
            "messages": [{"role": "user", "content": "hello ".repeat(500)}]})
        .to_string();
        let head =
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ";
        let began = Instant::now();
        self.0.get_mut().write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).expect("a request");
        let (mut line, mut length) = (String::new(), None);
        while line != "\r\n" {
            line.clear();
            assert!(self.0.read_line(&mut line).expect("an answer") > 0, "the connection ended");
            length = line
                .to_lowercase()
                .strip_prefix("content-length: ")
                .and_then(|text| text.trim().parse().ok())
                .or(length);
        }
        let mut read = |size: usize| self.0.read_exact(&mut vec![0; size]).expect("a body");
        match length {
            Some(length) => read(length),
            None => loop {
                line.clear();
                self.0.read_line(&mut line).expect("a chunk");
                let size = usize::from_str_radix(line.trim(), 16).expect("a size");
                self.0.read_exact(&mut vec![0; size + 2]).expect("a chunk");
                if size == 0 {
                    break;
                }
            },
        }
        let took = began.elapsed();
        if stream { took / PIECES as u32 } else { took }
    }
}

/// A server of a model: a thread per connection, which it keeps.
fn serve_upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer_all(stream));
        }
    });
    address
}

/// Answers until the client goes away.
fn answer_all(stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    let usage = json!({"prompt_tokens": 500, "completion_tokens": 5});
    let whole =
        json!({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}], "usage": usage}).to_string();
    let piece = format!(
        "data: {}\n\n",
        json!({"choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": null}]})
    );
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage});
    let last = format!("data: {last}\n\ndata: [DONE]\n\n");
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            (reader.read_line(&mut line).ok()? > 0).then_some(())?;
            length = line
                .to_lowercase()
                .strip_prefix("content-length: ")
                .map_or(Some(length), |text| text.trim().parse().ok())?;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let out = reader.get_mut();
        if !body.windows(13).any(|part| part == b"\"stream\":true") {
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", whole.len());
            out.write_all(format!("{head}{whole}").as_bytes()).ok()?;
            continue;
        }
        out.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            .ok()?;
        for _ in 1..PIECES {
            out.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).ok()?;
        }
        out.write_all(format!("{:x}\r\n{last}\r\n0\r\n\r\n", last.len()).as_bytes()).ok()?;
    }
}
