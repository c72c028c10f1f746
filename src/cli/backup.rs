//! `acheron backup`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{Failure, Outcome, mount, root};
use crate::error::Error;
use crate::store;

/// Copies the state into a file, consistently, while the host runs.
#[derive(Args)]
pub struct Backup {
    /// Where to; must not be there yet
    file: PathBuf,
    /// The state directory; that of the one mount, or else the default
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl Backup {
    pub fn run(self) -> Outcome {
        let state = match &self.state {
            Some(state) => state.clone(),
            None => match running() {
                Some(state) => state,
                None => mount::default_state()?,
            },
        };
        if self.file.exists() {
            let said = format!("{} is there already", self.file.display());
            return Err(Failure::hint(Error::already_exists(said), "choose another name, or remove it first"));
        }
        store::backup(&state, &self.file)?;
        println!("{} holds the state of {}", self.file.display(), state.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// The state directory of the one mount there is.
fn running() -> Option<PathBuf> {
    let mountpoint = root::choose(None).ok()?;
    root::health(&mountpoint)?["state"].as_str().map(PathBuf::from)
}
