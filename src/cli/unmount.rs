//! `acheron unmount`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::host_view::HostView;
use super::{CommandResult, plain_text, root, say};
use acheron_fuse::mounts_of;

/// Unmount a namespace; waiting reads end with an error.
#[derive(Args)]
pub struct UnmountArgs {
    /// Mount point
    pub dir: PathBuf,
}

/// The time after which the user is told what is waited for: at a terminal, and elsewhere.
const SOON: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// The time that a daemon has to unmount.
const PATIENCE: Duration = Duration::from_secs(15);

impl UnmountArgs {
    pub fn run(self) -> CommandResult {
        let mount = root::find(&self.dir)?;
        let health = root::health(&mount.path).unwrap_or_default();
        let pid = health["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        let under_way = busy(&health);
        let Some(pid) = pid.filter(|pid| *pid > 1).map(Pid::from_raw) else {
            // The server does not answer: detach the mount.
            acheron_fuse::force_unmount(&mount)?;
            say(&format!("{} did not answer and was detached\n", mount.path.display()));
            return Ok(ExitCode::SUCCESS);
        };
        _ = kill(pid, Signal::SIGTERM); // it may have gone by itself
        let (begun, mut told) = (Instant::now(), false);
        let soon = if std::io::stderr().is_terminal() { SOON[0] } else { SOON[1] };
        while begun.elapsed() < PATIENCE {
            if begun.elapsed() > soon && !told {
                eprintln!("{}", plain_text::for_stderr(&format!("waiting for the host (pid {pid}) to end{under_way}")));
                told = true;
            }
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

/// What a host does that has to end first.
fn busy(health: &Value) -> String {
    let host = health["state"].as_str().and_then(|state| HostView::open(Path::new(state)));
    let jobs = host.and_then(|mut host| host.look().ok()).map(|host| host.jobs).unwrap_or_default();
    let named = jobs.iter().take(3).map(|job| format!("{}.{} of {}", job.service, job.operation, job.agent));
    match (named.collect::<Vec<_>>().join(", "), jobs.len()) {
        (_, 0) => String::new(),
        (named, 1..=3) => format!(": {named}"),
        (named, count) => format!(": {named} and {} more", count - 3),
    }
}
