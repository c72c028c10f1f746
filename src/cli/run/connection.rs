//! The connection of `acheron run` to the host: joins the one of the state directory, or starts one.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::Failure;
use crate::host::SOCKET;
use crate::host::runs::messages::{FromHost, ProgramRequest, RunStarted, ToHost};
use acheron_base::{Error, Result};

/// How long a host may take to come up: two commands may start one at the same time, or the last one be on its way out.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Connection {
    stream: UnixStream,
    unread: Vec<u8>,
}

impl Connection {
    /// Finds or starts the host, and asks it for the run.
    pub fn begin(
        state: &Path,
        spec: Option<&Path>,
        request: &ProgramRequest,
    ) -> Result<(Connection, Box<RunStarted>), Failure> {
        let until = Instant::now() + PATIENCE;
        let mut said = String::new();
        loop {
            if let Some(mut connection) = Connection::open(state) {
                connection.send(&ToHost::Run(Box::new(request.clone())))?;
                match connection.next() {
                    Ok(Some(FromHost::Started(started))) => return Ok((connection, started)),
                    Ok(Some(FromHost::Refused(error))) => return Err(error.into()),
                    Ok(Some(_)) => return Err(Error::internal("the host answered something else").into()),
                    // It was on its way out.
                    Ok(None) | Err(_) => (),
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

    /// Connects to the host of this state directory, if it runs.
    pub fn open(state: &Path) -> Option<Connection> {
        // A path by descriptor is short: the address of a socket has room for 108 bytes.
        let directory = std::fs::File::open(state).ok()?;
        let short = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
        UnixStream::connect(short).ok().map(|stream| Connection { stream, unread: Vec::new() })
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub fn send(&mut self, message: &ToHost) -> Result<()> {
        self.stream.write_all(&line(message)?)?;
        Ok(())
    }

    pub fn send_with(&mut self, message: &ToHost, file: BorrowedFd<'_>) -> Result<()> {
        acheron_sandbox::send_with(&self.stream, &line(message)?, file)
    }

    /// The next message; `None` at the end.
    pub fn next(&mut self) -> Result<Option<FromHost>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let message = serde_json::from_slice(&line);
                return message
                    .map(Some)
                    .map_err(|err| Error::unavailable(format!("the host is of another version: {err}")));
            }
            let mut room = [0; 1 << 14];
            match std::io::Read::read(&mut self.stream, &mut room)? {
                0 => return Ok(None),
                count => self.unread.extend_from_slice(&room[..count]),
            }
        }
    }
}

fn line(message: &ToHost) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message).map_err(|err| Error::internal(err.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// Where a host that is started for runs mounts its tree: beside its state, so that neither lies in the other.
pub fn tree_of(state: &Path) -> PathBuf {
    let mut name = state.file_name().unwrap_or_default().to_owned();
    name.push("-tree");
    state.with_file_name(name)
}

/// Starts a host in the background that ends with the last run.
fn start(state: &Path, spec: Option<&Path>) -> Result<(), String> {
    let tree = tree_of(state);
    std::fs::create_dir_all(&tree).map_err(|err| format!("{}: {err}", tree.display()))?;
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
