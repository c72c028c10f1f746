//! Messages as data, and what a backend is told about them. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::Address;
use acheron_base::{Error, Result};

/// The longest body and the longest subject, in bytes.
pub const BODY: usize = 256 << 10;
pub const SUBJECT: usize = 1000;
/// The longest id of a caller's choice and the longest name of a thread.
const NAME: usize = 200;

/// A message that is to be sent.
#[derive(Clone, Debug)]
pub struct NewMail {
    /// Unused so far.
    pub id: String,
    /// The sender's own id: the same again is the same message.
    pub key: Option<String>,
    pub from: Address,
    pub to: Address,
    pub subject: String,
    pub body: String,
    pub reply_to: Option<String>,
    pub thread: Option<String>,
    pub at_ms: u64,
}

impl NewMail {
    pub fn bytes(&self) -> u64 {
        (self.subject.len() + self.body.len()) as u64
    }

    /// Refuses what no mailbox takes.
    pub fn check(subject: &str, body: &str, names: [(&str, Option<&str>); 3]) -> Result<()> {
        if subject.len() > SUBJECT {
            return Err(Error::too_large(format!(
                "the subject has {} bytes, and at most {SUBJECT} are allowed",
                subject.len()
            )));
        }
        if body.len() > BODY {
            return Err(Error::too_large(format!(
                "the body has {} bytes, and at most {BODY} are allowed: write it to a file and send its path",
                body.len()
            )));
        }
        for (key, name) in names {
            if name.is_some_and(|name| name.is_empty() || name.len() > NAME || name.contains(char::is_control)) {
                return Err(Error::invalid(format!("`{key}` is 1 to {NAME} bytes without control characters")));
            }
        }
        Ok(())
    }
}

/// A message in an inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mail {
    /// The order of arrival.
    #[serde(skip)]
    pub number: u64,
    pub id: String,
    pub from: Address,
    pub to: Address,
    pub subject: String,
    pub body: String,
    pub thread: String,
    pub reply_to: Option<String>,
    pub at_ms: u64,
    /// When the model of the recipient was first asked with it.
    pub seen_at_ms: Option<u64>,
}

/// The answer to a message that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMail {
    pub id: String,
    pub thread: String,
    pub at_ms: u64,
    /// It was stored now, and not before.
    pub is_new: bool,
    /// The message that it answers, if its recipient sent that one.
    pub answers: Option<String>,
}

/// What became of a message that somebody sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// It is durable in the inbox of its recipient.
    Stored,
    /// The model of its recipient has been asked with it.
    Seen,
    /// Its recipient has answered it.
    Answered,
    /// It went with its inbox, unacknowledged.
    Dead,
}

impl Receipt {
    /// The receipt that another host names.
    pub fn named(name: &str) -> Option<Receipt> {
        serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
    }
}
