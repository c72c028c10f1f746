//! A sandbox in the foreground of a terminal: its supervisor is a fork of this program, because to execute it once more takes
//! as long as half of what a sandbox needs. `acheron exec` uses it; it uses the init.

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use super::plan::Plan;
use super::protocol::{ExitStatus, Message};
use super::{command_line, init};
use acheron_base::{Error, Result};

/// The time that a sandbox has to end when it must, in milliseconds.
const PATIENCE: u16 = 10_000;

/// Runs the program of the plan on the streams of this process, which must have one thread, and returns when every process
/// inside has ended. `until` is a process; when that ends, so does the sandbox, and there is no status.
pub fn run_in_foreground(plan: &Plan, until: Option<OwnedFd>) -> Result<Option<ExitStatus>> {
    plan.check()?;
    let (ours, theirs) = UnixStream::pair()?;
    // SAFETY: this process has one thread, so the child may do whatever it likes.
    let supervisor = match unsafe { fork() }.map_err(errno)? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            drop((ours, until));
            // The streams stay, and the connection; nothing else of this program is used any more.
            if command_line::replace(theirs.as_raw_fd(), &plan.agent).is_err() {
                command_line::execute_again(theirs.as_raw_fd(), &plan.agent);
            }
            init::supervisor_main(theirs.into());
        }
    };
    drop(theirs);
    let mut foreground = Foreground { connection: ours, unread: Vec::new(), status: None, failed: None };
    let ended = foreground.send(plan).and_then(|()| foreground.until_the_end(supervisor, until));
    if ended.is_err() {
        _ = kill(supervisor, Signal::SIGKILL);
    }
    _ = waitpid(supervisor, None);
    match (ended?, foreground.failed) {
        (_, Some(error)) => Err(error),
        (false, None) => Ok(None),
        (true, None) => Ok(Some(foreground.status.unwrap_or(ExitStatus::KILLED))),
    }
}

struct Foreground {
    connection: UnixStream,
    unread: Vec<u8>,
    status: Option<ExitStatus>,
    failed: Option<Error>,
}

impl Foreground {
    fn send(&mut self, plan: &Plan) -> Result<()> {
        let mut line = serde_json::to_vec(plan).map_err(|err| Error::internal(err.to_string()))?;
        line.push(b'\n');
        // A supervisor that ended early is noticed when it is read.
        _ = std::io::Write::write_all(&mut self.connection, &line);
        Ok(())
    }

    /// Whether the program ended, and not the process that it depends on.
    fn until_the_end(&mut self, supervisor: Pid, mut until: Option<OwnedFd>) -> Result<bool> {
        let mut natural = true;
        loop {
            let limit = if natural { PollTimeout::NONE } else { PollTimeout::from(PATIENCE) };
            let mut waiting = vec![PollFd::new(self.connection.as_fd(), PollFlags::POLLIN)];
            waiting.extend(until.as_ref().map(|process| PollFd::new(process.as_fd(), PollFlags::POLLIN)));
            match poll(&mut waiting, limit) {
                // It had its time.
                Ok(0) => kill(supervisor, Signal::SIGKILL).map_err(errno)?,
                Ok(_) => (),
                Err(nix::Error::EINTR) => continue,
                Err(err) => return Err(errno(err)),
            }
            let ready: Vec<bool> = waiting.iter().map(|fd| fd.any().unwrap_or(true)).collect();
            drop(waiting);
            if ready.get(1) == Some(&true) {
                (until, natural) = (None, false);
                // The supervisor sees the end of the connection, and ends everything.
                self.connection.shutdown(std::net::Shutdown::Write)?;
            }
            if ready[0] && !self.receive()? {
                return Ok(natural);
            }
        }
    }

    /// Takes what the sandbox says; false at the end.
    fn receive(&mut self) -> Result<bool> {
        let mut room = [0; 4096];
        let count = match self.connection.read(&mut room) {
            Ok(count) => count,
            // The other end closed with data unread.
            Err(err) if err.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(err) => return Err(err.into()),
        };
        self.unread.extend(&room[..count]);
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            match serde_json::from_slice(&line).map_err(|err| Error::internal(format!("sandbox: {err}")))? {
                // Ctrl-C at the terminal belongs to the program now; this process ends when the program does.
                // SAFETY: no function of ours is set.
                Message::Ready { .. } => _ = unsafe { signal(Signal::SIGINT, SigHandler::SigIgn) },
                Message::Ended { status, .. } => self.status = Some(status),
                Message::Failed { error } => self.failed = Some(error),
                Message::Init { .. } => (),
            }
        }
        Ok(count > 0)
    }
}

fn errno(err: nix::Error) -> Error {
    Error::from(std::io::Error::from(err))
}
