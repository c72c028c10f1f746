//! `host.sock` in the state directory: commands of the operator that must reach the host itself, and hold something of it for
//! as long as they run. One connection is one command (`src/host/commands.rs`).
//!
//! The socket is the operator's: mode 0600, and whoever connects must be the same user. A host that was started for such
//! commands alone ends with the last of them.

mod lines;

use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use super::{HostState, commands, upgrade};
use acheron_base::{Error, Result};

pub use lines::Lines;

/// The name in the state directory.
pub const NAME: &str = "host.sock";

/// The time for which a host that nobody uses any more waits for the next one: commands often follow each other.
const GRACE: Duration = Duration::from_secs(2);

/// Listens as long as it is held.
pub struct HostSocket {
    path: PathBuf,
    open: watch::Receiver<usize>,
    _accepting: AbortOnDropHandle<()>,
    /// Ends the commands that are under way.
    _down: DropGuard,
}

impl HostSocket {
    /// Listens for the commands of this host. Must be called within a runtime.
    pub fn open(host: &Arc<HostState>) -> Result<HostSocket> {
        let path = host.paths.state.join(NAME);
        // Only one host has this state at a time, so that one that is there was left by a host that is gone.
        _ = std::fs::remove_file(&path);
        let listener = bind(&host.paths.state)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let (count, open) = watch::channel(0);
        let count = Arc::new(count);
        let (host, down) = (Arc::downgrade(host), CancellationToken::new());
        let ending = down.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let stream = match listener.accept().await {
                    Ok((stream, _)) => stream,
                    // Out of descriptors, perhaps: others may be closed soon.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                };
                let own = rustix::process::getuid().as_raw();
                if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0) {
                    tracing::warn!("another user was refused at the socket of the host");
                    continue;
                }
                let Ok(host) = upgrade(&host) else { return };
                let (counted, down) = (CountedConnection::new(&count), ending.clone());
                tokio::spawn(async move {
                    let _counted = counted;
                    commands::serve(host, Lines::new(stream), down).await;
                });
            }
        });
        let _accepting = AbortOnDropHandle::new(accepting);
        Ok(HostSocket { path, open, _accepting, _down: down.drop_guard() })
    }

    /// Waits until nobody is connected.
    pub async fn idle(&self) {
        // The sender lives as long as the task that accepts, which lives as long as this.
        _ = self.open.clone().wait_for(|count| *count == 0).await;
    }

    /// Waits until somebody has come and all have gone.
    pub async fn unused(&self) {
        let mut open = self.open.clone();
        // The sender lives as long as the task that accepts, which lives as long as this.
        _ = open.wait_for(|count| *count > 0).await;
        loop {
            _ = open.wait_for(|count| *count == 0).await;
            if tokio::time::timeout(GRACE, open.wait_for(|count| *count > 0)).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for HostSocket {
    fn drop(&mut self) {
        // Whoever comes now starts a host of its own.
        _ = std::fs::remove_file(&self.path);
    }
}

/// A connection that counts.
struct CountedConnection(Arc<watch::Sender<usize>>);

impl CountedConnection {
    fn new(count: &Arc<watch::Sender<usize>>) -> CountedConnection {
        count.send_modify(|count| *count += 1);
        CountedConnection(count.clone())
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The address of a socket has room for 108 bytes; a path by descriptor is short whatever the directory is called.
fn bind(state: &Path) -> Result<UnixListener> {
    let directory = std::fs::File::open(state)?;
    let short = format!("/proc/self/fd/{}/{NAME}", directory.as_raw_fd());
    UnixListener::bind(short).map_err(|err| Error::from(err).about(state.join(NAME).display().to_string()))
}
