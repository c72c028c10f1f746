//! `acheron wait`: the first of several events, as a process that any shell or program can wait for.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{CommandResult, Failure, here, plain_text, root};
use acheron_base::Error;
use acheron_fuse::mounts_of;

/// The exit code when nothing happened in time, as that of timeout(1).
const TIMED_OUT: u8 = 124;

/// Wait for the first of several paths, and print it: a job's status.json ends, a source fires, any other path changes.
#[derive(Args)]
pub struct WaitArgs {
    /// Files of one mount
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Give up after so many seconds, with exit code 124
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Print the event as JSON
    #[arg(long)]
    json: bool,
}

impl WaitArgs {
    pub fn run(self) -> CommandResult {
        let timeout = self.timeout.map(milliseconds).transpose()?;
        let places = self.paths.iter().map(|path| place(path)).collect::<Result<Vec<_>, Failure>>()?;
        let mount = places[0].0.clone();
        if places.iter().any(|(other, _)| *other != mount) {
            return Err(Error::invalid("the paths are in several mounts; wait for those of one").into());
        }
        let wait: Vec<&str> = places.iter().map(|(_, path)| path.as_str()).collect();
        let event = first(&root::choose_living(Some(&mount))?, &wait, timeout)?;
        if event["timeout"] == true {
            return Ok(ExitCode::from(TIMED_OUT));
        }
        match (self.json, event["event_path"].as_str()) {
            (false, Some(path)) => say(&format!("{}{path}\n", mount.display()))?,
            _ => say(&format!("{event}\n"))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// An event that could not be printed is lost, so that is a failure.
fn say(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(plain_text::for_stdout(text).as_bytes())?;
    stdout.flush()
}

fn milliseconds(seconds: f64) -> Result<u64, Failure> {
    match seconds.is_finite() && (0.0..=1e9).contains(&seconds) {
        true => Ok((seconds * 1000.0) as u64),
        false => Err(Error::invalid("--timeout takes a number of seconds, such as 2.5").into()),
    }
}

/// The mount that `path` lies in, and the path in it. The file itself is not touched: opening it could wait.
fn place(path: &Path) -> Result<(PathBuf, String), Failure> {
    let absolute = here::absolute(path)?;
    let mounts = mounts_of("acheron")?;
    let parent = absolute.parent().and_then(|parent| parent.canonicalize().ok());
    let real = parent.zip(absolute.file_name()).map(|(parent, name)| parent.join(name));
    let found = [Some(absolute.clone()), real].into_iter().flatten().find_map(|path| {
        let mount = mounts.iter().rfind(|mount| path.starts_with(&mount.path))?;
        let inside = path.strip_prefix(&mount.path).ok()?.to_str()?;
        Some((mount.path.clone(), format!("/{inside}")))
    });
    found.ok_or_else(|| {
        Failure::hint(
            Error::not_found(format!("{} is in no mount", absolute.display())),
            "`acheron status` shows what is mounted",
        )
    })
}

/// Arms a private wait and reads its event.
fn first(root: &Path, paths: &[&str], timeout: Option<u64>) -> Result<Value, Failure> {
    let mut wait = json!({ "paths": paths });
    if let Some(timeout) = timeout {
        wait["timeout_ms"] = json!(timeout);
    }
    let control = root.join("agents/self/events/control/wait.json");
    let mut file = File::options().read(true).write(true).open(control)?;
    file.write_all(wait.to_string().as_bytes()).map_err(|error| refused(root, error))?;
    // One line: a further read would wait for the next event.
    let mut said = String::new();
    BufReader::new(file).read_line(&mut said)?;
    Ok(serde_json::from_str(said.trim()).map_err(|error| Error::internal(format!("not an event: {error}")))?)
}

/// The sentence of the refusal, which the write itself cannot carry.
fn refused(root: &Path, error: std::io::Error) -> Failure {
    let status = std::fs::read(root.join("agents/self/events/status.json"));
    let status: Value = status.ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    match status["error"]["message"].as_str() {
        Some(sentence) => Error::invalid(sentence).into(),
        None => error.into(),
    }
}
