//! The three message files: `input`, written by others, and `reply` and `progress`, written by the agent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::{Chat, ChatMessage};
use crate::agent::transcript::TurnSource;
use crate::agent::turn::{CurrentTurn, on_disk};
use crate::agent::turn_steps;
use crate::jobs::files;
use crate::policy::{Principal, PrincipalCaller};
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller, FixedReply, MessageSink, Reply, ReplyFn};

impl Chat {
    fn note_refusal<T>(&self, caller: &Caller, result: Result<T>) -> Result<T> {
        match &result {
            Ok(_) => self.set_refusal(None),
            Err(error) => self.refused(caller, error),
        }
        result
    }

    /// Shows a refusal in `status.json`. The agent itself is told in its turn, which may end well all the same.
    fn refused(&self, caller: &Caller, error: &Error) {
        if !caller.in_turn() {
            self.set_refusal(Some(error.clone()));
        }
    }

    pub(super) fn set_refusal(&self, refusal: Option<Error>) {
        *self.0.refusal.lock() = refusal;
    }

    /// The turn that this caller may reply to.
    fn turn_of(&self, caller: &Caller, what: &str) -> Result<Arc<CurrentTurn>> {
        let agent = &self.0.agent_runtime.agent;
        let current = self.current();
        // A turn that started without a model is served from outside, even if the settings have changed since.
        let external = match &current {
            Some(current) => current.settings.is_external(),
            None => self.0.agent_runtime.settings().is_external(),
        };
        match caller.principal() {
            Principal::Agent(id) if id == agent => (),
            Principal::Operator if external => (),
            _ => {
                let said = format!("only {agent} itself may write {what}; write to control/input instead");
                return Err(Error::forbidden(said));
            }
        }
        current.ok_or_else(|| Error::conflict(format!("{agent} has no running turn that this could belong to")))
    }

    /// The turn that plain text answers: for a program outside the oldest that waits, for the agent the one that runs.
    fn turn_to_reply(&self, caller: &Caller) -> Result<Arc<CurrentTurn>> {
        let outside = caller.principal() == &Principal::Operator;
        match self.pending().filter(|_| outside) {
            Some(turn) => Ok(turn),
            None => self.turn_of(caller, "its reply"),
        }
    }
}

/// Answers a turn. The turn's own tools have already recorded their intent; any other reply is stored before it is accepted.
pub(super) fn answer_turn(
    chat: &Chat,
    caller: &Caller,
    turn: Arc<CurrentTurn>,
    text: String,
) -> Answer<Arc<dyn Reply>> {
    if caller.in_turn() {
        return Answer::Now(replied(&turn, text));
    }
    if turn.reply.borrow().is_some() || turn.kept.swap(true, Ordering::SeqCst) {
        return Answer::refuse(Error::conflict(TAKEN));
    }
    let chat = chat.clone();
    chat.pending_changed();
    Answer::soon(async move {
        let (agent_runtime, id, words) = (chat.0.agent_runtime.clone(), turn.job.id.clone(), text.clone());
        let kept = on_disk(move || agent_runtime.keep_reply(&id, &words)).await;
        kept.inspect_err(|_| {
            turn.kept.store(false, Ordering::SeqCst);
            chat.pending_changed();
        })?;
        replied(&turn, text)
    })
}

/// `control/input`.
pub(super) struct InputFile(pub Chat);

impl MessageSink for InputFile {
    /// During a turn its input, otherwise a hint.
    fn template(&self) -> Bytes {
        match self.0.current() {
            Some(current) => format!("{}\n", current.input).into(),
            None => {
                Bytes::from_static(b"write a message here; read the reply on the same handle or in ../latest.txt\n")
            }
        }
    }

    fn may(&self, caller: &Caller) -> Result<()> {
        let agent = &self.0.0.agent_runtime.agent;
        let may = match caller.principal() {
            Principal::Agent(id) if id == agent => {
                Err(Error::forbidden("input takes messages from others; write your answer to control/reply"))
            }
            _ => self.0.check_queue(),
        };
        self.0.note_refusal(caller, may)
    }

    fn receive(&self, caller: &Caller, text: String) -> Answer<Arc<dyn Reply>> {
        let from = caller.principal().clone();
        let chat = self.0.clone();
        self.0.say(ChatMessage { source: TurnSource::Chat, text, from }).map(move |job| {
            chat.set_refusal(None);
            let answer =
                move || files::at_end(&job, |_, now| now.outcome.as_ref().map(files::plain).unwrap_or_default());
            Arc::new(ReplyFn(answer)) as Arc<dyn Reply>
        })
    }

    fn refused(&self, caller: &Caller, error: &Error) {
        self.0.refused(caller, error);
    }
}

/// `control/reply`.
pub(super) struct ReplyFile(pub Chat);

impl MessageSink for ReplyFile {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"the agent writes its reply here, which ends its turn\n")
    }

    fn may(&self, caller: &Caller) -> Result<()> {
        let turn = self.0.turn_to_reply(caller);
        self.0.note_refusal(caller, turn.map(drop))
    }

    fn receive(&self, caller: &Caller, text: String) -> Answer<Arc<dyn Reply>> {
        match self.0.turn_to_reply(caller) {
            Ok(turn) => answer_turn(&self.0, caller, turn, text),
            Err(error) => Answer::refuse(error),
        }
    }

    fn refused(&self, caller: &Caller, error: &Error) {
        self.0.refused(caller, error);
    }
}

const TAKEN: &str = "the turn already has a reply";

/// Sets the reply of a turn, if it has none.
fn replied(current: &CurrentTurn, text: String) -> Result<Arc<dyn Reply>> {
    let first = current.reply.send_if_modified(|reply| {
        let first = reply.is_none();
        reply.get_or_insert(text);
        first
    });
    match first {
        true => Ok(Arc::new(FixedReply(Bytes::from_static(b"replied\n")))),
        false => Err(Error::conflict(TAKEN)),
    }
}

/// `control/progress`.
pub(super) struct ProgressFile(pub Chat);

impl MessageSink for ProgressFile {
    /// The last progress message of the agent.
    fn template(&self) -> Bytes {
        match self.0.current().and_then(|current| current.progress.borrow().clone()) {
            Some(text) => format!("{}\n", text.trim_end_matches('\n')).into(),
            None => Bytes::from_static(b"the agent writes here what it has to say before its turn ends\n"),
        }
    }

    fn may(&self, caller: &Caller) -> Result<()> {
        let turn = self.0.turn_of(caller, "its progress");
        self.0.note_refusal(caller, turn.map(drop))
    }

    fn receive(&self, caller: &Caller, text: String) -> Answer<Arc<dyn Reply>> {
        let said = self.0.turn_of(caller, "its progress").map(|current| {
            current.job.log.line(&format!("says: {}", text.trim_end()));
            current.job.update(|job| {
                if let Some(progress) = &mut job.progress {
                    progress["said"] = text.as_str().into();
                }
            });
            turn_steps::said(&current.job, &text);
            current.progress.send_replace(Some(text));
            Arc::new(FixedReply(Bytes::from_static(b"said\n"))) as Arc<dyn Reply>
        });
        Answer::Now(said)
    }

    fn refused(&self, caller: &Caller, error: &Error) {
        self.0.refused(caller, error);
    }
}
