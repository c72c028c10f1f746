//! The running program of a mind: its messages, until a turn has ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use acheron_acp::{AcpFault, AcpLine, AcpLines, ClientEvent, ClientSide, choose, one_line};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio_util::task::AbortOnDropHandle;

use super::files;
use super::launch::{self, LaunchedMind};
use super::progress::MindProgress;
use crate::gateway::GatewayGuard;
use crate::host::{HostState, upgrade};
use crate::jobs::Job;
use crate::services::terminal::{RunningProgram, ended_because};
use crate::spec::ModelSpec;
use acheron_base::{Error, Result};
use acheron_sandbox::Running;

/// How long a program may take until its session is there, and until it has let go of a turn that was cancelled.
const STARTING: Duration = Duration::from_secs(120);
const LETTING_GO: Duration = Duration::from_secs(5);
/// How long a program that closed its output may take to end.
const ENDING: Duration = Duration::from_secs(2);
/// The last words of its errors that are kept, in characters.
const LAST_WORDS: usize = 300;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A program with one session.
pub struct MindProcess {
    /// Tells it apart from others.
    pub number: u64,
    /// The conversation of its session.
    pub conversation: Option<String>,
    /// Says when the agent may no longer have it.
    pub program: Arc<RunningProgram>,
    agent: String,
    running: Running,
    side: ClientSide,
    stdin: ChildStdin,
    stdout: ChildStdout,
    lines: AcpLines,
    /// Lines that were read and not looked at.
    unread: VecDeque<Vec<u8>>,
    /// The last line on standard error.
    last_words: Arc<Mutex<String>>,
    over: bool,
    _errors: AbortOnDropHandle<()>,
    _gateway: Option<GatewayGuard>,
}

impl MindProcess {
    /// Starts the program and opens its session.
    pub async fn start(
        host: &Arc<HostState>,
        agent: &str,
        model: &ModelSpec,
        conversation: Option<String>,
        job: &Job,
    ) -> Result<MindProcess> {
        job.log.line(&format!("starting {}", one_line(&model.command.join(" "), 200)));
        let LaunchedMind { mut running, program, gateway, directory } = launch::launch(host, agent, model).await?;
        let (Some(stdin), Some(stdout)) = (running.stdin.take(), running.stdout.take()) else {
            return Err(Error::internal("a program without pipes"));
        };
        let last_words = Arc::default();
        let errors = tokio::spawn(last_line(running.stderr.take(), Arc::clone(&last_words)));
        let mut process = MindProcess {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            conversation,
            program,
            agent: agent.to_owned(),
            running,
            side: ClientSide::default(),
            stdin,
            stdout,
            lines: AcpLines::default(),
            unread: VecDeque::new(),
            last_words,
            over: false,
            _errors: AbortOnDropHandle::new(errors),
            _gateway: gateway,
        };
        let opened = tokio::time::timeout(STARTING, process.open(&directory)).await;
        opened.unwrap_or_else(|_| {
            let said = format!("{} did not open a session within {} s", model.command.join(" "), STARTING.as_secs());
            Err(Error::unavailable(said))
        })?;
        Ok(process)
    }

    /// Whether it may be asked again.
    pub fn lives(&self) -> bool {
        !self.over
    }

    async fn open(&mut self, directory: &str) -> Result<()> {
        let greeting = self.side.greet(env!("CARGO_PKG_VERSION"));
        self.send(greeting).await?;
        let mut ways = Vec::new();
        loop {
            match self.next().await? {
                ClientEvent::Greeted { logins } => {
                    ways = logins;
                    let open = self.side.open(directory);
                    self.send(open).await?;
                }
                ClientEvent::Opened => return Ok(()),
                ClientEvent::Refused { method, fault } => {
                    let log_in = match ways.is_empty() {
                        true => String::new(),
                        false => format!("; it knows these ways to log in: {}", ways.join(", ")),
                    };
                    return Err(Error::unavailable(format!("the program refused {method}: {}{log_in}", fault.message)));
                }
                event => self.turn_down(event).await?,
            }
        }
    }

    /// Answers what is asked outside of a turn.
    async fn turn_down(&mut self, event: ClientEvent) -> Result<()> {
        let answer = match event {
            ClientEvent::File { request, .. } => {
                let fault = AcpFault::new(AcpFault::INVALID_REQUEST, "no turn is under way");
                self.side.answer(request, Err(fault))
            }
            ClientEvent::Permission { request, .. } => self.side.decide(request, None),
            _ => None,
        };
        self.send_some(answer).await
    }

    /// Runs one turn; returns the reply.
    pub async fn turn(&mut self, host: &Weak<HostState>, job: &Job, text: &str) -> Result<String> {
        let prompt = self.side.prompt(text).ok_or_else(|| Error::internal("a turn of the program is under way"))?;
        self.send(prompt).await?;
        let mut progress = MindProgress::default();
        loop {
            match self.next().await? {
                ClientEvent::Update(update) => progress.add(&update, job),
                ClientEvent::File { request, file } => {
                    let tree = files::tree(&*upgrade(host)?, &self.agent)?;
                    let answer = files::serve(&tree, &file).await;
                    let answer = self.side.answer(request, answer);
                    self.send_some(answer).await?;
                }
                ClientEvent::Permission { request, call, options } => {
                    job.log.line(&format!("  refused: {}: {UNASKED}", call.title));
                    let chosen = choose(&options, false).map(|option| option.id.clone());
                    let answer = self.side.decide(request, chosen.as_deref());
                    self.send_some(answer).await?;
                }
                ClientEvent::Ended { stop } => return ended(&stop, progress),
                ClientEvent::Refused { fault, .. } => {
                    return Err(Error::provider(format!("the program failed: {}", fault.message)));
                }
                ClientEvent::Greeted { .. } | ClientEvent::LoggedIn | ClientEvent::Opened => (),
            }
        }
    }

    /// Ends the turn of the program; returns whether it can be used again.
    pub async fn cancel(&mut self) -> bool {
        let letting_go = async {
            let cancel = self.side.cancel();
            self.send_some(cancel).await?;
            loop {
                match self.next().await? {
                    ClientEvent::Ended { .. } | ClientEvent::Refused { .. } => return Ok::<_, Error>(()),
                    event => self.turn_down(event).await?,
                }
            }
        };
        matches!(tokio::time::timeout(LETTING_GO, letting_go).await, Ok(Ok(())))
    }

    async fn send(&mut self, message: Value) -> Result<()> {
        let line = format!("{message}\n");
        tokio::select! {
            // A program that is gone is noticed by its output.
            _ = self.stdin.write_all(line.as_bytes()) => Ok(()),
            why = self.program.taken_away() => Err(ended_because(&why)),
        }
    }

    async fn send_some(&mut self, message: Option<Value>) -> Result<()> {
        match message {
            Some(message) => self.send(message).await,
            None => Ok(()),
        }
    }

    /// The next event. Lines that are none are answered or skipped. May be dropped and called again.
    async fn next(&mut self) -> Result<ClientEvent> {
        loop {
            while let Some(line) = self.unread.pop_front() {
                let step = self.side.take(&line);
                self.send_some(step.send).await?;
                if let Some(event) = step.event {
                    return Ok(event);
                }
            }
            let mut room = vec![0; 64 << 10];
            let count = tokio::select! {
                count = self.stdout.read(&mut room) => count.unwrap_or_default(),
                why = self.program.taken_away() => return Err(ended_because(&why)),
            };
            if count == 0 {
                self.over = true;
                return Err(self.ended().await);
            }
            for line in self.lines.take(&room[..count]) {
                match line {
                    AcpLine::Whole(line) => self.unread.push_back(line),
                    AcpLine::TooLong => {
                        self.over = true;
                        let most = acheron_acp::LONGEST_MESSAGE;
                        return Err(Error::unavailable(format!("the program sent a message longer than {most} bytes")));
                    }
                }
            }
        }
    }

    /// Why a program whose output has ended is over.
    async fn ended(&mut self) -> Error {
        let status = tokio::time::timeout(ENDING, self.running.wait()).await;
        let last = self.last_words.lock().clone();
        let said = if last.is_empty() { String::new() } else { format!("; it said last: {last}") };
        Error::unavailable(match status {
            Ok(Ok(status)) => match status.signal {
                Some(signal) => format!("the program was ended by signal {signal}{said}"),
                None => format!("the program ended with exit code {}{said}", status.status()),
            },
            Ok(Err(error)) => format!("the program could not be started: {error}"),
            Err(_) => format!("the program closed its output{said}"),
        })
    }
}

/// Why a question of a program is answered with no.
const UNASKED: &str = "the program asked for permission, and nobody can be asked yet; allow it in its own settings, since its \
     sandbox holds it in any case";

fn ended(stop: &str, progress: MindProgress) -> Result<String> {
    match stop {
        "end_turn" => Ok(progress.reply()),
        "cancelled" => Err(Error::cancelled("the program ended the turn as cancelled")),
        "max_tokens" | "max_turn_requests" => {
            Err(Error::budget_exceeded(format!("the program reached a limit of its own ({stop})")))
        }
        other => Err(Error::provider(format!("the program ended the turn with `{other}`"))),
    }
}

/// Keeps the last line of a stream.
async fn last_line(stream: Option<impl AsyncRead + Unpin>, last: Arc<Mutex<String>>) {
    let Some(mut stream) = stream else { return };
    let (mut line, mut room) = (Vec::new(), vec![0; 16 << 10]);
    while let Ok(count @ 1..) = stream.read(&mut room).await {
        for byte in &room[..count] {
            match byte {
                b'\n' => {
                    let text = one_line(&String::from_utf8_lossy(&line), LAST_WORDS);
                    line.clear();
                    if !text.is_empty() {
                        *last.lock() = text;
                    }
                }
                byte if line.len() < 4096 => line.push(*byte),
                _ => (),
            }
        }
    }
}
