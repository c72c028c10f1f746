//! One program, from its start to its end: streams, deadline, cancellation.

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::running_programs::RunningProgram;
use super::text::Capture;
use acheron_base::{Clock, Error, Result};
use acheron_sandbox::{ExitStatus, Plan, Streams, start};

/// A program to run, and its limits.
pub struct ProgramRun<'a> {
    pub program: &'a Path,
    pub plan: &'a Plan,
    pub stdin: Vec<u8>,
    pub deadline: Duration,
    /// How much of each stream is kept.
    pub keep: usize,
    pub clock: &'a Clock,
    /// The entry of the program, with which the ports of its sandbox are served.
    pub running: Option<&'a RunningProgram>,
}

/// Receives the output streams as they arrive.
pub trait StreamListener: Send + Sync {
    fn out(&self, _bytes: &[u8]) {}
    fn err(&self, _bytes: &[u8]) {}
}

/// The outcome of a program.
#[derive(Debug)]
pub struct ProgramOutcome {
    pub ended: ExitStatus,
    pub out: Capture,
    pub err: Capture,
    pub duration_ms: u64,
}

impl ProgramRun<'_> {
    /// Runs to the end, or until the deadline or `stopped`; whatever happens, nothing of it is left running.
    pub async fn go(self, watch: &dyn StreamListener, stopped: impl Future<Output = Error>) -> Result<ProgramOutcome> {
        let began = self.clock.now_ms();
        let mut running = start(self.program, self.plan, Streams::Piped).await?;
        if let Some(program) = self.running {
            program.serve(std::mem::take(&mut running.listeners))?;
        }
        let (stdin, stdout, stderr) = (running.stdin.take(), running.stdout.take(), running.stderr.take());
        let (mut out, mut err) = (Capture::new(self.keep), Capture::new(self.keep));
        let outcome = {
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // A program need not read what it is given.
                    _ = stdin.write_all(&self.stdin).await;
                }
            };
            let streams = async {
                tokio::join!(
                    feed,
                    drain(stdout, |bytes| {
                        watch.out(bytes);
                        out.take(bytes);
                    }),
                    drain(stderr, |bytes| {
                        watch.err(bytes);
                        err.take(bytes);
                    }),
                );
            };
            let ending = async {
                let (ended, ()) = tokio::join!(running.wait(), streams);
                ended
            };
            tokio::select! {
                ended = ending => Ok(ended),
                why = stopped => Err(why),
                () = tokio::time::sleep(self.deadline) => Err(late(self.deadline)),
            }
        };
        match outcome {
            Ok(ended) => {
                let duration_ms = self.clock.now_ms().saturating_sub(began);
                Ok(ProgramOutcome { ended: ended?, out, err, duration_ms })
            }
            Err(why) => {
                _ = running.kill().await;
                Err(why)
            }
        }
    }
}

fn late(deadline: Duration) -> Error {
    Error::timeout(format!(
        "the command did not end within {} ms; everything it had started was ended",
        deadline.as_millis()
    ))
}

async fn drain(stream: Option<impl AsyncRead + Unpin>, mut each: impl FnMut(&[u8])) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 64 << 10];
    // An unreadable pipe ends the stream as its end does.
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        each(&buffer[..count]);
    }
}
