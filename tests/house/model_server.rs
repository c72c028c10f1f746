//! A server of a model on this machine: it counts what it is asked, and a function answers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};

/// The content type and the body of the response to a request, by its path and its body.
type AnswerRequest = dyn Fn(&str, &Value) -> (&'static str, String) + Send + Sync;

/// An answer that ends with this was cut at its token limit.
pub const CUT: char = '…';

/// A server of chat completions, each of which takes 7 tokens and gives 5.
#[derive(Clone)]
pub struct FakeModelServer {
    pub url: String,
    asked: Arc<AtomicUsize>,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl FakeModelServer {
    /// Answers with a text.
    pub fn start(answer: impl Fn(&str, &Value) -> String + Send + Sync + 'static) -> FakeModelServer {
        FakeModelServer::responding(move |path, body| {
            let text = answer(path, body);
            let reason = if text.ends_with(CUT) { "length" } else { "stop" };
            let body = json!({"model": "m", "choices": [{"message": {"content": text}, "finish_reason": reason}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 5}});
            ("application/json", body.to_string())
        })
    }

    /// Answers nobody until `/open` was asked for, and then everybody with `text`.
    pub fn gated(text: String) -> FakeModelServer {
        let open = (Mutex::new(false), Condvar::new());
        FakeModelServer::start(move |path, _| {
            let mut is_open = open.0.lock();
            if path == "/open" {
                *is_open = true;
                open.1.notify_all();
            }
            open.1.wait_while(&mut is_open, |is_open| !*is_open);
            text.clone()
        })
    }

    /// Answers with whole responses, in the form of whatever API is asked.
    pub fn responding(
        answer: impl Fn(&str, &Value) -> (&'static str, String) + Send + Sync + 'static,
    ) -> FakeModelServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let server = FakeModelServer { url, asked: Arc::default(), bodies: Arc::default() };
        let (serving, answer): (_, Arc<AnswerRequest>) = (server.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (serving, answer) = (serving.clone(), answer.clone());
                std::thread::spawn(move || serving.serve(stream, &*answer));
            }
        });
        server
    }

    /// How many requests have come.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The bodies of the requests, in the order in which they came.
    pub fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().clone()
    }

    fn serve(&self, mut stream: TcpStream, answer: &AnswerRequest) {
        let Some((path, body)) = request(&mut stream) else { return };
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.bodies.lock().push(body.clone());
        let (kind, body) = answer(&path, &body);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: ");
        _ = stream.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes());
    }
}

/// The path and the body of the request that comes.
pub fn request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 65536]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0usize) {
                let path = head.split(' ').nth(1)?.to_owned();
                return Some((path, serde_json::from_str(body).unwrap_or_default()));
            }
        }
        match stream.read(&mut chunk) {
            Ok(count @ 1..) => bytes.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
    }
}
