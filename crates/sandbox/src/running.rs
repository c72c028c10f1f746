//! The host's end of a sandbox: starting it, hearing how it goes, ending it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as Pair;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::confinement::Walls;
use super::limits::Together;
use super::plan::{Plan, SharedLimits, Terminal};
use super::protocol::{Ended, Word};
use super::slots::{self, Seat};
use acheron_base::{Error, Result};

/// How long a sandbox may take to stand, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the program reads and writes.
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
    /// Number one inside, by its number outside.
    pub init: i32,
    pub walls: Walls,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    keeper: Child,
    heard: BufReader<OwnedReadHalf>,
    /// Closing it tells the keeper to end the sandbox.
    line: Option<OwnedWriteHalf>,
    ended: Option<Ended>,
    /// The agent's, for as long as this runs.
    seat: Option<Seat>,
}

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The program that knows how to be a sandbox: this one.
pub fn program() -> PathBuf {
    PROGRAM.get().cloned().unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Names another program, where this one does not know how: a test is not the program that it tests.
pub fn use_program(path: impl Into<PathBuf>) {
    _ = PROGRAM.set(path.into()); // the first stays
}

/// Builds the walls and starts the plan's program behind them, if there is room for one more of its agent's.
pub async fn start(program: &Path, plan: &Plan, streams: Streams) -> Result<Running> {
    plan.check()?;
    let seat = match &plan.together {
        Some(shared) => {
            let held = async { Ok(probe(program).await?.hold_together()) };
            Some(slots::take(&shared.host, &plan.agent, shared.limits.sandboxes, held).await?)
        }
        None => None,
    };
    Ok(Running { seat, ..launch(program, plan, streams).await? })
}

async fn launch(program: &Path, plan: &Plan, streams: Streams) -> Result<Running> {
    let (ours, theirs) = Pair::pair()?;
    ours.set_nonblocking(true)?;
    let mut command = Command::new(program);
    command.arg(super::WORD).arg(theirs.as_raw_fd().to_string()).arg(&plan.agent).env_clear();
    let [stdin, stdout, stderr] = stdio(streams)?;
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    if plan.terminal != Terminal::Shared {
        // A Ctrl-C at the host's terminal is the host's to handle.
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
    let mut keeper =
        spawned.map_err(|err| Error::unavailable(format!("cannot start `{}`: {err}", program.display())))?;
    drop((theirs, command));
    let (read, mut write) = UnixStream::from_std(ours)?.into_split();
    let mut line = serde_json::to_vec(plan).map_err(|err| Error::internal(err.to_string()))?;
    line.push(b'\n');
    let (stdin, stdout, stderr) = (keeper.stdin.take(), keeper.stdout.take(), keeper.stderr.take());
    // A keeper that ends early is heard of below.
    _ = write.write_all(&line).await;
    let (walls, heard) = (Walls::default(), BufReader::new(read));
    let (line, ended, seat) = (Some(write), None, None);
    let mut running = Running { init: 0, walls, stdin, stdout, stderr, keeper, heard, line, ended, seat };
    tokio::time::timeout(PATIENCE, running.stand())
        .await
        .unwrap_or_else(|_| Err(Error::unavailable("the sandbox did not come up in time")))?;
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
    /// Waits for the walls.
    async fn stand(&mut self) -> Result<()> {
        loop {
            match self.hear().await? {
                Some(Word::Init { pid }) => self.init = pid,
                Some(Word::Ready { walls }) => {
                    self.walls = walls;
                    return Ok(());
                }
                Some(Word::Failed { error }) => return Err(error),
                Some(Word::Ended { ended }) => self.ended = Some(ended),
                None => {
                    let status = self.keeper.wait().await?;
                    return Err(Error::unavailable(format!("the sandbox ended before it stood ({status})")));
                }
            }
        }
    }

    async fn hear(&mut self) -> Result<Option<Word>> {
        let mut line = String::new();
        match self.heard.read_line(&mut line).await {
            Ok(0) => Ok(None),
            // The other end went away with our words unread.
            Err(err) if err.kind() == std::io::ErrorKind::ConnectionReset => Ok(None),
            Err(err) => Err(err.into()),
            Ok(_) => serde_json::from_str(&line).map(Some).map_err(|err| Error::internal(format!("sandbox: {err}"))),
        }
    }

    /// Waits until everything inside is gone. An error says that the program could not even begin.
    ///
    /// May be dropped and called again.
    pub async fn wait(&mut self) -> Result<Ended> {
        let mut failed = None;
        while let Some(word) = self.hear().await? {
            match word {
                Word::Ended { ended } => self.ended = Some(ended),
                Word::Failed { error } => failed = Some(error),
                Word::Init { .. } | Word::Ready { .. } => (),
            }
        }
        self.line = None;
        self.keeper.wait().await?;
        self.seat = None;
        match failed {
            Some(error) => Err(error),
            None => Ok(self.ended.unwrap_or(Ended::KILLED)),
        }
    }

    /// Ends everything inside and waits until it is gone.
    pub async fn kill(&mut self) -> Result<Ended> {
        self.hang_up();
        if let Ok(ended) = tokio::time::timeout(Duration::from_secs(10), self.wait()).await {
            return ended;
        }
        // Init dies with its keeper.
        _ = self.keeper.start_kill();
        self.wait().await
    }

    /// Ends everything inside, soon.
    pub fn hang_up(&mut self) {
        self.line = None;
    }
}

/// Which walls this machine can build, found by building them.
pub async fn probe(program: &Path) -> Result<Walls> {
    let mut plan = Plan::new("doctor", ["true"]);
    plan.unconfined = true;
    plan.together = Some(SharedLimits { host: super::host(), limits: Together::default() });
    let mut running = launch(program, &plan, Streams::Piped).await?;
    running.wait().await?;
    Ok(running.walls)
}
