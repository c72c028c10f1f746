//! A proxy through which programs reach the hosts that rules name, and no others: `CONNECT`, and URLs of plain HTTP.
//!
//! The proxy resolves a name once, checks every address, and connects to an address that was checked: a name that leads
//! elsewhere a moment later makes no difference. What is decided is in `acheron-proxy`. Used by `src/host`.

mod dial;
mod relay;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::server::{ServedListener, accept};
use acheron_base::Result;
use acheron_proxy::{Destination, HostRefusal, HostRules, ProxyRequest};

/// How long a client may take to say where it wants to go.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The number of names that one proxy resolves at the same time: each takes a thread for as long as the resolver likes.
const RESOLUTIONS: usize = 8;
/// How long a client that was refused may take to read why.
const LINGER: Duration = Duration::from_secs(2);

/// Decides for one listener, and hears of what was decided.
pub trait ProxyPolicy: Send + Sync + 'static {
    /// The rules as they are now.
    fn rules(&self) -> HostRules;
    fn opened(&self, to: &Destination);
    fn refused(&self, to: &Destination, refusal: &HostRefusal);
}

/// Finds the addresses of a name.
#[async_trait]
pub trait ResolveHost: Send + Sync + 'static {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of this machine.
pub struct SystemResolver;

#[async_trait]
impl ResolveHost for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A proxy that is served. Dropping it closes the listener and every tunnel.
pub struct ServedProxy {
    changed: watch::Sender<()>,
    _listener: ServedListener,
}

impl ServedProxy {
    /// Ends the tunnels that the rules no longer allow.
    pub fn rules_changed(&self) {
        self.changed.send_replace(());
    }
}

/// Serves a listener until what is returned is dropped. Must be called within a runtime.
pub fn serve_proxy(
    listener: std::net::TcpListener,
    policy: Arc<dyn ProxyPolicy>,
    resolver: Arc<dyn ResolveHost>,
) -> Result<ServedProxy> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let (changed, changes) = watch::channel(());
    let resolutions = Arc::new(Semaphore::new(RESOLUTIONS));
    let each = move |client| {
        let (policy, resolver) = (policy.clone(), resolver.clone());
        let (resolutions, changes) = (resolutions.clone(), changes.clone());
        let proxy = ProxyConnection { policy, resolver, resolutions, changes };
        async move {
            if let Err(error) = proxy.serve(client).await {
                tracing::debug!(%error, "a connection to the proxy ended early");
            }
        }
    };
    Ok(ServedProxy { changed, _listener: ServedListener(tokio::spawn(accept(listener, each))) })
}

/// One connection of a client.
struct ProxyConnection {
    policy: Arc<dyn ProxyPolicy>,
    resolver: Arc<dyn ResolveHost>,
    resolutions: Arc<Semaphore>,
    changes: watch::Receiver<()>,
}

/// Why a client gets nothing, and the status of the answer.
struct ProxyFault {
    status: u16,
    why: String,
}

impl ProxyConnection {
    async fn serve(self, mut client: TcpStream) -> io::Result<()> {
        let read = tokio::time::timeout(HEAD_TIME, head(&mut client)).await;
        let (request, rest) = match read.unwrap_or(Ok(None))? {
            Some(Ok(read)) => read,
            Some(Err(fault)) => return refuse(client, fault).await,
            None => return Ok(()),
        };
        let to = match &request {
            ProxyRequest::Connect(to) | ProxyRequest::Forward { to, .. } => to.clone(),
        };
        let server = match self.dial(&to).await {
            Ok(server) => server,
            Err(fault) => return refuse(client, fault).await,
        };
        self.policy.opened(&to);
        match request {
            ProxyRequest::Connect(to) => self.tunnel(client, server, to, rest).await,
            ProxyRequest::Forward { head, body, .. } => relay::forward(client, server, &head, body, rest).await,
        }
    }
}

/// The head of a request, and what came after it; `None` if the client has gone.
async fn head(client: &mut TcpStream) -> io::Result<Option<Result<(ProxyRequest, Vec<u8>), ProxyFault>>> {
    let mut bytes = Vec::new();
    loop {
        match ProxyRequest::read(&bytes) {
            Ok(Some((request, size))) => return Ok(Some(Ok((request, bytes.split_off(size))))),
            Ok(None) if client.read_buf(&mut bytes).await? == 0 => return Ok(None),
            Ok(None) => (),
            Err(fault) => return Ok(Some(Err(ProxyFault { status: fault.status, why: fault.why }))),
        }
    }
}

/// Most clients show nothing but the first line, so it has the reason.
async fn refuse(mut client: TcpStream, fault: ProxyFault) -> io::Result<()> {
    let printable = |c: char| if c == ' ' || c.is_ascii_graphic() { c } else { '?' };
    let why: String = fault.why.chars().map(printable).collect();
    let (status, size) = (fault.status, why.len() + 1);
    let answer = format!(
        "HTTP/1.1 {status} {why}\r\ncontent-length: {size}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n{why}\n"
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await?;
    // If it were closed with something unread, the answer would be lost.
    let unread = async { while client.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {} };
    _ = tokio::time::timeout(LINGER, unread).await;
    Ok(())
}

#[cfg(test)]
mod tests;
