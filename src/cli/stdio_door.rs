//! Doors on standard input and output: joins the host of the state directory, or runs one within the command until the last
//! client has gone. Used by `acheron mcp` and `acheron acp`.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::host_connection::{HostArgs, HostConnection};
use super::{CommandResult, Failure, deadline, mount};
use crate::host::Host;
use acheron_base::{Error, Result};

/// How long the host of another command may take to come up or to go.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the door may take to end what is under way for a client that was interrupted.
const LETTING_GO: Duration = Duration::from_secs(3);

/// A door: the word that opens it at the host, and what is asked for.
pub struct StdioDoor<R> {
    pub host: HostArgs,
    pub word: &'static str,
    pub request: R,
}

impl<R: Serialize + Clone + Send + 'static> StdioDoor<R> {
    pub fn run(self) -> CommandResult {
        let state = self.host.state()?;
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some((connection, _)) = HostConnection::join::<Value>(&state, self.word, &self.request)? {
                pass_on(connection)?;
                return Ok(ExitCode::SUCCESS);
            }
            match self.host_here(&state) {
                // Another command may just have started the host, or the last one is on its way out.
                Err(failure) if failure.is_passing() && Instant::now() < until && self.host.root.is_none() => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                outcome => return outcome.map(|()| ExitCode::SUCCESS),
            }
        }
    }

    /// Runs the host in this process until the last client has gone.
    fn host_here(&self, state: &Path) -> Result<(), Failure> {
        if let Some(root) = &self.host.root {
            return Err(Error::unavailable(format!("the host of {} does not answer", root.display())).into());
        }
        let options = mount::unmounted(self.host.spec.as_deref(), state)?;
        super::log("warn,rmcp=error");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let served: Result<()> = runtime.block_on(async {
            let mut host = Host::start(options)?;
            host.listen()?;
            let (state, word, request) = (state.to_owned(), self.word, self.request.clone());
            let (sender, passed_on) = tokio::sync::oneshot::channel();
            let (opened, own) = std::sync::mpsc::channel::<UnixStream>();
            // A thread of its own: standard input cannot be waited for otherwise, and nothing may wait for it at the end.
            std::thread::spawn(move || {
                let joined = HostConnection::join::<Value>(&state, word, &request);
                let outcome = match joined {
                    Ok(Some((connection, _))) => {
                        // Nobody takes it if the host has ended.
                        connection.stream().into_iter().for_each(|stream| _ = opened.send(stream));
                        pass_on(connection)
                    }
                    Ok(None) => Err(Error::unavailable("the host does not answer")),
                    Err(error) => Err(error),
                };
                _ = sender.send(outcome); // nobody waits if the host has ended
            });
            let mut ends = deadline::signals()?;
            let failed = async {
                match passed_on.await {
                    Ok(Err(error)) => error,
                    // Others may have joined: the host ends with the last.
                    _ => std::future::pending().await,
                }
            };
            let outcome = tokio::select! {
                () = host.unused() => Ok(()),
                () = deadline::heard(&mut ends) => {
                    // Its own client has gone: the door ends what is under way for it, as it does for any other client.
                    own.try_iter().for_each(|stream| _ = stream.shutdown(Shutdown::Both));
                    _ = tokio::time::timeout(LETTING_GO, host.idle()).await;
                    Ok(())
                }
                error = failed => Err(error),
            };
            host.down().await;
            outcome
        });
        runtime.shutdown_background();
        Ok(served?)
    }
}

/// Passes bytes on between the standard streams and the host, until one of them ends.
fn pass_on(connection: HostConnection) -> Result<()> {
    let (stream, unread) = connection.into_stream();
    let writer = stream.try_clone()?;
    std::thread::spawn(move || {
        copy(&mut std::io::stdin().lock(), &mut &writer);
        // The host notices that nothing more comes, and ends the connection.
        _ = writer.shutdown(Shutdown::Write);
    });
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&unread)?;
    stdout.flush()?;
    copy(&mut &stream as &mut &UnixStream, &mut stdout);
    Ok(())
}

/// Copies until an end or an error, which is an end as well.
fn copy(from: &mut impl Read, to: &mut impl Write) {
    let mut room = vec![0; 64 << 10];
    loop {
        match from.read(&mut room) {
            Ok(0) => return,
            Ok(count) => {
                if to.write_all(&room[..count]).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => (),
            Err(_) => return,
        }
    }
}
