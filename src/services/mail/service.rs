//! The service: who may send what to whom, and the operations.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::address::Address;
use super::message::NewMail;
use super::post::Post;
use super::{files, sqlite};
use crate::contract::Operation;
use crate::policy::PrincipalCaller;
use crate::service::{Cx, Service, ServiceAccess, WriteCx};
use acheron_base::{Error, Ids, Result, quoted};
use acheron_vfs::{Access, Caller, Node};

/// Whether there is an agent of this name.
pub type HasAgent = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What all mailboxes share.
#[derive(Clone)]
pub struct MailParts {
    pub post: Arc<Post>,
    pub access: Arc<dyn ServiceAccess>,
    pub has_agent: HasAgent,
    pub ids: Ids,
    /// The name of this host, if it has joined others.
    pub node: Option<String>,
}

/// One mailbox: of an agent, or of the operator.
pub struct MailService {
    parts: MailParts,
    inbox: Address,
}

impl MailService {
    pub fn new(parts: MailParts, inbox: Address) -> MailService {
        MailService { parts, inbox }
    }

    fn is_there(&self, to: &Address) -> bool {
        match to {
            Address::Operator => true,
            Address::Agent(id) => (self.parts.has_agent)(id),
            Address::Far(_) => true, // its host will tell
        }
    }

    fn address(&self, text: &str) -> Result<Address> {
        Address::parse(text, self.parts.node.as_deref())
    }

    /// Decides whether `caller` may send mail to `to`: by `invoke` on the inbox of the recipient. A recipient that it may
    /// not write to is answered as one that is not there. An answer to a message needs no rule. Where a rule asks, the call
    /// itself waits for the decision ([`Service::invoked_paths`]).
    fn may_send(&self, caller: &Caller, to: &Address) -> Result<()> {
        self.recipient(to, self.parts.access.admit(caller, &to.inbox()).is_ok())
    }

    /// As `may_send`, for what was not asked about.
    fn may_send_unasked(&self, caller: &Caller, to: &Address) -> Result<()> {
        self.recipient(to, self.parts.access.check(caller, Access::Invoke, &to.inbox()).is_ok())
    }

    fn recipient(&self, to: &Address, allowed: bool) -> Result<()> {
        match allowed && self.is_there(to) {
            true => Ok(()),
            false => Err(no_recipient(to)),
        }
    }
}

fn no_recipient(to: &Address) -> Error {
    Error::not_found(format!(
        "there is no {} that you may write to; the operator can allow you `invoke` on {}",
        quoted(to.name()),
        to.inbox()
    ))
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Sends a message. It is durable when the write returns, and its recipient has it until it is acknowledged.
    Send {
        /// `operator`, the name of an agent, or `node/agent`.
        to: String,
        #[serde(default)]
        subject: String,
        /// Text; at most 256 KiB.
        body: String,
        /// The id of the message that this one answers. You may always answer who wrote to you.
        #[serde(default)]
        reply_to: Option<String>,
        /// A name for several messages that belong together; that of the answered message if absent, else the id.
        #[serde(default)]
        thread: Option<String>,
        /// An id of your choice: if you send the same again, it is the same message and is not stored twice.
        #[serde(default)]
        id: Option<String>,
    },
    /// Takes a message out of the inbox: it is dealt with. Again is the same.
    Ack {
        /// The id of the message, as its file is called.
        id: String,
    },
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Sent(Sent),
    Acknowledged(Acknowledged),
}

#[derive(Serialize, JsonSchema)]
pub struct Sent {
    /// The id under which the recipient finds it.
    id: String,
    to: String,
    thread: String,
    at_ms: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct Acknowledged {
    id: String,
    acknowledged: bool,
}

#[async_trait]
impl Service for MailService {
    const NAME: &'static str = "mail";
    const ABOUT: &'static str = "Messages between agents and the operator: kept until they are acknowledged.\n\n\
        `inbox/<id>.json` is a message. `next.json` is not listed: reading it waits for the oldest message, and takes nothing \
        away; `ack` does. A model sees new mail between two of its calls. You may write to the operator, to agents on whose \
        `mail/inbox` a rule allows you `invoke`, and to whoever wrote to you. What became of a message is an event of its \
        sender (`\"kind\": \"mail\"`): `stored`, `seen` by the model, `answered`, or `dead` if the inbox was removed or another \
        host refused it. \
        `/agents/self/events/sources/mail.json` waits for the next arrival, and can wake an agent. \
        To acknowledge what you have read: `jq -c '{id}' next.json > control/ack.json`. More: `/global/library/topics/mail.md`.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::write("send").gives::<Sent>().example(
                json!({"to": "operator", "subject": "done", "body": "The river is crossed.", "id": "crossing-7"}),
            ),
            Operation::write("ack").gives::<Acknowledged>().idempotent().example(json!({"id": "mail-id-of-a-message"})),
        ]
    }

    fn files(&self) -> Vec<(String, Node)> {
        files::listed(&self.parts.post, &self.inbox)
    }

    fn unlisted_files(&self) -> Vec<(String, Node)> {
        files::unlisted(&self.parts.post, &self.inbox)
    }

    fn check(&self, caller: &Caller, command: Command) -> Result<()> {
        let Command::Send { to, subject, body, reply_to, thread, id } = command else { return Ok(()) };
        let to = self.address(&to)?;
        Address::of(caller.principal())?;
        let names = [("id", id.as_deref()), ("thread", thread.as_deref()), ("reply_to", reply_to.as_deref())];
        NewMail::check(&subject, &body, names)?;
        match reply_to {
            Some(_) => Ok(()), // whether it answers a message is looked up when it is sent
            None => self.may_send(caller, &to),
        }
    }

    /// What begins a conversation uses the inbox of its recipient; an answer is looked up when it is sent.
    fn invoked_paths(&self, command: Command) -> Result<Vec<String>> {
        Ok(match command {
            Command::Send { to, reply_to: None, .. } => vec![self.address(&to)?.inbox()],
            _ => Vec::new(),
        })
    }

    async fn invoke(&self, _cx: &Cx, _command: Command) -> Result<Output> {
        Err(Error::internal("mail: every operation runs in a transaction"))
    }

    fn write(&self, cx: &WriteCx<'_>, command: Command) -> Result<Output> {
        let post = &self.parts.post;
        match command {
            Command::Send { to, subject, body, reply_to, thread, id: key } => {
                let (from, to) = (Address::of(cx.caller.principal())?, self.address(&to)?);
                let answers = reply_to.as_deref().map(|id| sqlite::may_answer(cx.tx(), &from, &to, id)).transpose()?;
                match answers {
                    Some(true) if self.is_there(&to) => (),
                    Some(_) => self.may_send_unasked(cx.caller, &to)?,
                    None => self.may_send(cx.caller, &to)?,
                }
                let (id, at_ms) = (self.parts.ids.id("mail"), cx.clock.now_ms());
                let mail = NewMail { id, key, from, to, subject, body, reply_to, thread, at_ms };
                let sent = post.send_in(cx.commit, &mail)?;
                let to = mail.to.name().to_owned();
                Ok(Output::Sent(Sent { id: sent.id, to, thread: sent.thread, at_ms: sent.at_ms }))
            }
            Command::Ack { id } => {
                post.ack_in(cx.commit, &self.inbox, &id)?;
                Ok(Output::Acknowledged(Acknowledged { id, acknowledged: true }))
            }
        }
    }
}
