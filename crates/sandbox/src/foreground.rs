//! A sandbox in the foreground of a terminal: its supervisor is a fork of this program, because to execute it once more takes
//! as long as half of what a sandbox needs. `acheron exec` uses it; it uses the init.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use super::plan::Plan;
use super::protocol::{ExitStatus, Message};
use super::{command_line, descriptors, init};
use acheron_base::{Error, Result};

/// The time that a sandbox has to end when it must, in milliseconds.
const PATIENCE: u16 = 10_000;

/// How a program in the foreground came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForegroundEnd {
    /// By itself.
    Ended(ExitStatus),
    /// One of the descriptors that it depends on became readable: the number of the first one.
    Stopped(usize),
    /// This process was told to end, by a signal of this number.
    Signalled(i32),
}

/// Runs the program of the plan on the streams of this process, which must have one thread, and returns when every process
/// inside has ended. When one of the descriptors in `until` becomes readable, or this process is told to end, so does the
/// sandbox. `listening` gets the listeners of the plan, each with its port, before the program runs.
pub fn run_in_foreground(
    plan: &Plan,
    until: &[BorrowedFd<'_>],
    listening: &mut dyn FnMut(u16, OwnedFd) -> Result<()>,
) -> Result<ForegroundEnd> {
    plan.check()?;
    let (ours, theirs) = UnixStream::pair()?;
    // SAFETY: this process has one thread, so the child may do whatever it likes.
    let supervisor = match unsafe { fork() }.map_err(errno)? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            drop(ours);
            // The streams stay, and the connection; nothing else of this program is used any more.
            if command_line::replace(theirs.as_raw_fd(), &plan.agent).is_err() {
                command_line::execute_again(theirs.as_raw_fd(), &plan.agent);
            }
            init::supervisor_main(theirs.into());
        }
    };
    drop(theirs);
    let mut foreground = Foreground {
        connection: ours,
        unread: Vec::new(),
        listener: None,
        listening,
        status: None,
        failed: None,
        signals: None,
    };
    let ended = foreground.send(plan).and_then(|()| foreground.until_the_end(supervisor, until));
    if ended.is_err() {
        _ = kill(supervisor, Signal::SIGKILL);
    }
    _ = waitpid(supervisor, None);
    match (ended?, foreground.failed) {
        (None, Some(error)) => Err(error),
        (None, None) => Ok(ForegroundEnd::Ended(foreground.status.unwrap_or(ExitStatus::KILLED))),
        (Some(stopped), _) => Ok(stopped),
    }
}

struct Foreground<'a> {
    connection: UnixStream,
    unread: Vec<u8>,
    /// Received, but not what belongs to it.
    listener: Option<OwnedFd>,
    listening: &'a mut dyn FnMut(u16, OwnedFd) -> Result<()>,
    status: Option<ExitStatus>,
    failed: Option<Error>,
    /// The signals to this process, since the program runs. Before, they end this process, and the sandbox with it.
    signals: Option<SignalFd>,
}

impl Foreground<'_> {
    fn send(&mut self, plan: &Plan) -> Result<()> {
        let mut line = serde_json::to_vec(plan).map_err(|err| Error::internal(err.to_string()))?;
        line.push(b'\n');
        // A supervisor that ended early is noticed when it is read.
        _ = std::io::Write::write_all(&mut self.connection, &line);
        Ok(())
    }

    /// Why the sandbox had to end, unless the program ended by itself.
    fn until_the_end(&mut self, supervisor: Pid, until: &[BorrowedFd<'_>]) -> Result<Option<ForegroundEnd>> {
        let mut stopped = None;
        loop {
            let limit = if stopped.is_none() { PollTimeout::NONE } else { PollTimeout::from(PATIENCE) };
            let mut waiting = vec![PollFd::new(self.connection.as_fd(), PollFlags::POLLIN)];
            if stopped.is_none() {
                waiting.extend(until.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)));
                waiting.extend(self.signals.as_ref().map(|signals| PollFd::new(signals.as_fd(), PollFlags::POLLIN)));
            }
            match poll(&mut waiting, limit) {
                // It had its time.
                Ok(0) => kill(supervisor, Signal::SIGKILL).map_err(errno)?,
                Ok(_) => (),
                Err(nix::Error::EINTR) => continue,
                Err(err) => return Err(errno(err)),
            }
            let ready: Vec<bool> = waiting.iter().map(|fd| fd.any().unwrap_or(true)).collect();
            drop(waiting);
            if stopped.is_none() {
                stopped = self.told_to_end().or_else(|| {
                    ready[1..].iter().take(until.len()).position(|ready| *ready).map(ForegroundEnd::Stopped)
                });
                if stopped.is_some() {
                    // The supervisor sees the end of the connection, and ends everything.
                    self.connection.shutdown(std::net::Shutdown::Write)?;
                }
            }
            if ready[0] && !self.receive()? {
                return Ok(stopped);
            }
        }
    }

    /// The signal by which somebody told this process to end. What is typed at the terminal is for the program, which was
    /// told as well.
    fn told_to_end(&mut self) -> Option<ForegroundEnd> {
        while let Some(signal) = self.signals.as_mut().and_then(|signals| signals.read_signal().ok().flatten()) {
            let number = signal.ssi_signo as i32;
            let typed = signal.ssi_code == libc::SI_KERNEL && [libc::SIGINT, libc::SIGQUIT].contains(&number);
            if !typed {
                return Some(ForegroundEnd::Signalled(number));
            }
        }
        None
    }

    /// Takes what the sandbox says; false at the end.
    fn receive(&mut self) -> Result<bool> {
        let mut room = [0; 4096];
        let (count, file) = match descriptors::receive_with(self.connection.as_fd(), &mut room) {
            Ok(received) => received,
            // The other end closed with data unread.
            Err(err) if err.kind() == std::io::ErrorKind::ConnectionReset => (0, None),
            Err(err) => return Err(err.into()),
        };
        self.listener = file.or(self.listener.take());
        self.unread.extend(&room[..count]);
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            match serde_json::from_slice(&line).map_err(|err| Error::internal(format!("sandbox: {err}")))? {
                // Ctrl-C at the terminal belongs to the program now; this process ends when the program does.
                Message::Ready { .. } => self.signals = Some(signals()?),
                Message::Ended { status, .. } => self.status = Some(status),
                Message::Failed { error } => self.failed = Some(error),
                Message::Init { .. } => (),
                // The kernel ends a receipt with the message that a descriptor belongs to, so there is one at a time.
                Message::Listening { port } => {
                    let listener = self.listener.take();
                    let listener = listener.ok_or_else(|| Error::internal("a listener came without its descriptor"))?;
                    (self.listening)(port, listener)?;
                }
            }
        }
        Ok(count > 0)
    }
}

/// Has the signals that would end this process read from a descriptor. One that is ignored, as by `nohup`, stays ignored.
fn signals() -> Result<SignalFd> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    set.thread_block().map_err(errno)?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(errno)
}

fn errno(err: nix::Error) -> Error {
    Error::from(std::io::Error::from(err))
}
