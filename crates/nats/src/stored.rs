//! Messages that the server keeps. An answer means that it has them; its absence means nothing.

use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use serde::Deserialize;

use crate::link::ANSWER;
use crate::{Link, LinkFault};

/// Under which condition the server keeps a message, and how long.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// The message with the same id within the stream's window is the same message.
    pub id: Option<String>,
    /// The number of the last message on its subject; 0: there must be none.
    pub last: Option<u64>,
    /// Dropped after this time.
    pub ttl: Option<Duration>,
}

impl Condition {
    /// The same id is the same message.
    pub fn once(id: impl Into<String>) -> Condition {
        Condition { id: Some(id.into()), ..Condition::default() }
    }

    /// Only as the successor of this one.
    pub fn after(last: u64) -> Condition {
        Condition { last: Some(last), ..Condition::default() }
    }

    pub fn for_a_while(self, ttl: Duration) -> Condition {
        Condition { ttl: Some(ttl), ..self }
    }

    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert("Nats-Msg-Id", id.as_str());
        }
        if let Some(last) = self.last {
            headers.insert("Nats-Expected-Last-Subject-Sequence", last.to_string().as_str());
        }
        if let Some(ttl) = self.ttl {
            headers.insert("Nats-TTL", format!("{}s", ttl.as_secs().max(1)).as_str());
        }
        headers
    }
}

/// Where the server keeps a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredAt {
    pub number: u64,
    /// It was there before.
    pub is_duplicate: bool,
}

#[derive(Deserialize)]
pub(crate) struct ServerAnswer {
    #[serde(default)]
    seq: Option<u64>,
    #[serde(default)]
    duplicate: bool,
    #[serde(default)]
    error: Option<ServerError>,
}

#[derive(Deserialize)]
pub(crate) struct ServerError {
    code: u64,
    #[serde(default)]
    err_code: Option<u64>,
    #[serde(default)]
    description: String,
}

impl ServerError {
    pub(crate) fn fault(self) -> LinkFault {
        LinkFault::Refused { code: self.err_code.unwrap_or(self.code), sentence: self.description }
    }
}

/// The answer of the server to a message.
pub(crate) fn stored_at(body: &[u8]) -> Result<StoredAt, LinkFault> {
    let answer: ServerAnswer = serde_json::from_slice(body).map_err(LinkFault::unknown)?;
    match (answer.error, answer.seq) {
        (Some(error), _) => Err(error.fault()),
        (None, Some(number)) => Ok(StoredAt { number, is_duplicate: answer.duplicate }),
        (None, None) => Err(LinkFault::unknown("an answer without a number")),
    }
}

impl Link {
    /// Has the server keep a message.
    pub async fn store(&self, subject: &str, body: Bytes, condition: &Condition) -> Result<StoredAt, LinkFault> {
        let answer = self.request(subject.to_owned(), Some(condition.headers()), body, ANSWER).await?;
        stored_at(&answer.payload)
    }

    /// The same again and again until there is an answer: nobody there, or no answer, may mean that a cluster elects a leader.
    /// Only for what has an id or a condition, which make it the same.
    pub async fn store_surely(
        &self,
        subject: &str,
        body: Bytes,
        condition: &Condition,
        within: Duration,
    ) -> Result<StoredAt, LinkFault> {
        let until = tokio::time::Instant::now() + within;
        let mut pause = Duration::from_millis(20);
        loop {
            match self.store(subject, body.clone(), condition).await {
                Err(fault) if fault.may_be_retried() && tokio::time::Instant::now() + pause < until => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
                outcome => return outcome,
            }
        }
    }
}
