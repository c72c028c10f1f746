//! `acheron run`.

mod amount;
mod plan;
mod summary;

use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use super::exec::not_started;
use super::host_connection::{HostArgs, HostConnection, tree_of};
use super::place::PlaceArgs;
use super::{CommandResult, Failure};
use crate::host::runs::messages::{FromHost, ProgramRequest, ToHost};
use crate::services::terminal;
use acheron_base::Error;
use acheron_sandbox::ForegroundEnd;

/// Run an agent program that you already have, in this directory: claude, codex, opencode, gemini, aider, or any other.
///
/// The program sees this directory, the namespace (/agents/self, /AGENTS.md) and nothing else of the machine. It has a home of
/// its own, which lasts. It talks to its model through a gateway, which holds the key, keeps the budget, and writes down every
/// request in agents/<id>/model/requests.ndjson.
///
/// It joins the host of the state directory, or starts one, which ends with the last program. The exit status is that of the
/// program, as with `acheron exec`.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    host: HostArgs,
    /// The agent as which it runs [default: named after the program]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// What it may use up: 2usd, 500ktok
    #[arg(long, value_name = "AMOUNT")]
    budget: Option<String>,
    /// The model behind the gateway: KIND:NAME [default: that of the mountspec]
    #[arg(long, value_name = "KIND:NAME")]
    model: Option<String>,
    /// Record every request and its answer to FILE
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// A host that it may reach during this run, as in sandbox.network: api.github.com:443, *.example.org
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    network: Vec<String>,
    /// Let it work in a view: nothing of this directory changes until you promote it
    #[arg(long)]
    view: bool,
    /// Use the program's own log-in instead of the gateway, as where there is no key for it
    #[arg(long)]
    login: bool,
    /// Show what would be run, and where, and start nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: PlaceArgs,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl RunArgs {
    pub fn run(self) -> CommandResult {
        let directory = directory()?;
        let (name, given) = (&self.command[0], &self.command[1..]);
        let (state, spec) = (self.host.state()?, self.host.spec.as_deref());
        let tree = self.host.root.clone().unwrap_or_else(|| tree_of(&state));
        let profile = plan::profile(name, &tree, spec)?;
        let budget = self.budget.as_deref().map(amount::parse).transpose()?.unwrap_or_default();
        for rule in &self.network {
            rule.parse::<acheron_proxy::HostRule>().map_err(|error| error.about("--network"))?;
        }
        if self.dry_run {
            return plan::show(&self, &directory, &state, &profile);
        }
        let found = plan::found(name, &profile)?;
        let request = ProgramRequest {
            program: plan::word(name),
            agent: self.agent.clone(),
            directory: directory.clone(),
            budget,
            model: self.model.clone(),
            usual_model: profile.model.clone(),
            record: self.record.as_deref().map(std::path::absolute).transpose()?,
            network: self.network.clone(),
            login: self.login,
            view: self.view,
            login_hosts: profile.login.as_ref().map(|login| login.hosts.clone()).unwrap_or_default(),
        };
        let (mut connection, first) = HostConnection::begin(&state, spec, "run", &request)?;
        let FromHost::Started(started) = first else {
            return Err(Error::internal("the host answered something else").into());
        };
        let profile = match started.login.is_some() {
            true => profile.for_login(),
            false => profile,
        };
        summary::print_login(&started);
        let more =
            self.place.additions(self.place.home.as_deref().unwrap_or(&started.home), &plan::home(&directory))?;
        let plan = plan::complete(*started.clone(), &directory, &profile, &found, given, more)?;
        if profile.waits_for_input(given) && std::io::stdin().is_terminal() {
            // It would wait for the end of what nobody types.
            let nothing = std::fs::File::open("/dev/null")?;
            rustix::stdio::dup2_stdin(&nothing).map_err(std::io::Error::from)?;
        }
        let began = Instant::now();
        let host: OwnedFd = connection.as_fd().try_clone_to_owned()?;
        let mut listening =
            |port: u16, listener: OwnedFd| connection.send_with(&ToHost::Listener { port }, listener.as_fd());
        let ended = acheron_sandbox::run_in_foreground(&plan, &[host.as_fd()], &mut listening).map_err(not_started)?;
        let exit = match ended {
            ForegroundEnd::Ended(status) => status.status(),
            ForegroundEnd::Signalled(number) => 128 + number,
            ForegroundEnd::Stopped(_) => return Err(why_it_ended(&mut connection).into()),
        };
        connection.send(&ToHost::Ended)?;
        if let Some(FromHost::Record(record)) = connection.next()? {
            summary::print(&started, &record, began.elapsed(), &self.host.words());
        }
        // The next run of this agent may come at once: all of this one is taken away first.
        while let Ok(Some(_)) = connection.next::<serde_json::Value>() {}
        Ok(ExitCode::from(u8::try_from(exit).unwrap_or(1)))
    }
}

/// This directory, if a program may have it: a home has keys in it.
fn directory() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()?.canonicalize()?;
    let home = std::env::var_os("HOME").and_then(|home| PathBuf::from(home).canonicalize().ok());
    let what = match home {
        Some(home) if home == here => "your home directory",
        Some(home) if home.starts_with(&here) => "above your home directory",
        _ if here.parent().is_none() => "the root of the machine",
        _ => return Ok(here),
    };
    let said = format!("{} is {what}, and the program could change all of it", here.display());
    Err(Failure::hint(Error::invalid(said), "run it in the directory of a project"))
}

/// Why the host ended the program; the host itself may have ended.
fn why_it_ended(connection: &mut HostConnection) -> Error {
    match connection.next() {
        Ok(Some(FromHost::EndedBecause(why))) => terminal::ended_because(&why),
        _ => Error::unavailable("the host has ended, and the program with it"),
    }
}
