//! `acheron rewind`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{CommandResult, Failure, plain_text, root};
use acheron_base::Error;

/// Bring an agent back to the end of an earlier turn: the files of its view, its conversation and its memory together.
///
/// Turns are numbered by `seq` in agents/<id>/chat/history.ndjson; the last 20 can be rewound. Programs in the view are ended
/// first. Until the next turn, `--undo` takes it back.
#[derive(Args)]
pub struct RewindArgs {
    /// Mount point [default: the only mount]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The agent
    #[arg(long, value_name = "ID")]
    agent: String,
    /// The last turn that is to count
    #[arg(long, value_name = "TURN", required_unless_present = "undo", conflicts_with = "undo")]
    to: Option<u64>,
    /// Take the last rewind back
    #[arg(long)]
    undo: bool,
    /// Only tell what would be brought back
    #[arg(long)]
    preview: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

impl RewindArgs {
    pub fn run(self) -> CommandResult {
        let chat = root::choose_living(self.root.as_deref())?.join("agents").join(&self.agent).join("chat");
        let mut command = json!({"preview": self.preview, "undo": self.undo});
        if let Some(to) = self.to {
            command["to"] = to.into();
        }
        let answer = ask(&chat, &command)?;
        if let Some(sentence) = answer["error"]["message"].as_str() {
            return Err(Error::failed(sentence).into());
        }
        let result = &answer["result"];
        let text = if self.json { format!("{result}\n") } else { told(result) };
        std::io::stdout().write_all(plain_text::for_stdout(&text).as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn ask(chat: &Path, command: &Value) -> Result<Value, Failure> {
    let control = chat.join("control/rewind.json");
    let told = |err: std::io::Error| Failure::from(Error::from(err).about(control.display()));
    let mut file = File::options().read(true).write(true).open(&control).map_err(told)?;
    if let Err(error) = file.write_all(command.to_string().as_bytes()) {
        let status = std::fs::read(chat.join("status.json")).unwrap_or_default();
        let status: Value = serde_json::from_slice(&status).unwrap_or_default();
        return match status["error"]["message"].as_str() {
            Some(sentence) => Err(Error::invalid(sentence).into()),
            None => Err(told(error)),
        };
    }
    let mut said = String::new();
    file.read_to_string(&mut said).map_err(told)?;
    Ok(serde_json::from_str(said.trim()).map_err(|error| Error::internal(format!("not an answer: {error}")))?)
}

/// The answer for a person.
fn told(result: &Value) -> String {
    let list = |key: &str| result[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if result["preview"] == true {
        let mut lines = Vec::new();
        lines.extend(
            list("turns").iter().map(|turn| format!("turn {} would not count: {}", turn["turn"], text(&turn["input"]))),
        );
        lines.extend(list("files").iter().map(|path| format!("file {}", text(path))));
        lines.extend(list("memory").iter().map(|name| format!("memory {}", text(name))));
        lines.extend(result["files_fault"].as_str().map(|why| format!("files would not be brought back: {why}")));
        if lines.is_empty() {
            lines.push("nothing would change".to_owned());
        }
        return lines.join("\n") + "\n";
    }
    let what = match result["undone"] == true {
        true => "the rewind is taken back".to_owned(),
        false => format!("turn {} is the last that counts", result["to"]),
    };
    let mut lines = vec![format!("{what}; files: {}", text(&result["files"]))];
    lines.extend(
        list("memory_kept").iter().map(|one| format!("memory {} stays: {}", text(&one["memory"]), text(&one["why"]))),
    );
    lines.join("\n") + "\n"
}
