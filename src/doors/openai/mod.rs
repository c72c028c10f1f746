//! Agents as models of an OpenAI-compatible API: `/v1/models`, `/v1/chat/completions`, `/v1/responses`.
//!
//! A request is a turn of the agent that it names. The agent keeps its conversation, and has one: only the last message is new.
//! A client that goes away cancels its turn. All of it goes through the tree: the message to `chat/control/input.json`, the
//! cancellation to the job of the turn, with the rights of the token.

mod answer;
mod request;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};

use super::listener::{HttpDoor, read_body, respond};
use super::tree::{DoorTree, DoorWrite};
use super::{DoorCaller, DoorContext};
use crate::agent::tools::EntryKind;
use crate::policy::{Principal, PrincipalCaller as _};
use acheron_base::{Error, Result, quoted};
use answer::{AnswerHead, EndedTurn};
use request::TurnRequest;

pub const DOOR: HttpDoor = HttpDoor { flag: "openai", prefix: "/v1", routes, shape, open: &[] };

/// The largest request: clients send the whole conversation.
const BODY: usize = 32 << 20;
/// A stream on which nothing happens says so, because something on the way may cut it otherwise.
const ALIVE: Duration = Duration::from_secs(10);

fn routes(context: DoorContext) -> Router {
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/models/{model}", get(model))
        .route("/v1/chat/completions", post(completions))
        .route("/v1/responses", post(responses))
        .with_state(context)
}

/// A refusal as OpenAI's clients read it.
fn shape(status: u16, error: &Error, again: Option<u64>) -> Response {
    let mut response = respond(status, &[("content-type", "application/json")], answer::error(error).to_string());
    let retry = if again.is_some() { "true" } else { "false" };
    response.headers_mut().insert("x-should-retry", axum::http::HeaderValue::from_static(retry));
    if let Some(seconds) = again {
        response.headers_mut().insert("retry-after", seconds.into());
    }
    response
}

fn refused(error: &Error) -> Response {
    shape(answer::kind(error).0, error, answer::may_retry(error).then_some(1))
}

fn answered(outcome: Result<Value>) -> Response {
    match outcome {
        Ok(body) => respond(200, &[("content-type", "application/json")], body.to_string()),
        Err(error) => refused(&error),
    }
}

/// The file that takes the messages to an agent.
fn input_of(agent: &str) -> String {
    format!("/agents/{agent}/chat/control/input.json")
}

/// The agents that this caller may talk to: not itself, because it takes no messages of its own.
async fn agents(tree: &DoorTree) -> Result<Vec<String>> {
    let own = match tree.caller().principal() {
        Principal::Agent(id) => Some(id.clone()),
        _ => None,
    };
    let listed = tree.list("/agents", usize::MAX).await?.into_iter();
    let names = listed.filter(|entry| entry.kind == EntryKind::Directory).map(|entry| entry.name);
    let may = |name: &String| Some(name) != own.as_ref() && tree.tree().sees_file(tree.caller(), &input_of(name));
    Ok(names.filter(may).collect())
}

fn shown(agent: &str) -> Value {
    json!({"id": agent, "object": "model", "created": 1, "owned_by": "acheron"})
}

async fn models(State(context): State<DoorContext>, Extension(caller): Extension<DoorCaller>) -> Response {
    let listed = async {
        let agents = agents(&context.tree_of(&caller)?).await?;
        Ok(json!({"object": "list", "data": agents.iter().map(|agent| shown(agent)).collect::<Vec<_>>()}))
    };
    answered(listed.await)
}

async fn model(
    State(context): State<DoorContext>,
    Extension(caller): Extension<DoorCaller>,
    Path(name): Path<String>,
) -> Response {
    let found = async {
        known(&context.tree_of(&caller)?, &name).await?;
        Ok(shown(&name))
    };
    answered(found.await)
}

/// Refuses a model that is no agent to which this caller may talk.
async fn known(tree: &DoorTree, model: &str) -> Result<()> {
    match agents(tree).await?.iter().any(|agent| agent == model) {
        true => Ok(()),
        false => {
            let said = format!("there is no agent {} to talk to; /v1/models lists those that are", quoted(model));
            Err(Error::not_found(said))
        }
    }
}

/// A turn that is under way. Dropping it before its end cancels the turn.
struct RequestedTurn {
    tree: DoorTree,
    written: DoorWrite,
    head: AnswerHead,
    ended: bool,
}

impl RequestedTurn {
    async fn begin(context: &DoorContext, caller: &DoorCaller, request: &TurnRequest) -> Result<RequestedTurn> {
        let tree = context.tree_of(caller)?;
        let agent = &request.model;
        known(&tree, agent).await?;
        if let Some(other) = request.conversation.as_ref().filter(|id| **id != answer::conversation(agent)) {
            let said = format!(
                "there is no conversation {}: an agent keeps one, `{}`, and remembers what was said in it",
                quoted(other),
                answer::conversation(agent)
            );
            return Err(Error::not_found(said));
        }
        if let Some(previous) = &request.previous {
            let job = previous.strip_prefix("resp_").filter(|job| job.starts_with("job-") && !job.contains('/'));
            let there = match job {
                Some(job) => tree.stat(&format!("/agents/{agent}/jobs/{job}")).await.is_ok(),
                None => false,
            };
            if !there {
                let said =
                    format!("there is no answer {} of {agent}: an agent keeps one conversation", quoted(previous));
                return Err(Error::not_found(said));
            }
        }
        let body = json!({"input": request.input}).to_string();
        let written = tree.write(&input_of(agent), body.as_bytes(), false, true).await?;
        let job = written.job.clone().ok_or_else(|| Error::internal("a message without a turn"))?;
        let head = AnswerHead { job, model: agent.clone(), created: context.ids.clock().now_ms() / 1000 };
        Ok(RequestedTurn { tree, written, head, ended: false })
    }

    /// Waits for the end of the turn. May be dropped and called again.
    async fn end(&mut self) -> Result<EndedTurn> {
        let answer = self.written.answer().await;
        self.ended = true;
        let end: EndedTurn =
            serde_json::from_slice(&answer?).map_err(|err| Error::internal(format!("the end of a turn: {err}")))?;
        match end.error {
            Some(error) => Err(error),
            None => Ok(end),
        }
    }
}

impl Drop for RequestedTurn {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let (tree, path) =
            (self.tree.clone(), format!("/agents/{}/jobs/{}/control/cancel", self.head.model, self.head.job));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // A turn that has just ended cannot be cancelled, and need not be.
                _ = tree.write(&path, b"the client has gone\n", false, false).await;
            });
        }
    }
}

/// The events of a stream: how it begins, and how it ends.
struct StreamForm {
    first: fn(&AnswerHead) -> (String, u64),
    last: fn(&AnswerHead, &EndedTurn, u64, bool) -> String,
    failed: fn(&AnswerHead, &Error, u64) -> String,
}

async fn completions(
    State(context): State<DoorContext>,
    Extension(caller): Extension<DoorCaller>,
    request: Request,
) -> Response {
    let form = StreamForm {
        first: |head| (answer::first_chunk(head), 0),
        last: |head, end, _, usage| answer::last_chunks(head, end, usage),
        failed: |_, error, _| answer::data(&answer::error(error)),
    };
    turn(&context, &caller, request, request::chat, form, answer::completion).await
}

async fn responses(
    State(context): State<DoorContext>,
    Extension(caller): Extension<DoorCaller>,
    request: Request,
) -> Response {
    let form = StreamForm {
        first: answer::first_events,
        last: |head, end, next, _| answer::last_events(head, end, next),
        failed: answer::failed_events,
    };
    turn(&context, &caller, request, request::responses, form, |head, end| answer::response(head, Some(end))).await
}

async fn turn(
    context: &DoorContext,
    caller: &DoorCaller,
    request: Request,
    parse: fn(&[u8]) -> Result<TurnRequest>,
    form: StreamForm,
    whole: fn(&AnswerHead, &EndedTurn) -> Value,
) -> Response {
    let (head, body) = request.into_parts();
    let begun = async {
        let request = parse(&read_body(&head.headers, body, BODY).await?)?;
        Ok((RequestedTurn::begin(context, caller, &request).await?, request))
    };
    let (mut running, request) = match begun.await {
        Ok(begun) => begun,
        Err(error) => return refused(&error),
    };
    if request.stream {
        return streamed(running, form, request.include_usage);
    }
    let end = running.end().await;
    answered(end.map(|end| whole(&running.head, &end)))
}

fn streamed(running: RequestedTurn, form: StreamForm, usage: bool) -> Response {
    // What has been sent: nothing, the beginning with so many events, everything.
    enum Sent {
        Nothing,
        Beginning(u64),
        Everything,
    }
    let pieces = stream::unfold((running, form, Sent::Nothing), move |(mut running, form, sent)| async move {
        let (piece, sent) = match sent {
            Sent::Nothing => {
                let (first, next) = (form.first)(&running.head);
                (first, Sent::Beginning(next))
            }
            Sent::Beginning(next) => match tokio::time::timeout(ALIVE, running.end()).await {
                Ok(Ok(end)) => ((form.last)(&running.head, &end, next, usage), Sent::Everything),
                Ok(Err(error)) => ((form.failed)(&running.head, &error, next), Sent::Everything),
                Err(_) => (": the turn is running\n\n".to_owned(), Sent::Beginning(next)),
            },
            Sent::Everything => return None,
        };
        Some((Ok::<_, std::convert::Infallible>(piece), (running, form, sent)))
    });
    let headers = [("content-type", "text/event-stream"), ("x-accel-buffering", "no")];
    respond(200, &headers, Body::from_stream(pieces))
}
