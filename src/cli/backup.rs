//! `acheron backup`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::{CommandResult, Failure, mount, pasted, plain_text, root, say};
use acheron_base::Error;
use acheron_fuse::mounts_of;

/// How many files that are left out are named.
const SHOWN: usize = 10;

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
}

impl BackupArgs {
    pub fn run(self) -> CommandResult {
        let state = state_of(self.state, self.root)?;
        let left_out = crate::state::backup::backup(&state, &self.file)?;
        for out in left_out.iter().take(SHOWN) {
            let line = format!("note: {} is left out: {}", out.path.display(), out.why);
            eprintln!("{}", plain_text::for_stderr(&line));
        }
        if left_out.len() > SHOWN {
            eprintln!("note: {} more are left out", left_out.len() - SHOWN);
        }
        say(&format!("{} is a backup of {}\n", self.file.display(), state.display()));
        Ok(ExitCode::SUCCESS)
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

/// The state directory of the only mount, or the default one if nothing is mounted.
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
