//! The connection of one host to the server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, HeaderMap, Message, Request, RequestErrorKind, ServerAddr};
use bytes::Bytes;

use crate::LinkFault;
use acheron_base::{Error, Result};
use acheron_fabric::{engine, names, subjects};

/// How long the server may take to answer, and to be reached.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(5);
/// A server that is silent for two of these is taken for gone.
const PING: Duration = Duration::from_secs(5);
/// The pause between two attempts to connect again, at most.
const PAUSE: Duration = Duration::from_secs(2);
/// Of the complaints of the client, one in so many is logged.
const COMPLAINTS: u64 = 1000;

#[derive(Clone, Debug, Default)]
pub struct LinkOptions {
    /// `nats://host:port`, or several with commas between them.
    pub url: String,
    /// The name of this host.
    pub node: String,
    /// The seed of its key, if the server wants one.
    pub seed: Option<String>,
    /// A file with the certificates that the server's is checked against; then the connection is encrypted.
    pub roots: Option<PathBuf>,
}

/// A connection. It connects again by itself; what it loses by that has no answer.
#[derive(Clone)]
pub struct Link {
    pub(crate) client: Client,
    node: Arc<str>,
    is_up: Arc<AtomicBool>,
}

impl Link {
    /// Connects, and refuses a server that is too old.
    pub async fn connect(options: &LinkOptions) -> Result<Link> {
        names::check_node(&options.node)?;
        // If another part of the program was first, its choice is the same.
        _ = rustls::crypto::ring::default_provider().install_default();
        let addresses: Vec<ServerAddr> =
            options.url.split(',').map(|url| address(url.trim())).collect::<Result<_>>()?;
        let is_up = Arc::new(AtomicBool::new(true));
        let (up, complaints) = (is_up.clone(), Arc::new(AtomicU64::new(0)));
        let mut connect = ConnectOptions::new()
            .name(format!("acheron {}", options.node))
            .custom_inbox_prefix(subjects::inbox(&options.node))
            .connection_timeout(CONNECT)
            .ping_interval(PING)
            .request_timeout(Some(ANSWER))
            .reconnect_delay_callback(|attempts| Duration::from_millis(50 << attempts.min(5)).min(PAUSE))
            .event_callback(move |event| {
                match &event {
                    Event::Connected => up.store(true, Ordering::SeqCst),
                    Event::Disconnected | Event::Closed => up.store(false, Ordering::SeqCst),
                    _ => (),
                }
                // A slow reader complains for every message that it loses.
                let count = complaints.fetch_add(1, Ordering::Relaxed);
                let is_news = matches!(event, Event::Connected | Event::Disconnected);
                if is_news || count.is_multiple_of(COMPLAINTS) {
                    tracing::info!(%event, count, "fabric");
                }
                async {}
            });
        if let Some(seed) = &options.seed {
            connect = connect.nkey(seed.trim().to_owned());
        }
        if let Some(roots) = &options.roots {
            connect = connect.add_root_certificates(roots.clone()).require_tls(true);
        }
        let client = connect.connect(addresses).await.map_err(|err| unreachable(&options.url, &err.to_string()))?;
        let info = client.server_info();
        engine::check_version(&info.version, info.jetstream)?;
        Ok(Link { client, node: options.node.as_str().into(), is_up })
    }

    /// The name of this host.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The version of the server.
    pub fn version(&self) -> String {
        self.client.server_info().version
    }

    /// Whether there is a connection now.
    pub fn is_up(&self) -> bool {
        self.is_up.load(Ordering::SeqCst)
    }

    /// Asks, and waits at most so long for the answer.
    pub async fn ask(&self, subject: String, body: Bytes, within: Duration) -> Result<Bytes, LinkFault> {
        Ok(self.request(subject, None, body, within).await?.payload)
    }

    pub(crate) async fn request(
        &self,
        subject: String,
        headers: Option<HeaderMap>,
        body: Bytes,
        within: Duration,
    ) -> Result<Message, LinkFault> {
        let mut request = Request::new().payload(body).timeout(Some(within));
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        // The client's own time-out begins when the message has left its queue, which may be full.
        let answer = tokio::time::timeout(within + ANSWER, self.client.send_request(subject, request));
        match answer.await {
            Ok(Ok(message)) => Ok(message),
            Ok(Err(error)) => Err(match error.kind() {
                RequestErrorKind::NoResponders => LinkFault::Nobody,
                RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                    LinkFault::Refused { code: 0, sentence: error.to_string() }
                }
                RequestErrorKind::TimedOut | RequestErrorKind::Other => LinkFault::unknown(error),
            }),
            Err(late) => Err(LinkFault::unknown(late)),
        }
    }

    /// Tells whoever listens. Nothing depends on it.
    pub async fn tell(&self, subject: String, body: Bytes) {
        _ = tokio::time::timeout(ANSWER, self.client.publish(subject, body)).await;
    }

    /// Sends what is queued and ends the connection.
    pub async fn close(&self) {
        _ = tokio::time::timeout(ANSWER, self.client.drain()).await;
    }
}

fn address(url: &str) -> Result<ServerAddr> {
    url.parse()
        .map_err(|err| Error::invalid(format!("{url:?} is not the URL of a NATS server (nats://host:port): {err}")))
}

fn unreachable(url: &str, cause: &str) -> Error {
    // A refusal of the credentials is in the words of the server.
    let hint = match cause.to_lowercase().contains("authorization") {
        true => {
            "; are these the credentials that `acheron fabric credentials` made for this host, and has the server its key?"
        }
        false => "",
    };
    Error::unavailable(format!("the NATS server {url} cannot be reached: {cause}{hint}"))
}
