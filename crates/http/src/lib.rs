//! The only HTTP client: time-outs, retries, streaming, limits, cancellation; a small server for programs on this machine
//! ([`server`]), and a proxy to the hosts that rules name ([`proxy`]). No other crate uses reqwest or hyper. The client passes the bytes of an answer to a [`BodySink`], or hands
//! out an [`OpenAnswer`], and knows nothing of models or searches. Redirections are not followed,
//! because a key must not reach another server. A secret is only in the headers: it is redacted from whatever a server
//! answers. Any crate may use it; it uses only `acheron-base` and `acheron-proxy`.

#![forbid(unsafe_code)]

mod open;
pub mod proxy;
pub mod retry;
#[cfg(feature = "router")]
pub mod router;
pub mod server;

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use rand::RngCore;

use acheron_base::{Clock, Code, Error, Result};

pub use acheron_base::sse;
pub use open::OpenAnswer;
pub use retry::{Retry, RetryPolicy};

/// The size limit of an error answer.
const ERROR_BODY: usize = 64 << 10;

/// A key or password. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(word: impl Into<String>) -> Self {
        Secret(word.into())
    }

    /// The text without the secret in it.
    pub fn redacted(&self, text: &str) -> String {
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
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// A header whose value is a prefix and a secret, such as `Bearer `.
    pub secret: Option<(&'static str, &'static str, Secret)>,
    /// A body makes it a POST of JSON.
    pub body: Option<Vec<u8>>,
    /// The size limit of the answer, in bytes.
    pub limit: u64,
    /// How long the server may be silent before and within its answer, where that differs from the policy.
    pub first_byte: Option<Duration>,
    pub idle: Option<Duration>,
}

impl Request {
    pub fn get(url: impl Into<String>) -> Self {
        let (url, headers) = (url.into(), Vec::new());
        Request { url, headers, secret: None, body: None, limit: 16 << 20, first_byte: None, idle: None }
    }

    pub fn post(url: impl Into<String>, body: &serde_json::Value) -> Self {
        Request { body: Some(body.to_string().into_bytes()), ..Request::get(url) }
    }

    fn redacted(&self, mut error: Error) -> Error {
        if let Some((_, _, secret)) = &self.secret {
            error.message = secret.redacted(&error.message);
        }
        error
    }
}

/// The head of an answer whose body follows.
#[derive(Clone, Debug)]
pub struct Head {
    /// The content type in lower case, without parameters; empty if the server sent none.
    pub content_type: String,
}

/// Whether more of the answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    More,
    Enough,
}

/// Why an attempt failed, and whether it may be repeated.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    pub error: Error,
    pub retry: Retry,
}

impl Failure {
    pub fn permanent(error: Error) -> Self {
        Failure { status: None, error, retry: Retry::Never }
    }

    pub fn transient(error: Error) -> Self {
        Failure { status: None, error, retry: Retry::After(None) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::permanent(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// Receives the body of an answer. Every attempt starts it again.
pub trait BodySink: Send {
    fn begin(&mut self, head: &Head) -> Result<(), Failure>;
    fn chunk(&mut self, bytes: &[u8]) -> Result<Flow, Failure>;
    /// The answer is complete. A sink that misses something returns an error.
    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Collects the whole body.
#[derive(Debug, Default)]
pub struct BodyBytes(pub Vec<u8>);

impl BodySink for BodyBytes {
    fn begin(&mut self, _: &Head) -> Result<(), Failure> {
        self.0.clear();
        Ok(())
    }

    fn chunk(&mut self, bytes: &[u8]) -> Result<Flow, Failure> {
        self.0.extend_from_slice(bytes);
        Ok(Flow::More)
    }
}

/// The client. Its connections are reused.
#[derive(Debug)]
pub struct Http {
    policy: RetryPolicy,
    clock: Clock,
    /// For servers on this machine: without proxy and certificates.
    local: OnceLock<Result<reqwest::Client>>,
    remote: OnceLock<Result<reqwest::Client>>,
}

impl Http {
    /// `clock` says how far away a moment is that a server names for the next attempt.
    pub fn new(policy: RetryPolicy, clock: Clock) -> Self {
        Http { policy, clock, local: OnceLock::new(), remote: OnceLock::new() }
    }

    /// Sends the request until an answer was received completely or the policy gives up.
    pub async fn fetch(
        &self,
        request: &Request,
        rng: &mut (dyn RngCore + Send),
        sink: &mut dyn BodySink,
    ) -> Result<(), Failure> {
        let mut failed = 0;
        loop {
            let Err(mut failure) = self.attempt(request, sink).await else { return Ok(()) };
            failed += 1;
            failure.error = request.redacted(failure.error);
            match self.policy.pause_after(failed, failure.retry, rng) {
                Some(pause) => {
                    tracing::info!(%failure.error, failed, ?pause, "an HTTP request is repeated");
                    tokio::time::sleep(pause).await;
                }
                None => {
                    if failed > 1 {
                        failure.error.message.push_str(&format!(" ({failed} attempts)"));
                    }
                    if let Retry::After(Some(pause)) = failure.retry
                        && pause > self.policy.longest_pause
                    {
                        let then = httpdate::fmt_http_date(self.clock.now() + pause);
                        let when = format!("; try again after {then} ({} s from now)", pause.as_secs());
                        failure.error.message.push_str(&when);
                    }
                    return Err(failure);
                }
            }
        }
    }

    async fn attempt(&self, request: &Request, sink: &mut dyn BodySink) -> Result<(), Failure> {
        let (sent, host) = self.prepare(request)?;
        let (first_byte, idle) =
            (request.first_byte.unwrap_or(self.policy.first_byte), request.idle.unwrap_or(self.policy.idle));
        let mut response = within(first_byte, &host, "no answer", sent.send()).await?;
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let content_type = header("content-type").unwrap_or_default();
        let content_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !status.is_success() {
            let later = retry::retry_after(header("retry-after"), header("date"), self.clock.now());
            let to = header("location").map(str::to_owned).filter(|_| status.is_redirection());
            let mut said = Vec::new();
            // The body is only for the error message: without it the status is enough.
            while let Ok(Some(chunk)) = within(idle, &host, "silence", response.chunk()).await {
                said.extend_from_slice(&chunk);
                if said.len() > ERROR_BODY {
                    break;
                }
            }
            let said = to.map_or_else(|| error_summary(&said), |to| format!("it moved to {to}, which is not followed"));
            let said = if said.is_empty() { said } else { format!(": {said}") };
            let error = Error::provider(format!("{host} answered {status}{said}"));
            let retry = if retry::transient(status.as_u16()) { Retry::After(later) } else { Retry::Never };
            return Err(Failure { status: Some(status.as_u16()), error, retry });
        }
        sink.begin(&Head { content_type })?;
        let mut taken = 0u64;
        while let Some(chunk) = within(idle, &host, "silence", response.chunk()).await? {
            taken += chunk.len() as u64;
            if taken > request.limit {
                let error = format!("the answer of {host} is larger than {} bytes", request.limit);
                return Err(Failure::permanent(Error::too_large(error)));
            }
            if sink.chunk(&chunk)? == Flow::Enough {
                return Ok(());
            }
        }
        sink.end()
    }

    /// The request for reqwest, and the address of the server for messages.
    fn prepare(&self, request: &Request) -> Result<(reqwest::RequestBuilder, String), Failure> {
        let url = reqwest::Url::parse(&request.url)
            .map_err(|error| Error::invalid(format!("the address is not a URL: {error}")))?;
        let (Some(host), Some(address)) = (url.host_str(), address(&url)) else {
            return Err(Error::invalid("the address names no server").into());
        };
        let local = url.scheme() == "http" && (host == "localhost" || host.starts_with("127.") || host == "[::1]");
        let client = if local { &self.local } else { &self.remote };
        let client = client.get_or_init(|| client_for(local, &self.policy)).as_ref().map_err(Error::clone)?;
        let mut sent = match &request.body {
            Some(body) => client.post(url).header("content-type", "application/json").body(body.clone()),
            None => client.get(url),
        };
        for (name, value) in &request.headers {
            sent = sent.header(name.as_ref(), value);
        }
        if let Some((name, prefix, secret)) = &request.secret {
            let mut value = reqwest::header::HeaderValue::from_str(&format!("{prefix}{}", secret.0))
                .map_err(|_| Error::invalid("the key has characters that no header can carry"))?;
            value.set_sensitive(true);
            sent = sent.header(*name, value);
        }
        Ok((sent, address))
    }
}

/// The server and the path of a URL, for messages: without credentials and query, which may hold a secret.
fn address(url: &reqwest::Url) -> Option<String> {
    let port = url.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}{port}{}", url.host_str()?, url.path()))
}

fn client_for(local: bool, policy: &RetryPolicy) -> Result<reqwest::Client> {
    static RING: OnceLock<()> = OnceLock::new();
    // An error means that another provider is installed already, which works as well.
    RING.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = reqwest::Client::builder()
        .connect_timeout(policy.connect)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("acheron/", env!("CARGO_PKG_VERSION")));
    if local {
        builder = builder.no_proxy().tls_certs_only([]);
    }
    builder.build().map_err(|error| Error::unavailable(format!("no HTTP client: {}", causes(&error))))
}

/// Waits for one step of an exchange. A connection that breaks or is silent may be tried again.
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
            Err(Failure::transient(Error::new(code, said)))
        }
        Err(_) => Err(Failure::transient(Error::timeout(format!("{missing} from {host} for {limit:?}")))),
    }
}

/// The message of an error and of its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        said.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    said
}

/// The message in an error answer: that of its JSON, else the beginning of its text.
pub fn error_summary(body: &[u8]) -> String {
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
    fn an_error_summary_is_one_short_line() {
        for (body, wanted) in [
            (r#"{"error":{"message":"no\n such model","type":"x"}}"#, "no such model"),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"message":"slow down"}"#, "slow down"),
            ("<html><body>Bad gateway", "a page of HTML"),
            ("  plain\nwords ", "plain words"),
            ("", ""),
        ] {
            assert_eq!(error_summary(body.as_bytes()), wanted);
        }
        assert_eq!(error_summary("ä".repeat(900).as_bytes()).chars().count(), 301);
    }

    #[test]
    fn an_address_is_shown_with_port_and_path_and_without_credentials_and_query() {
        for (url, shown) in [
            ("http://127.0.0.1:8080/v1/chat/completions", "127.0.0.1:8080/v1/chat/completions"),
            ("https://user:hush@api.example.org/v1?key=hush#hush", "api.example.org:443/v1"),
            ("http://[::1]/", "[::1]:80/"),
        ] {
            assert_eq!(address(&reqwest::Url::parse(url).unwrap()).unwrap(), shown);
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("sk-hush-hush");
        let mut request = Request::get("http://localhost/");
        request.secret = Some(("authorization", "Bearer ", secret));
        assert!(!format!("{request:?}").contains("hush"));
        let error = request.redacted(Error::provider("wrong key: sk-hush-hush!"));
        assert_eq!(error.message, "wrong key: [secret]!");
    }
}
