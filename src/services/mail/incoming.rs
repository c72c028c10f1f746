//! Mail for the turns of an agent: what its model has not seen.

use std::sync::Arc;

use async_trait::async_trait;

use super::address::Address;
use super::backend::Mailbox;
use super::message::Mail;
use super::post::{InboxSignal, Post};
use crate::agent::mail::{IncomingMail, TurnMail};
use acheron_base::Result;

/// The inbox of one agent.
pub struct AgentInbox {
    post: Arc<Post>,
    inbox: Address,
    signal: Arc<InboxSignal>,
}

impl AgentInbox {
    pub fn new(post: &Arc<Post>, agent: &str) -> AgentInbox {
        let inbox = Address::Agent(agent.to_owned());
        AgentInbox { post: post.clone(), signal: post.signal(&inbox), inbox }
    }
}

#[async_trait]
impl IncomingMail for AgentInbox {
    fn may_be_unseen(&self) -> bool {
        self.signal.may_be_unseen()
    }

    async fn unseen(&self, most: usize) -> Result<Vec<TurnMail>> {
        let arrivals = self.signal.arrivals();
        let unseen = self.post.mailbox.unseen(&self.inbox, 0, most).await?;
        if unseen.is_empty() {
            self.signal.is_clear_at(arrivals);
        }
        Ok(unseen.into_iter().map(shown).collect())
    }

    async fn seen(&self, ids: Vec<String>) -> Result<()> {
        self.post.seen(&self.inbox, ids).await
    }

    async fn is_unseen(&self, id: &str) -> Result<bool> {
        Ok(self.post.mailbox.get(&self.inbox, id).await?.is_some_and(|mail| mail.seen_at_ms.is_none()))
    }
}

fn shown(mail: Mail) -> TurnMail {
    let Mail { id, from, subject, body, thread, reply_to, at_ms, .. } = mail;
    TurnMail::new(id, from.name(), subject, &body, thread, reply_to, at_ms)
}
