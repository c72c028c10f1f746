//! `acheron backup`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use super::{CommandResult, Failure, mount, pasted, plain_text, root, say};
use crate::state::backup::{BackupChoice, BackupPlan, BackupReport, backup};
use acheron_base::Error;
use acheron_fuse::mounts_of;

/// How many files that are left out are named.
const SHOWN: usize = 10;
/// The time between two lines of progress.
const OFTEN: Duration = Duration::from_millis(200);

/// Copy the whole state into one tar file, whether or not a daemon is using it; `acheron restore` unpacks it.
#[derive(Args)]
pub struct BackupArgs {
    /// File to write, such as acheron.tar; it must not exist yet
    file: PathBuf,
    /// Mount point whose state to copy [default: the only mount]
    #[arg(long, value_name = "DIR", conflicts_with = "state")]
    root: Option<PathBuf>,
    /// State directory [default: that of the only mount, else $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Copy this mountspec, too, as mountspec.json
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Leave out keys (audit.key, history.key) and the log-ins of programs in homes
    #[arg(long)]
    no_keys: bool,
    /// Copy the caches in the homes of agents, too
    #[arg(long)]
    caches: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl BackupArgs {
    pub fn run(self) -> CommandResult {
        let state = state_of(self.state, self.root)?;
        let mut line = ProgressLine::new();
        let choice = BackupChoice { keys: !self.no_keys, caches: self.caches };
        let progress = &mut |report: &BackupReport| line.show(report);
        let done = backup(&state, &self.file, BackupPlan { choice, mountspec: self.spec.as_deref(), progress });
        line.clear();
        let report = done?;
        let BackupReport { files, bytes, left_out, keys, caches } = &report;
        if self.json {
            let left_out: Vec<_> =
                left_out.iter().map(|out| json!({"path": out.path.to_string_lossy(), "why": out.why})).collect();
            let said = json!({
                "file": self.file, "state": state, "files": files, "bytes": bytes, "left_out": left_out,
                "keys_left_out": keys, "caches_left_out": caches,
            });
            say(&format!("{said}\n"));
            return Ok(ExitCode::SUCCESS);
        }
        for out in left_out.iter().take(SHOWN) {
            let line = format!("note: {} is left out: {}", out.path.display(), out.why);
            eprintln!("{}", plain_text::for_stderr(&line));
        }
        if left_out.len() > SHOWN {
            eprintln!("note: {} more are left out", left_out.len() - SHOWN);
        }
        if *keys > 0 {
            eprintln!("note: keys are left out: {keys}; what they seal cannot be read after a restore");
        }
        if *caches > 0 {
            eprintln!("note: caches in homes are left out: {caches}; --caches copies them");
        }
        say(&format!("{} is a backup of {}\n", self.file.display(), state.display()));
        Ok(ExitCode::SUCCESS)
    }
}

/// A line on a terminal that tells how far a copy has come.
struct ProgressLine {
    on_terminal: bool,
    last: Instant,
    shown: bool,
}

impl ProgressLine {
    fn new() -> ProgressLine {
        ProgressLine { on_terminal: std::io::stderr().is_terminal(), last: Instant::now(), shown: false }
    }

    fn show(&mut self, report: &BackupReport) {
        if !self.on_terminal || self.last.elapsed() < OFTEN {
            return;
        }
        (self.last, self.shown) = (Instant::now(), true);
        let text = format!("\r\x1b[K{} files, {} MiB", report.files, report.bytes >> 20);
        // Whether it is seen changes nothing.
        _ = std::io::stderr().write_all(text.as_bytes());
    }

    fn clear(&self) {
        if self.shown {
            _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

/// The state directory that is named, that of the named mount, or that of the only mount.
pub(super) fn state_of(state: Option<PathBuf>, root: Option<PathBuf>) -> Result<PathBuf, Failure> {
    match (state, root) {
        (Some(state), _) => Ok(state),
        (None, Some(root)) => mounted_state(&root::find(&root)?.path),
        (None, None) => only_state(),
    }
}

/// The state directory of the mount around the working directory, or of the only one, or the default one if nothing is mounted.
fn only_state() -> Result<PathBuf, Failure> {
    let mounts = mounts_of("acheron")?;
    if let Some(around) = root::around(&mounts) {
        return mounted_state(&around);
    }
    match mounts.as_slice() {
        [] => Ok(mount::default_state()?),
        [only] => mounted_state(&only.path),
        several => {
            let names: Vec<String> = several.iter().map(|mount| mount.path.display().to_string()).collect();
            let error = Error::invalid(format!("there are several mounts: {}", names.join(", ")));
            Err(Failure::hint(error, "choose one with --root DIR or --state DIR"))
        }
    }
}

fn mounted_state(mountpoint: &Path) -> Result<PathBuf, Failure> {
    let state = root::health(mountpoint).and_then(|health| Some(PathBuf::from(health["state"].as_str()?)));
    state.ok_or_else(|| {
        let said = format!("the mount at {} does not tell its state directory", mountpoint.display());
        let hint = format!(
            "name it with --state DIR; `acheron unmount {}` detaches a mount whose host has ended",
            pasted(mountpoint)
        );
        Failure::hint(Error::unavailable(said), hint)
    })
}
