//! A listener for clients that are not trusted: serves the routes of [`axum`], over TLS if it is given a certificate.
//!
//! A client has little time for the head of a request, and must take what it asked for: one that does not read is cut. There is
//! room for a fixed number of connections. When they are all taken, the oldest one whose client has not shown who it is makes
//! room, so that silent connections keep nobody out. Used by `src/doors`.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use acheron_base::{Error, Result};

/// The times and numbers that a listener allows.
#[derive(Clone, Copy, Debug)]
pub struct RouterLimits {
    /// For the handshake of TLS, and for the head of a request: also the time for which a connection may be idle.
    pub head_time: Duration,
    /// For which a client may not take anything of what is sent to it.
    pub stall_time: Duration,
    /// For what is under way when the listener is closed.
    pub end_time: Duration,
    pub connections: usize,
    /// The largest head of a request.
    pub head_bytes: usize,
}

impl Default for RouterLimits {
    fn default() -> Self {
        RouterLimits {
            head_time: Duration::from_secs(20),
            stall_time: Duration::from_secs(30),
            end_time: Duration::from_secs(3),
            connections: 1024,
            head_bytes: 64 << 10,
        }
    }
}

/// Stands in the extensions of every request: the connection on which it came. Whoever knows the client says so.
#[derive(Clone, Debug, Default)]
pub struct RequestConnection(Arc<AtomicBool>);

impl RequestConnection {
    /// The client has shown who it is.
    pub fn set_known(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The configuration of TLS from a chain of certificates and a key, both in PEM files.
pub fn tls_from_files(certificates: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let about = |path: &Path, why: &dyn std::fmt::Display| Error::invalid(format!("{}: {why}", path.display()));
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect)
        .map_err(|err| about(certificates, &err))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|err| about(key, &err))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|err| Error::internal(err.to_string()))?;
    let mut config =
        builder.with_no_client_auth().with_single_cert(chain, secret).map_err(|err| about(certificates, &err))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A listener that is served. Dropping it ends everything at once.
pub struct RouterListener {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl RouterListener {
    /// Takes no more requests, and waits a little for those that are under way.
    pub async fn close(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            _ = task.await; // a panic was told
        }
    }
}

impl Drop for RouterListener {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Serves a listener. Must be called within a runtime.
pub fn serve_router(
    listener: std::net::TcpListener,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    limits: RouterLimits,
) -> Result<RouterListener> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let stop = CancellationToken::new();
    let task = tokio::spawn(accept(listener, tls.map(TlsAcceptor::from), router, limits, stop.clone()));
    Ok(RouterListener { stop, task: Some(task) })
}

/// The connections are in the set of this task: if it is aborted, they end with it.
async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: RouterLimits,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    let mut open: VecDeque<(AbortHandle, RequestConnection)> = VecDeque::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept(), if connections.len() < limits.connections || has_unknown(&open) => match accepted {
                Ok((stream, _)) => {
                    open.retain(|(task, _)| !task.is_finished());
                    if connections.len() >= limits.connections && let Some(at) = oldest_unknown(&open) {
                        open.remove(at).inspect(|(task, _)| task.abort());
                    }
                    _ = stream.set_nodelay(true); // without it, small pieces wait for each other
                    let connection = RequestConnection::default();
                    let served = serve(stream, tls.clone(), router.clone(), limits, connection.clone(), stop.clone());
                    open.push_back((connections.spawn(served), connection));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await; // no descriptors left, for instance
                }
            },
            Some(_) = connections.join_next() => (),
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    _ = tokio::time::timeout(limits.end_time, ended).await;
}

fn oldest_unknown(open: &VecDeque<(AbortHandle, RequestConnection)>) -> Option<usize> {
    open.iter().position(|(task, connection)| !connection.0.load(Ordering::Relaxed) && !task.is_finished())
}

fn has_unknown(open: &VecDeque<(AbortHandle, RequestConnection)>) -> bool {
    oldest_unknown(open).is_some()
}

async fn serve(
    stream: tokio::net::TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: RouterLimits,
    connection: RequestConnection,
    stop: CancellationToken,
) {
    let stream = Unstalled { inner: stream, limit: limits.stall_time, stalled: None };
    let served = match tls {
        None => requests(stream, router, limits, connection, stop).await,
        Some(tls) => match tokio::time::timeout(limits.head_time, tls.accept(stream)).await {
            Ok(Ok(stream)) => requests(stream, router, limits, connection, stop).await,
            Ok(Err(error)) => return tracing::debug!(%error, "a client could not agree on TLS"),
            Err(_) => return,
        },
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    limits: RouterLimits,
    connection: RequestConnection,
    stop: CancellationToken,
) -> hyper::Result<()> {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        router.clone().call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head_bytes)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    tokio::select! {
        ended = served.as_mut() => return ended,
        () = stop.cancelled() => served.as_mut().graceful_shutdown(),
    }
    served.await
}

/// A stream that fails when its peer has not taken anything for too long.
struct Unstalled<S> {
    inner: S,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Unstalled<S> {
    fn noted<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unstalled<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unstalled<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.noted(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.noted(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
