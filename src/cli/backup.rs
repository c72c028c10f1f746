//! `acheron backup`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{Outcome, mount, root};

/// Copies the state into one file, while it is in use or not.
#[derive(Args)]
pub struct Backup {
    /// The file to make; what was there is replaced once the copy is whole
    file: PathBuf,
    /// Whose state to copy; that of the one mount there is, or $XDG_STATE_HOME/acheron if absent
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl Backup {
    pub fn run(self) -> Outcome {
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

/// The state directory of the one mount there is, if it answers.
fn mounted_state() -> Option<PathBuf> {
    let mountpoint = root::choose(None).ok()?;
    Some(root::health(&mountpoint)?["state"].as_str()?.into())
}
