//! `control/input.json`: a message with a name, so that its writer can find its turn and cancel it, and learns what it has cost.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Chat, ChatMessage};
use crate::agent::chat_session::ChatSession;
use crate::agent::transcript::TurnSource;
use crate::agent::turn;
use crate::jobs::Job;
use crate::policy::{Principal, PrincipalCaller};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, CommandContext, CommandSink, Reply, ReplyFn, line};

/// `control/input.json`.
pub(super) struct NamedInputFile(pub Chat);

/// A message to the agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedInput {
    input: String,
    /// The conversation that it belongs to; the agent's main one otherwise.
    session: Option<ChatSession>,
    #[serde(default, rename = "_meta")]
    meta: InputMeta,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct InputMeta {
    correlation_id: Option<String>,
}

impl NamedInputFile {
    fn message(&self, context: &CommandContext, commands: &[Value]) -> Result<(ChatMessage, NamedInput)> {
        let agent = &self.0.0.agent_runtime.agent;
        let [command] = commands else { return Err(Error::invalid("give one message in each write")) };
        let named = NamedInput::deserialize(command).map_err(|error| Error::invalid(error.to_string()))?;
        match context.caller.principal() {
            Principal::Agent(id) if id == agent => {
                Err(Error::forbidden("input.json takes messages from others; write your answer to control/reply"))
            }
            from => {
                if let Some(session) = &named.session {
                    session.check()?;
                }
                let message = ChatMessage { source: TurnSource::Chat, text: named.input.clone(), from: from.clone() };
                Ok((message, named))
            }
        }
    }
}

impl CommandSink for NamedInputFile {
    fn template(&self) -> Bytes {
        line(&json!({"input": "…"}))
    }

    fn expects(&self) -> String {
        r#"a message: {"input": "<text>"}"#.to_owned()
    }

    fn submit(&self, context: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        let (message, named) = match self.message(context, &commands) {
            Ok(named) => named,
            Err(error) => return Answer::refuse(error),
        };
        let chat = self.0.clone();
        self.0.say_as(message, named.session, named.meta.correlation_id).map(move |job| {
            chat.set_refusal(None);
            vec![Arc::new(ReplyFn(move || answer(&chat, &job))) as Arc<dyn Reply>]
        })
    }

    fn refused(&self, _: &CommandContext, error: &Error) {
        self.0.set_refusal(Some(error.clone()));
    }
}

/// The end of the turn: its reply or its error, and what it has cost.
fn answer(chat: &Chat, job: &Arc<Job>) -> Answer<Bytes> {
    let (runtime, job) = (chat.0.agent_runtime.clone(), job.clone());
    Answer::later(async move {
        let now = job.end().await;
        let spent = turn::spent(&runtime, &job.id).await;
        let (reply, error) = match now.outcome.as_deref() {
            Some(Ok(value)) => (value.as_str().map(str::to_owned), None),
            Some(Err(error)) => (None, Some(error.clone())),
            None => (None, None),
        };
        Ok(line(&json!({"ok": error.is_none(), "job_id": job.id, "reply": reply, "error": error, "spent": spent})))
    })
}
