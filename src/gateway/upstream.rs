//! The servers that may answer a request of a program: which language each speaks, and whether the request can be put into it.

use std::borrow::Cow;

use super::headers;
use crate::agent::own_model::AgentModels;
use crate::model::Prices;
use crate::model::server::{ANTHROPIC, GEMINI, ModelServer, OPENAI};
use crate::spec::{ModelApi, ModelSpec};
use acheron_base::{Error, Result};
use acheron_gateway::{Dialect, GatewayRequest};
use acheron_http::Request;

/// The size limit of an answer.
const MAX_ANSWER: u64 = 256 << 20;

/// A server that a request can be sent to.
pub struct Upstream {
    pub server: ModelServer,
    pub prices: Prices,
    /// The longest answer of a translated request, in tokens: programs ask for what the models of their own provider can do.
    longest: u32,
    /// The language in which it is asked.
    pub dialect: Dialect,
    /// It takes the place of another that failed.
    pub fallback: bool,
}

/// The servers for a request: that of the agent's model, and the second one if it names one.
pub fn upstreams(models: &AgentModels, model: &ModelSpec, asked: Dialect) -> Result<Vec<Upstream>> {
    let first = upstream(models, model, asked, false)?;
    let second = model.fallback.as_ref().map(|fallback| upstream(models, &fallback.over(model), asked, true));
    Ok([first].into_iter().chain(second.transpose()?).collect())
}

fn upstream(models: &AgentModels, model: &ModelSpec, asked: Dialect, fallback: bool) -> Result<Upstream> {
    let server = models.runtimes.server(model)?;
    let dialect = dialect_for(&server, model, asked)?;
    Ok(Upstream { server, prices: model.prices, longest: model.context_tokens / 4, dialect, fallback })
}

/// The language in which a server is asked what a program asks in `asked`.
fn dialect_for(server: &ModelServer, model: &ModelSpec, asked: Dialect) -> Result<Dialect> {
    let own = match () {
        () if server.preset == &ANTHROPIC => Dialect::Messages,
        () if server.preset == &GEMINI => Dialect::Gemini,
        // Servers that have the responses API have chat completions as well.
        () if model.api == ModelApi::Responses && asked == Dialect::Responses => Dialect::Responses,
        () if server.preset == &OPENAI && model.base_url.is_none() && asked == Dialect::Responses => Dialect::Responses,
        () => Dialect::Chat,
    };
    match (asked, own) {
        (asked, own) if asked == own => Ok(own),
        (Dialect::Messages | Dialect::Responses, Dialect::Chat) => Ok(own),
        _ => {
            let speaks = match asked {
                Dialect::Messages => "an anthropic or an OpenAI-like model",
                Dialect::Gemini => "a gemini model",
                Dialect::Chat | Dialect::Responses => "an OpenAI-like model",
            };
            Err(Error::invalid(format!(
                "the program speaks {}, and the agent's model is {}:{}, which speaks {}; give the agent {speaks} in the \
                 mountspec, or run a program that speaks {}",
                asked.name(),
                server.preset.kind,
                server.model,
                own.name(),
                own.name()
            )))
        }
    }
}

impl Upstream {
    /// The name of the model in `requests.ndjson`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.server.preset.kind, self.server.model)
    }

    /// Whether answers are put into another language.
    pub fn translates(&self, asked: Dialect) -> bool {
        self.dialect != asked
    }

    /// The longest answer that this server is asked for.
    pub fn longest_answer(&self, asked: &GatewayRequest) -> Option<u32> {
        let wanted = asked.max_tokens();
        if self.translates(asked.dialect) { wanted.map(|tokens| tokens.min(self.longest)) } else { wanted }
    }

    /// The request as this server takes it.
    pub fn prepared(&self, asked: &GatewayRequest, max_tokens: Option<u32>) -> GatewayRequest {
        let (translates, modern) = (self.translates(asked.dialect), self.server.preset == &OPENAI);
        let mut request = if translates { asked.as_chat() } else { asked.clone() };
        request.set_model(&self.server.model);
        if let Some(tokens) = max_tokens.or(self.longest_answer(asked).filter(|_| translates)) {
            request.set_max_tokens(tokens, modern);
        }
        request
    }

    /// The HTTP request. The headers of the program go to a server of its own language only.
    pub fn request(&self, request: &GatewayRequest, came: &CameWith<'_>) -> Request {
        let path = match (self.dialect, came.counting, request.stream) {
            (Dialect::Chat, ..) => "/chat/completions".to_owned(),
            (Dialect::Responses, ..) => "/responses".to_owned(),
            (Dialect::Messages, false, _) => "/messages".to_owned(),
            (Dialect::Messages, true, _) => "/messages/count_tokens".to_owned(),
            (Dialect::Gemini, true, _) => format!("/models/{}:countTokens", self.server.model),
            (Dialect::Gemini, false, true) => format!("/models/{}:streamGenerateContent", self.server.model),
            (Dialect::Gemini, false, false) => format!("/models/{}:generateContent", self.server.model),
        };
        let own = !self.translates(came.dialect);
        let query = came.query.map(headers::query_without_key).filter(|query| own && !query.is_empty());
        let path = query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
        let mut sent = self.server.post(&path, &serde_json::Value::Null);
        sent.body = Some(request.bytes());
        (sent.limit, sent.secret) = (MAX_ANSWER, self.server.secret());
        if own {
            let passed = headers::of_request(came.headers).into_iter();
            sent.headers = passed.map(|(name, value)| (Cow::Owned(name), value)).collect();
        }
        let has_version = sent.headers.iter().any(|(name, _)| name == "anthropic-version");
        if self.dialect == Dialect::Messages && !has_version {
            sent.headers.push(("anthropic-version".into(), "2023-06-01".to_owned()));
        }
        sent
    }
}

/// What came with the body of a request.
pub struct CameWith<'a> {
    pub dialect: Dialect,
    /// Only its tokens are to be counted.
    pub counting: bool,
    pub query: Option<&'a str>,
    pub headers: &'a [(String, String)],
}
