//! `acheron serve` for a mounted host, and a client that says exactly what it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::GUARD;
use crate::test_host::TestHost;

const PROGRAM: &str = env!("CARGO_BIN_EXE_acheron");

/// A listener that is open as long as this lives.
pub struct Served {
    child: Child,
    pub url: String,
}

impl Served {
    /// Runs `acheron serve` with these words beside.
    pub fn begin(house: &TestHost, words: &[&str]) -> Served {
        Served::at(house, "127.0.0.1:0", words)
    }

    /// The same at this address.
    pub fn at(house: &TestHost, listen: &str, words: &[&str]) -> Served {
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", listen, "--state"]).arg(house.state()).args(words);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Served { child, url: url.trim().to_owned() }
    }

    /// Runs `acheron serve --9p` on a free port.
    pub fn ninep(house: &TestHost) -> Served {
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--9p", "tcp:127.0.0.1:0", "--state"]).arg(house.state());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Served { child, url: address.trim().replace("tcp:", "tcp://") }
    }

    pub fn address(&self) -> &str {
        self.url.split("//").nth(1).unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        stream
    }

    /// Sends a request and reads the whole answer.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
        let mut stream = self.send(method, path, headers, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        HttpAnswer::parse(&bytes)
    }

    /// Sends a request on a connection of its own.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = self.connect();
        let named = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !named("host") {
            head.push_str(&format!("host: {}\r\n", self.address()));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    /// The end of the command, as Ctrl-C brings it.
    pub fn end(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

/// An answer: its status, its head in lower case, its body without chunks.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl HttpAnswer {
    fn parse(bytes: &[u8]) -> HttpAnswer {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let head = head.to_ascii_lowercase();
        let body = if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
        HttpAnswer { status, head, body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem.
    #[track_caller]
    pub fn code(&self) -> String {
        let json = self.json();
        json["code"].as_str().or(json["error"]["code"].as_str()).unwrap_or("none").to_owned()
    }
}

fn unchunked(body: &str) -> String {
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 || size > after.len() {
            break;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    whole
}

/// Runs `acheron token` with these words; what it printed.
pub fn token(house: &TestHost, words: &[&str]) -> String {
    let output = Command::new(PROGRAM).arg("token").args(words).arg("--state").arg(house.state()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The header that shows a token.
pub fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}
