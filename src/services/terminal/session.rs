//! A shell on a terminal that outlives its callers: written to, read from any offset, asked to run one command.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::process::Signal;
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::command_output::CommandOutput;
use super::running_programs::{RunningProgram, ended_because};
use super::screen::Screen;
use super::sentinel::{fallback, script};
use super::silence_watch::{SilenceWatch, TICK};
use super::text::{Capture, whole};
use acheron_base::{Clock, Error, Result};
use acheron_sandbox::{
    ExitStatus, Plan, Pty, Running, SandboxProcess, Streams, Terminal, TerminalSize, descendants, kill_process, start,
    started_since,
};
use acheron_vfs::Log;

/// How much of a session's output is kept.
const KEPT: usize = 4 << 20;

/// How often what a command started is looked for and ended: it may start more meanwhile.
const ROUNDS: usize = 50;

/// A shell and its terminal.
pub struct Session {
    pub id: String,
    /// All that the terminal showed, with offsets that stay true.
    pub output: Log,
    pty: Pty,
    /// Number one of its sandbox, by its number outside.
    init: i32,
    screen: Mutex<Screen>,
    /// Whoever runs a command hears all that the terminal says, marks included.
    ear: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    facts: Mutex<Facts>,
    /// Where the output ends, and whether it ever grows again.
    heard: watch::Sender<OutputProgress>,
    end: CancellationToken,
    /// One command at a time.
    turn: tokio::sync::Mutex<()>,
    /// Where the last reader without an offset stopped.
    read_until: AtomicU64,
    clock: Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutputProgress {
    until: u64,
    eof: bool,
}

/// What `status.json` shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Facts {
    pub session_id: String,
    /// `open` or `closed`.
    pub state: String,
    pub shell: String,
    pub cwd: String,
    pub cols: u16,
    pub rows: u16,
    pub created_at_ms: u64,
    pub updated_at_ms: u64,
    /// How many commands were run by `exec`.
    pub exec_count: u64,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Why the host ended it, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_because: Option<String>,
}

/// A part of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub bytes: Vec<u8>,
    pub offset: u64,
    pub next: u64,
    /// The oldest offset that can still be read.
    pub first: u64,
    pub eof: bool,
}

/// How a command in a session ended.
#[derive(Debug)]
pub struct Answered {
    pub output: Capture,
    pub exit_code: i32,
    pub duration_ms: u64,
}

impl Session {
    /// Starts the plan's shell on a new terminal.
    pub async fn start(
        program: &Path,
        (mut plan, running_program): (Plan, RunningProgram),
        id: String,
        size: TerminalSize,
        clock: Clock,
    ) -> Result<Arc<Session>> {
        plan.terminal = Terminal::Own;
        let (pty, far) = Pty::open(size)?;
        let mut running = start(program, &plan, Streams::Terminal(far)).await?;
        running_program.serve(std::mem::take(&mut running.listeners))?;
        let now = clock.now_ms();
        let facts = Facts {
            session_id: id.clone(),
            state: "open".to_owned(),
            shell: plan.argv[0].clone(),
            cwd: plan.cwd.display().to_string(),
            cols: size.cols,
            rows: size.rows,
            created_at_ms: now,
            updated_at_ms: now,
            exec_count: 0,
            exit_code: None,
            signal: None,
            ended_because: None,
        };
        let session = Arc::new(Session {
            id,
            output: Log::new(KEPT, clock.clone()),
            pty,
            init: running.init,
            screen: Mutex::default(),
            ear: Mutex::default(),
            facts: Mutex::new(facts),
            heard: watch::Sender::new(OutputProgress { until: 0, eof: false }),
            end: CancellationToken::new(),
            turn: tokio::sync::Mutex::new(()),
            read_until: AtomicU64::new(0),
            clock,
        });
        tokio::spawn(listen(session.clone(), running, running_program));
        Ok(session)
    }

    pub fn facts(&self) -> Facts {
        self.held().clone()
    }

    pub fn is_open(&self) -> bool {
        !self.heard.borrow().eof
    }

    fn held(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock()
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock()
    }

    fn ear(&self) -> MutexGuard<'_, Option<mpsc::Sender<Vec<u8>>>> {
        self.ear.lock()
    }

    fn append(&self, shown: &[u8]) {
        self.output.append(shown);
        self.heard.send_modify(|heard| heard.until += shown.len() as u64);
    }

    /// Types into the terminal.
    pub async fn write(&self, bytes: &[u8]) -> Result<()> {
        self.alive()?;
        self.held().updated_at_ms = self.clock.now_ms();
        let mut heard = self.heard.subscribe();
        tokio::select! {
            written = self.pty.write(bytes) => written,
            _ = heard.wait_for(|heard| heard.eof) => self.alive(),
        }
    }

    /// What the terminal said from `offset` on, at most `size` bytes. If there is nothing yet, waits for it.
    pub async fn read(&self, offset: u64, size: usize, wait: Duration) -> Piece {
        let mut heard = self.heard.subscribe();
        let something = heard.wait_for(|heard| heard.until > offset || heard.eof);
        // A time that runs out is an answer too: nothing yet.
        _ = tokio::time::timeout(wait, something).await.map(|_| ());
        let now = *self.heard.borrow();
        let first = self.output.range().0;
        let (offset, mut bytes) = self.output.from(offset.min(now.until), size);
        if bytes.len() == size {
            bytes.truncate(whole(&bytes));
        }
        let next = offset + bytes.len() as u64;
        Piece { bytes, offset, next, first, eof: now.eof && next >= now.until }
    }

    /// As [`Session::read`]; without an offset, from where the last such read stopped.
    pub async fn read_on(&self, offset: Option<u64>, size: usize, wait: Duration) -> Piece {
        let from = offset.unwrap_or_else(|| self.read_until.load(Ordering::SeqCst));
        let piece = self.read(from, size, wait).await;
        if offset.is_none() {
            self.read_until.store(piece.next, Ordering::SeqCst);
        }
        piece
    }

    /// Runs one command in the shell, whose state it may change. `token` marks its output and must be new.
    pub async fn exec(
        &self,
        command: &str,
        token: &str,
        deadline: Duration,
        keep: usize,
        watch: &(dyn Fn(&[u8]) + Send + Sync),
        cancelled: impl Future<Output = ()>,
    ) -> Result<Answered> {
        let began = self.clock.now_ms();
        let answered = async {
            let _turn = self.turn.lock().await;
            let mut stop = Interrupt { session: self, before: descendants(self.init), armed: true };
            let answered = self.converse(command, token, keep, watch).await;
            stop.armed = false;
            answered
        };
        let (output, exit_code) = tokio::select! {
            answered = answered => answered?,
            () = cancelled => return Err(Error::cancelled("the command was cancelled; the session stays")),
            () = tokio::time::sleep(deadline) => return Err(late(deadline)),
        };
        Ok(Answered { output, exit_code, duration_ms: self.clock.now_ms().saturating_sub(began) })
    }

    async fn converse(
        &self,
        command: &str,
        token: &str,
        keep: usize,
        watch: &(dyn Fn(&[u8]) + Send + Sync),
    ) -> Result<(Capture, i32)> {
        self.alive()?;
        self.held().exec_count += 1;
        let (say, mut hear) = mpsc::channel(16);
        *self.ear() = Some(say);
        self.screen().typed(token, command);
        if !self.is_open() {
            self.ear().take(); // it went just now, and nobody would say so
        }
        let mut output = CommandOutput::new(token, keep, watch);
        let (typed, second) = (script(token, command), fallback(token));
        let mut typing = std::pin::pin!(self.write(typed.as_bytes()));
        let (mut typing_on, mut second_typed) = (true, false);
        let mut silence = SilenceWatch::default();
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let piece = tokio::select! {
                piece = hear.recv() => piece,
                written = &mut typing, if typing_on => {
                    // A shell that ends while it is typed to says so itself.
                    written.or_else(|error| if self.is_open() { Err(error) } else { Ok(()) })?;
                    typing_on = false;
                    continue;
                }
                _ = ticks.tick(), if !typing_on && !second_typed => {
                    // A shell that waits for a job is not in the foreground.
                    if silence.tick() && self.pty.leader_in_foreground() {
                        output.fallback_typed();
                        self.screen().fallback_typed(token);
                        typing.set(self.write(second.as_bytes()));
                        (typing_on, second_typed) = (true, true);
                    }
                    continue;
                }
            };
            let Some(piece) = piece else {
                // The command was `exit`, or it killed its own shell.
                output.close();
                let facts = self.facts();
                if let Some(why) = &facts.ended_because {
                    return Err(ended_because(why));
                }
                let code = facts.exit_code.unwrap_or_else(|| 128 + facts.signal.unwrap_or(0));
                return Ok((output.into_kept(), code));
            };
            silence.heard(piece.len());
            if let Some(code) = output.hear(&piece) {
                return Ok((output.into_kept(), code));
            }
        }
    }

    /// Ends all that was started since, whatever group or session it is in now.
    fn end_since(&self, before: &[SandboxProcess]) {
        let Some(shell) = self.pty.leader() else { return };
        for _ in 0..ROUNDS {
            let started = started_since(before, &descendants(self.init), shell);
            if started.is_empty() {
                return;
            }
            started.into_iter().for_each(kill_process);
            // It would go on with the next command of the list.
            self.pty.interrupt_leader();
        }
    }

    pub fn resize(&self, size: TerminalSize) -> Result<()> {
        self.alive()?;
        self.pty.resize(size)?;
        let mut facts = self.held();
        (facts.cols, facts.rows) = (size.cols, size.rows);
        Ok(())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.alive()?;
        self.pty.signal(signal)
    }

    /// Ends the shell and everything started in it, and waits until it is gone.
    pub async fn close(&self) {
        self.end.cancel();
        // The sender lives as long as we do, so this only ends with the session.
        _ = self.heard.subscribe().wait_for(|heard| heard.eof).await;
    }

    /// Ends it because something was taken away that its programs could still do.
    fn end_because(&self, why: &str) {
        self.held().ended_because = Some(why.to_owned());
        self.append(format!("\r\nacheron: the host ends this session: {why}\r\n").as_bytes());
        self.end();
    }

    /// Ends it soon; for whoever cannot wait.
    pub fn end(&self) {
        self.end.cancel();
    }

    fn alive(&self) -> Result<()> {
        if self.is_open() {
            return Ok(());
        }
        let why = self.held().ended_because.as_ref().map(|why| format!(": the host ended it, because {why}"));
        Err(Error::unavailable(format!("the session `{}` is closed{}", self.id, why.unwrap_or_default())))
    }
}

/// Ends what was typed when nobody waits for it any more: the caller may have been cancelled or out of time.
struct Interrupt<'a> {
    session: &'a Session,
    /// What ran in the session before.
    before: Vec<SandboxProcess>,
    armed: bool,
}

impl Drop for Interrupt<'_> {
    fn drop(&mut self) {
        if self.armed {
            // It may have ended just now; the shell stays in any case.
            _ = self.session.pty.interrupt();
            self.session.end_since(&self.before);
        }
        self.session.ear().take();
        if self.armed {
            self.session.screen().open();
        }
    }
}

fn late(deadline: Duration) -> Error {
    Error::timeout(format!("the command did not end within {} ms; the session stays", deadline.as_millis()))
}

/// Hears a session's terminal until the shell and all its children are gone.
async fn listen(session: Arc<Session>, mut running: Running, program: RunningProgram) {
    let mut buffer = vec![0; 64 << 10];
    let mut ended = None;
    loop {
        tokio::select! {
            read = session.pty.read(&mut buffer) => match read {
                Ok(count @ 1..) => {
                    let shown = session.screen().show(&buffer[..count]);
                    session.append(&shown);
                    let ear = session.ear().clone();
                    if let Some(ear) = ear {
                        // Whoever has gone meanwhile hears nothing more.
                        _ = ear.send(buffer[..count].to_vec()).await;
                    }
                }
                _ => break,
            },
            how = running.wait(), if ended.is_none() => ended = Some(how.unwrap_or(ExitStatus::KILLED)),
            why = program.taken_away(), if !session.end.is_cancelled() => session.end_because(&why),
            () = session.end.cancelled(), if ended.is_none() => ended = Some(running.kill().await.unwrap_or(ExitStatus::KILLED)),
        }
    }
    let rest = session.screen().finish();
    session.append(&rest);
    let ended = match ended {
        Some(ended) => ended,
        // The shell closes its terminal before we hear how it ended. One that lives on without could not be reached.
        None => match tokio::time::timeout(Duration::from_secs(5), running.wait()).await {
            Ok(how) => how.unwrap_or(ExitStatus::KILLED),
            Err(_) => running.kill().await.unwrap_or(ExitStatus::KILLED),
        },
    };
    {
        let mut facts = session.held();
        facts.state = "closed".to_owned();
        (facts.exit_code, facts.signal, facts.updated_at_ms) = (ended.code, ended.signal, session.clock.now_ms());
    }
    session.heard.send_modify(|heard| heard.eof = true);
    session.ear().take();
}
