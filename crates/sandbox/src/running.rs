//! The host's side of a sandbox: starts it, reads its messages, ends it. Services use it; it uses the protocol and the
//! slots.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as Pair;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::confinement::Confinement;
use super::descriptors;
use super::level::Level;
use super::limits::AgentLimits;
use super::plan::{Plan, SharedLimits, Terminal};
use super::protocol::{ExitStatus, Message, UsedDisk};
use super::slots::{self, Slot};
use acheron_base::{Error, Result};

/// The time limit for a sandbox to be ready, on the slowest machine.
const START_TIME: Duration = Duration::from_secs(60);

/// The standard streams of the program.
pub enum Streams {
    /// Three pipes, found in the [`Running`].
    Piped,
    /// The far end of a terminal, for all three.
    Terminal(OwnedFd),
    /// Those of the caller.
    Inherited,
}

/// A sandbox with a program in it. Dropping it ends the program and everything that it started.
pub struct Running {
    /// The pid of its init, outside.
    pub init: i32,
    /// The layers around the program.
    pub confinement: Confinement,
    /// Its standard input, if piped.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, if piped.
    pub stdout: Option<ChildStdout>,
    /// Its standard error, if piped.
    pub stderr: Option<ChildStderr>,
    /// The listeners of the plan. Whoever takes them answers what the program connects to.
    pub listeners: Vec<(u16, OwnedFd)>,
    /// Whether control groups limit all sandboxes of the agent together.
    grouped: bool,
    supervisor: Child,
    messages: MessageReader,
    /// Closing it makes the supervisor end the sandbox.
    connection: Option<OwnedWriteHalf>,
    status: Option<ExitStatus>,
    /// Held for as long as this runs.
    slot: Option<Slot>,
}

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The program that runs sandboxes: this one, unless [`use_program`] names another.
pub fn program() -> PathBuf {
    PROGRAM.get().cloned().unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Names another program that runs sandboxes: a test is not the program that it tests. Only the first call counts.
pub fn use_program(path: impl Into<PathBuf>) {
    _ = PROGRAM.set(path.into()); // the first stays
}

/// Starts the program of the plan in a sandbox, if its agent may have one more.
pub async fn start(program: &Path, plan: &Plan, streams: Streams) -> Result<Running> {
    plan.check()?;
    let slot = match &plan.together {
        Some(shared) => {
            let grouped = async { Ok(probe_running(program).await?.grouped) };
            Some(slots::take(&shared.host, &shared.owner, shared.limits.sandboxes, grouped).await?)
        }
        None => None,
    };
    let mut plan = plan.clone();
    if let (Some(slot), Some(shared)) = (&slot, &plan.together) {
        let left = slot.left(&shared.limits)?;
        plan.limits.disk_bytes = plan.limits.disk_bytes.min(left.bytes);
        plan.limits.disk_files = plan.limits.disk_files.min(left.files);
    }
    Ok(Running { slot, ..launch(program, &plan, streams).await? })
}

async fn launch(program: &Path, plan: &Plan, streams: Streams) -> Result<Running> {
    let (ours, theirs) = Pair::pair()?;
    ours.set_nonblocking(true)?;
    let mut command = Command::new(program);
    command.arg(super::INIT_ARG).arg(theirs.as_raw_fd().to_string()).arg(&plan.agent).env_clear();
    let [stdin, stdout, stderr] = stdio(streams)?;
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    if plan.terminal != Terminal::Shared {
        // Ctrl-C at the terminal of the host is for the host.
        command.process_group(0);
    }
    let number = theirs.as_raw_fd();
    // SAFETY: one fcntl on a descriptor that is open in the child, nothing allocated.
    unsafe {
        command.pre_exec(move || {
            let fd = std::os::fd::BorrowedFd::borrow_raw(number);
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty()).map_err(Into::into)
        });
    }
    let spawned = command.spawn();
    let mut supervisor =
        spawned.map_err(|err| Error::unavailable(format!("cannot start `{}`: {err}", program.display())))?;
    drop((theirs, command));
    let (read, mut write) = UnixStream::from_std(ours)?.into_split();
    let mut line = serde_json::to_vec(plan).map_err(|err| Error::internal(err.to_string()))?;
    line.push(b'\n');
    let (stdin, stdout, stderr) = (supervisor.stdin.take(), supervisor.stdout.take(), supervisor.stderr.take());
    // A supervisor that ended early is noticed below.
    _ = write.write_all(&line).await;
    let mut running = Running {
        init: 0,
        confinement: Confinement::default(),
        stdin,
        stdout,
        stderr,
        listeners: Vec::new(),
        grouped: false,
        supervisor,
        messages: MessageReader { stream: read, unread: Vec::new(), file: None },
        connection: Some(write),
        status: None,
        slot: None,
    };
    tokio::time::timeout(START_TIME, running.ready())
        .await
        .unwrap_or_else(|_| Err(Error::unavailable("the sandbox was not ready in time")))?;
    Ok(running)
}

fn stdio(streams: Streams) -> Result<[Stdio; 3]> {
    Ok(match streams {
        Streams::Piped => [Stdio::piped(), Stdio::piped(), Stdio::piped()],
        Streams::Inherited => [Stdio::inherit(), Stdio::inherit(), Stdio::inherit()],
        Streams::Terminal(end) => {
            [end.as_fd().try_clone_to_owned()?.into(), end.as_fd().try_clone_to_owned()?.into(), end.into()]
        }
    })
}

impl Running {
    /// Waits until the program is being executed.
    async fn ready(&mut self) -> Result<()> {
        let mut ready = false;
        // Two processes send them, so either may be the first.
        while !ready || self.init == 0 {
            match self.messages.next().await? {
                Some(Message::Init { pid }) => self.init = pid,
                Some(Message::Ready { confinement, grouped }) => {
                    (self.confinement, self.grouped, ready) = (confinement, grouped, true);
                }
                Some(Message::Failed { error }) => return Err(error),
                Some(Message::Listening { port }) => {
                    let listener = self.messages.file.take();
                    let listener = listener.ok_or_else(|| Error::internal("a listener came without its descriptor"))?;
                    self.listeners.push((port, listener));
                }
                Some(Message::Ended { status, used }) => self.ended(status, used),
                None => {
                    let status = self.supervisor.wait().await?;
                    return Err(Error::unavailable(format!("the sandbox ended before it was ready ({status})")));
                }
            }
        }
        Ok(())
    }

    /// Waits until every process inside has ended. An error says that the program could not be executed.
    ///
    /// The future may be dropped and called again.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        let mut failed = None;
        while let Some(message) = self.messages.next().await? {
            match message {
                Message::Ended { status, used } => self.ended(status, used),
                Message::Failed { error } => failed = Some(error),
                Message::Init { .. } | Message::Ready { .. } | Message::Listening { .. } => (),
            }
        }
        self.connection = None;
        self.supervisor.wait().await?;
        self.slot = None;
        match failed {
            Some(error) => Err(error),
            None => Ok(self.status.unwrap_or(ExitStatus::KILLED)),
        }
    }

    fn ended(&mut self, status: ExitStatus, used: UsedDisk) {
        self.status = Some(status);
        self.slot.iter().for_each(|slot| slot.add_used(used));
    }

    /// Ends every process inside and waits for their end.
    pub async fn kill(&mut self) -> Result<ExitStatus> {
        self.connection = None;
        if let Ok(ended) = tokio::time::timeout(Duration::from_secs(10), self.wait()).await {
            return ended;
        }
        // Init ends with its supervisor.
        _ = self.supervisor.start_kill();
        self.wait().await
    }
}

/// Reads the messages of a sandbox, and the descriptor that may come with one.
struct MessageReader {
    stream: OwnedReadHalf,
    unread: Vec<u8>,
    /// Received, but not the whole message that it belongs to. The kernel ends a receipt with that message, so there is one
    /// at a time.
    file: Option<OwnedFd>,
}

impl MessageReader {
    /// The next message; `None` at the end. The future may be dropped and called again.
    async fn next(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let message = serde_json::from_slice(&line);
                return message.map(Some).map_err(|err| Error::internal(format!("sandbox: {err}")));
            }
            let stream: &UnixStream = self.stream.as_ref();
            let mut room = [0; 4096];
            let receive = || descriptors::receive_with(stream.as_fd(), &mut room);
            match stream.async_io(Interest::READABLE, receive).await {
                Ok((0, _)) => return Ok(None),
                Ok((count, file)) => {
                    self.file = file.or(self.file.take());
                    self.unread.extend(&room[..count]);
                }
                // The other end closed with data unread.
                Err(err) if err.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
                Err(err) => return Err(err.into()),
            }
        }
    }
}

/// The layers that this machine can provide, found by trying them.
pub async fn probe(program: &Path) -> Result<Confinement> {
    Ok(probe_running(program).await?.confinement)
}

/// The layers of the second level, if this machine has them all.
pub(super) async fn probe_landlock(program: &Path) -> Result<Confinement> {
    let mut plan = Plan::new("doctor", ["true"]);
    plan.level = Level::Landlock;
    let mut running = launch(program, &plan, Streams::Piped).await?;
    running.wait().await?;
    Ok(running.confinement.clone())
}

async fn probe_running(program: &Path) -> Result<Running> {
    let mut plan = Plan::new("doctor", ["true"]);
    plan.unconfined = true;
    let (host, owner) = (super::host_id(), plan.agent.clone());
    plan.together = Some(SharedLimits { host, owner, limits: AgentLimits::default() });
    let mut running = launch(program, &plan, Streams::Piped).await?;
    running.wait().await?;
    Ok(running)
}
