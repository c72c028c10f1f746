//! `acheron exec`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::host_connection::HostConnection;
use super::place::PlaceArgs;
use super::{CommandResult, Failure, root};
use crate::host::exec_network::NetworkRequest;
use crate::host::run_plan::{compose, find};
use crate::services::terminal;
use acheron_base::{Code, Error};
use acheron_sandbox::{ForegroundEnd, PATH, Plan};

/// Run a program in an agent's sandbox, as that agent.
///
/// Inside, the namespace is at the root: /agents/self, /projects, /global. Use it to run an agent program that you already have.
///
/// The exit status is that of the program, or 128 + N after signal N; 127 if the program is not found, 126 if it may not be
/// executed, 1 if the sandbox cannot be built.
/// The program ends when the host ends, when a right that it was started with is taken away from its agent, and when this
/// command is told to end by a signal; Ctrl-C at the terminal is for the program.
#[derive(Args)]
pub struct ExecArgs {
    /// Mount point [default: the only mount]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Agent whose sandbox to use
    #[arg(long, value_name = "ID")]
    agent: String,
    #[command(flatten)]
    place: PlaceArgs,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl ExecArgs {
    pub fn run(self) -> CommandResult {
        let root = root::choose_living(self.root.as_deref())?;
        let (mut plan, mut foreground) = plan(&root, &self.agent)?;
        let state = state_of(&root)?;
        let home = match &self.place.home {
            Some(home) => std::path::absolute(home)?,
            None => state.join("agents").join(&self.agent).join("home"),
        };
        let more = self.place.additions(&home, Path::new("/home"))?;
        program(&mut plan, &self.command);
        compose::add(&mut plan, &more)?;
        let host = host_process(&root);
        let until: Vec<BorrowedFd<'_>> =
            [foreground.as_fd()].into_iter().chain(host.as_ref().map(AsFd::as_fd)).collect();
        // The host serves the network of the sandbox for as long as this is open.
        let mut network = None;
        let mut listening = |_, listener: OwnedFd| {
            let said = "the host does not listen at its socket, and nothing else serves the network of the sandbox";
            let mut connection = HostConnection::open(&state).ok_or_else(|| Error::unavailable(said))?;
            let request = NetworkRequest { agent: self.agent.clone() };
            connection.send_with(&serde_json::json!({ "network": request }), listener.as_fd())?;
            network = Some(connection);
            Ok(())
        };
        match acheron_sandbox::run_in_foreground(&plan, &until, &mut listening).map_err(not_started)? {
            ForegroundEnd::Ended(status) => Ok(ExitCode::from(u8::try_from(status.status()).unwrap_or(1))),
            ForegroundEnd::Signalled(number) => Ok(ExitCode::from(u8::try_from(128 + number).unwrap_or(1))),
            ForegroundEnd::Stopped(_) => Err(why_it_ended(&mut foreground).into()),
        }
    }
}

/// Puts the command into the plan. A program of the system is found inside; one that only the caller's PATH has comes with
/// what it needs.
fn program(plan: &mut Plan, command: &[String]) {
    let (name, arguments) = (&command[0], command[1..].to_vec());
    let found = match name.contains('/') || find::find(name, OsStr::new(PATH)).is_ok() {
        true => None,
        false => find::find(name, &std::env::var_os("PATH").unwrap_or_default()).ok(),
    };
    match found {
        Some(found) => compose::add_program(plan, &found, arguments),
        None => plan.argv = command.to_vec(),
    }
}

/// The state directory of the host.
fn state_of(root: &Path) -> Result<PathBuf, Failure> {
    let health = root::health(root).ok_or_else(|| Error::unavailable("the host does not answer"))?;
    let state = health["state"].as_str().map(PathBuf::from);
    Ok(state.ok_or_else(|| Error::unavailable("the host does not say where its state is"))?)
}

/// The exit codes of shells for a program that cannot be run.
pub fn not_started(error: Error) -> Failure {
    let exit = match error.code {
        Code::NotFound => 127,
        Code::Forbidden => 126,
        _ => 1,
    };
    Failure::from(error).exit(exit)
}

/// The process of the host; `None` if it cannot be seen from here, as from another pid namespace.
fn host_process(root: &Path) -> Option<OwnedFd> {
    // The mount has just answered, so no thread is needed against one that hangs.
    let pid = || {
        let health: serde_json::Value = serde_json::from_slice(&whole(&root.join("meta/health.json")).ok()?).ok()?;
        i32::try_from(health["pid"].as_i64()?).ok()
    };
    let said = pid()?;
    let process = rustix::process::Pid::from_raw(said)?;
    let process = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok()?;
    // It still answers under that number, so the number was not given to another process meanwhile.
    (pid() == Some(said)).then_some(process)
}

/// The content of a file of the tree, in as few requests as possible: it does not say its size.
fn whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(1 << 16);
    File::open(path)?.read_to_end(&mut text)?;
    Ok(text)
}

/// Why the host ended the program; the host itself may have ended.
fn why_it_ended(foreground: &mut File) -> Error {
    let said = line(foreground).ok().and_then(|line| serde_json::from_slice::<serde_json::Value>(&line).ok());
    match said.as_ref().and_then(|said| said["ended_because"].as_str()) {
        Some(why) => terminal::ended_because(why),
        None => Error::unavailable("the host has ended, and the program with it"),
    }
}

/// The next line of a file that is read no further.
fn line(file: &mut File) -> std::io::Result<Vec<u8>> {
    let (mut line, mut room) = (Vec::new(), vec![0; 1 << 16]);
    while !line.ends_with(b"\n") {
        match file.read(&mut room)? {
            0 => break,
            count => line.extend(&room[..count]),
        }
    }
    Ok(line)
}

/// The plan of the host for a program of this agent, and the file that stands for the program as long as it is open.
fn plan(root: &Path, agent: &str) -> Result<(Plan, File), Failure> {
    let agents = root.join("agents");
    let path = agents.join(agent).join("terminal/sessions").join(terminal::FOREGROUND);
    let opened = File::open(path).and_then(|mut file| Ok((line(&mut file)?, file)));
    let (text, file) = opened.map_err(|err| {
        let known = std::fs::read_dir(&agents).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let known: Vec<String> =
            known.map(|name| name.to_string_lossy().into_owned()).filter(|name| name != "self").collect();
        let error = Error::from(err);
        match error.code {
            Code::NotFound => Failure::hint(
                Error::not_found(format!("there is no agent `{agent}` with a terminal")),
                format!("the agents are {}", known.join(", ")),
            ),
            _ => error.into(),
        }
    })?;
    let plan = serde_json::from_slice(&text);
    let plan = plan.map_err(|err| Error::unavailable(format!("the host's plan cannot be read: {err}")))?;
    Ok((plan, file))
}
