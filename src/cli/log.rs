//! `acheron log`: what agents did, one readable line each: turns, calls, denials, money, events.
//!
//! Reads the database of the state directory, with or without a host: the lines of the audit and the events in one order
//! ([`source`]), each as a line for people or for programs ([`render`]). With `--follow` the host tells when there is more.

mod render;
mod source;

use std::collections::VecDeque;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use super::backup::state_of;
use super::host_connection::HostConnection;
use super::{CommandResult, Failure, plain_text, since};
use acheron_base::Error;
pub use render::LogLine;
pub use source::LogSource;

/// The lines that are shown if no time is given.
const NEWEST: usize = 200;

/// Show what agents did: turns, calls, denials, approvals, money and events, one line each.
#[derive(Args)]
pub struct LogArgs {
    /// Lines since then: 30m, 2h, 7d, today, yesterday, 2026-11-18 [default: the newest 200]
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Lines about this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Wait for more
    #[arg(long, short)]
    follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Mount point whose log to read [default: the only mount]
    #[arg(long, value_name = "DIR", conflicts_with = "state")]
    root: Option<PathBuf>,
    /// State directory [default: that of the only mount, else $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl LogArgs {
    pub fn run(self) -> CommandResult {
        let since_ms = self.since.as_deref().map(|when| since::parse(when, since::now_ms())).transpose()?;
        let state = state_of(self.state, self.root)?;
        // Before the first line is read, so that none is missed.
        let mut host = match self.follow {
            true => Some(follow(&state)?),
            false => None,
        };
        let mut source = acheron_store::look_unlocked(&state, |conn| match (since_ms, &self.agent) {
            (Some(since_ms), _) => LogSource::since(conn, since_ms),
            (None, None) => LogSource::newest(conn, NEWEST as u64),
            (None, Some(_)) => LogSource::since(conn, 0),
        })?;
        if let Some(agent) = &self.agent {
            known(&state, agent)?;
        }
        let mut out = Output { agent: self.agent, json: self.json, newest: since_ms.is_none().then(VecDeque::new) };
        let gone =
            acheron_store::look_unlocked(&state, |conn| source.read(conn, |line| out.take(line)))? || out.show_newest();
        let Some(host) = host.as_mut().filter(|_| !gone) else { return Ok(ExitCode::SUCCESS) };
        while more(host)? {
            if acheron_store::look_unlocked(&state, |conn| source.read(conn, |line| out.take(line)))? {
                break;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Refuses an agent that neither is there nor was.
fn known(state: &std::path::Path, agent: &str) -> Result<(), Failure> {
    match acheron_store::look_unlocked(state, |conn| source::knows(conn, agent))?
        || state.join("agents").join(agent).is_dir()
    {
        true => Ok(()),
        false => {
            let error = Error::not_found(format!("there is no agent {}", acheron_base::quoted(agent)));
            Err(Failure::hint(error, "`acheron agents` lists them"))
        }
    }
}

fn follow(state: &std::path::Path) -> Result<HostConnection, Failure> {
    let mut connection = HostConnection::open(state).ok_or_else(|| {
        let said = format!("no host uses {}: nothing will be added to its log", state.display());
        Failure::hint(Error::unavailable(said), "without --follow the log is shown as it is")
    })?;
    connection.send(&json!({ "growth": {} }))?;
    Ok(connection)
}

/// Waits until there is more; false if the host has ended, or nobody reads what is printed.
fn more(host: &mut HostConnection) -> Result<bool, Failure> {
    let stdout = std::io::stdout();
    let mut ready = [PollFd::new(host.as_fd(), PollFlags::POLLIN), PollFd::new(stdout.as_fd(), PollFlags::empty())];
    match poll(&mut ready, PollTimeout::NONE) {
        Ok(_) => (),
        Err(nix::errno::Errno::EINTR) => return Ok(true),
        Err(errno) => return Err(std::io::Error::from(errno).into()),
    }
    let closed = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
    if ready[1].revents().is_some_and(|revents| revents.intersects(closed)) {
        return Ok(false);
    }
    let Some(told) = host.next::<Value>()? else { return Ok(false) };
    match told.get("refused").and_then(|refused| refused["message"].as_str()) {
        Some(why) => Err(Error::unavailable(why).into()),
        None => Ok(true),
    }
}

/// Where lines go.
struct Output {
    agent: Option<String>,
    json: bool,
    /// The newest lines so far, if only those are shown.
    newest: Option<VecDeque<LogLine>>,
}

impl Output {
    /// Takes a line; false if nobody reads what is printed.
    fn take(&mut self, line: LogLine) -> bool {
        if self.agent.as_deref().is_some_and(|agent| line.agent != agent) {
            return true;
        }
        match &mut self.newest {
            Some(newest) => {
                if newest.len() == NEWEST {
                    newest.pop_front();
                }
                newest.push_back(line);
                true
            }
            None => self.print(&line),
        }
    }

    /// Shows the newest lines, and from then on each; true if nobody reads what is printed.
    fn show_newest(&mut self) -> bool {
        let newest = self.newest.take().unwrap_or_default();
        !newest.iter().all(|line| self.print(line))
    }

    fn print(&self, line: &LogLine) -> bool {
        let text = match self.json {
            true => line.json(),
            false => line.text(),
        };
        let mut stdout = std::io::stdout().lock();
        let text = plain_text::for_stdout(&text);
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush()).is_ok()
    }
}
