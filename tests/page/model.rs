//! A model that says what it is told, piece by piece, so that a test sees a turn grow without waiting for a clock.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::json;

enum Saying {
    Piece(String),
    End,
}

/// A server of chat completions.
pub struct ToldModel {
    pub url: String,
    say: Sender<Saying>,
}

impl ToldModel {
    pub fn start() -> ToldModel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (say, said) = channel();
        let said = Arc::new(Mutex::new(said));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let said = said.clone();
                std::thread::spawn(move || answer(stream, &said));
            }
        });
        ToldModel { url, say }
    }

    /// Adds a piece to the answer of the request under way, or of the next.
    pub fn say(&self, piece: &str) {
        self.say.send(Saying::Piece(piece.to_owned())).unwrap();
    }

    /// Ends the answer.
    pub fn end(&self) {
        self.say.send(Saying::End).unwrap();
    }
}

fn answer(mut stream: TcpStream, said: &Mutex<Receiver<Saying>>) {
    if !read_request(&mut stream) {
        return;
    }
    let said = said.lock().unwrap();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    _ = stream.write_all(head.as_bytes());
    let mut event = |data: &str| stream.write_all(format!("data: {data}\n\n").as_bytes());
    while let Ok(Saying::Piece(piece)) = said.recv() {
        let chunk = json!({"model": "told", "choices": [{"index": 0, "delta": {"content": piece}}]});
        _ = event(&chunk.to_string());
    }
    let last = json!({"model": "told", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1200, "completion_tokens": 80}});
    _ = event(&last.to_string());
    _ = event("[DONE]");
}

/// Reads a request to its end.
fn read_request(stream: &mut TcpStream) -> bool {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 65536]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return true;
            }
        }
        match stream.read(&mut chunk) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
            _ => return false,
        }
    }
}
