//! A server at a URL (streamable HTTP): each message is a POST, whose answer is JSON or a stream of events; a GET listens for
//! what comes unasked.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::peer::Peer;
use acheron_base::{Error, Random, Result};
use acheron_http::{Http, OpenAnswer, Request, Secret, error_summary, sse};
use acheron_mcp::{LONGEST_MESSAGE, message};
use acheron_vfs::Log;

/// A call ends by its deadline, not by silence.
const SILENCE: Duration = Duration::from_secs(3600);
/// The pause before a stream that ended is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// A server at a URL.
pub struct HttpServer {
    pub http: Http,
    pub url: String,
    pub token: Option<Secret>,
    pub random: Random,
}

/// What the server said at the handshake, for all later requests.
#[derive(Clone, Default)]
struct SessionHeaders {
    session: Option<String>,
    protocol: Option<String>,
}

type PendingExchange<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl HttpServer {
    /// Moves messages until the session is over; returns the reason.
    pub async fn drive(&self, peer: &Arc<Peer>, mut out: mpsc::Receiver<Value>, log: &Log) -> Error {
        let headers = Mutex::new(SessionHeaders::default());
        let mut exchanges: FuturesUnordered<PendingExchange<'_>> = FuturesUnordered::new();
        let mut open: HashMap<u64, CancellationToken> = HashMap::new();
        loop {
            let message = tokio::select! {
                Some(ended) = exchanges.next(), if !exchanges.is_empty() => match ended {
                    Ok(()) => continue,
                    Err(error) => return error,
                },
                message = out.recv() => match message {
                    Some(message) => message,
                    None => return Error::unavailable("the connection is over"),
                },
            };
            open.retain(|_, cancelled| !cancelled.is_cancelled());
            let cancelled = CancellationToken::new();
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            if let Some(id) = message["id"].as_u64() {
                open.insert(id, cancelled.clone());
            }
            if let Some(id) = message["params"]["requestId"].as_u64().filter(|_| method == "notifications/cancelled")
                && let Some(under_way) = open.remove(&id)
            {
                under_way.cancel();
            }
            if method == "notifications/initialized" {
                // The server knows it before anything else comes.
                if let Err(error) = self.post(peer, &headers, message, cancelled, log).await {
                    return error;
                }
                exchanges.push(Box::pin(self.listen(peer, &headers, log)));
                continue;
            }
            exchanges.push(Box::pin(self.post(peer, &headers, message, cancelled, log)));
        }
    }

    fn request(&self, headers: &Mutex<SessionHeaders>, body: Option<&Value>) -> Request {
        let mut request = match body {
            Some(body) => Request::post(self.url.clone(), body),
            None => Request::get(self.url.clone()),
        };
        request.headers.push(("accept".into(), "application/json, text/event-stream".to_owned()));
        let SessionHeaders { session, protocol } = headers.lock().clone();
        request.headers.extend(session.map(|id| ("mcp-session-id".into(), id)));
        let meta = body.map(|body| &body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]);
        let protocol = meta.and_then(Value::as_str).map(str::to_owned).or(protocol);
        request.headers.extend(protocol.map(|version| ("mcp-protocol-version".into(), version)));
        if let Some(body) = body {
            let word = |value: &Value| {
                value.as_str().filter(|word| word.is_ascii() && !word.contains(char::is_control)).map(str::to_owned)
            };
            request.headers.extend(word(&body["method"]).map(|method| ("mcp-method".into(), method)));
            let name = word(&body["params"]["name"]).or_else(|| word(&body["params"]["uri"]));
            request.headers.extend(name.map(|name| ("mcp-name".into(), name)));
        }
        request.secret = self.token.clone().map(|token| ("authorization", "Bearer ", token));
        request.limit = u64::MAX; // each event is bounded, and so is a whole answer below
        (request.first_byte, request.idle) = (Some(SILENCE), Some(SILENCE));
        request
    }

    fn dice(&self) -> StdRng {
        StdRng::seed_from_u64(self.random.number())
    }

    /// Sends one message and takes what it is answered with. An error is the end of the session.
    async fn post(
        &self,
        peer: &Arc<Peer>,
        headers: &Mutex<SessionHeaders>,
        message: Value,
        cancelled: CancellationToken,
        log: &Log,
    ) -> Result<()> {
        let id = message["id"].as_u64().filter(|_| message["method"].is_string());
        let exchange = async {
            let mut answer = self
                .http
                .open(&self.request(headers, Some(&message)), &mut self.dice())
                .await
                .map_err(|failure| Error::unavailable(failure.error.message))?;
            if message["method"] == "initialize"
                && let Some(session) = answer.header("mcp-session-id")
            {
                headers.lock().session = Some(session.to_owned());
            }
            match (answer.status, answer.content_type().as_str()) {
                (200..=299, "text/event-stream") => events(&mut answer, peer, headers, log).await?,
                (200..=299, _) => {
                    let body = whole(&mut answer).await?;
                    take(peer, headers, &body, log);
                }
                (404, _) if headers.lock().session.is_some() => {
                    return Err(Error::unavailable("the server has ended the session"));
                }
                (status, _) => {
                    let body = whole(&mut answer).await.unwrap_or_default();
                    // A refusal may be a message, which says more.
                    take(peer, headers, &body, log);
                    if let Some(id) = id {
                        let said = error_summary(&body);
                        peer.fail(id, Error::unavailable(format!("the server answered {status}: {said}")));
                    }
                }
            }
            if let Some(id) = id {
                peer.fail(id, Error::unavailable("the server ended its answer without a result"));
            }
            Ok(())
        };
        let ended = tokio::select! {
            () = cancelled.cancelled() => Ok(()),
            ended = exchange => ended,
        };
        cancelled.cancel(); // it is over, whatever comes
        ended
    }

    /// Listens for what the server sends unasked, if it offers that.
    async fn listen(&self, peer: &Arc<Peer>, headers: &Mutex<SessionHeaders>, log: &Log) -> Result<()> {
        loop {
            let opened = self.http.open(&self.request(headers, None), &mut self.dice()).await;
            let mut answer = opened.map_err(|failure| Error::unavailable(failure.error.message))?;
            match answer.status {
                200..=299 if answer.content_type() == "text/event-stream" => {}
                404 if headers.lock().session.is_some() => {
                    return Err(Error::unavailable("the server has ended the session"));
                }
                _ => return Ok(()), // it offers none
            }
            if let Err(error) = events(&mut answer, peer, headers, log).await {
                log.line(&format!("the stream of notices broke: {error}"));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// Takes the messages of a stream until it ends.
async fn events(answer: &mut OpenAnswer, peer: &Arc<Peer>, headers: &Mutex<SessionHeaders>, log: &Log) -> Result<()> {
    let mut decoder = sse::Decoder::default();
    while let Some(chunk) = answer.chunk().await.map_err(|failure| Error::unavailable(failure.error.message))? {
        for event in decoder.feed(&chunk).map_err(|error| Error::unavailable(error.message))? {
            // The first event of a stream may be empty.
            take(peer, headers, event.data.as_bytes(), log);
        }
    }
    Ok(())
}

async fn whole(answer: &mut OpenAnswer) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|failure| Error::unavailable(failure.error.message))? {
        all.extend_from_slice(&chunk);
        if all.len() > LONGEST_MESSAGE {
            return Err(Error::unavailable(format!("the server sent a message longer than {LONGEST_MESSAGE} bytes")));
        }
    }
    Ok(all)
}

fn take(peer: &Arc<Peer>, headers: &Mutex<SessionHeaders>, bytes: &[u8], log: &Log) {
    for incoming in message::read(bytes) {
        if let acheron_mcp::Incoming::Answer { outcome: Ok(result), .. } = &incoming
            && let Some(version) = result["protocolVersion"].as_str()
        {
            let mut headers = headers.lock();
            let plain = version.len() < 40 && version.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if plain && headers.protocol.is_none() {
                headers.protocol = Some(version.to_owned());
            }
        }
        if let Some(line) = peer.receive(incoming) {
            log.line(&line);
        }
    }
}
