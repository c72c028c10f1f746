//! The gateway of one program: what each path asks for, and refusals in the language of the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::account::Books;
use super::recording::{RecordedRun, Recorder};
use super::request_line::RequestLine;
use super::upstream::{CameWith, upstreams};
use super::{Gateway, GatewayClient, MAX_BODY};
use crate::model::counted;
use crate::spec::{ModelKind, ModelSpec};
use acheron_base::{Code, Error, Result, blocking};
use acheron_gateway::{Dialect, GatewayFault, GatewayRequest, GeminiTarget, Route, SERVED, error_body, route};
use acheron_http::server::{IncomingRequest, OutgoingAnswer, OutgoingBody, RequestHandler};

/// A larger body is read on a thread of its own, in bytes.
const SMALL_BODY: usize = 256 << 10;

/// What a program has asked since its listener is served.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GatewayTotals {
    pub requests: u64,
    /// Those of them that the budget did not pay for.
    pub refused: u64,
    pub input: u64,
    pub output: u64,
    /// The part of the input that servers had in their caches.
    pub cached: u64,
    pub money: f64,
}

#[derive(Default)]
pub struct Totals(Mutex<GatewayTotals>);

impl Totals {
    pub fn add(&self, line: &RequestLine, over_budget: bool) {
        let mut totals = self.0.lock();
        totals.requests += 1;
        totals.refused += u64::from(over_budget);
        totals.input += line.input;
        totals.output += line.output;
        totals.cached += line.cached;
        totals.money += line.money;
    }
}

pub struct ClientGateway {
    pub gateway: Gateway,
    pub client: GatewayClient,
    pub books: Books,
    pub recorder: Option<Arc<Recorder>>,
    /// The recording that a replayed model answers from, read when it is first asked.
    pub replayed: tokio::sync::Mutex<Option<(String, Arc<RecordedRun>)>>,
    numbers: AtomicU64,
}

/// A request whose body was read.
pub struct ReadRequest {
    pub asked: GatewayRequest,
    pub query: Option<String>,
    pub headers: Vec<(String, String)>,
}

impl ReadRequest {
    pub fn came_with(&self, counting: bool) -> CameWith<'_> {
        let (dialect, query) = (self.asked.dialect, self.query.as_deref());
        CameWith { dialect, counting, query, headers: &self.headers }
    }
}

impl ClientGateway {
    pub fn new(gateway: Gateway, client: GatewayClient, recorder: Option<Recorder>) -> Result<ClientGateway> {
        let chat = gateway.models.runtimes.chat(&client.agent)?;
        let (ledger, log) = (chat.agent_runtime().ledger.clone(), gateway.logs.of(&client.agent)?);
        let (agent, clock, totals) = (client.agent.clone(), gateway.ids.clock().clone(), Arc::default());
        let books = Books { agent, ledger, log, clock, totals };
        let (recorder, replayed) = (recorder.map(Arc::new), tokio::sync::Mutex::default());
        Ok(ClientGateway { gateway, client, books, recorder, replayed, numbers: AtomicU64::new(0) })
    }

    pub fn totals(&self) -> GatewayTotals {
        *self.books.totals.0.lock()
    }

    /// The agent's model as it is described now.
    pub fn model(&self) -> Result<ModelSpec> {
        self.gateway.models.described(&self.client.agent)
    }

    /// A number that no other request of this listener has.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// The line of a request that begins now.
    pub fn line(&self, asked: &GatewayRequest, model: String) -> RequestLine {
        RequestLine {
            id: self.gateway.ids.id("r"),
            at_ms: self.books.clock.now_ms(),
            program: self.client.program.clone(),
            dialect: asked.dialect.name().to_owned(),
            model,
            asked_model: asked.model.clone(),
            stream: asked.stream,
            ..RequestLine::default()
        }
    }

    async fn read(
        &self,
        dialect: Dialect,
        target: Option<GeminiTarget>,
        mut came: IncomingRequest,
    ) -> Result<ReadRequest> {
        let (query, headers) = (came.query.take(), std::mem::take(&mut came.headers));
        let body = came.read(MAX_BODY).await?;
        let asked = match body.len() <= SMALL_BODY {
            true => GatewayRequest::read(dialect, target.as_ref(), &body)?,
            false => blocking(move || GatewayRequest::read(dialect, target.as_ref(), &body)).await?,
        };
        Ok(ReadRequest { asked, query, headers })
    }

    async fn generate(&self, dialect: Dialect, target: Option<GeminiTarget>, came: IncomingRequest) -> OutgoingAnswer {
        let read = match self.read(dialect, target, came).await {
            Ok(read) => read,
            Err(error) => return refusal(dialect, &error),
        };
        let answered = match self.model() {
            Ok(model) => match model.kind {
                ModelKind::Script | ModelKind::Replay | ModelKind::External => self.answer_here(&model, &read).await,
                _ => self.forward(&model, &read).await,
            },
            Err(error) => Err(error),
        };
        answered.unwrap_or_else(|error| refusal(dialect, &error))
    }

    /// The number of tokens of a request: the server's own count where it has one.
    async fn count(
        &self,
        dialect: Dialect,
        target: Option<GeminiTarget>,
        came: IncomingRequest,
    ) -> Result<OutgoingAnswer> {
        let read = self.read(dialect, target, came).await?;
        let model = self.model()?;
        let remote = !matches!(model.kind, ModelKind::Script | ModelKind::Replay | ModelKind::External);
        let upstream = remote.then(|| upstreams(&self.gateway.models, &model, dialect)).transpose()?;
        match upstream.and_then(|mut all| all.drain(..).next()).filter(|first| !first.translates(dialect)) {
            Some(first) => self.ask_count(&first, &read).await,
            None => {
                let tokens = self.input(&read.asked, true).await?;
                Ok(OutgoingAnswer::json(
                    200,
                    &match dialect {
                        Dialect::Gemini => json!({"totalTokens": tokens}),
                        _ => json!({"input_tokens": tokens}),
                    },
                ))
            }
        }
    }

    /// The input of a request in tokens. They are counted only where the figure decides about something.
    pub async fn input(&self, asked: &GatewayRequest, exactly: bool) -> Result<u64> {
        let texts = asked.texts();
        let left = self.books.ledger.left(&self.books.agent);
        if !exactly && left.tokens.is_none() && left.money.is_none() {
            return Ok(texts.estimated());
        }
        let mut sum = texts.other_tokens;
        for text in texts.texts {
            sum += counted(text).await?;
        }
        Ok(sum)
    }

    fn models(&self, dialect: Dialect) -> Result<Value> {
        let name = self.model()?.name.unwrap_or_else(|| "script".to_owned());
        Ok(match dialect {
            Dialect::Gemini => {
                let methods = ["generateContent", "streamGenerateContent", "countTokens"];
                json!({"models": [{"name": format!("models/{name}"), "displayName": name, "supportedGenerationMethods": methods}]})
            }
            _ => {
                // Both forms in one: OpenAI's programs read `object`, Anthropic's `type` and `display_name`.
                let model = json!({"id": name, "object": "model", "created": 1, "owned_by": "acheron", "type": "model",
                    "display_name": name, "created_at": "1970-01-01T00:00:01Z"});
                json!({"object": "list", "data": [model], "has_more": false, "first_id": name, "last_id": name})
            }
        })
    }
}

impl RequestHandler for ClientGateway {
    async fn answer(self: Arc<Self>, came: IncomingRequest) -> OutgoingAnswer {
        let upgrade = came.header("upgrade").is_some();
        match route(&came.method, &came.path, upgrade) {
            Route::Generate(dialect, target) => self.generate(dialect, target, came).await,
            Route::Count(dialect, target) => {
                self.count(dialect, target, came).await.unwrap_or_else(|error| refusal(dialect, &error))
            }
            Route::Models(dialect) => match self.models(dialect) {
                Ok(models) => OutgoingAnswer::json(200, &models),
                Err(error) => refusal(dialect, &error),
            },
            Route::Hello => {
                OutgoingAnswer { status: 200, headers: Vec::new(), body: OutgoingBody::Whole("ok\n".into()) }
            }
            Route::Upgrade => {
                let body =
                    error_body(Dialect::Responses, GatewayFault::Invalid, "the gateway speaks no WebSocket; use HTTP");
                OutgoingAnswer::json(426, &body)
            }
            Route::Unknown(dialect) => {
                let said = format!("{} {} is not served here; the gateway serves {SERVED}", came.method, came.path);
                OutgoingAnswer::json(404, &error_body(dialect, GatewayFault::NotFound, &said))
            }
        }
    }
}

/// The fault that an error is to a program.
pub fn fault_of(error: &Error) -> GatewayFault {
    match error.code {
        Code::BudgetExceeded => GatewayFault::BudgetExceeded,
        Code::InvalidPayload => GatewayFault::Invalid,
        Code::Forbidden => GatewayFault::Forbidden,
        Code::NotFound => GatewayFault::NotFound,
        Code::TooLarge => GatewayFault::TooLarge,
        Code::Conflict => GatewayFault::Unmatched,
        Code::Timeout => GatewayFault::Timeout,
        Code::ProviderError => GatewayFault::Upstream,
        Code::Unavailable => GatewayFault::Unavailable,
        Code::Busy => GatewayFault::Busy,
        _ => GatewayFault::Internal,
    }
}

/// A refusal in the language of the program. A program that would only repeat the request is asked not to.
pub fn refusal(dialect: Dialect, error: &Error) -> OutgoingAnswer {
    let fault = fault_of(error);
    let mut answer = OutgoingAnswer::json(fault.status(dialect), &error_body(dialect, fault, &error.message));
    if !fault.may_pass() {
        answer.headers.push(("x-should-retry".to_owned(), "false".to_owned()));
    }
    answer
}
