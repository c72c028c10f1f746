//! `acheron chat`: a conversation at the terminal, through the files of the chat.

mod follow;
mod inline;

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustyline::error::ReadlineError;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::follow::{Dim, TurnFollower};
use self::inline::InlineRequests;
use super::host_view::HostView;
use super::plain_text::for_stdout as shown;
use super::{CommandResult, root, say};
use acheron_base::{Error, Result};

/// Chat with an agent; /help lists the commands, Ctrl-C cancels the turn, Ctrl-D exits. What the agent must ask first is asked here.
#[derive(Args)]
pub struct ChatArgs {
    /// Mount point [default: the only mount]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Agent to talk to
    #[arg(long, value_name = "ID", default_value = "self")]
    agent: String,
    /// Send one message, print only the reply and exit; the exit code is 1 if the turn fails
    #[arg(short, long = "message", value_name = "TEXT")]
    message: Option<String>,
}

const HELP: &str = "\
/help      this page
/jobs      the last jobs of the agent
/cancel    cancel every turn that is queued or running
/quit      leave (Ctrl-D does too)
Anything else is said to the agent. Ctrl-C while it works cancels the turn.";

/// The interval at which the log of a running turn is read.
const LOOK: Duration = Duration::from_millis(80);

impl ChatArgs {
    pub fn run(self) -> CommandResult {
        let home = root::choose_living(self.root.as_deref())?.join("agents").join(&self.agent);
        if self.agent.contains('/') || !home.join("chat").is_dir() {
            return Err(Error::not_found(format!("there is no agent `{}`", self.agent)).into());
        }
        let talk = Conversation { home, dim: Dim::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let code = match &self.message {
            Some(text) => runtime.block_on(talk.once(text)),
            None => runtime.block_on(talk.converse()),
        };
        runtime.shutdown_background(); // a read that still waits must not keep the program
        Ok(code?)
    }
}

struct Conversation {
    home: PathBuf,
    dim: Dim,
}

impl Conversation {
    async fn once(&self, text: &str) -> Result<ExitCode> {
        if text.trim().is_empty() {
            return Err(Error::invalid("the message is empty"));
        }
        let mut interrupts = signal(SignalKind::interrupt())?;
        match self.say(text, &mut interrupts).await? {
            Ok(reply) => {
                // A reader that closes the pipe early is not an error.
                _ = writeln!(std::io::stdout(), "{}", shown(reply.trim_end_matches('\n')));
                Ok(ExitCode::SUCCESS)
            }
            Err(why) => Err(Error::failed(why)),
        }
    }

    /// Talks until the end of the input. With input from a pipe, a message that failed is an error of the command.
    async fn converse(&self) -> Result<ExitCode> {
        let mut failed = false;
        let mut editor = rustyline::DefaultEditor::new().map_err(|error| Error::unavailable(error.to_string()))?;
        let remembered = super::mount::default_state().ok().map(|state| state.join("chat_history"));
        if let Some(file) = &remembered {
            _ = editor.load_history(file); // the first time there is none
        }
        // From the start: an interrupt must not end the program while a turn is running.
        let mut interrupts = signal(SignalKind::interrupt())?;
        if std::io::stdin().is_terminal() {
            say(&opening(&self.home));
        }
        loop {
            let line = match editor.readline("> ") {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => {
                    say("(Ctrl-D exits)\n");
                    continue;
                }
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(Error::failed(error.to_string())),
            };
            _ = editor.add_history_entry(&line);
            match line.trim() {
                "" => (),
                "/quit" | "/exit" => break,
                "/help" => say(&format!("{HELP}\n")),
                "/jobs" => say(&jobs(&self.home, 10)?),
                "/cancel" => say(&format!("{} cancelled\n", cancel_all(&self.home)?)),
                word if word.starts_with('/') => say(&format!("unknown command {word}; /help lists the commands\n")),
                _ => match self.say(&line, &mut interrupts).await {
                    Ok(Ok(reply)) => say(&format!("{}\n\n", reply.trim_end_matches('\n'))),
                    Ok(Err(why)) => {
                        say(&format!("! {why}\n\n"));
                        failed = true;
                    }
                    Err(error) => {
                        say(&format!("! {error}\n\n"));
                        failed = true;
                    }
                },
            }
        }
        if let Some(file) = &remembered {
            _ = file.parent().map(std::fs::create_dir_all);
            _ = editor.save_history(file); // a conversation is not lost with the list of what was typed
        }
        Ok(match failed && !std::io::stdin().is_terminal() {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }

    /// Sends a message and waits for the end of the turn; shows what the agent does meanwhile.
    async fn say(&self, text: &str, interrupts: &mut Signal) -> Result<Result<String, String>> {
        let input = self.home.join("chat/control/input");
        let before = std::fs::metadata(self.home.join("thoughts/history.ndjson")).map_or(0, |meta| meta.len());
        let mut handle = std::fs::OpenOptions::new().read(true).write(true).open(&input).map_err(said(&input))?;
        handle.write_all(text.as_bytes()).map_err(said(&input))?;
        // This sends the message as a close does, and reports a refusal; the descriptor stays open for the reply.
        handle.sync_all().map_err(said(&input))?;
        let job = find(&self.home, text);
        let mut reply = tokio::task::spawn_blocking(move || {
            let mut reply = String::new();
            handle.read_to_string(&mut reply).map(|_| reply)
        });
        let asks = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let mut requests = InlineRequests::new(&self.home, asks);
        let mut follow = job.as_deref().map(|job| TurnFollower::new(&self.dim, &self.home, job, before as usize));
        let reply = loop {
            tokio::select! {
                reply = &mut reply => break reply.map_err(|error| Error::internal(error.to_string()))?.map_err(said(&input))?,
                _ = interrupts.recv() => match &job {
                    Some(job) => cancel(&self.home, job)?,
                    None => _ = cancel_all(&self.home)?,
                },
                () = tokio::time::sleep(LOOK) => (),
            }
            if let Some(follow) = &mut follow {
                follow.look();
            }
            requests.look();
        };
        if let Some(follow) = &mut follow {
            follow.look(); // what happened since the last look
        }
        let Some(job) = job else { return Ok(Ok(reply)) };
        let status = std::fs::read(self.home.join("jobs").join(&job).join("status.json")).unwrap_or_default();
        let status: Value = serde_json::from_slice(&status).unwrap_or_default();
        Ok(match status["state"].as_str() {
            Some("done") | None => Ok(reply),
            Some(_) => Err(reply.trim_end().to_owned()),
        })
    }
}

/// Who answers, with which model.
fn opening(home: &Path) -> String {
    let agent = std::fs::read_link(home).unwrap_or_else(|_| home.to_owned());
    let agent = agent.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let health = home.parent().and_then(Path::parent).and_then(root::health).unwrap_or_default();
    let host = health["state"].as_str().and_then(|state| HostView::open(Path::new(state)));
    let known = host.and_then(|mut host| host.look().ok()).map(|host| host.agents).unwrap_or_default();
    let model = known.iter().find(|known| known.agent_id == agent).map(|known| known.model.as_str());
    let model = model.map_or_else(String::new, |model| format!(" ({model})"));
    format!("You talk to {agent}{model}. /help lists the commands.\n")
}

fn said(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::from(error).about(&path)
}

/// The ids of the agent's jobs, newest first.
fn ids(home: &Path) -> Result<Vec<String>> {
    let names = std::fs::read_dir(home.join("jobs"))?.flatten().map(|entry| entry.file_name());
    let mut ids: Vec<String> =
        names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with("job-")).collect();
    ids.sort();
    ids.reverse();
    Ok(ids)
}

fn read_json(file: PathBuf) -> Value {
    std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The turn that this message started. It may have called services since, which are jobs too.
fn find(home: &Path, text: &str) -> Option<String> {
    let wanted = text.trim_end_matches(['\n', '\r']);
    ids(home).ok()?.into_iter().take(64).find(|id| {
        let request = read_json(home.join("jobs").join(id).join("request.json"));
        request["service"] == "chat" && request["arguments"]["input"] == wanted
    })
}

fn cancel(home: &Path, job: &str) -> Result<()> {
    let file = home.join("jobs").join(job).join("control/cancel");
    std::fs::write(&file, "cancel\n").map_err(said(&file))
}

fn cancel_all(home: &Path) -> Result<usize> {
    let mut count = 0;
    for id in ids(home)?.into_iter().take(256) {
        let progress = read_json(home.join("jobs").join(&id).join("progress.json"));
        let alive = matches!(progress["state"].as_str(), Some("queued" | "running"));
        if alive && progress["service"] == "chat" {
            cancel(home, &id)?;
            count += 1;
        }
    }
    Ok(count)
}

fn jobs(home: &Path, most: usize) -> Result<String> {
    let mut page = String::new();
    for id in ids(home)?.into_iter().take(most) {
        let job = read_json(home.join("jobs").join(&id).join("progress.json"));
        let word = |key: &str| job[key].as_str().unwrap_or_default().to_owned();
        page.push_str(&format!("{id}  {:<11} {}.{}\n", word("state"), word("service"), word("operation")));
    }
    Ok(page)
}
