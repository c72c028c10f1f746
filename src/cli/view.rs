//! `acheron view`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::host_connection::HostArgs;
use super::{CommandResult, Failure, plain_text};
use crate::host::view_commands::{ListedView, ViewAnswer, ViewRequest};
use acheron_base::Error;

/// Read, promote or discard what was changed in a view.
///
/// A view is a working copy of a directory: of an agent whose entry in the mountspec says "view": "own", or of a program that was
/// started with `acheron run --view`. Nothing of it reaches the directory before it is promoted. What other programs run by
/// themselves (hooks, settings of editors, new executables, links out of the project) is promoted only if it is named.
#[derive(Args)]
pub struct ViewArgs {
    #[command(subcommand)]
    command: ViewCommand,
}

#[derive(Subcommand)]
enum ViewCommand {
    /// List the views
    List {
        #[command(flatten)]
        host: HostArgs,
        /// Print one JSON object per view
        #[arg(long)]
        json: bool,
    },
    /// Print the changes as a patch
    Diff(NamedView),
    /// Print the changes as JSON
    Changes(NamedView),
    /// Carry changes back: all that are not held back, or those named
    Promote(NamedPaths),
    /// Undo the last promote
    Undo(NamedView),
    /// Throw the view away, or only the changes named
    Discard(NamedPaths),
}

#[derive(Args)]
struct NamedView {
    #[command(flatten)]
    host: HostArgs,
    /// The view
    name: String,
}

#[derive(Args)]
struct NamedPaths {
    #[command(flatten)]
    view: NamedView,
    /// Changes, as `acheron view changes` writes them
    paths: Vec<String>,
}

impl ViewArgs {
    pub fn run(self) -> CommandResult {
        match self.command {
            ViewCommand::List { host, json } => list(&host, json),
            ViewCommand::Diff(view) => view.print("diff.patch"),
            ViewCommand::Changes(view) => view.print("changes.json"),
            ViewCommand::Promote(paths) => paths.call("promote"),
            ViewCommand::Undo(view) => view.call("undo", json!({})),
            ViewCommand::Discard(paths) => paths.call("discard"),
        }
    }
}

fn list(host: &HostArgs, json: bool) -> CommandResult {
    let (_, answer) = host.ask("view", &ViewRequest::List)?;
    let ViewAnswer::Views(views) = answer else { return Err(other()) };
    let mut out = std::io::stdout().lock();
    for view in views {
        let line = match json {
            true => serde_json::to_string(&view).map_err(|err| Error::internal(err.to_string()))?,
            false => plain_text::for_stdout(&shown(&view)),
        };
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(view: &ListedView) -> String {
    let what = match (&view.error, view.held) {
        (Some(error), _) => error.clone(),
        (None, 0) => format!("{} changes", view.changes),
        (None, held) => format!("{} changes, {held} held back", view.changes),
    };
    format!("{}\t{}\t{what}", view.name, view.base.display())
}

impl NamedView {
    fn here() -> Result<PathBuf, Failure> {
        Ok(std::env::current_dir()?.canonicalize()?)
    }

    fn print(&self, file: &str) -> CommandResult {
        let request = ViewRequest::Read { view: self.name.clone(), here: Self::here()?, file: file.to_owned() };
        let (_, answer) = self.host.ask("view", &request)?;
        let ViewAnswer::Text(text) = answer else { return Err(other()) };
        let bytes = BASE64_STANDARD.decode(text).map_err(|err| Error::internal(err.to_string()))?;
        let mut out = std::io::stdout().lock();
        // At a terminal nothing of it is a command to the terminal; elsewhere every byte counts.
        match out.is_terminal() {
            true => out.write_all(plain_text::for_stdout(&String::from_utf8_lossy(&bytes)).as_bytes())?,
            false => out.write_all(&bytes)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn call(&self, op: &str, arguments: Value) -> CommandResult {
        let (view, here, op) = (self.name.clone(), Self::here()?, op.to_owned());
        let (_, answer) = self.host.ask("view", &ViewRequest::Call { view, here, op, arguments })?;
        let ViewAnswer::Done(done) = answer else { return Err(other()) };
        if let Some(error) = done.get("error").filter(|error| !error.is_null()) {
            let error: Error = serde_json::from_value(error.clone()).map_err(|err| Error::internal(err.to_string()))?;
            return Err(error.into());
        }
        let mut out = std::io::stdout().lock();
        for line in told(&done["result"], &self.name) {
            writeln!(out, "{}", plain_text::for_stdout(&line))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl NamedPaths {
    fn call(&self, op: &str) -> CommandResult {
        let arguments = match self.paths.is_empty() {
            true => json!({}),
            false => json!({"paths": self.paths}),
        };
        self.view.call(op, arguments)
    }
}

/// What a call did, for a person.
fn told(result: &Value, view: &str) -> Vec<String> {
    let list = |key: &str| result[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines: Vec<String> =
        list("promoted").iter().map(|one| format!("{} {}", text(&one["what"]), text(&one["path"]))).collect();
    lines.extend(list("undone").iter().map(|path| format!("undone {}", text(path))));
    match &result["discarded"] {
        Value::Array(paths) => lines.extend(paths.iter().map(|path| format!("discarded {}", text(path)))),
        Value::String(_) => lines.push(format!("discarded the view {view}")),
        _ => (),
    }
    lines.extend(list("held").iter().map(|one| format!("held back {}: {}", text(&one["path"]), text(&one["why"]))));
    lines.extend(list("not_made").iter().map(|one| format!("not made {}: {}", text(&one["path"]), text(&one["why"]))));
    lines.extend(result["note"].as_str().map(str::to_owned));
    if !list("promoted").is_empty() {
        lines.push(format!("to undo it: acheron view undo {view}"));
    }
    lines
}

fn other() -> Failure {
    Error::internal("the host answered something else").into()
}
