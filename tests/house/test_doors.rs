//! The doors of a host as tests use them: one implementation of [`TestDoor`] each.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::served::{Served, bearer};
use crate::test_host::TestHost;
use acheron::agent::tools::tree::TreeTools;
use acheron::agent::tools::{EntryKind, FileWrite, ToolBackend as _};
use acheron_base::{Code, Error};
use acheron_vfs::{Caller, Tree};

/// Why something was refused: the number of the error, and the sentence where the door has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub errno: i32,
    pub sentence: Option<String>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal { errno: error.errno(), sentence: Some(error.message) }
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Refusal { errno: error.raw_os_error().unwrap_or(-1), sentence: None }
    }
}

/// A way to the tree. A new door is one more implementation, and one more line in `doors.rs`.
pub trait TestDoor: Sync {
    fn name(&self) -> &'static str;
    /// The names in a directory, sorted; those of directories end with `/`, those of links with `@`.
    fn list(&self, path: &str) -> Result<Vec<String>, Refusal>;
    /// The text of a file. Without `wait`, one that is not ready is refused with `EAGAIN`.
    fn read(&self, path: &str, wait: bool) -> Result<String, Refusal>;
    fn write(&self, path: &str, content: &str) -> Result<(), Refusal>;
    /// Begins a read that waits, and gives it up.
    fn give_up(&self, path: &str);
}

pub fn marked(name: &str, kind: &str) -> String {
    let mark = match kind {
        "directory" => "/",
        "link" => "@",
        _ => "",
    };
    format!("{name}{mark}")
}

/// The mount, by the kernel.
pub struct MountDoor(pub PathBuf);

impl MountDoor {
    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
}

impl TestDoor for MountDoor {
    fn name(&self) -> &'static str {
        "mount"
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.at(path))? {
            let entry = entry?;
            let kind = match entry.file_type()? {
                kind if kind.is_dir() => "directory",
                kind if kind.is_symlink() => "link",
                _ => "file",
            };
            names.push(marked(&entry.file_name().to_string_lossy(), kind));
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &str, wait: bool) -> Result<String, Refusal> {
        let flags = if wait { 0 } else { libc_nonblock() };
        let mut file = fs::OpenOptions::new().read(true).custom_flags(flags).open(self.at(path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn write(&self, path: &str, content: &str) -> Result<(), Refusal> {
        let written = || {
            let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).open(self.at(path))?;
            file.write_all(content.as_bytes())?;
            // A command that is incomplete is refused when it is closed, which `sync_all` can hear.
            match file.sync_all() {
                Err(error) if path.contains("/control/") => Err(error),
                _ => Ok(()),
            }
        };
        written().map_err(|error: std::io::Error| {
            let mut refusal = Refusal::from(error);
            // The number alone says little: the sentence stands beside the control files.
            let status = path.rsplit_once("/control/").map(|(dir, _)| self.at(&format!("{dir}/status.json")));
            let status = status.and_then(|status| serde_json::from_slice::<Value>(&fs::read(status).ok()?).ok());
            let told = status.and_then(|status| serde_json::from_value::<Error>(status["error"].clone()).ok());
            refusal.sentence = told.filter(|told| told.errno() == refusal.errno).map(|told| told.message);
            refusal
        })
    }

    fn give_up(&self, path: &str) {
        let given_up = Command::new("timeout").args(["-s", "INT", "0.3", "cat"]).arg(self.at(path)).status().unwrap();
        assert_eq!(given_up.code(), Some(124));
    }
}

fn libc_nonblock() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits() as i32
}

/// The tree of this process, as the tools of an agent use it.
pub struct InsideDoor {
    tree: Tree,
    caller: Caller,
    runtime: tokio::runtime::Handle,
}

impl InsideDoor {
    pub fn new(house: &TestHost, caller: Caller) -> InsideDoor {
        let (tree, runtime) = house.inside(async |host| (host.tree().clone(), tokio::runtime::Handle::current()));
        InsideDoor { tree, caller, runtime }
    }

    fn tools(&self) -> TreeTools {
        let (tree, caller) = (self.tree.clone(), self.caller.clone());
        TreeTools { tree, caller, id: Arc::new(|| "test".to_owned()), parked: Arc::new(|_| ()) }
    }
}

impl TestDoor for InsideDoor {
    fn name(&self) -> &'static str {
        "inside"
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        let listed = self.runtime.block_on(self.tools().list(path, 100_000))?;
        let kind = |kind| match kind {
            EntryKind::File => "file",
            EntryKind::Directory => "directory",
            EntryKind::Link => "link",
        };
        let mut names: Vec<String> = listed.iter().map(|entry| marked(&entry.name, kind(entry.kind))).collect();
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &str, wait: bool) -> Result<String, Refusal> {
        let read = self.runtime.block_on(self.tools().read(path, 8 << 20, wait))?;
        Ok(String::from_utf8_lossy(&read.bytes).into_owned())
    }

    fn write(&self, path: &str, content: &str) -> Result<(), Refusal> {
        let call = FileWrite {
            path: path.to_owned(),
            content: content.to_owned(),
            append: false,
            create_parents: false,
            wait_until_ready: true,
        };
        self.runtime.block_on(self.tools().write(&call)).map(drop).map_err(Refusal::from)
    }

    fn give_up(&self, path: &str) {
        let read = async { tokio::time::timeout(Duration::from_millis(200), self.tools().read(path, 99, true)).await };
        assert!(self.runtime.block_on(read).is_err());
    }
}

/// `acheron tool`, a program outside that uses the mount.
pub struct ToolDoor {
    root: PathBuf,
    running: Mutex<(Child, ChildStdin, BufReader<ChildStdout>)>,
}

impl ToolDoor {
    pub fn new(house: &TestHost) -> ToolDoor {
        ToolDoor { running: Mutex::new(Self::start(&house.root())), root: house.root() }
    }

    fn start(root: &PathBuf) -> (Child, ChildStdin, BufReader<ChildStdout>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acheron"));
        command.args(["tool", "--root"]).arg(root).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        (child, stdin, stdout)
    }

    fn call(&self, name: &str, arguments: Value) -> Result<Value, Refusal> {
        let mut running = self.running.lock();
        writeln!(running.1, "{}", json!({"name": name, "arguments": arguments})).unwrap();
        let mut line = String::new();
        running.2.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        if let Some(error) = answer.get("error") {
            return Err(serde_json::from_value::<Error>(error.clone()).unwrap().into());
        }
        match answer["ready"] == false {
            true => Err(Refusal { errno: Code::Busy.errno(), sentence: None }),
            false => Ok(answer),
        }
    }
}

impl Drop for ToolDoor {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        _ = running.0.kill();
        _ = running.0.wait();
    }
}

impl TestDoor for ToolDoor {
    fn name(&self) -> &'static str {
        "acheron tool"
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        let listed = self.call("file_list", json!({"path": path, "max_entries": 5000}))?;
        let shown = |entry: &Value| {
            let path = entry["path"].as_str().unwrap();
            marked(path.rsplit('/').next().unwrap(), entry["type"].as_str().unwrap())
        };
        let mut names: Vec<String> = listed["entries"].as_array().unwrap().iter().map(shown).collect();
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &str, wait: bool) -> Result<String, Refusal> {
        let read = self.call("file_read", json!({"path": path, "wait_until_ready": wait, "max_bytes": 8 << 20}))?;
        Ok(read["content"].as_str().unwrap().to_owned())
    }

    fn write(&self, path: &str, content: &str) -> Result<(), Refusal> {
        self.call("file_write", json!({"path": path, "content": content})).map(drop)
    }

    fn give_up(&self, path: &str) {
        let (mut child, mut stdin, _stdout) = Self::start(&self.root);
        writeln!(stdin, "{}", json!({"name": "file_read", "arguments": {"path": path}})).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// `/fs` of `acheron serve`.
pub struct HttpDoor<'s> {
    pub served: &'s Served,
    pub token: String,
}

impl HttpDoor<'_> {
    fn ask(&self, method: &str, path: &str, query: &str, body: &str) -> Result<String, Refusal> {
        let auth = bearer(&self.token);
        let answer = self.served.ask(method, &format!("{}{query}", url(path)), &[("authorization", &auth)], body);
        match answer.status {
            200..=299 => Ok(answer.body),
            _ => {
                let problem = answer.json();
                let code = Code::named(problem["code"].as_str().unwrap()).unwrap();
                Err(Refusal { errno: code.errno(), sentence: problem["detail"].as_str().map(str::to_owned) })
            }
        }
    }
}

/// A path of the tree as one of `/fs`.
fn url(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let encoded = path.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02x}"),
    });
    format!("/fs/{}", encoded.collect::<String>().trim_start_matches('/'))
}

impl TestDoor for HttpDoor<'_> {
    fn name(&self) -> &'static str {
        "http"
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        let listed: Value = serde_json::from_str(&self.ask("GET", path, "?max=10000", "")?).unwrap();
        let shown = |entry: &Value| marked(entry["name"].as_str().unwrap(), entry["type"].as_str().unwrap());
        let mut names: Vec<String> = listed["entries"].as_array().unwrap().iter().map(shown).collect();
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &str, wait: bool) -> Result<String, Refusal> {
        self.ask("GET", path, if wait { "?wait=60" } else { "?wait=0" }, "")
    }

    fn write(&self, path: &str, content: &str) -> Result<(), Refusal> {
        self.ask("PUT", path, "", content).map(drop)
    }

    fn give_up(&self, path: &str) {
        let auth = bearer(&self.token);
        let stream = self.served.send("GET", &url(path), &[("authorization", &auth)], "");
        std::thread::sleep(Duration::from_millis(200));
        drop(stream);
    }
}
