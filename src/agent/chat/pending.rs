//! Turns that a program outside answers: `pending.json` shows the oldest, `control/reply.json` answers one by its name.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Chat;
use super::messages::answer_turn;
use crate::agent::turn::CurrentTurn;
use crate::policy::{Principal, PrincipalCaller};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, CommandContext, CommandSink, Reply, line};

impl CurrentTurn {
    /// A program outside answers it, and none has yet. Settings that change later do not count.
    fn is_pending(&self) -> bool {
        self.settings.is_external() && !self.kept.load(Ordering::SeqCst) && self.reply.borrow().is_none()
    }
}

impl Chat {
    /// The oldest turn that waits for an answer from outside.
    pub(super) fn pending(&self) -> Option<Arc<CurrentTurn>> {
        self.queue().iter().find(|turn| turn.is_pending()).cloned()
    }

    /// Tells readers of `pending.json` to look again.
    pub(super) fn pending_changed(&self) {
        self.0.pending.send_modify(|changes| *changes += 1);
    }

    /// `pending.json`: waits until a turn has no answer. Reading takes nothing away.
    pub(super) fn pending_turn(&self, caller: &Caller) -> Answer<Bytes> {
        if let Some(turn) = self.pending() {
            return Answer::ok(shown(&turn));
        }
        let agent = &self.0.agent_runtime.agent;
        if !self.0.agent_runtime.settings().is_external() {
            let said =
                format!("{agent} has a model that answers its turns; programs outside serve the model `external`");
            return Answer::refuse(Error::unavailable(said));
        }
        if let Err(error) = caller.may_await_turns(agent) {
            return Answer::refuse(error);
        }
        let (chat, mut changes) = (self.clone(), self.0.pending.subscribe());
        Answer::later(async move {
            loop {
                changes.mark_unchanged();
                if let Some(turn) = chat.pending() {
                    return Ok(shown(&turn));
                }
                if changes.changed().await.is_err() {
                    return Err(Error::unavailable("the agent is gone"));
                }
            }
        })
    }

    /// The turn of that name, if this caller may answer it.
    fn named(&self, caller: &Caller, id: &str) -> Result<Arc<CurrentTurn>> {
        let agent = &self.0.agent_runtime.agent;
        let turn = self.queue().iter().find(|turn| turn.job.id == id).cloned();
        let Some(turn) = turn else {
            return Err(match self.0.agent_runtime.history.has(id) {
                true => Error::conflict(format!("the turn {id} has ended")),
                false => Error::not_found(format!("{agent} has no turn {}", acheron_base::quoted(id))),
            });
        };
        match caller.principal() {
            Principal::Agent(id) if id == agent => Ok(turn),
            Principal::Operator if turn.settings.is_external() => Ok(turn),
            _ => Err(Error::forbidden(format!("only {agent} itself answers this turn"))),
        }
    }
}

fn shown(turn: &CurrentTurn) -> Bytes {
    line(
        &json!({"turn": turn.job.id, "input": turn.input, "source": turn.source, "from": turn.job.call.principal.to_string()}),
    )
}

/// `control/reply.json`.
pub(super) struct NamedReplyFile(pub Chat);

/// An answer to one turn.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedReply {
    turn: String,
    reply: String,
}

impl CommandSink for NamedReplyFile {
    fn template(&self) -> Bytes {
        let turn = self.0.pending().map_or_else(|| "job-…".to_owned(), |turn| turn.job.id.clone());
        line(&json!({"turn": turn, "reply": "…"}))
    }

    fn expects(&self) -> String {
        r#"an answer to one turn: {"turn": "<from pending.json>", "reply": "<text>"}"#.to_owned()
    }

    fn submit(&self, context: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        let [command] = commands.as_slice() else {
            return Answer::refuse(Error::invalid("give one answer in each write"));
        };
        let named = NamedReply::deserialize(command).map_err(|error| Error::invalid(error.to_string()));
        let turn = named.and_then(|named| Ok((self.0.named(&context.caller, &named.turn)?, named.reply)));
        match turn {
            Ok((turn, reply)) => answer_turn(&self.0, &context.caller, turn, reply).map(|reply| vec![reply]),
            Err(error) => Answer::refuse(error),
        }
    }

    fn refused(&self, _: &CommandContext, error: &Error) {
        self.0.set_refusal(Some(error.clone()));
    }
}
