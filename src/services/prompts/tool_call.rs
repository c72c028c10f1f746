//! Running a tool of an open prompt: a call to a service, within a transaction over the prompt's resources.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use super::evaluate::ToolRunner;
use super::opened::Opened;
use super::resources::Transaction;
use crate::jobs::Job;
use crate::policy::PrincipalCaller;
use crate::service::Cx;
use acheron_base::{Error, Result, blocking};
use acheron_prompts::{disclosure, names};
use acheron_vfs::Caller;

#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Called {
    pub tool: String,
    /// The job that the call was.
    pub job_id: Option<String>,
    /// False if the tool itself reported a failure.
    pub ok: bool,
    pub result: Value,
    /// Every resource is what it was before.
    pub rolled_back: bool,
}

/// The transaction of a call under way. If the call is cancelled, its job is ended first, for it could go on to change
/// things; then it is taken back on a thread that may wait. The next call waits for that.
struct RunningCall {
    held: Option<(Transaction, OwnedMutexGuard<()>)>,
    job: Option<Arc<Job>>,
    runtime: tokio::runtime::Handle,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let Some((transaction, turn)) = self.held.take() else { return };
        let (job, runtime) = (self.job.take(), self.runtime.clone());
        self.runtime.spawn(async move {
            if let Some(job) = job {
                job.cancel.cancel();
                job.end().await;
            }
            runtime.spawn_blocking(move || {
                drop(transaction);
                drop(turn);
            });
        });
    }
}

/// `caller` is in whose name the tool runs.
pub(super) async fn call(
    cx: &Cx,
    caller: &Caller,
    opened: &Arc<Opened>,
    tool: &str,
    arguments: Value,
    tag: Option<String>,
) -> Result<Called> {
    let rendered = opened.render()?;
    if !rendered.tools.iter().any(|shown| shown.name == tool) {
        let known: Vec<&str> = rendered.tools.iter().map(|shown| shown.name.as_str()).collect();
        let name = names::clipped(tool);
        return Err(Error::not_found(format!(
            "this prompt does not offer `{name}` now; it offers: {}",
            known.join(", ")
        )));
    }
    if let Some(done) = own_tool(opened, tool, &arguments)? {
        return Ok(done);
    }
    let template = opened.prompt().template;
    let known = template.tool(tool).ok_or_else(|| Error::internal("a tool that is shown is not there"))?.1;
    if let Some(complaint) = known.input_complaint(&arguments) {
        return Err(Error::invalid(format!("{tool}: {complaint}")));
    }
    let (service, operation) = tool.split_once('.').ok_or_else(|| Error::internal("a tool without a service"))?;
    let turn = opened.turn.clone().lock_owned().await;
    let transaction = {
        let (resources, id, now_ms) = (opened.resources(), cx.job_id().to_owned(), cx.clock.now_ms());
        let (tool, tag) = (tool.to_owned(), tag.clone());
        blocking(move || {
            // A resource that was never made could not be rolled back.
            resources.hold_all()?;
            resources.begin(&id, now_ms, tag.as_deref(), &tool)
        })
        .await?
    };
    let mut running = RunningCall { held: Some((transaction, turn)), job: None, runtime: cx.context.runtime.clone() };
    let job = cx.context.call(caller, &cx.agent, service, operation, arguments).await?;
    running.job = Some(job.clone());
    let end = job.end().await;
    let outcome = end.outcome.as_deref().cloned().unwrap_or_else(|| Err(Error::interrupted("the call has no end")));
    let failed = match &outcome {
        Err(_) => true,
        Ok(result) => known.reports_failure(result),
    };
    let Some((transaction, turn)) = running.held.take() else {
        return Err(Error::internal("a transaction ended twice"));
    };
    blocking(move || {
        let ended = if failed { transaction.roll_back() } else { transaction.commit() };
        drop(turn);
        ended
    })
    .await?;
    match outcome {
        Ok(result) => {
            Ok(Called { tool: tool.to_owned(), job_id: Some(job.id.clone()), ok: !failed, result, rolled_back: failed })
        }
        Err(error) => Err(Error::new(error.code, format!("{tool}: {}; all resources are as they were", error.message))),
    }
}

/// The two tools that every prompt with summaries has.
fn own_tool(opened: &Opened, tool: &str, arguments: &Value) -> Result<Option<Called>> {
    let result = match tool {
        disclosure::OPEN => {
            let keys: Vec<String> = serde_json::from_value(arguments.get("section_keys").cloned().unwrap_or_default())
                .map_err(|_| Error::invalid("section_keys is a list of keys"))?;
            let reason = arguments.get("reason").and_then(Value::as_str).unwrap_or_default();
            json!(opened.expand(&keys, reason)?)
        }
        disclosure::READ => {
            let key = arguments.get("section_key").and_then(Value::as_str).unwrap_or_default();
            json!(opened.prompt().read_section(key)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(Called { tool: tool.to_owned(), job_id: None, ok: true, result, rolled_back: false }))
}

/// The tools of an open prompt, called by a model.
pub(super) struct PromptTools<'a> {
    pub cx: &'a Cx,
    pub opened: &'a Arc<Opened>,
}

#[async_trait]
impl ToolRunner for PromptTools<'_> {
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        // The model acts for the agent, whichever caller asked for its answer.
        let agent = Caller::agent(&self.cx.agent);
        Ok(call(self.cx, &agent, self.opened, tool, arguments, None).await?.result)
    }
}
