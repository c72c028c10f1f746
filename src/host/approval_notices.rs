//! Sends requests for approval out, as `approvals.notify` of the mountspec says: to a webhook, or to a command of the operator. Each
//! notice carries a signed link to the page of `acheron serve`, which alone can decide. A notice that cannot be sent is logged and
//! holds nothing up: the request waits in `approvals/` all the same.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::HostState;
use crate::approvals::Approval;
use acheron_approvals::State;
use acheron_base::{Error, Result};
use acheron_http::retry::RetryPolicy;
use acheron_http::{BodyBytes, Http, Request};

/// How long a command may take.
const COMMAND_TIME: Duration = Duration::from_secs(30);
/// Notices that are under way at the same time.
const AT_ONCE: usize = 8;

/// Sends notices as long as the host lives. Must be called within a runtime.
pub fn begin(host: &Arc<HostState>) {
    let mut changes = host.context.approvals.changes();
    let weak = Arc::downgrade(host);
    let slots = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    tokio::spawn(async move {
        // What was told of each request that is known.
        let mut told: BTreeMap<String, State> = BTreeMap::new();
        let mut first = true;
        loop {
            changes.borrow_and_update();
            let Some(host) = weak.upgrade() else { return };
            let all = host.context.approvals.all();
            told.retain(|id, _| all.iter().any(|approval| approval.id == *id));
            for approval in all {
                let state = approval.status().state;
                let before = told.insert(approval.id.clone(), state);
                // What was decided before the host started is old news.
                let is_new = before != Some(state) && (!first || !state.settled());
                if is_new {
                    send(&weak, &host, &approval, &slots);
                }
            }
            first = false;
            drop(host);
            if changes.changed().await.is_err() {
                return;
            }
        }
    });
}

fn send(weak: &Weak<HostState>, host: &Arc<HostState>, approval: &Arc<Approval>, slots: &Arc<tokio::sync::Semaphore>) {
    for target in host.current.spec().approvals.notify.clone() {
        let (weak, notice, slots) = (weak.clone(), notice(host, approval), slots.clone());
        let id = approval.id.clone();
        tokio::spawn(async move {
            let Ok(_slot) = slots.acquire().await else { return };
            let sent = match (&target.webhook, &target.command) {
                (Some(url), _) => post(&weak, url, &notice).await,
                (None, command) => run(command, &notice).await,
            };
            if let Err(error) = sent {
                tracing::warn!(approval = id, %error, "a notice about a request could not be sent");
            }
        });
    }
}

/// What is sent: enough to recognise the request, and the link to all of it. The arguments are only in the summary.
fn notice(host: &HostState, approval: &Approval) -> Value {
    let page = host.context.approvals.request_page(approval);
    let state = approval.status();
    let event = if state.state.settled() { "decided" } else { "asked" };
    let link = Some(()).filter(|()| !state.state.settled()).and_then(|()| host.context.approvals.link(approval));
    json!({
        "event": event,
        "id": approval.id,
        "state": state.state,
        "answer": state.decision.map(|decision| decision.answer),
        "agent": page["agent"],
        "host": page["host"],
        "kind": page["kind"],
        "summary": page["summary"],
        "risk": page["risk"],
        "stated_reason": page["stated_reason"],
        "subject_sha256": page["subject_sha256"],
        "expires_at_ms": page["expires_at_ms"],
        "link": link,
    })
}

async fn post(host: &Weak<HostState>, url: &str, notice: &Value) -> Result<()> {
    let Some(host) = host.upgrade() else { return Ok(()) };
    let (clock, random) = (host.context.clock.clone(), host.context.ids.random().number());
    drop(host);
    let http = Http::new(RetryPolicy::default(), clock);
    let mut dice: rand::rngs::StdRng = rand::SeedableRng::seed_from_u64(random);
    let mut request = Request::post(url, notice);
    request.limit = 64 << 10;
    http.fetch(&request, &mut dice, &mut BodyBytes::default()).await.map(drop).map_err(|failure| failure.error)
}

/// Runs a command of the operator with the notice on its standard input.
async fn run(command: &[String], notice: &Value) -> Result<()> {
    let Some((program, words)) = command.split_first() else { return Ok(()) };
    let mut command = tokio::process::Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| Error::from(error).about(program))?;
    let text = format!("{notice}\n");
    let ended = async {
        if let Some(mut stdin) = child.stdin.take() {
            _ = stdin.write_all(text.as_bytes()).await; // a command need not read it
        }
        child.wait().await
    };
    match tokio::time::timeout(COMMAND_TIME, ended).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(Error::failed(format!("{program} ended with {status}"))),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Error::timeout(format!("{program} took longer than {} s", COMMAND_TIME.as_secs()))),
    }
}
