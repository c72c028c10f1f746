//! A small HTTP/1.1 server for programs on this machine: one function answers every request of one listener.
//!
//! A body that is streamed is polled by its connection: when the client goes away, it is dropped, and with it whatever it holds.
//! Used by `src/gateway`.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use acheron_base::{Error, Result};

/// How long a client may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a client may be silent within the body of a request.
const BODY_SILENCE: Duration = Duration::from_secs(60);
/// The number of connections of one listener at the same time; more wait.
const MAX_CONNECTIONS: usize = 512;
/// The bytes of all bodies that one listener holds at the same time, from their first byte to the end of the answer: many
/// clients with large bodies must not fill the memory of the host.
const MAX_HELD: usize = 64 << 20;

/// The head of a request that has come, and its body, which has not been read.
pub struct IncomingRequest {
    pub method: String,
    pub path: String,
    pub query: Option<String>,
    /// The headers whose values are text, with names in lower case.
    pub headers: Vec<(String, String)>,
    body: Incoming,
    held: Arc<HeldBytes>,
}

/// What one request holds of the room for bodies, until it is answered.
struct HeldBytes {
    own: AtomicUsize,
    all: Arc<AtomicUsize>,
}

impl HeldBytes {
    fn none_of(all: &Arc<AtomicUsize>) -> Arc<HeldBytes> {
        Arc::new(HeldBytes { own: AtomicUsize::new(0), all: all.clone() })
    }

    fn take(&self, bytes: usize) -> Result<()> {
        let room = |held: usize| held.checked_add(bytes).filter(|held| *held <= MAX_HELD);
        if self.all.fetch_update(Ordering::SeqCst, Ordering::SeqCst, room).is_err() {
            return Err(Error::busy(format!(
                "requests with {MAX_HELD} bytes together are under way: wait for the end of one of them"
            )));
        }
        self.own.fetch_add(bytes, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

impl IncomingRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reads the whole body, up to `limit` bytes.
    pub async fn read(mut self, limit: usize) -> Result<Bytes> {
        let mut whole = BytesMut::new();
        loop {
            let frame = tokio::time::timeout(BODY_SILENCE, self.body.frame()).await;
            let frame = frame.map_err(|_| Error::timeout("the rest of the body of the request has not come"))?;
            let Some(frame) = frame else { return Ok(whole.freeze()) };
            let frame =
                frame.map_err(|error| Error::invalid(format!("the body of the request could not be read: {error}")))?;
            let Ok(piece) = frame.into_data() else { continue };
            if whole.len() + piece.len() > limit {
                return Err(Error::too_large(format!("the body of the request is larger than {limit} bytes")));
            }
            self.held.take(piece.len())?;
            whole.extend_from_slice(&piece);
        }
    }
}

/// Pieces of a body. An error breaks the connection, so that the client does not take the body for whole.
pub type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

pub enum OutgoingBody {
    Whole(Bytes),
    Stream(BodyStream),
}

/// The answer to a request.
pub struct OutgoingAnswer {
    pub status: u16,
    /// A header that cannot be sent is left out.
    pub headers: Vec<(String, String)>,
    pub body: OutgoingBody,
}

impl OutgoingAnswer {
    pub fn json(status: u16, body: &serde_json::Value) -> OutgoingAnswer {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        OutgoingAnswer { status, headers, body: OutgoingBody::Whole(Bytes::from(body.to_string())) }
    }
}

/// Answers the requests of a listener. Dropping the future of a request cancels it: its client is gone.
pub trait RequestHandler: Send + Sync + 'static {
    fn answer(self: Arc<Self>, request: IncomingRequest) -> impl Future<Output = OutgoingAnswer> + Send;
}

/// A listener that is served. Dropping it closes the listener and all its connections.
pub struct ServedListener(pub(super) JoinHandle<()>);

impl Drop for ServedListener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Serves a listener until what is returned is dropped. Must be called within a runtime.
pub fn serve(listener: std::net::TcpListener, handler: Arc<impl RequestHandler>) -> Result<ServedListener> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let held = Arc::new(AtomicUsize::new(0));
    let each = move |stream| connection(stream, handler.clone(), held.clone());
    Ok(ServedListener(tokio::spawn(accept(listener, each))))
}

/// The connections are in the set of this task: if it is aborted, they end with it.
pub(super) async fn accept<C: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    each: impl Fn(tokio::net::TcpStream) -> C,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    _ = stream.set_nodelay(true); // without it, small pieces wait for each other
                    connections.spawn(each(stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await; // no descriptors left, for instance
                }
            },
            Some(_) = connections.join_next() => (),
        }
    }
}

async fn connection(stream: tokio::net::TcpStream, handler: Arc<impl RequestHandler>, held: Arc<AtomicUsize>) {
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (handler, held) = (handler.clone(), HeldBytes::none_of(&held));
        async move {
            let answer = handler.answer(incoming(request, held.clone())).await;
            Ok::<_, Infallible>(response(answer, held))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn incoming(request: hyper::Request<Incoming>, held: Arc<HeldBytes>) -> IncomingRequest {
    let (head, body) = request.into_parts();
    let headers = head.headers.iter();
    let headers = headers.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    IncomingRequest {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().map(str::to_owned),
        headers: headers.collect(),
        body,
        held,
    }
}

type ResponseBody = UnsyncBoxBody<Bytes, Error>;

fn response(answer: OutgoingAnswer, held: Arc<HeldBytes>) -> hyper::Response<ResponseBody> {
    let body = match answer.body {
        OutgoingBody::Whole(bytes) => Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync(),
        OutgoingBody::Stream(pieces) => StreamBody::new(Frames { pieces, _held: held }).boxed_unsync(),
    };
    let mut response = hyper::Response::new(body);
    *response.status_mut() = hyper::StatusCode::from_u16(answer.status).unwrap_or(hyper::StatusCode::BAD_GATEWAY);
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// The pieces of a body as frames; the request is held until the last of them.
struct Frames {
    pieces: BodyStream,
    _held: Arc<HeldBytes>,
}

impl Stream for Frames {
    type Item = Result<Frame<Bytes>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pieces.as_mut().poll_next(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests;
