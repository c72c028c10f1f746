//! The service: commands in, answers out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::command::{self, Command, Executed, Output, SessionList, SessionOutput, Typed};
use super::foreground::{FOREGROUND, ForegroundFile};
use super::run::{ProgramRun, StreamListener};
use super::running_programs::{RunningProgram, RunningPrograms, stopped};
use super::session::Session;
use super::shells::Shells;
use super::surroundings::Surroundings;
use super::{files, shells, shown_plan, text};
use crate::contract::{Effect, Operation};
use crate::service::{Cx, Service};
use acheron_approvals::SubjectFacts;
use acheron_base::{Clock, Error, Result, blocking};
use acheron_sandbox::{Plan, TerminalSize, signal_named};
use acheron_vfs::{Answer, Caller, ComputedFile, Listing, Node, pretty};

/// Finds the environment of an agent's programs. It is called at every start, because projects come and go.
pub type FindSurroundings = Arc<dyn Fn(Look) -> Result<Surroundings> + Send + Sync>;

/// Whether the projects are looked at, which may take time, or what is known of them is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// For a thread on which others wait.
    Known,
    /// For a program that is started now. Blocks.
    Again,
}

/// The terminals of one agent.
pub struct Terminal {
    agent: String,
    program: PathBuf,
    around: FindSurroundings,
    shells: Arc<Shells>,
    programs: Arc<RunningPrograms>,
    sessions: Arc<Listing>,
}

/// The parts that the terminals of all agents share.
pub struct TerminalParts {
    /// What knows how to be a sandbox.
    pub program: PathBuf,
    pub shells: Arc<Shells>,
    pub programs: Arc<RunningPrograms>,
}

impl Terminal {
    pub fn new(agent: &str, parts: TerminalParts, around: FindSurroundings, clock: &Clock) -> Self {
        let TerminalParts { program, shells, programs } = parts;
        let file = ForegroundFile { agent: agent.to_owned(), around: around.clone(), programs: programs.clone() };
        let sessions = Arc::new(Listing::timed(clock).unlisted(FOREGROUND, Node::file(file)));
        Terminal { agent: agent.to_owned(), program, around, shells, programs, sessions }
    }

    async fn plan(
        &self,
        argv: Vec<String>,
        cwd: Option<String>,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Plan, RunningProgram)> {
        let around = self.around.clone();
        let (around, running) = self.programs.begin(&self.agent, move || around(Look::Again)).await?;
        let mut plan = around.plan(argv);
        if let Some(cwd) = cwd {
            plan.cwd = PathBuf::from(cwd);
        }
        plan.env.extend(env);
        plan.check()?;
        Ok((plan, running))
    }

    async fn run(
        &self,
        cx: &Cx,
        (plan, running): (Plan, RunningProgram),
        stdin: String,
        deadline: Duration,
        keep: usize,
    ) -> Result<Executed> {
        let run = ProgramRun {
            program: &self.program,
            plan: &plan,
            stdin: stdin.into_bytes(),
            deadline,
            keep,
            clock: &cx.clock,
            running: Some(&running),
        };
        let ran = run.go(&LogStreams(cx), stopped(Some(&running), cx.cancelled())).await?;
        let ((stdout, stdout_b64), (stderr, stderr_b64)) = (text::shown(&ran.out.kept), text::shown(&ran.err.kept));
        Ok(Executed {
            exit_code: ran.ended.code,
            signal: ran
                .ended
                .signal
                .and_then(|number| nix::sys::signal::Signal::try_from(number).ok())
                .map(|s| s.to_string()),
            stdout,
            stderr,
            stdout_b64,
            stderr_b64,
            truncated: ran.out.truncated || ran.err.truncated,
            duration_ms: ran.duration_ms,
            session_id: None,
        })
    }

    async fn run_in(&self, cx: &Cx, id: &str, command: &str, deadline: Duration, keep: usize) -> Result<Executed> {
        let session = self.shells.find(&self.agent, Some(id))?;
        // The job's name is new each time, and what is typed should not depend on its form.
        let token: String = cx.job_id().chars().filter(char::is_ascii_alphanumeric).collect();
        let log = cx.job.log.clone();
        let answered = session
            .exec(command, &token, deadline, keep, &move |bytes: &[u8]| log.append(bytes), cx.cancelled())
            .await?;
        let (stdout, stdout_b64) = text::shown(&answered.output.kept);
        Ok(Executed {
            exit_code: Some(answered.exit_code),
            signal: None,
            stdout,
            stderr: String::new(),
            stdout_b64,
            stderr_b64: None,
            truncated: answered.output.truncated,
            duration_ms: answered.duration_ms,
            session_id: Some(session.id.clone()),
        })
    }

    async fn open(
        &self,
        cx: &Cx,
        id: Option<&str>,
        (plan, running): (Plan, RunningProgram),
        size: TerminalSize,
    ) -> Result<Arc<Session>> {
        let id = self.shells.name(&self.agent, id)?;
        let session = Session::start(&self.program, (plan, running), id.clone(), size, cx.clock.clone()).await?;
        self.shells.keep(&self.agent, session.clone(), self.sessions.clone());
        self.sessions.put(&id, files::directory(&session));
        Ok(session)
    }

    fn find(&self, id: Option<String>) -> Result<Arc<Session>> {
        self.shells.find(&self.agent, id.as_deref())
    }
}

/// Both streams go into the job's log.
struct LogStreams<'a>(&'a Cx);

impl StreamListener for LogStreams<'_> {
    fn out(&self, bytes: &[u8]) {
        self.0.job.log.append(bytes);
    }

    fn err(&self, bytes: &[u8]) {
        self.0.job.log.append(bytes);
    }
}

#[async_trait]
impl Service for Terminal {
    const NAME: &'static str = "terminal";
    const ABOUT: &'static str = "Runs programs in this agent's sandbox, one at a time or in a shell that stays.\n\n\
        Inside, `/agents/self`, `/projects/<id>/fs` and `/global` are the same as here; there is no network unless the \
        mountspec grants it, and nothing else of the host. An open session is also a directory: `echo ls > \
        sessions/<id>/input`, `tail -f sessions/<id>/output`. `sandbox.json` shows what a program here will find around \
        it; `acheron exec --agent ID -- CMD` puts any program there, with the plan in `sessions/foreground.ndjson`, which is \
        not listed. A program ends when a right that it was started with is taken away.";

    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        command::operations()
    }

    fn flags(&self) -> Vec<&'static str> {
        vec!["interactive", "sandboxed"]
    }

    fn facts(&self, operation: &Operation) -> SubjectFacts {
        // What it is given is run by a shell: an answer for longer holds for exactly that.
        let runs = matches!(operation.name.as_str(), "exec" | "create" | "write");
        let risk = if runs { vec!["runs a shell command in the sandbox".to_owned()] } else { Vec::new() };
        SubjectFacts { exact_only: operation.effect != Effect::Read, risk }
    }

    fn files(&self) -> Vec<(String, Node)> {
        let around = self.around.clone();
        // Not on the thread that all callers share: the plan asks the disk which paths are links.
        let sandbox = ComputedFile::fetched(move |caller| {
            let (around, caller) = (around.clone(), caller.clone());
            Answer::soon(blocking(move || Ok(pretty(&shown_plan::shown(&around(Look::Known)?, &caller)))))
        });
        vec![
            ("sandbox.json".to_owned(), Node::file(sandbox)),
            ("sessions".to_owned(), Node::Dir(self.sessions.clone())),
        ]
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        match command {
            Command::Exec { command, argv, session_id, cwd, env, stdin, .. } => {
                let own = cwd.is_some() || stdin.is_some() || !env.is_empty();
                where_to_run(command, argv, session_id, own).map(drop)
            }
            Command::Create { session_id, .. } => session_id.as_deref().map_or(Ok(()), shells::check_name),
            Command::Write { input, command, data_b64, .. } => typed(input, command, data_b64).map(drop),
            Command::Signal { name, .. } => signal_named(&name).map(drop),
            Command::Read { .. } | Command::Resize { .. } | Command::Close { .. } | Command::List {} => Ok(()),
        }
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        Ok(match command {
            Command::Exec { command, argv, session_id, cwd, env, stdin, timeout_ms, max_output_bytes } => {
                let deadline = Duration::from_millis(timeout_ms);
                let own = cwd.is_some() || stdin.is_some() || !env.is_empty();
                let done = match where_to_run(command, argv, session_id, own)? {
                    WhereToRun::Session { id, command } => {
                        self.run_in(cx, &id, &command, deadline, max_output_bytes).await?
                    }
                    WhereToRun::Alone { argv } => {
                        let plan = self.plan(argv, cwd, env).await?;
                        self.run(cx, plan, stdin.unwrap_or_default(), deadline, max_output_bytes).await?
                    }
                };
                Output::Executed(done)
            }
            Command::Create { session_id, shell, cwd, env, cols, rows } => {
                let (mut plan, running) = self.plan(shell_words(shell), cwd, env).await?;
                plan.env.entry("PS1".to_owned()).or_insert_with(|| "$ ".to_owned());
                let size = TerminalSize { cols, rows };
                let session = self.open(cx, session_id.as_deref(), (plan, running), size).await?;
                Output::Session(session.facts())
            }
            Command::Write { session_id, input, command, data_b64 } => {
                let bytes = typed(input, command, data_b64)?;
                let session = self.find(session_id)?;
                session.write(&bytes).await?;
                Output::Typed(Typed { session_id: session.id.clone(), written: bytes.len() })
            }
            Command::Read { session_id, offset, max_bytes, wait_ms } => {
                let session = self.find(session_id)?;
                let piece = session.read_on(offset, max_bytes, Duration::from_millis(wait_ms)).await;
                let (data, data_b64) = text::shown(&piece.bytes);
                Output::Heard(SessionOutput {
                    session_id: session.id.clone(),
                    data,
                    data_b64,
                    offset: piece.offset,
                    next_offset: piece.next,
                    first_offset: piece.first,
                    eof: piece.eof,
                })
            }
            Command::Resize { session_id, cols, rows } => {
                let session = self.find(session_id)?;
                session.resize(TerminalSize { cols, rows })?;
                Output::Session(session.facts())
            }
            Command::Signal { session_id, name } => {
                let signal = signal_named(&name)?;
                let session = self.find(session_id)?;
                session.signal(signal)?;
                Output::Session(session.facts())
            }
            Command::Close { session_id } => {
                let session = self.find(session_id)?;
                session.close().await;
                Output::Session(session.facts())
            }
            Command::List {} => Output::Listed(SessionList { sessions: self.shells.facts(&self.agent) }),
        })
    }
}

/// Where a program is run: in a session that is open, or by itself.
enum WhereToRun {
    Session { id: String, command: String },
    Alone { argv: Vec<String> },
}

/// `own` is whether the call has surroundings of its own (`cwd`, `env`, `stdin`).
fn where_to_run(
    command: Option<String>,
    argv: Option<Vec<String>>,
    session_id: Option<String>,
    own: bool,
) -> Result<WhereToRun> {
    match (command, argv, session_id) {
        (Some(_), None, Some(_)) if own => {
            Err(Error::invalid("cwd, env and stdin are the session's own; set them in the command"))
        }
        (Some(command), None, Some(id)) => Ok(WhereToRun::Session { id, command }),
        (_, _, Some(_)) => Err(Error::invalid("a session takes a `command`, not an `argv`")),
        (command, argv, None) => Ok(WhereToRun::Alone { argv: words(command, argv)? }),
    }
}

/// The bytes that are typed into a session.
fn typed(input: Option<String>, command: Option<String>, data_b64: Option<String>) -> Result<Vec<u8>> {
    match (input, command, data_b64) {
        (Some(input), None, None) => Ok(input.into_bytes()),
        (None, Some(command), None) => Ok(format!("{}\n", command.trim_end_matches('\n')).into_bytes()),
        (None, None, Some(data)) => text::decoded(&data),
        _ => Err(Error::invalid("exactly one of `input`, `command` and `data_b64` is needed")),
    }
}

/// The program and arguments for `command` or `argv`.
fn words(command: Option<String>, argv: Option<Vec<String>>) -> Result<Vec<String>> {
    match (command, argv) {
        (Some(command), None) => Ok(vec!["sh".to_owned(), "-c".to_owned(), command]),
        (None, Some(argv)) if !argv.is_empty() => Ok(argv),
        (None, Some(_)) => Err(Error::invalid("argv names no program")),
        _ => Err(Error::invalid("exactly one of `command` and `argv` is needed")),
    }
}

/// An interactive shell that reads no one's settings.
fn shell_words(shell: Option<String>) -> Vec<String> {
    let bash = std::path::Path::new("/bin/bash").exists();
    let words: Vec<&str> = match shell.as_deref() {
        None if bash => vec!["/bin/bash", "--norc", "--noprofile", "-i"],
        None => vec!["/bin/sh", "-i"],
        Some(shell) => return vec![shell.to_owned(), "-i".to_owned()],
    };
    words.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_in_one_way_only() {
        let said = |command: Option<&str>, argv: Option<&[&str]>| {
            let argv = argv.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
            words(command.map(str::to_owned), argv).map_or_else(|err| err.message, |words| words.join("|"))
        };
        assert_eq!(said(Some("ls | wc"), None), "sh|-c|ls | wc");
        assert_eq!(said(None, Some(&["ls", "-l"])), "ls|-l");
        assert_eq!(said(None, Some(&[])), "argv names no program");
        assert_eq!(said(None, None), "exactly one of `command` and `argv` is needed");
        assert_eq!(said(Some("a"), Some(&["b"])), "exactly one of `command` and `argv` is needed");
    }
}
