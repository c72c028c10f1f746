//! Starts the host in the background: the command starts itself again and returns when the daemon is ready.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use super::log_rotation::{LONGEST_LOG, rotate};
use super::mount::MountArgs;
use super::mount_report::{tell_faults, tell_who_sees};
use super::{CommandResult, Failure, called, pasted, root, say};
use crate::spec::Spec;
use acheron_base::{Code, Error};

const READY: &str = "ready";

/// Starts the daemon and waits until its mount answers.
pub fn start(mount: &MountArgs, state: &Path, spec: &Spec) -> CommandResult {
    let about = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Error::from(error).about(&path)
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(about(state))?;
    let log = log_file(state);
    if std::fs::metadata(&log).is_ok_and(|it| it.len() > LONGEST_LOG) {
        rotate(&log).map_err(about(&log))?;
    }
    let written = OpenOptions::new().create(true).append(true).mode(0o600).open(&log).map_err(about(&log))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("mount").arg(&mount.dir).arg("--child").arg("--state").arg(state);
    for (flag, value) in [
        ("--spec", mount.spec.as_ref().map(|it| it.as_os_str().to_owned())),
        ("--model", mount.model.as_ref().map(Into::into)),
        ("--protocol", mount.protocol.as_ref().map(Into::into)),
        ("--record", mount.record.as_ref().map(Into::into)),
    ] {
        if let Some(value) = value {
            command.arg(flag).arg(value);
        }
    }
    if mount.leased {
        // No project of the machine's root is bound: programs bring theirs.
        command.arg("--leased").current_dir("/");
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(written).spawn()?;
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut said)?;
    }
    if said.trim_end() == READY {
        let file = state.join("acheron.pid");
        let mut pid = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(file)?;
        writeln!(pid, "{}", child.id())?;
        let dir = pasted(&mount.dir);
        say(&format!("mounted on {}; `{} unmount {dir}` unmounts it\n", mount.dir.display(), called()));
        if !mount.leased {
            tell_who_sees(spec);
            let health = root::health(&std::path::absolute(&mount.dir)?).unwrap_or_default();
            tell_faults(health["faults"].as_array().into_iter().flatten().filter_map(|fault| fault.as_str()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    _ = child.wait();
    let said = said.trim();
    let error = match said.is_empty() {
        true => Error::failed("the daemon ended before it was ready"),
        false => serde_json::from_str(said).unwrap_or_else(|_| Error::failed(said)),
    };
    match error.code {
        // The log belongs to the daemon that is already there.
        Code::Busy => Err(error.into()),
        _ => Err(Failure::hint(error, format!("its log is {}", log.display()))),
    }
}

pub fn log_file(state: &Path) -> PathBuf {
    state.join("acheron.log")
}

/// The daemon's side: reports that it is ready, or why not, and detaches from the terminal.
pub fn tell(child: bool, error: Option<&Error>) {
    if !child {
        return;
    }
    let mut stdout = std::io::stdout();
    _ = match error {
        None => writeln!(stdout, "{READY}"),
        Some(error) => writeln!(stdout, "{}", serde_json::to_string(error).unwrap_or_default()),
    };
    _ = stdout.flush();
    // The starter reads until the last copy of the pipe is closed.
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        _ = rustix::stdio::dup2_stdout(&null);
    }
    _ = rustix::process::setsid();
}
