//! Takes connections, by a unix socket or by TCP. Used by whoever serves a tree; uses the session.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerPidfd;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use super::session::{self, Ended};
use super::{Peer, Server};
use acheron_base::{Error, Result};

/// The number of connections at the same time; more wait.
const MOST: usize = 256;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `unix:PATH`: the system says which process is at the other end.
    Unix(PathBuf),
    /// `tcp:ADDRESS:PORT`.
    Tcp(SocketAddr),
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Address::Unix(path.into()));
        }
        let address = text.strip_prefix("tcp:").and_then(|address| address.parse().ok());
        address
            .map(Address::Tcp)
            .ok_or_else(|| Error::invalid(format!("`{text}` is not an address: write unix:PATH or tcp:127.0.0.1:PORT")))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// A listener that is served. Dropping it ends it with all its connections.
pub struct Listening {
    /// Where it listens; the port is the one that the system chose, if none was named.
    pub address: Address,
    _accepting: AbortOnDropHandle<()>,
    _stop: DropGuard,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            _ = std::fs::remove_file(path);
        }
    }
}

/// Serves a tree at this address, for the user of this process alone if it is a unix socket. Must be called within a runtime.
pub async fn listen(server: Arc<Server>, address: &Address) -> Result<Listening> {
    let stop = CancellationToken::new();
    let failed = |error: std::io::Error| Error::from(error).about(address);
    let (address, accepting) = match address {
        Address::Unix(path) => {
            replace_dead_socket(path).await?;
            let listener = UnixListener::bind(path).map_err(failed)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
            (address.clone(), tokio::spawn(accept_unix(server, listener, stop.clone())))
        }
        Address::Tcp(wanted) => {
            let listener = TcpListener::bind(wanted).await.map_err(failed)?;
            let address = Address::Tcp(listener.local_addr()?);
            (address, tokio::spawn(accept_tcp(server, listener, stop.clone())))
        }
    };
    Ok(Listening { address, _accepting: AbortOnDropHandle::new(accepting), _stop: stop.drop_guard() })
}

/// A socket that nobody serves was left by a server that was killed. Anything else is not ours to remove.
async fn replace_dead_socket(path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    let dead = is_socket
        && UnixStream::connect(path).await.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
    if dead {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

async fn accept_unix(server: Arc<Server>, listener: UnixListener, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= MOST {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                let Some(peer) = peer(&stream) else { continue };
                connections.spawn(serve(server.clone(), stream, Some(peer), stop.clone()));
            }
            Err(error) => failed_to_accept(&error).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn accept_tcp(server: Arc<Server>, listener: TcpListener, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= MOST {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                _ = stream.set_nodelay(true); // messages are small, and each is waited for
                connections.spawn(serve(server.clone(), stream, None, stop.clone()));
            }
            Err(error) => failed_to_accept(&error).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// `None` for a process that is gone already.
fn peer(stream: &UnixStream) -> Option<Peer> {
    let credentials = stream.peer_cred().ok()?;
    let process = Arc::new(getsockopt(stream, PeerPidfd).ok()?);
    let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
    Some(Peer { uid: credentials.uid(), gid: credentials.gid(), pid, process })
}

/// Out of descriptors, perhaps: others may be closed soon.
async fn failed_to_accept(error: &std::io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn serve<S>(server: Arc<Server>, stream: S, peer: Option<Peer>, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    match session::serve(server, stream, peer, stop).await {
        Ended::Closed | Ended::Stopped | Ended::Revoked => (),
        Ended::Broken(why) => tracing::info!(why, "a connection was cut"),
    }
}
