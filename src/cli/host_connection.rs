//! The connection of a command to its host: joins the one of the state directory, or starts one, which ends with the last
//! command. Used by the commands that need the host itself.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::here::here;
use super::{Failure, mount, pasted, root};
use crate::host::SOCKET;
use acheron_base::{Error, Result};

/// How long a host may take to come up: two commands may start one at the same time, or the last one be on its way out.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which host a command means.
#[derive(Args)]
pub struct HostArgs {
    /// Use the host of this mount
    #[arg(long, value_name = "DIR", conflicts_with = "state")]
    pub root: Option<PathBuf>,
    /// State directory [default: $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Mountspec of a host that is started
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
}

impl HostArgs {
    /// The state directory of the host.
    pub fn state(&self) -> Result<PathBuf, Failure> {
        match &self.root {
            Some(dir) => state_at(dir),
            None => Ok(mount::state(self.state.as_deref(), None, &here()?)?),
        }
    }

    /// The words by which another command means the same host, with a space before each.
    pub fn words(&self) -> String {
        let word = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| format!(" --{name} {}", pasted(path))).unwrap_or_default()
        };
        [word("root", &self.root), word("state", &self.state), word("spec", &self.spec)].concat()
    }

    /// Finds or starts the host, and asks it for something: `{"<word>": request}`. Returns its first answer.
    pub fn ask<A: DeserializeOwned>(
        &self,
        word: &str,
        request: &impl Serialize,
    ) -> Result<(HostConnection, A), Failure> {
        HostConnection::begin(&self.state()?, self.spec.as_deref(), word, request)
    }
}

fn state_at(dir: &Path) -> Result<PathBuf, Failure> {
    let root = root::choose_living(Some(dir))?;
    let state = root::health(&root).and_then(|health| health["state"].as_str().map(PathBuf::from));
    Ok(state.ok_or_else(|| Error::unavailable(format!("the host of {} does not answer", root.display())))?)
}

pub struct HostConnection {
    stream: UnixStream,
    unread: Vec<u8>,
}

impl HostConnection {
    /// Finds or starts the host, and begins a command.
    pub fn begin<A: DeserializeOwned>(
        state: &Path,
        spec: Option<&Path>,
        word: &str,
        request: &impl Serialize,
    ) -> Result<(HostConnection, A), Failure> {
        let until = Instant::now() + PATIENCE;
        let mut said = String::new();
        loop {
            if let Some(mut connection) = HostConnection::open(state) {
                connection.send(&json!({ word: request }))?;
                // Without an answer, it was on its way out.
                if let Ok(Some(mut answer)) = connection.next::<Value>() {
                    return match answer.get_mut("refused").map(Value::take) {
                        Some(error) => Err(understood::<Error>(error)?.into()),
                        None => Ok((connection, understood(answer)?)),
                    };
                }
            } else {
                match start(state, spec) {
                    Ok(()) => continue,
                    Err(why) => said = why,
                }
            }
            if Instant::now() > until {
                return Err(Failure::hint(
                    Error::unavailable(format!("no host could be started: {said}")),
                    format!("its log is {}", state.join("acheron.log").display()),
                ));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    #[cfg(any(feature = "door-mcp", feature = "door-acp"))]
    /// Begins a command at the host of the state directory, if there is one.
    pub fn join<A: DeserializeOwned>(
        state: &Path,
        word: &str,
        request: &impl Serialize,
    ) -> Result<Option<(HostConnection, A)>> {
        let Some(mut connection) = HostConnection::open(state) else { return Ok(None) };
        let sent = connection.send(&json!({ word: request })).and_then(|()| connection.next::<Value>());
        let Ok(Some(mut answer)) = sent else { return Ok(None) }; // it was on its way out
        match answer.get_mut("refused").map(Value::take) {
            Some(error) => Err(understood::<Error>(error)?),
            None => Ok(Some((connection, understood(answer)?))),
        }
    }

    /// Another handle of the connection.
    #[cfg(any(feature = "door-mcp", feature = "door-acp"))]
    pub fn stream(&self) -> Option<UnixStream> {
        self.stream.try_clone().ok()
    }

    #[cfg(any(feature = "door-mcp", feature = "door-acp"))]
    /// The connection itself, and what was read of it beyond the last message.
    pub fn into_stream(self) -> (UnixStream, Vec<u8>) {
        (self.stream, self.unread)
    }

    /// Connects to the host of this state directory, if it runs.
    pub fn open(state: &Path) -> Option<HostConnection> {
        // A path by descriptor is short: the address of a socket has room for 108 bytes.
        let directory = std::fs::File::open(state).ok()?;
        let short = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
        UnixStream::connect(short).ok().map(|stream| HostConnection { stream, unread: Vec::new() })
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub fn send(&mut self, message: &impl Serialize) -> Result<()> {
        self.stream.write_all(&line(message)?)?;
        Ok(())
    }

    pub fn send_with(&mut self, message: &impl Serialize, file: BorrowedFd<'_>) -> Result<()> {
        acheron_sandbox::send_with(&self.stream, &line(message)?, file)
    }

    /// The next message; `None` at the end.
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).map_err(of_another_version);
            }
            let mut room = [0; 1 << 14];
            match std::io::Read::read(&mut self.stream, &mut room)? {
                0 => return Ok(None),
                count => self.unread.extend_from_slice(&room[..count]),
            }
        }
    }
}

fn of_another_version(err: serde_json::Error) -> Error {
    Error::unavailable(format!("the host is of another version: {err}"))
}

fn understood<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(of_another_version)
}

fn line(message: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message).map_err(|err| Error::internal(err.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// Where a host that is started for commands mounts its tree: beside its state, so that neither lies in the other.
pub fn tree_of(state: &Path) -> PathBuf {
    let mut name = state.file_name().unwrap_or_default().to_owned();
    name.push("-tree");
    state.with_file_name(name)
}

/// Starts a host in the background that ends with the last command.
fn start(state: &Path, spec: Option<&Path>) -> Result<(), String> {
    let tree = tree_of(state);
    match std::fs::create_dir_all(&tree) {
        // The mount of a host that was killed; the next one detaches it.
        Err(err) if err.kind() == std::io::ErrorKind::AlreadyExists => (),
        made => made.map_err(|err| format!("{}: {err}", tree.display()))?,
    }
    let program = std::env::current_exe().map_err(|err| err.to_string())?;
    let mut command = Command::new(program);
    command.arg("mount").arg(&tree).args(["--daemon", "--leased"]).arg("--state").arg(state);
    if let Some(spec) = spec {
        let spec = std::path::absolute(spec).map_err(|err| err.to_string())?;
        command.arg("--spec").arg(spec);
    }
    let output = command.stdin(Stdio::null()).output().map_err(|err| err.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
