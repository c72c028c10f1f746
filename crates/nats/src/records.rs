//! Records: the last message of a subject, and all that came after some number. No reader is made for it on the server.

use std::time::Duration;

use async_nats::Message;
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::json;

use crate::link::ANSWER;
use crate::{Link, LinkFault};

/// Records that are fetched at once.
const PAGE: usize = 512;

/// A message as the server keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    pub subject: String,
    pub number: u64,
    pub body: Bytes,
}

fn header<'a>(message: &'a Message, name: &'static str) -> Option<&'a str> {
    message.headers.as_ref()?.get(name).map(|value| value.as_str())
}

fn record(message: Message) -> Option<StoredRecord> {
    let subject = header(&message, "Nats-Subject")?.to_owned();
    let number = header(&message, "Nats-Sequence")?.parse().ok()?;
    Some(StoredRecord { subject, number, body: message.payload })
}

impl Link {
    /// The record of a subject, if there is one.
    pub async fn record(&self, stream: &str, subject: &str) -> Result<Option<StoredRecord>, LinkFault> {
        let asked = format!("$JS.API.DIRECT.GET.{stream}.{subject}");
        let answer = self.request(asked, None, Bytes::new(), ANSWER).await?;
        match answer.status.map(|status| status.as_u16()) {
            Some(404) => Ok(None),
            Some(status) if status != 200 => {
                let sentence = answer.description.clone().unwrap_or_default();
                Err(LinkFault::Refused { code: status.into(), sentence })
            }
            _ => record(answer).map(Some).ok_or_else(|| LinkFault::unknown("a record without its subject")),
        }
    }

    /// All records from this number on, in their order, a page at a time.
    pub async fn records(&self, stream: &str, filter: &str, from: u64) -> Result<Vec<StoredRecord>, LinkFault> {
        let mut all: Vec<StoredRecord> = Vec::new();
        let mut from = from.max(1);
        loop {
            let (page, left) = self.page(stream, filter, from).await?;
            let Some(last) = page.last() else { return Ok(all) };
            from = last.number + 1;
            all.extend(page);
            if left == 0 {
                return Ok(all);
            }
        }
    }

    /// One page, and how many records are after it.
    async fn page(&self, stream: &str, filter: &str, from: u64) -> Result<(Vec<StoredRecord>, u64), LinkFault> {
        let body = json!({ "seq": from, "next_by_subj": filter, "batch": PAGE }).to_string();
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(LinkFault::unknown)?;
        let asked = format!("$JS.API.DIRECT.GET.{stream}");
        self.client.publish_with_reply(asked, inbox, body.into()).await.map_err(LinkFault::unknown)?;
        let mut page = Vec::new();
        loop {
            let message = next(&mut answers, ANSWER).await?;
            match message.status.map(|status| status.as_u16()) {
                None | Some(200) => page.extend(record(message)),
                Some(404) => return Ok((page, 0)),
                Some(204) => {
                    let left = header(&message, "Nats-Num-Pending").and_then(|left| left.parse().ok()).unwrap_or(0);
                    return Ok((page, left));
                }
                Some(503) => return Err(LinkFault::Nobody),
                Some(status) => {
                    let sentence = message.description.unwrap_or_default();
                    return Err(LinkFault::Refused { code: status.into(), sentence });
                }
            }
        }
    }
}

/// The next message of a subscription.
pub(crate) async fn next(answers: &mut async_nats::Subscriber, within: Duration) -> Result<Message, LinkFault> {
    let next = tokio::time::timeout(within, answers.next()).await.map_err(LinkFault::unknown)?;
    next.ok_or_else(|| LinkFault::unknown("the connection has ended"))
}
