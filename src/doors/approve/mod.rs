//! `/approve`: the page behind a link that was sent out with a request. Whoever has the link sees that one request and can answer
//! it once. A GET shows and decides nothing, so that previews of a link are harmless; only the POST of the page's form decides.
//!
//! No token is needed: the signature in the link is what lets a client in, and it is checked before anything is shown.

mod page;

use std::collections::HashMap;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};

use super::listener::{HttpDoor, problem, read_body, respond};
use super::tree::{DoorTree, Wait};
use super::{DoorCaller, DoorContext};
use crate::policy::Principal;
use acheron_base::{Code, Error, Result};

pub const DOOR: HttpDoor =
    HttpDoor { flag: "approve", prefix: "/approve", open: &["/approve"], routes, shape: problem::shape };

/// The longest body of the form.
const LONGEST: usize = 16 << 10;
/// The largest request that is shown.
const MOST: usize = 4 << 20;

fn routes(context: DoorContext) -> Router {
    Router::new().route("/approve", get(show).post(answer)).with_state(context)
}

/// What a link names.
struct OpenedLink {
    tree: DoorTree,
    id: String,
    signature: String,
    request: Value,
}

async fn show(State(context): State<DoorContext>, request: Request) -> Response {
    let fields = fields(request.uri().query().unwrap_or_default());
    match open(&context, &fields).await {
        Ok(link) => html(200, &page::request(&link.request, &link.id, &link.signature)),
        Err(error) => refused(&context, &error),
    }
}

async fn answer(State(context): State<DoorContext>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let answered = async {
        let body = read_body(&head.headers, body, LONGEST).await?;
        let fields = fields(std::str::from_utf8(&body).map_err(|_| Error::invalid("the form is not text"))?);
        let link = open(&context, &fields).await?;
        let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let (decision, reason) = (field("decision"), field("reason"));
        let decision = match (decision.as_str(), reason.trim()) {
            ("deny", reason) if !reason.is_empty() => format!("deny: {reason}"),
            _ => decision,
        };
        // The answer counts for what the page showed, and for nothing else.
        let given = json!({ "decision": decision, "sha256": field("sha256") }).to_string();
        link.tree.write(&format!("/approvals/{}/decision", link.id), given.as_bytes(), false, false).await?;
        status(&link).await
    };
    match answered.await {
        Ok(status) => html(200, &page::outcome(&status)),
        Err(error) => refused(&context, &error),
    }
}

/// The request that a link names, if its signature is right. A wrong one is answered as one for which there is no request.
async fn open(context: &DoorContext, fields: &HashMap<String, String>) -> Result<OpenedLink> {
    let none = || Error::not_found("this link is not valid; perhaps a part of it is missing");
    let (Some(id), Some(signature)) = (fields.get("id"), fields.get("t")) else { return Err(none()) };
    let plain =
        |id: &str| id.starts_with("apr-") && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !plain(id) || id.len() > 64 {
        return Err(none());
    }
    // With the rights of the operator, who has sent the link out; it shows nothing before the signature was verified.
    let tree = context.tree_of(&DoorCaller::peer(Principal::Operator))?;
    let bytes = tree.read(&format!("/approvals/{id}/request.json"), MOST, Wait::Never).await.map_err(|_| none())?;
    let request: Value = serde_json::from_slice(&bytes).map_err(|_| none())?;
    let hash = request["subject_sha256"].as_str().unwrap_or_default();
    let expires_at_ms = request["expires_at_ms"].as_u64().unwrap_or_default();
    match context.links.verify(id, hash, expires_at_ms, signature) {
        true => Ok(OpenedLink { tree, id: id.clone(), signature: signature.clone(), request }),
        false => Err(none()),
    }
}

async fn status(link: &OpenedLink) -> Result<Value> {
    let bytes = link.tree.read(&format!("/approvals/{}/status.json", link.id), MOST, Wait::UntilReady).await?;
    serde_json::from_slice(&bytes).map_err(|error| Error::internal(error.to_string()))
}

/// The fields of a query or of a form.
fn fields(text: &str) -> HashMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().take(16).collect()
}

fn refused(context: &DoorContext, error: &Error) -> Response {
    if error.code == Code::NotFound {
        context.refusals.refused("unknown client", "approve", "/approve", &error.message);
    }
    html(problem::status(error.code), &page::refusal(error))
}

fn html(status: u16, page: &str) -> Response {
    let headers = [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
        ),
    ];
    respond(status, &headers, page.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_browsers_write_it() {
        let fields = fields("decision=deny&reason=not+on+a%20Friday%21&x&=y&t=%zz");
        assert_eq!(fields["reason"], "not on a Friday!");
        assert_eq!((fields["decision"].as_str(), fields["t"].as_str()), ("deny", "%zz"));
    }
}
