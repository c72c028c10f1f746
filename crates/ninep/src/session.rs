//! One connection: takes requests, answers each when its answer is there, cancels what is flushed. Used by the listener; uses
//! the messages and the requests.
//!
//! One task owns the connection, so that the order of replies is decided in one place: a reply is queued for the socket
//! exactly when its request is removed from the pending ones, and a flush looks there. A request that waits is a future, and
//! costs no thread.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::message::{HEAD, NO_TAG, Reply, Request};
use super::requests::{OVERHEAD, View, changes};
use super::{Peer, Server};
use acheron_base::Error;

/// The largest message that is agreed to.
const MSIZE: u32 = 128 * 1024 + OVERHEAD;
/// The smallest: a directory entry and the longest name must fit.
const SMALLEST: u32 = 1024;
/// The number of requests of one connection that wait.
const MOST_PENDING: usize = 4096;
/// The bytes that these requests hold.
const PENDING_BYTES: usize = 8 << 20;
/// How long a client may take for the first message, for the rest of a message that has begun, and to take a reply.
const SLOW: Duration = Duration::from_secs(30);

/// Why a connection ended, for the log.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client has closed it.
    Closed,
    /// The server goes down.
    Stopped,
    /// The rights of the client were taken away.
    Revoked,
    /// It sent something that is no message, or was too slow.
    Broken(&'static str),
}

/// A message as it came: its type, its tag and its body.
type Frame = (u8, u16, Bytes);

/// What has been answered: the tag of a request, and its reply unless it was cancelled.
type Answered = Pin<Box<dyn Future<Output = (u16, u64, Option<Reply>)> + Send>>;

struct Pending {
    /// Tells this request from an earlier one with the same tag.
    number: u64,
    /// Cancels it; `None` if it must be ended.
    cancel: Option<AbortHandle>,
    bytes: usize,
    /// The tags of flushes that wait for its end.
    flushes: Vec<u16>,
}

/// Serves one connection until its end.
pub async fn serve<S>(server: Arc<Server>, stream: S, peer: Option<Peer>, stop: CancellationToken) -> Ended
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, mut writer) = tokio::io::split(stream);
    let (sender, mut outgoing) = mpsc::channel::<Vec<u8>>(64);
    let writing = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            match timeout(SLOW, writer.write_all(&message)).await {
                Ok(Ok(())) => (),
                _ => return false,
            }
        }
        _ = writer.shutdown().await;
        true
    }));
    let (frames, incoming) = mpsc::channel(16);
    let reading = AbortOnDropHandle::new(tokio::spawn(read(reader, frames)));
    let cut = CancellationToken::new();
    let _over = cut.clone().drop_guard();
    let mut session = Session {
        view: Arc::new(view(&server, peer.clone(), &cut, SMALLEST)),
        cut: cut.clone(),
        server,
        peer,
        agreed: false,
        pending: HashMap::new(),
        held: 0,
        next: 0,
        running: FuturesUnordered::new(),
        outgoing: sender,
    };
    let ended = tokio::select! {
        ended = session.run(incoming) => ended,
        () = stop.cancelled() => Ended::Stopped,
        () = cut.cancelled() => Ended::Revoked,
    };
    drop(session);
    drop(reading);
    // What was answered reaches the client, if it takes it.
    _ = timeout(Duration::from_secs(1), writing).await;
    ended
}

fn view(server: &Server, peer: Option<Peer>, cut: &CancellationToken, msize: u32) -> View {
    View {
        cut: cut.clone(),
        tree: server.tree.clone(),
        attach: server.attach.clone(),
        peer,
        numbering: server.numbering.clone(),
        fids: Default::default(),
        msize,
    }
}

struct Session {
    server: Arc<Server>,
    peer: Option<Peer>,
    cut: CancellationToken,
    /// What the fids of this session see; a new version begins a new one.
    view: Arc<View>,
    /// Whether a version was agreed on.
    agreed: bool,
    pending: HashMap<u16, Pending>,
    /// The bytes of all pending requests.
    held: usize,
    next: u64,
    running: FuturesUnordered<Answered>,
    outgoing: mpsc::Sender<Vec<u8>>,
}

impl Session {
    async fn run(&mut self, mut incoming: mpsc::Receiver<Result<Frame, Ended>>) -> Ended {
        loop {
            let sent = tokio::select! {
                biased;
                Some((tag, number, reply)) = self.running.next(), if !self.running.is_empty() => {
                    self.answered(tag, number, reply).await
                }
                frame = incoming.recv() => match frame {
                    Some(Ok(frame)) => self.take(frame).await,
                    Some(Err(ended)) => return ended,
                    None => return Ended::Closed,
                },
            };
            if !sent {
                return Ended::Broken("the client does not read its replies");
            }
        }
    }

    /// Queues a reply for the socket; false if the connection is gone.
    async fn send(&mut self, tag: u16, reply: &Reply) -> bool {
        matches!(timeout(SLOW, self.outgoing.send(reply.write(tag))).await, Ok(Ok(())))
    }

    async fn refuse(&mut self, tag: u16, error: &Error) -> bool {
        self.send(tag, &Reply::Lerror { errno: errno(error) }).await
    }

    /// A request is answered: its reply goes out, and then the flushes that waited for it.
    async fn answered(&mut self, tag: u16, number: u64, reply: Option<Reply>) -> bool {
        // A cancelled request has left already, and its tag may be another's.
        if self.pending.get(&tag).is_none_or(|pending| pending.number != number) {
            return true;
        }
        let Some(Pending { bytes, flushes, .. }) = self.pending.remove(&tag) else { return true };
        self.held -= bytes;
        let mut sent = match reply {
            Some(reply) => self.send(tag, &reply).await,
            None => true,
        };
        for flush in flushes {
            sent = sent && self.send(flush, &Reply::Flush {}).await;
        }
        sent
    }

    async fn take(&mut self, (number, tag, body): Frame) -> bool {
        let bytes = body.len();
        let request = match Request::read(number, body) {
            Some(Ok(request)) => request,
            Some(Err(_)) => return self.refuse(tag, &Error::invalid("the message is malformed")).await,
            None => return self.refuse(tag, &Error::unknown_operation("there is no such message")).await,
        };
        match request {
            Request::Version { msize, version } => self.begin(tag, msize, &version).await,
            _ if !self.agreed => self.refuse(tag, &Error::invalid("the first message is a version")).await,
            Request::Flush { old_tag } => self.flush(tag, old_tag).await,
            _ if tag == NO_TAG || self.pending.contains_key(&tag) => {
                self.refuse(tag, &Error::invalid("the tag is in use")).await
            }
            _ if self.pending.len() >= MOST_PENDING || self.held + bytes > PENDING_BYTES => {
                self.refuse(tag, &Error::busy("too many requests of this connection wait")).await
            }
            request => {
                self.start(tag, bytes, request);
                true
            }
        }
    }

    /// A new session: nothing of the one before is left.
    async fn begin(&mut self, tag: u16, msize: u32, version: &str) -> bool {
        self.running = FuturesUnordered::new();
        self.pending.clear();
        self.held = 0;
        let msize = msize.min(MSIZE);
        self.agreed = version.starts_with("9P2000.L") && msize >= SMALLEST;
        self.view = Arc::new(view(&self.server, self.peer.clone(), &self.cut, msize.max(SMALLEST)));
        let version = if self.agreed { "9P2000.L" } else { "unknown" };
        self.send(tag, &Reply::Version { msize, version: version.to_owned() }).await
    }

    fn start(&mut self, tag: u16, bytes: usize, request: Request) {
        let number = self.next;
        self.next += 1;
        let (begun, view) = (changes(&request), self.view.clone());
        let answer = async move { view.answer(request).await };
        // A panic is the error of one request.
        let answer = AssertUnwindSafe(answer).catch_unwind().map(|outcome| match outcome {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => Reply::Lerror { errno: errno(&error) },
            Err(_) => {
                tracing::error!("a request could not be served");
                Reply::Lerror { errno: libc::EIO as u32 }
            }
        });
        let cancel = if begun {
            // It ends whatever becomes of the connection: what was written is not undone.
            let answer = tokio::spawn(answer);
            let gone = Reply::Lerror { errno: libc::EIO as u32 };
            self.running.push(Box::pin(async move { (tag, number, Some(answer.await.unwrap_or(gone))) }));
            None
        } else {
            let (cancel, registration) = AbortHandle::new_pair();
            let answer = Abortable::new(answer, registration);
            self.running.push(Box::pin(async move { (tag, number, answer.await.ok()) }));
            Some(cancel)
        };
        self.held += bytes;
        self.pending.insert(tag, Pending { number, cancel, bytes, flushes: Vec::new() });
    }

    /// Always answered: at once if the request was cancelled or is gone, after its reply if it must be ended.
    async fn flush(&mut self, tag: u16, old_tag: u16) -> bool {
        match self.pending.get_mut(&old_tag) {
            Some(Pending { cancel: None, flushes, .. }) => {
                flushes.push(tag);
                return flushes.len() <= MOST_PENDING;
            }
            Some(Pending { cancel: Some(cancel), bytes, .. }) => {
                cancel.abort();
                self.held -= *bytes;
                self.pending.remove(&old_tag);
            }
            None => (),
        }
        self.send(tag, &Reply::Flush {}).await
    }
}

/// Reads messages until the connection ends.
async fn read(mut from: impl AsyncRead + Unpin, to: mpsc::Sender<Result<Frame, Ended>>) {
    let mut first = true;
    loop {
        let frame = match first {
            true => timeout(SLOW, next(&mut from)).await.unwrap_or(Err(Ended::Broken("no message came"))),
            false => next(&mut from).await,
        };
        first = false;
        let ends = frame.is_err();
        if to.send(frame).await.is_err() || ends {
            return;
        }
    }
}

async fn next(from: &mut (impl AsyncRead + Unpin)) -> Result<Frame, Ended> {
    let mut head = [0; HEAD];
    // A client may be silent for as long as it likes between two messages, but not within one.
    if from.read_exact(&mut head[..1]).await.is_err() {
        return Err(Ended::Closed);
    }
    let rest = async {
        from.read_exact(&mut head[1..]).await.map_err(|_| Ended::Closed)?;
        let [a, b, c, d, number, low, high] = head;
        let size = u32::from_le_bytes([a, b, c, d]);
        if size < HEAD as u32 || size > MSIZE {
            return Err(Ended::Broken("the size of a message is wrong"));
        }
        let mut body = BytesMut::zeroed(size as usize - HEAD);
        from.read_exact(&mut body).await.map_err(|_| Ended::Closed)?;
        Ok((number, u16::from_le_bytes([low, high]), body.freeze()))
    };
    timeout(SLOW, rest).await.unwrap_or(Err(Ended::Broken("a message was not completed in time")))
}

/// Creation that a directory does not offer is `EACCES`, as on the mount: programs take `EPERM` for a fault of the whole.
fn errno(error: &Error) -> u32 {
    match error.errno() {
        libc::EPERM => libc::EACCES as u32,
        other => other as u32,
    }
}
