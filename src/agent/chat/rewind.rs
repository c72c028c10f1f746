//! `control/rewind.json`: the way back to an earlier turn, between two turns.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Chat;
use crate::agent::rewind::RewindRequest;
use crate::contract::Effect;
use crate::jobs::files;
use crate::jobs::{Call, Job};
use crate::policy::{Principal, PrincipalCaller};
use crate::service::runner::{JobWork, PlannedCall, RunWork, Work};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, CommandContext, CommandSink, Reply, ReplyFn, line};

/// The service name of rewinds in the journal: they are no turns.
const SERVICE: &str = "rewind";
const DEADLINE: Duration = Duration::from_secs(600);

pub(super) struct RewindFile(pub Chat);

impl RewindFile {
    fn request(&self, context: &CommandContext, commands: &[Value]) -> Result<(RewindRequest, Option<String>)> {
        let [command] = commands else { return Err(Error::invalid("give one command in each write")) };
        let request = RewindRequest::deserialize(command).map_err(|error| Error::invalid(error.to_string()))?;
        if request.to.is_some() == request.undo {
            return Err(Error::invalid("give the last turn that is to count (`to`), or `undo`"));
        }
        if let Principal::Agent(_) = context.caller.principal() {
            return Err(Error::forbidden("an agent rewinds neither itself nor another: the operator does"));
        }
        let name = request.meta.as_ref().and_then(|meta| meta["correlation_id"].as_str().map(str::to_owned));
        Ok((request, name))
    }

    fn begin(&self, request: RewindRequest, principal: Principal, correlation_id: Option<String>) -> Answer<Arc<Job>> {
        let runtime = self.0.agent_runtime().clone();
        let place = self.0.0.order.take_place();
        let first = place.is_first();
        let call = Call {
            agent: runtime.agent.clone(),
            service: SERVICE.to_owned(),
            operation: "rewind".to_owned(),
            effect: Effect::Execute,
            idempotent: false,
            private: false,
            correlation_id,
            principal,
            arguments: json!({"to": request.to, "preview": request.preview, "undo": request.undo}),
            asks: false,
        };
        let own = runtime.clone();
        let start = move |job: Arc<Job>| -> JobWork {
            Box::pin(async move {
                // The next turn begins when this is dropped.
                let _place = place;
                own.checkpoints()?.rewind(&own.agent, &job, request).await
            })
        };
        let work = RunWork { start: Box::new(start), deadline: DEADLINE, quick: false, turn: Some(Box::pin(first)) };
        let planned = PlannedCall { call, work: Work::Run(work), accepted: None };
        let begun = runtime.context.runner.begin(&self.0.0.call_queue, vec![planned], |_| ());
        begun.and(|mut jobs| jobs.pop().ok_or_else(|| Error::internal("a rewind without a job")))
    }
}

impl CommandSink for RewindFile {
    fn template(&self) -> Bytes {
        line(&json!({"to": 1, "preview": true}))
    }

    fn expects(&self) -> String {
        r#"the last turn that is to count: {"to": <seq>, "preview": true}, or {"undo": true}"#.to_owned()
    }

    fn submit(&self, context: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        let (request, name) = match self.request(context, &commands) {
            Ok(request) => request,
            Err(error) => return Answer::refuse(error),
        };
        let chat = self.0.clone();
        self.begin(request, context.caller.principal().clone(), name).map(move |job| {
            chat.set_refusal(None);
            vec![Arc::new(ReplyFn(move || files::at_end(&job, files::answer))) as Arc<dyn Reply>]
        })
    }

    fn refused(&self, _: &CommandContext, error: &Error) {
        self.0.set_refusal(Some(error.clone()));
    }
}
