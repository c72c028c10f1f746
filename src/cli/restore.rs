//! `acheron restore`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{CommandResult, mount, say};
use crate::state::backup::MOUNTSPEC;
use crate::state::restore::restore;

/// Make a state directory from a backup, after its checksums were verified.
#[derive(Args)]
pub struct RestoreArgs {
    /// File that `acheron backup` wrote
    file: PathBuf,
    /// State directory to make; absent or empty [default: $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl RestoreArgs {
    pub fn run(self) -> CommandResult {
        let state = match self.state {
            Some(state) => state,
            None => mount::default_state()?,
        };
        let report = restore(&self.file, &state)?;
        if self.json {
            let said = json!({
                "file": self.file, "state": state, "files": report.files, "bytes": report.bytes,
                "verified": report.is_verified, "has_keys": report.has_keys,
                "mountspec": report.has_mountspec.then(|| state.join(MOUNTSPEC)),
            });
            say(&format!("{said}\n"));
            return Ok(ExitCode::SUCCESS);
        }
        if !report.is_verified {
            eprintln!("note: the backup is of an earlier version and has no checksums");
        }
        if !report.has_keys {
            eprintln!("note: the backup has no keys: the audit begins a new one, and sealed histories cannot be read");
        }
        if report.has_mountspec {
            eprintln!("note: its mountspec is {}", state.join(MOUNTSPEC).display());
        }
        say(&format!("{} has the state of {}\n", state.display(), self.file.display()));
        Ok(ExitCode::SUCCESS)
    }
}
