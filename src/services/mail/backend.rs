//! Where mail is kept: one trait, several backends, one suite of tests (`conformance.rs`).
//!
//! A backend promises: a message whose `send` was answered is kept until it is acknowledged, also by a crash; the same id of
//! the same sender is the same message as long as it is remembered; messages of one sender come in their order; a message may
//! be shown more than once until it is acknowledged. It knows nothing of permissions, events and files.

use async_trait::async_trait;

use super::address::Address;
use super::message::{Mail, NewMail, SentMail};
use acheron_base::Result;

#[async_trait]
pub trait Mailbox: Send + Sync {
    /// Its display name.
    fn describe(&self) -> String;

    /// Stores a message; one that is stored already is answered as before. `queue_full` or `quota_exceeded` if the inbox has
    /// no room, `not_found` if it answers a message that its sender neither got nor sent.
    async fn send(&self, mail: NewMail) -> Result<SentMail>;

    /// Takes a message out of an inbox; again is the same. `not_found` if it never was there.
    async fn ack(&self, inbox: &Address, id: &str, at_ms: u64) -> Result<()>;

    /// A message of an inbox, unless it was acknowledged.
    async fn get(&self, inbox: &Address, id: &str) -> Result<Option<Mail>>;

    /// Unacknowledged messages in the order of their arrival, beginning after the one with this number.
    async fn list(&self, inbox: &Address, after: u64, most: usize) -> Result<Vec<Mail>>;

    /// Of those, the messages that no model has seen.
    async fn unseen(&self, inbox: &Address, after: u64, most: usize) -> Result<Vec<Mail>>;

    /// Marks messages as seen. Returns those that were not, with their senders.
    async fn seen(&self, inbox: &Address, ids: &[String], at_ms: u64) -> Result<Vec<(String, Address)>>;

    /// The number of unacknowledged messages of every inbox.
    async fn counts(&self) -> Result<Vec<(Address, u64)>>;

    /// Forgets ids of messages that were sent before this time and are acknowledged: the same id is then a new message.
    async fn forget_ids(&self, before_ms: u64) -> Result<()>;
}
