//! `acheron unmount`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{CommandResult, root};
use acheron_fuse::mounts_of;

/// Unmount a namespace; waiting reads end with an error.
#[derive(Args)]
pub struct UnmountArgs {
    /// Mount point
    pub dir: PathBuf,
}

/// The time that a daemon has to unmount.
const PATIENCE: Duration = Duration::from_secs(15);

impl UnmountArgs {
    pub fn run(self) -> CommandResult {
        let mount = root::find(&self.dir)?;
        let pid =
            root::health(&mount.path).and_then(|health| health["pid"].as_i64()).and_then(|pid| i32::try_from(pid).ok());
        let Some(pid) = pid.filter(|pid| *pid > 1).map(Pid::from_raw) else {
            // The server does not answer: detach the mount.
            acheron_fuse::force_unmount(&mount)?;
            println!("{} did not answer and was detached", mount.path.display());
            return Ok(ExitCode::SUCCESS);
        };
        _ = kill(pid, Signal::SIGTERM); // it may have gone by itself
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let there = mounts_of("acheron")?.contains(&mount);
            if !there && kill(pid, None).is_err() {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if mounts_of("acheron")?.contains(&mount) {
            acheron_fuse::force_unmount(&mount)?;
        }
        eprintln!("warning: the daemon (pid {pid}) is still shutting down");
        Ok(ExitCode::SUCCESS)
    }
}
