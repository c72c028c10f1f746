//! `/metrics` for Prometheus: the figures of `meta/metrics.json` and of the agents that the token may see.

mod text;

use axum::Router;
use axum::extract::{Extension, State};
use axum::response::Response;
use axum::routing::get;
use serde_json::Value;

use super::listener::{HttpDoor, problem, respond};
use super::tree::{DoorTree, Wait};
use super::{DoorCaller, DoorContext};
use crate::agent::tools::EntryKind;
use acheron_base::{Error, Result};

pub const DOOR: HttpDoor = HttpDoor { flag: "metrics", prefix: "/metrics", routes, shape: problem::shape, open: &[] };

/// The most agents with figures of their own: each is a label.
const AGENTS: usize = 200;
/// The largest file that is read.
const MOST: usize = 1 << 20;

fn routes(context: DoorContext) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(context)
}

async fn metrics(State(context): State<DoorContext>, Extension(caller): Extension<DoorCaller>) -> Response {
    let shown = async { collect(&context.tree_of(&caller)?).await };
    match shown.await {
        Ok(text) => respond(200, &[("content-type", "text/plain; version=0.0.4; charset=utf-8")], text),
        Err(error) => problem::problem(&error),
    }
}

async fn collect(tree: &DoorTree) -> Result<String> {
    let metrics = read(tree, "/meta/metrics.json").await?;
    let mut agents = Vec::new();
    let listed = tree.list("/agents", usize::MAX).await?;
    for entry in listed.into_iter().filter(|entry| entry.kind == EntryKind::Directory).take(AGENTS) {
        // One that goes meanwhile, or that this token may not read, has no figures.
        if let Ok(status) = read(tree, &format!("/agents/{}/chat/status.json", entry.name)).await {
            agents.push((entry.name, status));
        }
    }
    Ok(text::text(&metrics, &agents))
}

async fn read(tree: &DoorTree, path: &str) -> Result<Value> {
    let bytes = tree.read(path, MOST, Wait::Never).await?;
    serde_json::from_slice(&bytes).map_err(|err| Error::internal(format!("{path}: {err}")))
}
