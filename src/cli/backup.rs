//! `acheron backup`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{CommandResult, mount, root};

/// Copy the state into one file, whether or not a daemon is using it.
#[derive(Args)]
pub struct BackupArgs {
    /// File to write; an existing file is replaced when the copy is complete
    file: PathBuf,
    /// State directory [default: that of the only mount, else $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl BackupArgs {
    pub fn run(self) -> CommandResult {
        let state = match self.state {
            Some(state) => state,
            None => match mounted_state() {
                Some(state) => state,
                None => mount::default_state()?,
            },
        };
        acheron_store::backup(&state, &self.file)?;
        println!("{} is a copy of {}", self.file.display(), state.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// The state directory of the only mount, if it answers.
fn mounted_state() -> Option<PathBuf> {
    let mountpoint = root::choose(None).ok()?;
    Some(root::health(&mountpoint)?["state"].as_str()?.into())
}
