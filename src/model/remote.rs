//! Models behind an HTTP server: request and stream.
//!
//! A provider implements [`ProviderProtocol`], which builds requests and parses events; the rest is common to all providers.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;

use super::answer_form::AnswerForm;
use super::call_assembly::{CallAssembly, CallFragment};
use super::server::ModelServer;
use super::{AnswerPiece, KeptAnswer, Message, MessageRole, Model, ModelAnswer, ModelRequest, NativeCall, Usage};
use acheron_base::{Error, Result, tokens};
use acheron_http::{BodySink, Failure, Flow, Head, Http, Request, sse};

/// The size limit of a response in bytes; events carry much besides the text.
const MAX_RESPONSE_BYTES: u64 = 8 << 20;

/// The protocol of a provider.
pub trait ProviderProtocol: Send + Sync + 'static {
    /// For messages.
    const NAME: &'static str;

    fn request(server: &ModelServer, ask: &ModelRequest, form: AnswerForm) -> Request;
    /// Parses one event of the stream.
    fn event(event: &Value, answer: &mut PartialAnswer) -> Result<(), Failure>;
    /// Parses the body of a server that does not stream.
    fn whole(body: &Value, answer: &mut PartialAnswer) -> Result<(), Failure>;

    /// The parts of an answer with these calls that are sent back unchanged; none if nothing in them is the model's reasoning.
    fn kept(items: Vec<Value>, calls: &[NativeCall]) -> Vec<Value>;
}

/// An answer under construction.
#[derive(Debug, Default)]
pub struct PartialAnswer {
    pub text: String,
    pub thoughts: String,
    /// Tools were offered: calls and parts are collected.
    pub offered: bool,
    pub native_call: bool,
    /// The parts of the answer in the provider's own form, in order.
    pub items: Vec<Value>,
    calls: CallAssembly,
    pub input: Option<u64>,
    pub output: Option<u64>,
    /// The parts of the input that were read from the provider's cache and written to it.
    pub cache_read: u64,
    pub cache_write: u64,
    /// The answer ends at its token limit.
    pub cut: bool,
    pub model: Option<String>,
    /// The provider has ended the stream.
    pub finished: bool,
    /// The text is complete, although more events may follow: a stream that ends now was not cut off.
    pub complete: bool,
    fresh: Vec<AnswerPiece>,
}

impl PartialAnswer {
    /// An answer to a request that offers tools or not.
    pub fn begin(offered: bool) -> PartialAnswer {
        PartialAnswer { offered, ..PartialAnswer::default() }
    }

    pub fn text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.fresh.push(AnswerPiece::Text(piece.to_owned()));
        }
    }

    pub fn thought(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.thoughts.push_str(piece);
            self.fresh.push(AnswerPiece::Thought(piece.to_owned()));
        }
    }

    /// A fragment of a call.
    pub fn call(&mut self, fragment: CallFragment<'_>) {
        self.native_call = true;
        if self.offered {
            self.calls.add(fragment);
            self.fresh.push(AnswerPiece::Call(fragment.arguments.to_owned()));
        }
    }

    /// A whole call, which takes the place of its fragments.
    pub fn whole_call(&mut self, fragment: CallFragment<'_>) {
        self.native_call = true;
        if self.offered {
            self.calls.whole(fragment);
        }
    }

    /// Whether a call has begun.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The calls so far.
    pub fn take_calls(&mut self) -> Vec<NativeCall> {
        std::mem::take(&mut self.calls).calls()
    }

    /// A part of the answer in the provider's own form.
    pub fn item(&mut self, item: Value) {
        if self.offered {
            self.items.push(item);
        }
    }

    /// The failure that a provider reports within a stream; overload and server errors may be retried.
    pub fn trouble(error: &Value) -> Failure {
        let said = acheron_http::error_summary(error.to_string().as_bytes());
        let kinds = || ["type", "code"].into_iter().filter_map(|key| error.get(key).and_then(Value::as_str));
        let error = Error::provider(format!("the model's server aborted: {said}"));
        let passing = ["overloaded", "rate_limit", "server_error", "api_error", "timeout"];
        if kinds().any(|kind| passing.iter().any(|word| kind.contains(word))) {
            Failure::transient(error)
        } else {
            error.into()
        }
    }

    fn said<D: ProviderProtocol>(mut self, ask: &ModelRequest, model: &str) -> ModelAnswer {
        let (calls, items) = (self.take_calls(), std::mem::take(&mut self.items));
        let items = if calls.is_empty() { Vec::new() } else { D::kept(items, &calls) };
        // A server that does not report its counts is no reason to spend more than is allowed.
        let asked = || ask.texts().map(|text| tokens::count(&text)).sum();
        let called =
            || calls.iter().map(|call| tokens::count(&call.name) + tokens::count(&call.arguments)).sum::<u64>();
        let given = || tokens::count(&self.text) + tokens::count(&self.thoughts) + called();
        ModelAnswer {
            usage: Usage {
                input: self.input.unwrap_or_else(asked),
                output: self.output.unwrap_or_else(given),
                cache_read: self.cache_read,
                cache_write: self.cache_write,
            },
            cut: self.cut,
            thoughts: Some(self.thoughts).filter(|thoughts| !thoughts.is_empty()),
            native_call: self.native_call,
            kept: (!items.is_empty()).then(|| KeptAnswer { api: D::NAME.to_owned(), items }),
            calls,
            model: self.model.unwrap_or_else(|| model.to_owned()),
            text: self.text,
        }
    }
}

/// Joins adjacent messages of the same role and starts with the user, as some servers require.
pub fn alternating(messages: &[Message]) -> Vec<Message> {
    let mut joined: Vec<Message> = Vec::new();
    for message in messages {
        match joined.last_mut() {
            Some(last) if last.role == message.role && last.tools.is_none() && message.tools.is_none() => {
                last.text.push_str("\n\n");
                last.text.push_str(&message.text);
            }
            None if message.role == MessageRole::Assistant => {
                joined.extend([Message::user("(the conversation goes on)"), message.clone()]);
            }
            _ => joined.push(message.clone()),
        }
    }
    joined
}

/// A model behind an HTTP server.
pub struct RemoteModel<D> {
    server: ModelServer,
    http: Arc<Http>,
    /// The seed of the jitter between retries.
    seed: u64,
    dialect: std::marker::PhantomData<D>,
}

impl<D: ProviderProtocol> RemoteModel<D> {
    pub fn new(server: ModelServer, http: Arc<Http>, seed: u64) -> Self {
        RemoteModel { server, http, seed, dialect: std::marker::PhantomData }
    }
}

#[async_trait]
impl<D: ProviderProtocol> Model for RemoteModel<D> {
    fn name(&self) -> String {
        format!("{}:{}", self.server.preset.kind, self.server.model)
    }

    async fn answer(&self, ask: &ModelRequest, watch: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        // The same request gets the same pauses, so that a run can be repeated.
        let mut dice = StdRng::seed_from_u64(self.seed ^ ask.messages.len() as u64);
        let mut listener = AnswerReader::<D>::new(watch, ask.tools.is_some());
        let mut form = AnswerForm::of(&self.server, ask);
        let (request, fetched) = loop {
            let request = Request { limit: MAX_RESPONSE_BYTES, ..D::request(&self.server, ask, form) };
            let fetched = self.http.fetch(&request, &mut dice, &mut listener).await;
            match fetched.as_ref().err().and_then(|failure| form.after(failure, &self.server)) {
                Some(next) => form = next,
                None => break (request, fetched),
            }
        };
        match fetched {
            Ok(()) => Ok(listener.answer.said::<D>(ask, &self.server.model)),
            Err(failure) => {
                let mut error = failure.error;
                let ModelServer { preset, model, .. } = &self.server;
                match failure.status {
                    Some(401 | 403) => error.message.push_str(&format!("; is {} right?", preset.key_variable)),
                    Some(404) => {
                        let hint = format!("; {} was asked for `{model}`: is base_url right?", request.url);
                        error.message.push_str(&hint);
                    }
                    Some(400 | 422 | 500 | 501) if ask.tools.is_some() && error.message.contains("tool") => {
                        error.message.push_str(NO_TOOLS);
                    }
                    _ => (),
                }
                Err(error)
            }
        }
    }
}

const NO_TOOLS: &str = "; does this model take tools? Without `\"protocol\": \"native\"` in its entry it needs none";

/// Reads the response of one request, as events or as one JSON object.
struct AnswerReader<'a, D> {
    answer: PartialAnswer,
    events: sse::Decoder,
    /// The body so far, if the server does not stream.
    body: Option<Vec<u8>>,
    begun: bool,
    /// Tools are offered.
    offered: bool,
    watch: &'a mut (dyn FnMut(AnswerPiece) + Send),
    dialect: std::marker::PhantomData<D>,
}

impl<'a, D: ProviderProtocol> AnswerReader<'a, D> {
    fn new(watch: &'a mut (dyn FnMut(AnswerPiece) + Send), offered: bool) -> Self {
        let (answer, events) = (PartialAnswer::default(), sse::Decoder::default());
        AnswerReader { answer, events, body: None, begun: false, offered, watch, dialect: std::marker::PhantomData }
    }

    fn tell(&mut self) {
        self.answer.fresh.drain(..).for_each(&mut *self.watch);
    }
}

impl<D: ProviderProtocol> BodySink for AnswerReader<'_, D> {
    fn begin(&mut self, head: &Head) -> Result<(), Failure> {
        if std::mem::replace(&mut self.begun, true) {
            (self.watch)(AnswerPiece::Again);
        }
        self.answer = PartialAnswer::begin(self.offered);
        self.events = sse::Decoder::default();
        match head.content_type.as_str() {
            "text/event-stream" | "" => self.body = None,
            "text/html" => return Err(page_of_html(D::NAME).into()),
            _ => self.body = Some(Vec::new()),
        }
        Ok(())
    }

    fn chunk(&mut self, bytes: &[u8]) -> Result<Flow, Failure> {
        if let Some(body) = &mut self.body {
            body.extend_from_slice(bytes);
            return Ok(Flow::More);
        }
        for event in self.events.feed(bytes)? {
            if event.data == "[DONE]" {
                self.answer.finished = true;
            } else {
                let value = serde_json::from_str(&event.data).map_err(|error| {
                    Error::provider(format!("the stream of the model's server has an event that is not JSON: {error}"))
                })?;
                D::event(&value, &mut self.answer)?;
            }
        }
        self.tell();
        Ok(if self.answer.finished { Flow::Enough } else { Flow::More })
    }

    fn end(&mut self) -> Result<(), Failure> {
        if let Some(body) = self.body.take() {
            let text = String::from_utf8_lossy(&body);
            if acheron_http::looks_like_html(&text) {
                return Err(page_of_html(D::NAME).into());
            }
            let value = serde_json::from_str(&text)
                .map_err(|error| Error::provider(format!("the answer of the model's server is not JSON: {error}")))?;
            D::whole(&value, &mut self.answer)?;
            self.tell();
            return Ok(());
        }
        if self.answer.finished || self.answer.complete {
            return Ok(());
        }
        Err(Failure::transient(Error::provider("the model's server ended its answer early")))
    }
}

fn page_of_html(provider: &str) -> Error {
    Error::provider(format!(
        "the server returned HTML instead of an answer; is the base URL that of an {provider} API?"
    ))
}
