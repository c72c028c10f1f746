//! `acheron exec`.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rustix::event::{PollFd, PollFlags, poll};

use super::{CommandResult, Failure, root};
use acheron_base::{Code, Error};
use acheron_sandbox::{Plan, Streams, Terminal};

/// Run a program in an agent's sandbox, as that agent.
///
/// Inside, the namespace is at the root: /agents/self, /projects, /global. Use it to run an agent program that you already have.
///
/// The exit status is that of the program, or 128 + N after signal N; 127 if the program is not found, 126 if it may not be
/// executed, 1 if the sandbox cannot be built.
/// The program ends when the host ends.
#[derive(Args)]
pub struct ExecArgs {
    /// Mount point [default: the only mount]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Agent whose sandbox to use
    #[arg(long, value_name = "ID")]
    agent: String,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl ExecArgs {
    pub fn run(self) -> CommandResult {
        let root = root::choose_living(self.root.as_deref())?;
        let mut plan = plan(&root, &self.agent)?;
        plan.argv = self.command;
        plan.terminal = Terminal::Shared;
        for name in ["TERM", "COLORTERM"] {
            if let Ok(value) = std::env::var(name) {
                plan.env.insert(name.to_owned(), value);
            }
        }
        let host = host_process(&root);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ended = runtime.block_on(async {
            let mut running = acheron_sandbox::start(&acheron_sandbox::program(), &plan, Streams::Inherited)
                .await
                .map_err(not_started)?;
            // Ctrl-C at the terminal belongs to the program; this process ends when the program does.
            let mut interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
            let gone = host_end(host);
            tokio::pin!(gone);
            loop {
                tokio::select! {
                    ended = running.wait() => return ended.map_err(not_started),
                    _ = interrupts.recv() => (),
                    () = &mut gone => {
                        running.kill().await?;
                        return Err(Error::unavailable("the host has ended, and the program with it").into());
                    }
                }
            }
        })?;
        Ok(ExitCode::from(u8::try_from(ended.status()).unwrap_or(1)))
    }
}

/// The exit codes of shells for a program that cannot be run.
fn not_started(error: Error) -> Failure {
    let exit = match error.code {
        Code::NotFound => 127,
        Code::Forbidden => 126,
        _ => 1,
    };
    Failure::from(error).exit(exit)
}

/// The process of the host; `None` if it cannot be seen from here, as from another pid namespace.
fn host_process(root: &Path) -> Option<OwnedFd> {
    let pid = || root::health(root).and_then(|health| i32::try_from(health["pid"].as_i64()?).ok());
    let said = pid()?;
    let process = rustix::process::Pid::from_raw(said)?;
    let process = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok()?;
    // It still answers under that number, so the number was not given to another process meanwhile.
    (pid() == Some(said)).then_some(process)
}

/// Waits for the end of the host.
async fn host_end(host: Option<OwnedFd>) {
    let Some(host) = host else { return std::future::pending().await };
    let (tell, told) = tokio::sync::oneshot::channel();
    // A thread, which ends with this program.
    std::thread::spawn(move || {
        loop {
            match poll(&mut [PollFd::new(&host, PollFlags::IN)], None) {
                Ok(1..) => return tell.send(()),
                Ok(0) | Err(rustix::io::Errno::INTR) => (),
                Err(_) => return Err(()),
            }
        }
    });
    if told.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The sandbox plan that the host would use for a program of this agent.
fn plan(root: &Path, agent: &str) -> Result<Plan, Failure> {
    let agents = root.join("agents");
    let text = std::fs::read(agents.join(agent).join("terminal/sandbox.json")).map_err(|err| {
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
    Ok(plan.map_err(|err| Error::unavailable(format!("the host's plan cannot be read: {err}")))?)
}
