//! More doors of a host as tests use them: MCP (`acheron mcp`) and 9P (`acheron serve --9p`).

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use acheron_ninep::message::{HEAD, NO_FID, NO_TAG, QID_DIR, QID_LINK, Reply, Request, dir_entries};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::test_doors::{Refusal, TestDoor, marked};
use crate::test_host::TestHost;
use acheron_base::{Code, Error};

const ACHERON: &str = env!("CARGO_BIN_EXE_acheron");

/// `acheron mcp`, as an agent or as the operator.
pub struct McpDoor {
    running: Mutex<(Child, ChildStdin, BufReader<ChildStdout>, u64)>,
}

impl McpDoor {
    pub fn new(house: &TestHost, agent: Option<&str>) -> McpDoor {
        let mut command = Command::new(ACHERON);
        command.args(["mcp", "--state"]).arg(house.state());
        command.args(agent.iter().flat_map(|agent| ["--agent", agent]));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let door = McpDoor { running: Mutex::new((child, stdin, stdout, 0)) };
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        door.ask("initialize", hello);
        door.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        door
    }

    fn send(&self, message: &Value) {
        writeln!(self.running.lock().1, "{message}").unwrap();
    }

    fn begin(&self, method: &str, params: Value) -> u64 {
        let mut running = self.running.lock();
        running.3 += 1;
        let id = running.3;
        writeln!(running.1, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).unwrap();
        id
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        loop {
            let mut line = String::new();
            assert!(self.running.lock().2.read_line(&mut line).unwrap() > 0, "the door has gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    fn call(&self, tool: &str, arguments: Value) -> Result<String, Refusal> {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        match result["isError"] == true {
            false => Ok(text),
            true => {
                let (code, sentence) = text.split_once(": ").unwrap();
                let errno = Code::named(code).unwrap_or_else(|| panic!("{text}")).errno();
                Err(Refusal { errno, sentence: Some(sentence.to_owned()) })
            }
        }
    }
}

impl Drop for McpDoor {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        _ = running.0.kill();
        _ = running.0.wait();
    }
}

/// Names with spaces between them; a name that has spaces is written as JSON.
fn words(text: &str) -> Vec<String> {
    let (mut names, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        if rest.starts_with('"') {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            names.push(values.next().unwrap().unwrap());
            rest = rest[values.byte_offset()..].trim_start();
        } else {
            let (name, after) = rest.split_once(' ').unwrap_or((rest, ""));
            names.push(name.to_owned());
            rest = after.trim_start();
        }
    }
    names
}

impl TestDoor for McpDoor {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        let listed = self.call("file_list", json!({"path": path, "max_entries": 5000}))?;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let mut names = Vec::new();
        for (key, kind) in [("directories", "directory"), ("files", "file"), ("links", "link")] {
            names.extend(words(listed[key].as_str().unwrap_or_default()).iter().map(|name| marked(name, kind)));
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &str, wait: bool) -> Result<String, Refusal> {
        let (mut text, mut offset) = (String::new(), 0_u64);
        loop {
            let page = self.call("file_read", json!({"path": path, "offset": offset, "wait_until_ready": wait}))?;
            if page == "[not ready]" {
                return Err(Refusal { errno: Code::Busy.errno(), sentence: None });
            }
            let more = page.rsplit_once("\n[more: file_read with offset ");
            let Some((content, next)) = more else { return Ok(text + &page) };
            text.push_str(content);
            offset = next.trim_end_matches(']').parse().unwrap();
        }
    }

    fn write(&self, path: &str, content: &str) -> Result<(), Refusal> {
        self.call("file_write", json!({"path": path, "content": content})).map(drop)
    }

    fn give_up(&self, path: &str) {
        let id = self.begin("tools/call", json!({"name": "file_read", "arguments": {"path": path}}));
        std::thread::sleep(Duration::from_millis(200));
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
}

/// `acheron serve --9p` at a unix socket or, with a token, over TCP.
pub struct NinepDoor {
    serving: Child,
    client: Mutex<NinepClient>,
}

struct NinepClient {
    stream: Box<dyn ReadWrite>,
    tag: u16,
}

trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

const FID: u32 = 7;

impl NinepDoor {
    /// `token`: over TCP with it; otherwise as the process that this test is.
    pub fn new(house: &TestHost, token: Option<&str>) -> NinepDoor {
        let socket = house.here().parent().unwrap().join("tree.9p");
        let address = if token.is_some() { "tcp:127.0.0.1:0".to_owned() } else { format!("unix:{}", socket.display()) };
        let mut command = Command::new(ACHERON);
        command.args(["serve", "--9p", &address, "--state"]).arg(house.state()).stdout(Stdio::piped());
        let mut serving = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(serving.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let stream: Box<dyn ReadWrite> = match address.trim().strip_prefix("tcp:") {
            Some(address) => Box::new(std::net::TcpStream::connect(address).unwrap()),
            None => Box::new(UnixStream::connect(&socket).unwrap()),
        };
        let mut client = NinepClient { stream, tag: 0 };
        client.send(NO_TAG, &Request::Version { msize: 1 << 16, version: "9P2000.L".to_owned() });
        client.next();
        let tree = token.unwrap_or_default().to_owned();
        let attach = Request::Attach { fid: 0, auth_fid: NO_FID, user: "t".to_owned(), tree, uid: 0 };
        assert!(matches!(client.ask(&attach), Ok(Reply::Attach { .. })));
        NinepDoor { serving, client: Mutex::new(client) }
    }
}

impl Drop for NinepDoor {
    fn drop(&mut self) {
        _ = self.serving.kill();
        _ = self.serving.wait();
    }
}

impl NinepClient {
    fn send(&mut self, tag: u16, request: &Request) {
        self.stream.write_all(&request.write(tag)).unwrap();
    }

    fn next(&mut self) -> (u16, Reply) {
        let mut head = [0; HEAD];
        self.stream.read_exact(&mut head).unwrap();
        let size = u32::from_le_bytes(head[..4].try_into().unwrap()) as usize;
        let mut body = vec![0; size - HEAD];
        self.stream.read_exact(&mut body).unwrap();
        let tag = u16::from_le_bytes([head[5], head[6]]);
        (tag, Reply::read(head[4], body.into()).unwrap().unwrap())
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, Refusal> {
        self.tag = (self.tag + 1) % 1000;
        self.send(self.tag, request);
        let (tag, reply) = self.next();
        assert_eq!(tag, self.tag);
        match reply {
            Reply::Lerror { errno } => Err(Refusal { errno: errno as i32, sentence: None }),
            reply => Ok(reply),
        }
    }

    /// Walks to a path, as the kernel does: one name that is missing is not the same as one above it.
    fn walk(&mut self, path: &str) -> Result<(), Refusal> {
        let names: Vec<String> = path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let wanted = names.len();
        match self.ask(&Request::Walk { fid: 0, new_fid: FID, names })? {
            Reply::Walk { qids } if qids.len() == wanted => Ok(()),
            Reply::Walk { qids } => {
                // What was reached is no directory, or has no such name.
                let inside = qids.last().is_none_or(|qid| qid.kind == QID_DIR);
                Err(Refusal { errno: if inside { libc_enoent() } else { libc_enotdir() }, sentence: None })
            }
            other => panic!("{other:?}"),
        }
    }

    fn opened<T>(
        &mut self,
        path: &str,
        flags: u32,
        work: impl FnOnce(&mut NinepClient) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.walk(path)?;
        let done = self.ask(&Request::Lopen { fid: FID, flags }).and_then(|_| work(self));
        let closed = self.ask(&Request::Clunk { fid: FID });
        let done = done?;
        closed.map(|_| done)
    }

    fn all(&mut self) -> Result<String, Refusal> {
        let mut bytes = Vec::new();
        loop {
            match self.ask(&Request::Read { fid: FID, offset: bytes.len() as u64, count: 1 << 15 })? {
                Reply::Read { data } if data.is_empty() => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                Reply::Read { data } => bytes.extend_from_slice(&data),
                other => panic!("{other:?}"),
            }
        }
    }

    fn write(&mut self, content: &str) -> Result<(), Refusal> {
        let data = bytes::Bytes::copy_from_slice(content.as_bytes());
        self.ask(&Request::Write { fid: FID, offset: 0, data })?;
        // A command that is incomplete is refused when it is closed, or here.
        self.ask(&Request::Fsync { fid: FID, data_only: 0 }).map(drop)
    }
}

fn flags(flags: rustix::fs::OFlags) -> u32 {
    flags.bits()
}

fn libc_enoent() -> i32 {
    Code::NotFound.errno()
}

fn libc_enotdir() -> i32 {
    rustix::io::Errno::NOTDIR.raw_os_error()
}

impl TestDoor for NinepDoor {
    fn name(&self) -> &'static str {
        "9p"
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        self.client.lock().opened(path, flags(rustix::fs::OFlags::DIRECTORY), |client| {
            let (mut names, mut offset) = (Vec::new(), 0);
            loop {
                let reply = client.ask(&Request::Readdir { fid: FID, offset, count: 1 << 15 })?;
                let Reply::Readdir { entries } = reply else { panic!("{reply:?}") };
                let entries = dir_entries(entries).unwrap();
                let Some(last) = entries.last() else { break };
                offset = last.offset;
                for entry in entries.iter().filter(|entry| entry.name != "." && entry.name != "..") {
                    let kind = match entry.qid.kind {
                        QID_DIR => "directory",
                        QID_LINK => "link",
                        _ => "file",
                    };
                    names.push(marked(&entry.name, kind));
                }
            }
            names.sort();
            Ok(names)
        })
    }

    fn read(&self, path: &str, wait: bool) -> Result<String, Refusal> {
        let how = if wait { 0 } else { flags(rustix::fs::OFlags::NONBLOCK) };
        self.client.lock().opened(path, how, NinepClient::all)
    }

    fn write(&self, path: &str, content: &str) -> Result<(), Refusal> {
        let how = flags(rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::TRUNC);
        let mut client = self.client.lock();
        let written = match client.opened(path, how, |client| client.write(content)) {
            Err(refusal) if refusal.errno == libc_enoent() => {
                let (above, name) = path.rsplit_once('/').unwrap();
                client.walk(above).and_then(|()| {
                    let create = Request::Lcreate { fid: FID, name: name.to_owned(), flags: how, mode: 0o644, gid: 0 };
                    let made = client.ask(&create).and_then(|_| client.write(content));
                    let closed = client.ask(&Request::Clunk { fid: FID });
                    made.and(closed.map(drop))
                })
            }
            written => written,
        };
        drop(client);
        written.map_err(|mut refusal| {
            // The number alone says little: the sentence stands beside the control files.
            let status = path.rsplit_once("/control/").map(|(dir, _)| format!("{dir}/status.json"));
            let status = status.and_then(|status| self.read(&status, false).ok());
            let status = status.and_then(|status| serde_json::from_str::<Value>(&status).ok());
            let told = status.and_then(|status| serde_json::from_value::<Error>(status["error"].clone()).ok());
            refusal.sentence = told.filter(|told| told.errno() == refusal.errno).map(|told| told.message);
            refusal
        })
    }

    fn give_up(&self, path: &str) {
        let mut client = self.client.lock();
        client.walk(path).unwrap();
        client.ask(&Request::Lopen { fid: FID, flags: 0 }).unwrap();
        client.send(2000, &Request::Read { fid: FID, offset: 0, count: 99 });
        std::thread::sleep(Duration::from_millis(200));
        client.send(2001, &Request::Flush { old_tag: 2000 });
        assert_eq!(client.next(), (2001, Reply::Flush {}));
        client.ask(&Request::Clunk { fid: FID }).unwrap();
    }
}
