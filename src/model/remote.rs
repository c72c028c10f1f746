//! What every model behind an HTTP server has in common: where it is, its key, its request, its stream.
//!
//! A provider says how a question is put and how its events are read ([`Dialect`]); everything else is here, once.

use std::sync::Arc;

use async_trait::async_trait;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;

use super::{Ask, Message, Model, Piece, Role, Said, Usage, tokens};
use acheron_base::{Error, Result};
use acheron_http::{BodySink, Failure, Flow, Head, Http, Request, Secret, sse};

/// The longest answer that is kept, in bytes on the wire: events carry much besides the text.
const LONGEST: u64 = 8 << 20;

/// Where a model is and how it is called.
#[derive(Clone, Debug)]
pub struct Server {
    /// The provider's name of the model.
    pub model: String,
    /// Without a slash at the end.
    pub base_url: String,
    /// From the environment, never from a file. A server on one's own machine may need none.
    pub key: Option<Secret>,
}

impl Server {
    /// Finds the server by the configuration and by the environment, which `env` looks up.
    pub fn find<D: Dialect>(
        model: Option<&str>,
        base_url: Option<&str>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Server> {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let Some(model) = model.filter(|model| !model.is_empty()) else {
            return Err(Error::invalid(format!("which model of {}? give its name", D::NAME)));
        };
        let given = base_url.map(str::to_owned).or_else(|| env(D::BASE_URL_VARIABLE));
        let key = env(D::KEY_VARIABLE).map(|key| Secret::new(key.trim()));
        if key.is_none() && given.is_none() {
            return Err(Error::unavailable(format!("{} is not set, which {} needs", D::KEY_VARIABLE, D::NAME)));
        }
        let base_url = given.unwrap_or_else(|| D::BASE_URL.to_owned()).trim_end_matches('/').to_owned();
        Ok(Server { model: model.to_owned(), base_url, key })
    }
}

/// How one provider speaks.
pub trait Dialect: Send + Sync + 'static {
    const NAME: &'static str;
    const KEY_VARIABLE: &'static str;
    const BASE_URL_VARIABLE: &'static str;
    const BASE_URL: &'static str;

    fn request(server: &Server, ask: &Ask) -> Request;
    /// Reads one event of the stream.
    fn event(event: &Value, answer: &mut Answer) -> Result<(), Failure>;
    /// Reads an answer that came whole, from a server that does not stream.
    fn whole(body: &Value, answer: &mut Answer) -> Result<(), Failure>;
}

/// An answer as it grows.
#[derive(Debug, Default)]
pub struct Answer {
    pub text: String,
    pub thoughts: String,
    pub native_call: bool,
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub model: Option<String>,
    /// The provider has said that this is all, and nothing follows.
    pub finished: bool,
    /// The text is whole, though something may follow: a stream that ends now was not cut off.
    pub complete: bool,
    fresh: Vec<Piece>,
}

impl Answer {
    pub fn text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.fresh.push(Piece::Text(piece.to_owned()));
        }
    }

    pub fn thought(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.thoughts.push_str(piece);
            self.fresh.push(Piece::Thought(piece.to_owned()));
        }
    }

    /// What a provider reports in the middle of a stream; the busy and the broken may be asked again.
    pub fn trouble(error: &Value) -> Failure {
        let said = acheron_http::error_summary(error.to_string().as_bytes());
        let kind = ["type", "code"].into_iter().find_map(|key| error.get(key).and_then(Value::as_str)).unwrap_or("");
        let error = Error::provider(format!("the model's server broke off: {said}"));
        let passing = ["overloaded", "rate_limit", "server_error", "api_error", "timeout"];
        if passing.iter().any(|word| kind.contains(word)) { Failure::transient(error) } else { error.into() }
    }

    fn said(self, ask: &Ask, model: &str) -> Said {
        let asked = || tokens(&ask.system) + ask.messages.iter().map(|message| tokens(&message.text)).sum::<u64>();
        let given = || tokens(&self.text) + tokens(&self.thoughts);
        Said {
            usage: Usage { input: self.input.unwrap_or_else(asked), output: self.output.unwrap_or_else(given) },
            thoughts: Some(self.thoughts).filter(|thoughts| !thoughts.is_empty()),
            native_call: self.native_call,
            model: self.model.unwrap_or_else(|| model.to_owned()),
            text: self.text,
        }
    }
}

/// The messages with neighbours of one role joined, beginning with the user: some servers insist.
pub fn alternating(messages: &[Message]) -> Vec<Message> {
    let mut joined: Vec<Message> = Vec::new();
    for message in messages {
        match joined.last_mut() {
            Some(last) if last.role == message.role => {
                last.text.push_str("\n\n");
                last.text.push_str(&message.text);
            }
            None if message.role == Role::Assistant => {
                joined.extend([Message::user("(the conversation goes on)"), message.clone()]);
            }
            _ => joined.push(message.clone()),
        }
    }
    joined
}

/// A model behind a server.
pub struct Remote<D> {
    server: Server,
    http: Arc<Http>,
    /// Where the jitter of pauses comes from.
    seed: u64,
    dialect: std::marker::PhantomData<D>,
}

impl<D: Dialect> Remote<D> {
    pub fn new(server: Server, http: Arc<Http>, seed: u64) -> Self {
        Remote { server, http, seed, dialect: std::marker::PhantomData }
    }
}

#[async_trait]
impl<D: Dialect> Model for Remote<D> {
    fn name(&self) -> String {
        format!("{}:{}", D::NAME, self.server.model)
    }

    async fn answer(&self, ask: &Ask, watch: &mut (dyn FnMut(Piece) + Send)) -> Result<Said> {
        let request = Request { limit: LONGEST, ..D::request(&self.server, ask) };
        let mut listener = Listener::<D>::new(watch);
        // The same question draws the same pauses, so that a run can be repeated.
        let mut dice = StdRng::seed_from_u64(self.seed ^ ask.messages.len() as u64);
        match self.http.fetch(&request, &mut dice, &mut listener).await {
            Ok(()) => Ok(listener.answer.said(ask, &self.server.model)),
            Err(failure) => {
                let mut error = failure.error;
                if matches!(failure.status, Some(401 | 403)) {
                    error.message.push_str(&format!("; is {} right?", D::KEY_VARIABLE));
                }
                Err(error)
            }
        }
    }
}

/// Takes the bytes of one answer, as events or as one JSON object.
struct Listener<'a, D> {
    answer: Answer,
    events: sse::Decoder,
    /// The body so far, of a server that does not stream.
    body: Option<Vec<u8>>,
    begun: bool,
    watch: &'a mut (dyn FnMut(Piece) + Send),
    dialect: std::marker::PhantomData<D>,
}

impl<'a, D: Dialect> Listener<'a, D> {
    fn new(watch: &'a mut (dyn FnMut(Piece) + Send)) -> Self {
        let (answer, events) = (Answer::default(), sse::Decoder::default());
        Listener { answer, events, body: None, begun: false, watch, dialect: std::marker::PhantomData }
    }

    fn tell(&mut self) {
        self.answer.fresh.drain(..).for_each(&mut *self.watch);
    }
}

impl<D: Dialect> BodySink for Listener<'_, D> {
    fn begin(&mut self, head: &Head) -> Result<(), Failure> {
        if std::mem::replace(&mut self.begun, true) {
            (self.watch)(Piece::Again);
        }
        self.answer = Answer::default();
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
        Err(Failure::transient(Error::provider("the model's server cut its answer off in the middle")))
    }
}

fn page_of_html(provider: &str) -> Error {
    Error::provider(format!("a page of HTML came instead of an answer; is the base URL that of a {provider} API?"))
}
