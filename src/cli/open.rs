//! `acheron open`.

use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use serde_json::Value;

use super::host_connection::HostArgs;
use super::{CommandResult, say};
use crate::doors::listener::ListenOptions;
use crate::host::door_listener::Serving;
use crate::host::door_web::{OpenPageAnswer, OpenPageRequest};
use acheron_base::Error;

/// Open the page of the host in a browser: print an address that logs one browser in, once and within five minutes.
///
/// If `acheron serve` serves the page already, the command ends at once. Otherwise it serves the page itself, as long as it runs.
#[derive(Args)]
pub struct OpenArgs {
    /// Show what this agent sees, with its rights
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Print the address only
    #[arg(long)]
    print: bool,
    /// The address to listen at, if the page is not served yet; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8377")]
    listen: String,
    #[command(flatten)]
    host: HostArgs,
}

impl OpenArgs {
    pub fn run(self) -> CommandResult {
        let request = OpenPageRequest { agent: self.agent.clone() };
        let (_connection, answer) = self.host.ask::<OpenPageAnswer>("open", &request)?;
        if let Some(url) = answer.url {
            self.show(&url);
            return Ok(ExitCode::SUCCESS);
        }
        let doors = ["fs", "web"].map(str::to_owned).to_vec();
        let options = ListenOptions { listen: self.listen.clone(), doors, ..ListenOptions::default() };
        let (mut serving, _) = self.host.ask::<Serving>("serve", &options)?;
        let (_connection, answer) = self.host.ask::<OpenPageAnswer>("open", &request)?;
        let url = answer.url.ok_or_else(|| Error::unavailable("the listener of the page has ended already"))?;
        self.show(&url);
        eprintln!("the page is served as long as this command runs; Ctrl-C ends it");
        serving.next::<Value>()?;
        Err(Error::unavailable("the host has ended, and the listener with it").into())
    }

    /// Nobody waits for the browser: it may run longer than this command.
    #[allow(clippy::zombie_processes)]
    fn show(&self, url: &str) {
        say(&format!("{url}\n"));
        let screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
        if self.print || !screen {
            return;
        }
        let browser = std::env::var_os("BROWSER").unwrap_or_else(|| "xdg-open".into());
        let mut command = Command::new(browser);
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Err(error) = command.spawn() {
            eprintln!("no browser could be started ({error}); open the address yourself");
        }
    }
}
