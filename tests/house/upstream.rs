//! A server of a model that streams: it notes what it is asked, sends its answer in pieces, and can wait between them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde_json::Value;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub head: String,
    pub body: Value,
}

/// An answer: its pieces are sent one by one. After the first, the rest waits until [`Upstream::go_on`].
#[derive(Clone, Default)]
pub struct Told {
    pub status: u16,
    pub kind: &'static str,
    pub pieces: Vec<String>,
    pub waits: bool,
}

impl Told {
    pub fn whole(body: &Value) -> Told {
        Told { status: 200, kind: "application/json", pieces: vec![body.to_string()], waits: false }
    }

    pub fn stream(pieces: Vec<String>) -> Told {
        Told { status: 200, kind: "text/event-stream", pieces, waits: false }
    }
}

#[derive(Clone)]
pub struct Upstream {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Whether waiting answers may go on, and how many clients went away before their answers were complete.
    state: Arc<(Mutex<(bool, usize)>, Condvar)>,
}

impl Upstream {
    pub fn start(answer: impl Fn(&Asked) -> Told + Send + Sync + 'static) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let upstream = Upstream { address, asked: Arc::default(), state: Arc::default() };
        let (serving, answer) = (upstream.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (serving, answer) = (serving.clone(), answer.clone());
                std::thread::spawn(move || serving.serve(stream, &*answer));
            }
        });
        upstream
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    /// Lets waiting answers go on.
    pub fn go_on(&self) {
        self.state.0.lock().0 = true;
        self.state.1.notify_all();
    }

    /// How many clients went away in the middle of an answer.
    pub fn left(&self) -> usize {
        self.state.0.lock().1
    }

    fn serve(&self, mut stream: TcpStream, answer: &dyn Fn(&Asked) -> Told) {
        let Some(asked) = read_request(&mut stream) else { return };
        self.asked.lock().push(asked.clone());
        let told = answer(&asked);
        let head = format!(
            "HTTP/1.1 {} X\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\nset-cookie: a=b\r\nrequest-id: req_1\r\nconnection: close\r\n\r\n",
            told.status, told.kind
        );
        _ = stream.write_all(head.as_bytes());
        for (number, piece) in told.pieces.iter().enumerate() {
            if told.waits && number > 0 && !self.wait(&stream) {
                return;
            }
            _ = stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes());
        }
        _ = stream.write_all(b"0\r\n\r\n");
    }

    /// Waits until it may go on; false if the client goes away first.
    fn wait(&self, stream: &TcpStream) -> bool {
        stream.set_nonblocking(true).unwrap();
        let mut state = self.state.0.lock();
        loop {
            if state.0 {
                stream.set_nonblocking(false).unwrap();
                return true;
            }
            if matches!(stream.peek(&mut [0]), Ok(0)) {
                state.1 += 1;
                return false;
            }
            self.state.1.wait_for(&mut state, Duration::from_millis(5));
        }
    }
}

/// Reads one request.
fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 65536]);
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0usize);
            if bytes.len() >= end + 4 + length {
                let path = String::from_utf8_lossy(&bytes[..end]).split(' ').nth(1)?.to_owned();
                let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
                return Some(Asked { path, head, body });
            }
        }
        match stream.read(&mut chunk) {
            Ok(count @ 1..) => bytes.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
    }
}

/// An answer as a program gets it.
#[derive(Clone, Debug, Default)]
pub struct Got {
    pub status: u16,
    pub head: String,
    pub text: String,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// Sends a request and leaves the connection open.
pub fn send(address: SocketAddr, head: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{head}\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    _ = stream.write_all(body); // it may be refused before all of it was sent
    stream
}

/// Reads an answer until its end.
pub fn receive(mut stream: TcpStream) -> Got {
    let mut bytes = Vec::new();
    _ = stream.read_to_end(&mut bytes);
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Got::default() };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let body = &bytes[end + 4..];
    let body = if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_vec() };
    Got { status, head, text: String::from_utf8_lossy(&body).into_owned() }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&rest[..at]), 16).unwrap_or(0);
        if size == 0 || rest.len() < at + 4 + size {
            break;
        }
        all.extend_from_slice(&rest[at + 2..at + 2 + size]);
        rest = &rest[at + 4 + size..];
    }
    all
}

pub fn post(address: SocketAddr, path: &str, body: &Value) -> Got {
    receive(send(
        address,
        &format!("POST {path} HTTP/1.1\r\nauthorization: Bearer placeholder"),
        body.to_string().as_bytes(),
    ))
}

pub fn get(address: SocketAddr, head: &str) -> Got {
    receive(send(address, head, b""))
}
