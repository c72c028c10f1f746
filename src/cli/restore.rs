//! `acheron restore`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{CommandResult, mount, say};

/// Make a state directory from a backup.
#[derive(Args)]
pub struct RestoreArgs {
    /// File that `acheron backup` wrote
    file: PathBuf,
    /// State directory to make; absent or empty [default: $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl RestoreArgs {
    pub fn run(self) -> CommandResult {
        let state = match self.state {
            Some(state) => state,
            None => mount::default_state()?,
        };
        crate::state::restore::restore(&self.file, &state)?;
        say(&format!("{} has the state of {}\n", state.display(), self.file.display()));
        Ok(ExitCode::SUCCESS)
    }
}
