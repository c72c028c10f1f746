//! A server that is a program in the sandbox of its agent: one message per line on stdin and stdout.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::peer::Peer;
use crate::services::external::{ProgramLaunch, StderrLine, StderrLines, WITHHELD};
use crate::services::terminal::{RunningProgram, ended_because};
use acheron_base::{Error, Result};
use acheron_mcp::message::{self, MessageLine, MessageLines};
use acheron_mcp::text::one_line;
use acheron_sandbox::{ExitStatus, Running, Streams};
use acheron_vfs::Log;

/// How long a server may take to end by itself when its input has ended.
const ENDING: Duration = Duration::from_secs(2);
/// The longest line of its errors in the log, in characters.
const LOGGED: usize = 2000;

/// A server that was started.
pub struct ServerProcess {
    running: Running,
    /// Says when the agent may no longer have it; not for one that has the rights of the operator.
    program: Option<RunningProgram>,
}

/// Starts the program of a server.
pub async fn start(launch: &ProgramLaunch, agent: &str, log: &Log) -> Result<ServerProcess> {
    let (plan, program, withheld) = launch.plan(agent).await?;
    if let Some(why) = withheld {
        log.line(&format!("the server {WITHHELD}: {why}"));
    }
    let mut running = acheron_sandbox::start(launch.init(), &plan, Streams::Piped).await?;
    let program = Some(program).filter(|_| !plan.bare);
    if let Some(program) = &program {
        program.serve(std::mem::take(&mut running.listeners))?;
    }
    Ok(ServerProcess { running, program })
}

impl ServerProcess {
    /// Moves messages until the server ends, or must end; returns the reason.
    pub async fn drive(&mut self, peer: &Arc<Peer>, mut out: mpsc::Receiver<Value>, log: &Log) -> Error {
        let (stdin, stdout, stderr) =
            (self.running.stdin.take(), self.running.stdout.take(), self.running.stderr.take());
        let last = Mutex::new(String::new());
        let write = async {
            let Some(mut stdin) = stdin else { return };
            while let Some(message) = out.recv().await {
                let line = format!("{message}\n");
                // A server that is gone is noticed by its output.
                if stdin.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        };
        let errors = async {
            let mut lines = StderrLines::default();
            let told = |line: StderrLine| {
                let line = match line {
                    StderrLine::Log(line) => one_line(&line, LOGGED),
                    StderrLine::Progress(value) => one_line(&value.to_string(), LOGGED),
                };
                if !line.is_empty() {
                    log.line(&line);
                    *last.lock() = line;
                }
            };
            each(stderr, |bytes| {
                lines.take(bytes).into_iter().for_each(told);
                true
            })
            .await;
            lines.rest().into_iter().for_each(told);
        };
        let mut too_long = false;
        let read = async {
            let mut lines = MessageLines::default();
            each(stdout, |bytes| {
                for line in lines.take(bytes) {
                    match line {
                        MessageLine::Whole(line) => {
                            let said = message::read(&line).into_iter().filter_map(|message| peer.receive(message));
                            said.for_each(|line| log.line(&line));
                        }
                        MessageLine::TooLong => too_long = true,
                    }
                }
                !too_long
            })
            .await;
        };
        let background = async {
            tokio::join!(write, errors);
            std::future::pending::<()>().await;
        };
        tokio::pin!(background);
        tokio::select! {
            why = taken_away(self.program.as_ref()) => return ended_because(&why),
            () = &mut background => (),
            () = read => (),
        }
        if too_long {
            let most = acheron_mcp::LONGEST_MESSAGE;
            return Error::unavailable(format!(
                "the server was ended, because it sent a message longer than {most} bytes"
            ));
        }
        // Its output has ended: usually it is over, and its last words are on the way.
        let ended = tokio::select! {
            ended = tokio::time::timeout(ENDING, self.running.wait()) => ended.ok(),
            () = background => None,
        };
        ended_with(ended, &last.lock())
    }

    /// Ends the server: its input has ended, and it may take a moment.
    pub async fn end(mut self) {
        if tokio::time::timeout(ENDING, self.running.wait()).await.is_err() {
            _ = self.running.kill().await; // whatever it was, it is over
        }
    }
}

async fn taken_away(program: Option<&RunningProgram>) -> String {
    match program {
        Some(program) => program.taken_away().await,
        None => std::future::pending().await,
    }
}

fn ended_with(ended: Option<Result<ExitStatus>>, last: &str) -> Error {
    let said = if last.is_empty() { String::new() } else { format!("; it said last: {}", one_line(last, 300)) };
    Error::unavailable(match ended {
        None => format!("the server closed its output{said}"),
        Some(Err(error)) => format!("the server could not be started: {error}"),
        Some(Ok(ExitStatus { signal: Some(signal), .. })) => format!("the server was ended by signal {signal}{said}"),
        Some(Ok(status)) => format!("the server ended with exit code {}{said}", status.status()),
    })
}

/// Hands the pieces of a stream on until its end, or until `more` says that it is enough.
async fn each(stream: Option<impl AsyncRead + Unpin>, mut more: impl FnMut(&[u8]) -> bool) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if !more(&buffer[..count]) {
            return;
        }
    }
}
