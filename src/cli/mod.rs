//! The command line: one file per command. Uses every other module; nothing else knows clap.

#[cfg(feature = "door-acp")]
mod acp;
mod agents;
mod approve;
mod audit;
mod backup;
mod candidates;
mod chat;
mod check;
mod completions;
mod daemon;
mod deadline;
mod doctor;
mod exec;
#[cfg(feature = "fabric")]
mod fabric;
mod here;
mod host_connection;
mod host_view;
mod jobs;
mod log;
mod log_rotation;
mod man;
pub mod manual;
#[cfg(feature = "door-mcp")]
mod mcp;
mod mount;
mod mount_report;
#[cfg(feature = "door-web")]
mod open;
mod place;
mod plain_text;
mod restore;
mod rewind;
mod root;
mod run;
#[cfg(feature = "door-http")]
mod serve;
mod since;
mod status;
#[cfg(any(feature = "door-mcp", feature = "door-acp"))]
mod stdio_door;
mod table;
mod token;
mod tool;
mod top;
mod unmount;
mod view;
mod wait;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use acheron_base::{Code, Error};

/// An agent host that you can `ls`: mounts a namespace in which chat, jobs, events, memory and terminals are files.
#[derive(Parser)]
#[command(name = "acheron", version = version(), max_term_width = 100, after_help = after())]
pub struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

/// The version, the commit that the program was built from (`ACHERON_COMMIT`, which `scripts/package` sets), and the schema.
fn version() -> &'static str {
    static VERSION: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let commit = option_env!("ACHERON_COMMIT").unwrap_or("unknown");
        format!("{} (commit {commit}, schema {})", env!("CARGO_PKG_VERSION"), crate::state::SCHEMA)
    });
    &VERSION
}

const BEGIN: &str = "  mkdir ~/ns && acheron mount ~/ns --daemon
  cat ~/ns/README.md
  acheron unmount ~/ns";

/// The environment variables, for the help and for acheron(1).
const ENVIRONMENT: [(&str, &str); 6] = [
    ("ACHERON_LOG", "The log level: error, warn, info or debug."),
    ("NO_COLOR", "If it is set and not empty, nothing is coloured."),
    ("XDG_STATE_HOME", "The state directory is acheron below it, or ~/.local/state/acheron."),
    ("OPENAI_API_KEY, OPENAI_BASE_URL", "The key and the address for models of the kind openai."),
    ("ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL", "The same for models of the kind anthropic."),
    ("OPENROUTER_API_KEY, OLLAMA_API_KEY, VLLM_API_KEY, LLAMA_API_KEY", "The keys for the kinds of these names."),
];

/// Prints a part of a list. A reader that has gone away, such as `head`, has seen enough.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(plain_text::for_stdout(text).as_bytes());
}

fn after() -> String {
    let listed = ENVIRONMENT.iter().map(|(name, says)| format!("  {name}: {says}\n"));
    format!("To begin:\n{BEGIN}\n\nEnvironment:\n{}", listed.collect::<String>())
}

#[derive(Subcommand)]
enum CliCommand {
    Mount(mount::MountArgs),
    Unmount(unmount::UnmountArgs),
    Status(status::StatusArgs),
    Tool(tool::ToolArgs),
    Chat(chat::ChatArgs),
    Approve(approve::ApproveArgs),
    Audit(audit::AuditArgs),
    Log(log::LogArgs),
    Agents(agents::AgentsArgs),
    Jobs(jobs::JobsArgs),
    Top(top::TopArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Rewind(rewind::RewindArgs),
    Check(check::CheckArgs),
    Doctor(doctor::DoctorArgs),
    Exec(exec::ExecArgs),
    Run(Box<run::RunArgs>),
    #[cfg(feature = "door-http")]
    Serve(serve::ServeArgs),
    Token(token::TokenArgs),
    #[cfg(feature = "door-mcp")]
    Mcp(mcp::McpArgs),
    #[cfg(feature = "door-acp")]
    Acp(acp::AcpArgs),
    View(view::ViewArgs),
    #[cfg(feature = "door-web")]
    Open(open::OpenArgs),
    Wait(wait::WaitArgs),
    #[cfg(feature = "fabric")]
    Fabric(fabric::FabricArgs),
    Man(man::ManArgs),
    Completions(completions::CompletionsArgs),
}

/// An error and a hint how to fix it.
pub struct Failure {
    error: Error,
    hint: Option<String>,
    exit: u8,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { error, hint: None, exit: 1 }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Error::from(error).into()
    }
}

impl Failure {
    pub fn hint(error: Error, hint: impl Into<String>) -> Self {
        Failure { error, hint: Some(hint.into()), exit: 1 }
    }

    /// What went wrong, for a person at the terminal.
    pub fn sentence(&self) -> String {
        self.error.to_string()
    }

    /// Whether the same may succeed in a moment.
    pub fn is_passing(&self) -> bool {
        matches!(self.error.code, Code::Busy | Code::AlreadyExists)
    }

    /// The same failure with another exit code than 1.
    pub fn exit(self, exit: u8) -> Self {
        Failure { exit, ..self }
    }
}

type CommandResult = Result<ExitCode, Failure>;

/// Runs the program. Exit codes: 0 for success, 1 for a failure, 2 for a usage error; `exec` has more.
pub fn run() -> ExitCode {
    candidates::answer();
    let cli = Cli::parse();
    let outcome = match cli.command {
        CliCommand::Mount(it) => it.run(),
        CliCommand::Unmount(it) => it.run(),
        CliCommand::Status(it) => it.run(),
        CliCommand::Tool(it) => it.run(),
        CliCommand::Chat(it) => it.run(),
        CliCommand::Approve(it) => it.run(),
        CliCommand::Audit(it) => it.run(),
        CliCommand::Log(it) => it.run(),
        CliCommand::Agents(it) => it.run(),
        CliCommand::Jobs(it) => it.run(),
        CliCommand::Top(it) => it.run(),
        CliCommand::Backup(it) => it.run(),
        CliCommand::Restore(it) => it.run(),
        CliCommand::Rewind(it) => it.run(),
        CliCommand::Check(it) => it.run(),
        CliCommand::Doctor(it) => it.run(),
        CliCommand::Exec(it) => it.run(),
        CliCommand::Run(it) => it.run(),
        #[cfg(feature = "door-http")]
        CliCommand::Serve(it) => it.run(),
        CliCommand::Token(it) => it.run(),
        #[cfg(feature = "door-mcp")]
        CliCommand::Mcp(it) => it.run(),
        #[cfg(feature = "door-acp")]
        CliCommand::Acp(it) => it.run(),
        CliCommand::View(it) => it.run(),
        #[cfg(feature = "door-web")]
        CliCommand::Open(it) => it.run(),
        CliCommand::Wait(it) => it.run(),
        #[cfg(feature = "fabric")]
        CliCommand::Fabric(it) => it.run(),
        CliCommand::Man(it) => it.run(),
        CliCommand::Completions(it) => it.run(),
    };
    outcome.unwrap_or_else(|failure| {
        complain(&failure);
        ExitCode::from(failure.exit)
    })
}

fn complain(failure: &Failure) {
    let (red, bold, plain) = if coloured() { ("\x1b[31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    let mut stderr = std::io::stderr().lock();
    _ = writeln!(stderr, "{red}error:{plain} {}", plain_text::for_stderr(&failure.error.to_string()));
    if let Some(hint) = &failure.hint {
        _ = writeln!(stderr, "{bold}hint:{plain} {}", plain_text::for_stderr(hint));
    }
}

/// Whether standard error should be coloured; an empty NO_COLOR counts as absent.
fn coloured() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A path quoted for a shell.
fn pasted(path: &Path) -> String {
    let text = path.display().to_string();
    match text.chars().all(|c| c.is_alphanumeric() || "/._-+,:@%".contains(c)) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Standard error, which may be a file on a full disk. A line that cannot be written there is lost: the logger would
/// report the failure with `eprintln!`, which panics for the same reason and takes the task down that logs.
struct LogWriter;

impl std::io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let entry = plain_text::log_entry(&String::from_utf8_lossy(bytes), coloured());
        _ = std::io::stderr().write_all(entry.as_bytes());
        log_rotation::wrote(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The program as a person can type it: as it was called, if that was a path, because it need not be on the PATH then.
fn called() -> String {
    let word = std::env::args_os().next().map(std::path::PathBuf::from).filter(|word| word.components().count() > 1);
    word.map_or_else(|| "acheron".to_owned(), |word| pasted(&word))
}

/// Logs go to standard error.
fn log(default: &str) {
    // What agents do in a project must not fill the log with the remarks of the library that watches it.
    let filter = std::env::var("ACHERON_LOG").unwrap_or_else(|_| format!("{default},notify=error"));
    let filter = tracing_subscriber::EnvFilter::try_new(filter).unwrap_or_default();
    let logger = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(coloured()).with_writer(|| LogWriter);
    _ = logger.try_init(); // a logger that is already set is kept
}
