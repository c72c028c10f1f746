//! Letters that came from other hosts: who may write to whom, the inbox, and the receipts that go back. The host that carries
//! letters (`carrier`) uses it.

use std::sync::Arc;

use serde_json::json;

use super::address::Address;
use super::message::{NewMail, Receipt};
use super::post::Post;
use super::service::HasAgent;
use super::{far, sqlite};
use crate::events::{Commit, commit};
use crate::policy::{Principal, PrincipalCaller};
use crate::service::ServiceAccess;
use acheron_base::{Error, Result};
use acheron_fabric::letters::Letter;
use acheron_fabric::names::FarAgent;
use acheron_vfs::{Access, Caller};

/// A letter, the host that sent it and the agent that it is for.
#[derive(Clone, Debug)]
pub struct ArrivedLetter {
    pub from_node: String,
    pub agent: String,
    /// None if it cannot be read.
    pub letter: Option<Letter>,
}

/// Takes letters in.
#[derive(Clone)]
pub struct Reception {
    pub post: Arc<Post>,
    pub access: Arc<dyn ServiceAccess>,
    pub has_agent: HasAgent,
    /// The name of this host.
    pub node: String,
}

impl Reception {
    /// Takes all of them in, in one commit. Those that came before are left out; those that are refused go back as `dead`.
    pub async fn receive(&self, letters: Vec<ArrivedLetter>) -> Result<()> {
        let own = self.clone();
        let done = commit(self.post.mailbox.store(), move |commit| {
            for arrived in &letters {
                let Some(letter) = &arrived.letter else {
                    tracing::warn!(from = arrived.from_node, "a letter that cannot be read was dropped");
                    continue;
                };
                let key = letter.key(&arrived.from_node);
                if far::is_new(commit.tx(), &arrived.from_node, &key, own.post.clock.now_ms())? {
                    own.take(commit, arrived, letter)?;
                }
            }
            Ok(())
        });
        done.await
    }

    fn take(&self, commit: &Commit<'_>, arrived: &ArrivedLetter, letter: &Letter) -> Result<()> {
        let to = Address::stored(&arrived.agent);
        match letter {
            Letter::Message { id, from, subject, body, thread, reply_to, at_ms } => {
                let Ok(sender) = self.sender(&arrived.from_node, from) else { return Ok(()) };
                let mail = NewMail {
                    id: id.clone(),
                    key: None,
                    from: sender,
                    to,
                    subject: subject.clone(),
                    body: body.clone(),
                    reply_to: reply_to.clone(),
                    thread: Some(thread.clone()),
                    at_ms: *at_ms,
                };
                let kept = commit.attempt(|| self.keep(commit, &mail));
                match (kept, mail.from.far()) {
                    (Ok(()), _) => Ok(()),
                    (Err(error), Some(back)) if is_refusal(&error) => {
                        let (by, now_ms) = (&mail.to, self.post.clock.now_ms());
                        far::put_receipt(commit.tx(), &back, id, by, Receipt::Dead, Some(error.message), now_ms)?;
                        self.post.go_out_after(commit);
                        Ok(())
                    }
                    (Err(error), _) => Err(error),
                }
            }
            Letter::Receipt { id, from, what, reason, at_ms } => {
                let Ok(by) = FarAgent::new(&arrived.from_node, from) else { return Ok(()) };
                let Some(what) = Receipt::named(what) else { return Ok(()) };
                // A host tells of messages to its own agents only.
                if !far::was_sent(commit.tx(), id, &to, &by)? {
                    return Ok(());
                }
                let mut about = json!({ "id": id, "to": by.to_string(), "at_ms": at_ms });
                if let Some(reason) = reason {
                    about["reason"] = json!(reason.chars().take(1000).collect::<String>());
                }
                self.post.receipt_in(commit, &to, what, about)
            }
        }
    }

    /// The sender: an agent of that host and of no other.
    fn sender(&self, node: &str, agent: &str) -> Result<Address> {
        match node == self.node {
            true => Ok(Address::stored(agent)),
            false => FarAgent::new(node, agent).map(|far| Address::Far(far.to_string())),
        }
    }

    fn keep(&self, commit: &Commit<'_>, mail: &NewMail) -> Result<()> {
        NewMail::check(
            &mail.subject,
            &mail.body,
            [("id", Some(&mail.id)), ("thread", mail.thread.as_deref()), ("reply_to", mail.reply_to.as_deref())],
        )?;
        self.may_send(commit, mail)?;
        self.post.deliver_in(commit, mail)
    }

    /// Decides whether the sender may write here: by the same rule as for agents of this host, and an answer needs none.
    fn may_send(&self, commit: &Commit<'_>, mail: &NewMail) -> Result<()> {
        let Address::Far(far) = &mail.from else { return Ok(()) };
        let no_such = || Error::not_found(format!("there is no {} that {far} may write to", mail.to));
        let is_there = match &mail.to {
            Address::Operator => true,
            Address::Agent(id) => (self.has_agent)(id),
            Address::Far(_) => false,
        };
        let answers = match &mail.reply_to {
            Some(id) => sqlite::may_answer(commit.tx(), &mail.from, &mail.to, id)?,
            None => false,
        };
        if !is_there {
            return Err(no_such());
        }
        if answers {
            return Ok(());
        }
        let caller = Caller::of(Principal::Far(far.clone()));
        self.access.check(&caller, Access::Invoke, &mail.to.inbox()).map_err(|_| no_such())
    }
}

/// Whether an error is an answer, and not a fault of this host that a later attempt may not meet.
fn is_refusal(error: &Error) -> bool {
    use acheron_base::Code::*;
    matches!(error.code, NotFound | Forbidden | QueueFull | QuotaExceeded | TooLarge | InvalidPayload | Conflict)
}
