//! `acheron approve`: what agents ask for, at the terminal. It uses the files of `approvals/` and nothing else.

mod prompt;
mod render;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{CommandResult, Failure, root, say};
use acheron_base::Error;

pub use prompt::{ApprovalQuestion, PromptAnswer};

/// The interval at which a question looks for an answer, here or elsewhere.
const LOOK: Duration = Duration::from_millis(80);

/// Answer the requests of agents that rules with `ask` make wait. At a terminal, asks one after another until Ctrl-C.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ApproveArgs {
    #[command(subcommand)]
    command: Option<ApproveCommand>,
    /// List the requests that wait, and do not ask
    #[arg(long)]
    list: bool,
    /// Print JSON: one array of requests
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: RootArgs,
}

#[derive(Args)]
struct RootArgs {
    /// Mount point [default: the only mount]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

#[derive(Subcommand)]
enum ApproveCommand {
    /// Show a request completely
    Show {
        /// The request, or any part of its name that is enough
        id: String,
        /// Print the JSON of request.json
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: RootArgs,
    },
    /// Allow a request: once, unless --for or --always says otherwise
    Allow {
        /// The request, or any part of its name that is enough
        id: String,
        /// Do not ask about the like for so long: 90s, 10m, 2h, 1d
        #[arg(long = "for", value_name = "TIME", conflicts_with = "always")]
        time: Option<String>,
        /// Do not ask about the like again; agents/<id>/permissions/always.json revokes it
        #[arg(long)]
        always: bool,
        #[command(flatten)]
        place: RootArgs,
    },
    /// Deny a request
    Deny {
        /// The request, or any part of its name that is enough
        id: String,
        /// What the agent is told
        reason: Vec<String>,
        #[command(flatten)]
        place: RootArgs,
    },
}

impl ApproveArgs {
    pub fn run(self) -> CommandResult {
        match self.command {
            None => {
                let dir = directory(&self.place)?;
                let asks =
                    !self.list && !self.json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
                if asks { interactive(&dir) } else { list(&dir, self.json) }
            }
            Some(ApproveCommand::Show { id, json, place }) => {
                let dir = directory(&place)?;
                let request = read(&dir, &find(&dir, &id)?)?;
                say(&if json { format!("{request:#}\n") } else { render::page(&request) });
                Ok(ExitCode::SUCCESS)
            }
            Some(ApproveCommand::Allow { id, time, always, place }) => {
                let answer = match (time, always) {
                    (Some(time), _) => format!("allow for {time}"),
                    (None, true) => "allow always".to_owned(),
                    (None, false) => "allow".to_owned(),
                };
                answered(&directory(&place)?, &id, &answer)
            }
            Some(ApproveCommand::Deny { id, reason, place }) => {
                let reason = reason.join(" ");
                let answer = if reason.is_empty() { "deny".to_owned() } else { format!("deny: {reason}") };
                answered(&directory(&place)?, &id, &answer)
            }
        }
    }
}

fn directory(place: &RootArgs) -> Result<PathBuf, Failure> {
    Ok(root::choose_living(place.root.as_deref())?.join("approvals"))
}

/// The requests that wait, oldest first.
pub fn waiting(dir: &Path) -> Result<Vec<Value>, Failure> {
    let status: Value = json_of(&dir.join("status.json"))?;
    Ok(status["requests"].as_array().cloned().unwrap_or_default())
}

fn json_of(file: &Path) -> Result<Value, Failure> {
    let text = std::fs::read(file).map_err(|error| Error::from(error).about(file.display().to_string()))?;
    Ok(serde_json::from_slice(&text).map_err(|error| Error::internal(format!("{}: {error}", file.display())))?)
}

/// The request whose name contains `part`.
fn find(dir: &Path, part: &str) -> Result<String, Failure> {
    let mut names: Vec<String> = std::fs::read_dir(dir)?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("apr-") && name.contains(part))
        .collect();
    match names.len() {
        1 => Ok(names.remove(0)),
        0 => Err(Failure::hint(Error::not_found(format!("there is no request `{part}`")), "`acheron approve --list`")),
        count => Err(Error::invalid(format!("`{part}` stands for {count} requests; give more of the name")).into()),
    }
}

pub fn read(dir: &Path, id: &str) -> Result<Value, Failure> {
    json_of(&dir.join(id).join("request.json"))
}

fn list(dir: &Path, as_json: bool) -> CommandResult {
    let mut requests = Vec::new();
    for request in waiting(dir)? {
        // One that was decided meanwhile is not waiting any more.
        if let Ok(request) = read(dir, request["id"].as_str().unwrap_or_default())
            && request["state"] == "waiting"
        {
            requests.push(request);
        }
    }
    match as_json {
        true => say(&format!("{:#}\n", Value::Array(requests))),
        false if requests.is_empty() => say("nothing waits for a decision\n"),
        false => requests.iter().for_each(|request| say(&render::line(request))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes an answer to exactly what `request` shows. A refusal is the host's own sentence.
pub fn decide(dir: &Path, request: &Value, answer: &str) -> Result<(), Failure> {
    let id = request["id"].as_str().unwrap_or_default();
    let bound = json!({ "decision": answer, "sha256": request["subject_sha256"] });
    let Err(error) = std::fs::write(dir.join(id).join("decision"), bound.to_string()) else { return Ok(()) };
    let status = json_of(&dir.join("status.json")).unwrap_or_default();
    let told = serde_json::from_value::<Error>(status["error"].clone());
    Err(told.ok().filter(|told| Some(told.errno()) == error.raw_os_error()).unwrap_or_else(|| error.into()).into())
}

fn answered(dir: &Path, id: &str, answer: &str) -> CommandResult {
    let request = read(dir, &find(dir, id)?)?;
    decide(dir, &request, answer)?;
    let status = json_of(&dir.join(request["id"].as_str().unwrap_or_default()).join("status.json"))?;
    say(&render::outcome(&status));
    Ok(ExitCode::SUCCESS)
}

/// Asks about each request in turn, for ever.
fn interactive(dir: &Path) -> CommandResult {
    let mut skipped: Vec<String> = Vec::new();
    let mut told = false;
    loop {
        let mut next = waiting(dir)?.into_iter().filter_map(|request| request["id"].as_str().map(str::to_owned));
        let Some(id) = next.find(|id| !skipped.contains(id)) else {
            if !std::mem::replace(&mut told, true) {
                say("nothing waits for a decision; Ctrl-C ends\n");
            }
            std::thread::sleep(LOOK * 4);
            continue;
        };
        told = false;
        let request = read(dir, &id)?;
        if request["state"] != "waiting" {
            continue;
        }
        let mut question = ApprovalQuestion::begin(dir, request);
        let asked = loop {
            if let Some(asked) = question.look(LOOK) {
                break asked;
            }
        };
        match asked {
            PromptAnswer::Skipped => skipped.push(id),
            PromptAnswer::End => return Ok(ExitCode::SUCCESS),
            PromptAnswer::Decided => (),
        }
    }
}
