//! The one HTTP client: time-outs, retries, streaming, bounds, cancellation. Nothing else names reqwest.
//!
//! Knows nothing of models or of searches: it hands the bytes of an answer to whoever takes them. Redirections are not
//! followed, since a key must not travel to where it was not meant for. A secret is in the headers and nowhere else:
//! whatever a server says about it is blotted out before anyone reads it.

pub mod retry;
pub mod sse;

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use rand::RngCore;

use acheron_base::{Clock, Code, Error, Result};
pub use retry::{Again, Patience};

/// What a refusing server may say at length.
const COMPLAINT: usize = 64 << 10;

/// A word that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(word: impl Into<String>) -> Self {
        Secret(word.into())
    }

    /// The text without the secret in it.
    pub fn blotted(&self, text: &str) -> String {
        if self.0.len() < 4 { text.to_owned() } else { text.replace(&self.0, "[secret]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    /// A header whose value is a prefix and a secret, such as `Bearer `.
    pub secret: Option<(&'static str, &'static str, Secret)>,
    /// A body makes it a POST of JSON.
    pub body: Option<Vec<u8>>,
    /// More than this many bytes of answer is an error.
    pub limit: u64,
}

impl Request {
    pub fn get(url: impl Into<String>) -> Self {
        Request { url: url.into(), headers: Vec::new(), secret: None, body: None, limit: 16 << 20 }
    }

    pub fn post(url: impl Into<String>, body: &serde_json::Value) -> Self {
        Request { body: Some(body.to_string().into_bytes()), ..Request::get(url) }
    }

    fn blotted(&self, mut error: Error) -> Error {
        if let Some((_, _, secret)) = &self.secret {
            error.message = secret.blotted(&error.message);
        }
        error
    }
}

/// The head of an answer that is about to be read.
#[derive(Clone, Debug)]
pub struct Head {
    /// Lower case, without parameters; empty if the server did not say.
    pub content_type: String,
}

/// Whether more of the answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    More,
    Enough,
}

/// Why an attempt failed, and whether another may be made.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What the server answered, if it did.
    pub status: Option<u16>,
    pub error: Error,
    pub again: Again,
}

impl Failure {
    pub fn final_one(error: Error) -> Self {
        Failure { status: None, error, again: Again::Never }
    }

    pub fn passing(error: Error) -> Self {
        Failure { status: None, error, again: Again::After(None) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::final_one(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// Who reads an answer. Every attempt begins it anew.
pub trait Take: Send {
    fn begin(&mut self, head: &Head) -> Result<(), Failure>;
    fn chunk(&mut self, bytes: &[u8]) -> Result<Flow, Failure>;
    /// The server has said everything. A taker that misses something says so here.
    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Takes the whole body as bytes.
#[derive(Debug, Default)]
pub struct Whole(pub Vec<u8>);

impl Take for Whole {
    fn begin(&mut self, _: &Head) -> Result<(), Failure> {
        self.0.clear();
        Ok(())
    }

    fn chunk(&mut self, bytes: &[u8]) -> Result<Flow, Failure> {
        self.0.extend_from_slice(bytes);
        Ok(Flow::More)
    }
}

/// The client. Its connections are kept and shared.
#[derive(Debug)]
pub struct Http {
    patience: Patience,
    clock: Clock,
    /// For servers on this machine: neither a proxy nor certificates come into it.
    near: OnceLock<Result<reqwest::Client>>,
    far: OnceLock<Result<reqwest::Client>>,
}

impl Http {
    /// `clock` says how far away a moment is that a server names for the next attempt.
    pub fn new(patience: Patience, clock: Clock) -> Self {
        Http { patience, clock, near: OnceLock::new(), far: OnceLock::new() }
    }

    /// Sends the request until an answer was taken whole, or until patience is at its end.
    pub async fn fetch(
        &self,
        request: &Request,
        dice: &mut (dyn RngCore + Send),
        taker: &mut dyn Take,
    ) -> Result<(), Failure> {
        let mut failed = 0;
        loop {
            let Err(mut failure) = self.attempt(request, taker).await else { return Ok(()) };
            failed += 1;
            failure.error = request.blotted(failure.error);
            match self.patience.pause_after(failed, failure.again, dice) {
                Some(pause) => {
                    tracing::info!(%failure.error, failed, ?pause, "an HTTP request is tried again");
                    tokio::time::sleep(pause).await;
                }
                None if failed > 1 => {
                    failure.error.message.push_str(&format!(" ({failed} attempts)"));
                    return Err(failure);
                }
                None => return Err(failure),
            }
        }
    }

    async fn attempt(&self, request: &Request, taker: &mut dyn Take) -> Result<(), Failure> {
        let (sent, host) = self.prepare(request)?;
        let mut response = within(self.patience.first_byte, &host, "no answer", sent.send()).await?;
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let content_type = header("content-type").unwrap_or_default();
        let content_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !status.is_success() {
            let later = retry::told(header("retry-after"), header("date"), self.clock.now());
            let to = header("location").map(str::to_owned).filter(|_| status.is_redirection());
            let mut said = Vec::new();
            // What it says is only for the sentence: if that fails too, the status is enough.
            while let Ok(Some(chunk)) = within(self.patience.idle, &host, "silence", response.chunk()).await {
                said.extend_from_slice(&chunk);
                if said.len() > COMPLAINT {
                    break;
                }
            }
            let said = to.map_or_else(|| complaint(&said), |to| format!("it moved to {to}, which is not followed"));
            let said = if said.is_empty() { said } else { format!(": {said}") };
            let error = Error::provider(format!("{host} answered {status}{said}"));
            let again = if retry::passing(status.as_u16()) { Again::After(later) } else { Again::Never };
            return Err(Failure { status: Some(status.as_u16()), error, again });
        }
        taker.begin(&Head { content_type })?;
        let mut taken = 0u64;
        while let Some(chunk) = within(self.patience.idle, &host, "silence", response.chunk()).await? {
            taken += chunk.len() as u64;
            if taken > request.limit {
                let error = format!("the answer of {host} is larger than {} bytes", request.limit);
                return Err(Failure::final_one(Error::too_large(error)));
            }
            if taker.chunk(&chunk)? == Flow::Enough {
                return Ok(());
            }
        }
        taker.end()
    }

    /// The request as reqwest wants it, and the name of the server for sentences.
    fn prepare(&self, request: &Request) -> Result<(reqwest::RequestBuilder, String), Failure> {
        let url = reqwest::Url::parse(&request.url)
            .map_err(|error| Error::invalid(format!("the address is not a URL: {error}")))?;
        let Some(host) = url.host_str().map(str::to_owned) else {
            return Err(Error::invalid("the address names no server").into());
        };
        let near = url.scheme() == "http" && (host == "localhost" || host.starts_with("127.") || host == "[::1]");
        let client = if near { &self.near } else { &self.far };
        let client = client.get_or_init(|| client_for(near, &self.patience)).as_ref().map_err(Error::clone)?;
        let mut sent = match &request.body {
            Some(body) => client.post(url).header("content-type", "application/json").body(body.clone()),
            None => client.get(url),
        };
        for (name, value) in &request.headers {
            sent = sent.header(*name, value);
        }
        if let Some((name, prefix, secret)) = &request.secret {
            let mut value = reqwest::header::HeaderValue::from_str(&format!("{prefix}{}", secret.0))
                .map_err(|_| Error::invalid("the key has characters that no header can carry"))?;
            value.set_sensitive(true);
            sent = sent.header(*name, value);
        }
        Ok((sent, host))
    }
}

fn client_for(near: bool, patience: &Patience) -> Result<reqwest::Client> {
    static RING: OnceLock<()> = OnceLock::new();
    // An error means that somebody has installed a provider already, which serves as well.
    RING.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = reqwest::Client::builder()
        .connect_timeout(patience.connect)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("acheron/", env!("CARGO_PKG_VERSION")));
    if near {
        builder = builder.no_proxy().tls_certs_only([]);
    }
    builder.build().map_err(|error| Error::unavailable(format!("no HTTP client: {}", causes(&error))))
}

/// Waits for one step of an exchange. A connection that breaks or sleeps may be tried again.
async fn within<T>(
    limit: Duration,
    host: &str,
    missing: &str,
    step: impl Future<Output = reqwest::Result<T>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(limit, step).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            let code = if error.is_timeout() { Code::Timeout } else { Code::ProviderError };
            let said = format!("the connection to {host} failed: {}", causes(&error.without_url()));
            Err(Failure::passing(Error::new(code, said)))
        }
        Err(_) => Err(Failure::passing(Error::timeout(format!("{missing} from {host} for {limit:?}")))),
    }
}

/// The sentence of an error and of what caused it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        said.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    said
}

/// What a refusing server wants to say: the message of its JSON, else the beginning of its text.
pub fn complaint(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let json: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    let message = json.as_ref().and_then(|json| {
        let error = json.get("error").unwrap_or(json);
        error.get("message").or(Some(error)).and_then(|said| said.as_str())
    });
    let said = match message {
        Some(message) => message.to_owned(),
        None if looks_like_html(&text) => "a page of HTML".to_owned(),
        None => text.into_owned(),
    };
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match said.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said,
    }
}

pub fn looks_like_html(text: &str) -> bool {
    text.trim_start().starts_with('<')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_one_short_line() {
        for (body, wanted) in [
            (r#"{"error":{"message":"no\n such model","type":"x"}}"#, "no such model"),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"message":"slow down"}"#, "slow down"),
            ("<html><body>Bad gateway", "a page of HTML"),
            ("  plain\nwords ", "plain words"),
            ("", ""),
        ] {
            assert_eq!(complaint(body.as_bytes()), wanted);
        }
        assert_eq!(complaint("ä".repeat(900).as_bytes()).chars().count(), 301);
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("sk-hush-hush");
        let mut request = Request::get("http://localhost/");
        request.secret = Some(("authorization", "Bearer ", secret));
        assert!(!format!("{request:?}").contains("hush"));
        let error = request.blotted(Error::provider("wrong key: sk-hush-hush!"));
        assert_eq!(error.message, "wrong key: [secret]!");
    }
}
