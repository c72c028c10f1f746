//! Carries letters by the fabric: two loops, one that sends what waits in the database and one that takes in what comes. They
//! may end at any moment: what the fabric has not acknowledged is sent again with the same key, and what this host has not
//! confirmed is handed out again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::far::{self, WaitingLetter};
use super::post::Post;
use super::receive::{ArrivedLetter, Reception};
use acheron_base::{Ids, Result, failpoint};
use acheron_fabric::subjects;
use acheron_nats::{Condition, Link, LinkFault, Outgoing};

/// Letters that are sent in one batch.
const BATCH: usize = 100;
/// How long the server holds a request for mail.
const WAIT: Duration = Duration::from_secs(30);
/// The pause after a failure, at first and at most.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct MailCarrier {
    pub link: Link,
    pub reception: Reception,
    pub ids: Ids,
}

impl MailCarrier {
    fn post(&self) -> &Arc<Post> {
        &self.reception.post
    }

    /// Both loops; ends when it is dropped.
    pub async fn run(&self) {
        tokio::join!(self.send_all(), self.receive_all());
    }

    async fn send_all(&self) {
        let (outgoing, mut pause) = (self.post().outgoing.clone(), PAUSE);
        loop {
            match self.send_some().await {
                Ok(0) => {
                    pause = PAUSE;
                    outgoing.notified().await;
                }
                Ok(_) => pause = PAUSE,
                Err(error) => {
                    tracing::warn!(%error, "mail for other hosts waits");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Sends the first letters that wait; returns how many.
    pub async fn send_some(&self) -> Result<usize> {
        let store = self.post().mailbox.store();
        let letters = store.read(|conn| far::waiting(conn, BATCH)).await?;
        if letters.is_empty() {
            return Ok(0);
        }
        let outgoing = letters.iter().map(|letter| self.outgoing(letter)).collect::<Result<Vec<Outgoing>>>()?;
        let together = self.link.store_together(&self.ids.id("batch"), &outgoing).await;
        let sent = match together {
            Ok(_) => letters.len(),
            Err(fault) if outgoing.len() == 1 && !matches!(fault, LinkFault::Refused { .. }) => {
                return Err(fault.into());
            }
            // One of them may be there already, or nobody knows: each alone, in their order.
            Err(_) => self.send_each(&outgoing).await?,
        };
        failpoint::step("mail.sent");
        let (numbers, at_ms) =
            (letters[..sent].iter().map(|it| it.number).collect::<Vec<_>>(), self.post().clock.now_ms());
        store.write(move |tx| far::gone(tx, &numbers, at_ms)).await?;
        Ok(sent)
    }

    /// Sends one after another until one fails; returns how many were sent.
    async fn send_each(&self, outgoing: &[Outgoing]) -> Result<usize> {
        for (sent, one) in outgoing.iter().enumerate() {
            if let Err(fault) = self.link.store(&one.subject, one.body.clone(), &one.condition).await {
                return if sent == 0 { Err(fault.into()) } else { Ok(sent) };
            }
        }
        Ok(outgoing.len())
    }

    fn outgoing(&self, waiting: &WaitingLetter) -> Result<Outgoing> {
        let WaitingLetter { to, letter, .. } = waiting;
        let body = serde_json::to_vec(letter).map_err(|err| acheron_base::Error::internal(err.to_string()))?;
        let condition = Condition::once(format!("{}>{}", letter.key(self.link.node()), to.node));
        let subject = subjects::mail(&to.node, self.link.node(), &to.agent);
        Ok(Outgoing { subject, body: Bytes::from(body), condition })
    }

    async fn receive_all(&self) {
        let mut pause = PAUSE;
        loop {
            match self.receive_some(WAIT).await {
                Ok(_) => pause = PAUSE,
                Err(error) => {
                    tracing::warn!(%error, "mail of other hosts cannot be fetched");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Takes in what there is, after waiting for it; returns how many letters came.
    pub async fn receive_some(&self, wait: Duration) -> Result<usize> {
        let fetched = self.link.fetch_mail(wait).await?;
        if fetched.is_empty() {
            return Ok(0);
        }
        let arrived = fetched.iter().filter_map(|letter| {
            let (from, agent) = subjects::read_mail(&letter.subject, self.link.node())?;
            let read = serde_json::from_slice(&letter.body).ok();
            Some(ArrivedLetter { from_node: from.to_owned(), agent: agent.to_owned(), letter: read })
        });
        self.reception.receive(arrived.collect()).await?;
        failpoint::step("mail.received");
        self.link.confirm(&fetched).await?;
        Ok(fetched.len())
    }
}
