//! Sends a request of a program to the server of the agent's model, and its answer back: as it is, or translated.

use bytes::Bytes;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;

use super::account::{RequestAccount, WantedRequest};
use super::client::{ClientGateway, ReadRequest, fault_of};
use super::headers;
use super::recording::Exchange;
use super::streams::{PassedStream, TranslatedStream};
use super::upstream::{Upstream, upstreams};
use crate::spec::ModelSpec;
use acheron_base::{Code, Error, Result};
use acheron_gateway::{
    AnswerIdentity, Dialect, GatewayFault, StreamMeter, TokenUsage, error_body, read_chat_answer, whole_answer,
};
use acheron_http::server::{OutgoingAnswer, OutgoingBody};
use acheron_http::{Failure, OpenAnswer, error_summary};

impl ClientGateway {
    /// Asks the server of the model, and if that fails before its answer begins, the second one.
    pub async fn forward(&self, model: &ModelSpec, read: &ReadRequest) -> Result<OutgoingAnswer> {
        let upstreams = match upstreams(&self.gateway.models, model, read.asked.dialect) {
            Ok(upstreams) => upstreams,
            Err(error) => {
                let line = self.line(&read.asked, model.name.clone().unwrap_or_default());
                self.books.refuse(line, &error, fault_of(&error).status(read.asked.dialect));
                return Err(error);
            }
        };
        let input = self.input(&read.asked, false).await?;
        let last = upstreams.len().saturating_sub(1);
        for (number, upstream) in upstreams.iter().enumerate() {
            let account = self.reserve(upstream, model, read, input).await?;
            match self.send(upstream, read, account).await {
                Tried::Answered(answer) => return Ok(answer),
                Tried::Failed(answer) if number == last => return Ok(answer),
                Tried::Failed(_) => tracing::info!(model = upstream.name(), "a model failed; the next one is asked"),
            }
        }
        Err(Error::internal("no server was asked"))
    }

    async fn reserve(
        &self,
        upstream: &Upstream,
        model: &ModelSpec,
        read: &ReadRequest,
        input: u64,
    ) -> Result<RequestAccount> {
        let mut line = self.line(&read.asked, upstream.name());
        line.fallback = upstream.fallback;
        line.translated_to = upstream.translates(read.asked.dialect).then(|| upstream.dialect.name().to_owned());
        let kept = model
            .keep_bodies
            .then(|| (String::from_utf8_lossy(&read.asked.bytes()).into_owned(), upstream.server.key.clone()));
        let (max_tokens, prices) = (upstream.longest_answer(&read.asked), upstream.prices);
        self.books.reserve(WantedRequest { line, input, max_tokens, prices, billed: true, kept }).await
    }

    async fn send(&self, upstream: &Upstream, read: &ReadRequest, account: RequestAccount) -> Tried {
        let asked = &read.asked;
        let request = upstream.prepared(asked, account.lowered());
        let sent = upstream.request(&request, &read.came_with(false));
        let mut dice = StdRng::seed_from_u64(self.number());
        let opened = tokio::select! {
            opened = self.gateway.models.runtimes.http().open(&sent, &mut dice) => opened,
            error = account.seconds_used_up() => Err(Failure::permanent(error)),
        };
        match opened {
            Err(failure) => {
                let (status, why) = (fault_of(&failure.error).status(asked.dialect), &failure.error.message);
                // A server that has not begun to answer counts nothing, as for the host's own agents.
                match failure.error.code == Code::BudgetExceeded {
                    true => account.fail(status, why),
                    false => account.refused(status, why),
                }
                Tried::Failed(super::client::refusal(asked.dialect, &failure.error))
            }
            Ok(answer) if answer.status >= 300 => self.refused(upstream, asked.dialect, answer, account).await,
            Ok(answer) => match self.answered(upstream, read, answer, account).await {
                Ok(answer) => Tried::Answered(answer),
                Err(error) => Tried::Answered(super::client::refusal(asked.dialect, &error)),
            },
        }
    }

    /// An answer that is a refusal: to a program of the same language as it is, to others in theirs.
    async fn refused(
        &self,
        upstream: &Upstream,
        asked: Dialect,
        mut answer: OpenAnswer,
        account: RequestAccount,
    ) -> Tried {
        let body = answer.rest().await.unwrap_or_default();
        let clean = |text: &str| upstream.server.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redacted(text));
        let said = clean(&error_summary(&body));
        account.refused(answer.status, &format!("{} answered {}: {said}", upstream.name(), answer.status));
        let mut told = match upstream.translates(asked) {
            false => OutgoingAnswer {
                status: answer.status,
                headers: headers::of_answer(&answer.headers),
                body: OutgoingBody::Whole(Bytes::from(clean(&String::from_utf8_lossy(&body)))),
            },
            true => OutgoingAnswer::json(answer.status, &error_body(asked, GatewayFault::Upstream, &said)),
        };
        // The program must not take the host's key for its own mistake, nor follow a redirection past the gateway.
        if matches!(answer.status, 300..=399 | 401 | 407) {
            let hint = format!("{said}; is {} of the host right?", upstream.server.preset.key_variable);
            told = OutgoingAnswer::json(502, &error_body(asked, GatewayFault::Upstream, &hint));
        }
        match acheron_http::retry::transient(answer.status) || matches!(answer.status, 401 | 404) {
            true => Tried::Failed(told),
            false => Tried::Answered(told),
        }
    }

    async fn answered(
        &self,
        upstream: &Upstream,
        read: &ReadRequest,
        mut answer: OpenAnswer,
        mut account: RequestAccount,
    ) -> Result<OutgoingAnswer> {
        account.begin(answer.status);
        let exchange = match &self.recorder {
            Some(recorder) => Some(Exchange::begin(recorder, &self.client, &read.asked).await?),
            None => None,
        };
        let (status, passed) = (answer.status, headers::of_answer(&answer.headers));
        let streamed = answer.content_type() == "text/event-stream";
        let identity = self.identity(read, &account);
        if streamed && !upstream.translates(read.asked.dialect) {
            let stream = PassedStream::new(read.asked.dialect, answer, account, exchange);
            return Ok(OutgoingAnswer { status, headers: passed, body: OutgoingBody::Stream(stream.pieces()) });
        }
        if streamed && read.asked.stream {
            let stream = TranslatedStream::new(read.asked.dialect, identity, answer, account, exchange);
            return Ok(event_stream(OutgoingBody::Stream(stream.pieces())));
        }
        let body = match answer.rest().await {
            Ok(body) => body,
            Err(failure) => {
                account.fail(502, &failure.error.message);
                return Err(failure.error);
            }
        };
        if !upstream.translates(read.asked.dialect) {
            let (usage, output) = usage_of(upstream.dialect, &body);
            self.end(account, exchange, (usage, output), status, &body).await?;
            return Ok(OutgoingAnswer { status, headers: passed, body: OutgoingBody::Whole(body.into()) });
        }
        self.translated(read, identity, body, account, exchange).await
    }

    /// A whole answer in the language of the program; as events if it wants them.
    async fn translated(
        &self,
        read: &ReadRequest,
        identity: AnswerIdentity,
        body: Vec<u8>,
        account: RequestAccount,
        exchange: Option<Exchange>,
    ) -> Result<OutgoingAnswer> {
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = match read_chat_answer(&value) {
            Ok(answer) => answer,
            Err(error) => {
                account.fail(502, &error.message);
                return Err(error);
            }
        };
        let counts = usage_of(Dialect::Chat, &body);
        let (told, text) = super::local::rendered(&read.asked, identity, &answer);
        self.end(account, exchange, counts, told.status, &text).await?;
        Ok(told)
    }

    /// Charges a whole answer, and records it.
    async fn end(
        &self,
        mut account: RequestAccount,
        exchange: Option<Exchange>,
        (usage, output): (TokenUsage, u64),
        status: u16,
        body: &[u8],
    ) -> Result<()> {
        account.keep(body);
        account.complete(usage, output).await?;
        if let Some(mut exchange) = exchange {
            exchange.add(body);
            exchange.end(status);
        }
        Ok(())
    }

    /// How an answer that is written here is called.
    pub fn identity(&self, read: &ReadRequest, account: &RequestAccount) -> AnswerIdentity {
        let mut identity = AnswerIdentity {
            id: self.gateway.ids.id("a").replace(['-', '_'], ""),
            model: read.asked.model.clone(),
            created: self.books.clock.now_ms() / 1000,
            input: account.input(),
            wants_usage: read.asked.wants_usage(),
        };
        if identity.model.is_empty() {
            identity.model = "model".to_owned();
        }
        identity
    }

    /// Asks the server for the number of tokens of a request. That costs nothing.
    pub async fn ask_count(&self, upstream: &Upstream, read: &ReadRequest) -> Result<OutgoingAnswer> {
        let request = upstream.prepared(&read.asked, None);
        let sent = upstream.request(&request, &read.came_with(true));
        let mut dice = StdRng::seed_from_u64(self.number());
        let mut answer = self.gateway.models.runtimes.http().open(&sent, &mut dice).await.map_err(Error::from)?;
        let (status, headers) = (answer.status, headers::of_answer(&answer.headers));
        let body = answer.rest().await.map_err(Error::from)?;
        let clean = String::from_utf8_lossy(&body).into_owned();
        let clean = upstream.server.key.as_ref().map_or(clean.clone(), |key| key.redacted(&clean));
        Ok(OutgoingAnswer { status, headers, body: OutgoingBody::Whole(clean.into()) })
    }
}

/// How one server took a request.
enum Tried {
    Answered(OutgoingAnswer),
    /// It failed for a reason that another server may not have; this is said if there is none.
    Failed(OutgoingAnswer),
}

/// An answer as a stream of events.
pub fn event_stream(body: OutgoingBody) -> OutgoingAnswer {
    let headers = [("content-type", "text/event-stream"), ("cache-control", "no-cache")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    OutgoingAnswer { status: 200, headers, body }
}

/// The usage of a whole answer: as the server says, else counted from what it wrote.
pub fn usage_of(dialect: Dialect, body: &[u8]) -> (TokenUsage, u64) {
    // Google streams a list of answers to programs that do not ask for events.
    let values: Vec<Value> = match serde_json::from_slice(body) {
        Ok(Value::Array(all)) => all,
        Ok(value) => vec![value],
        Err(_) => Vec::new(),
    };
    let mut usage = values.first().map(|value| TokenUsage::of(dialect, value)).unwrap_or_default();
    values.iter().skip(1).for_each(|value| usage.add_event(dialect, value));
    let output = usage.output.unwrap_or_else(|| {
        let identity = AnswerIdentity::default();
        let written = values.first().and_then(|value| read_chat_answer(value).ok());
        let text =
            written.map(|answer| whole_answer(Dialect::Chat, &identity, &answer)["choices"][0]["message"].to_string());
        acheron_base::tokens::estimate(&text.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned()))
    });
    (usage, output)
}

/// The usage of a body of events.
pub fn usage_of_events(dialect: Dialect, body: &[u8]) -> (TokenUsage, u64) {
    let mut meter = StreamMeter::new(dialect);
    meter.feed(body);
    (meter.usage(), meter.output())
}
