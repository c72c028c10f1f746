//! What a running host does, for the commands that show it. Used by `agents`, `jobs`, `top` and the completions.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::backup::state_of;
use super::host_connection::HostConnection;
use super::{Failure, called};
use crate::host::overview::HostOverview;
use acheron_base::Error;

/// Which host a command looks at.
#[derive(Args, Default)]
pub struct HostViewArgs {
    /// Mount point of the host [default: the only mount]
    #[arg(long, value_name = "DIR", conflicts_with = "state")]
    pub root: Option<PathBuf>,
    /// State directory of the host [default: that of the only mount, else $XDG_STATE_HOME/acheron]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

impl HostViewArgs {
    pub fn state(&self) -> Result<PathBuf, Failure> {
        state_of(self.state.clone(), self.root.clone())
    }
}

/// A connection to a host that can be asked again and again.
pub struct HostView {
    connection: HostConnection,
    is_first: bool,
}

impl HostView {
    /// The host of a state directory, if one runs.
    pub fn open(state: &Path) -> Option<HostView> {
        Some(HostView { connection: HostConnection::open(state)?, is_first: true })
    }

    /// The same, or why there is none.
    pub fn of(state: &Path) -> Result<HostView, Failure> {
        HostView::open(state).ok_or_else(|| {
            Failure::hint(
                Error::unavailable(format!("no host runs on {}", state.display())),
                format!("{} mount DIR --daemon --state {}", called(), super::pasted(state)),
            )
        })
    }

    /// What it does now.
    pub fn look(&mut self) -> Result<HostOverview, Failure> {
        let word = if std::mem::take(&mut self.is_first) { json!({"overview": {}}) } else { json!({}) };
        self.connection.send(&word)?;
        let answer = self.connection.next::<Value>()?.ok_or_else(|| Error::unavailable("the host has ended"))?;
        if let Some(refused) = answer.get("refused") {
            return Err(Error::unavailable(refused["message"].as_str().unwrap_or("the host refused")).into());
        }
        let read = serde_json::from_value(answer);
        Ok(read.map_err(|error| Error::unavailable(format!("the host is of another version: {error}")))?)
    }
}
