//! Fetches the mail of a host. A letter that is not confirmed comes again.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::link::ANSWER;
use crate::records::next;
use crate::{Link, LinkFault};
use acheron_fabric::streams;

/// Letters that are fetched at once.
const MOST: usize = 200;
/// The server says so often that it is still there while nothing comes.
const BEAT: Duration = Duration::from_secs(5);

/// A letter that the server has handed out.
#[derive(Clone, Debug)]
pub struct FetchedLetter {
    pub subject: String,
    pub body: Bytes,
    /// Where it is confirmed.
    confirm: String,
}

impl Link {
    /// The next letters for this host; waits for the first, at most so long.
    pub async fn fetch_mail(&self, wait: Duration) -> Result<Vec<FetchedLetter>, LinkFault> {
        let there = self.pull(json!({ "batch": MOST, "no_wait": true }), ANSWER).await?;
        if !there.is_empty() {
            return Ok(there);
        }
        let nanos = wait.as_nanos() as u64;
        let one = json!({ "batch": 1, "expires": nanos, "idle_heartbeat": (BEAT.as_nanos() as u64).min(nanos / 3) });
        self.pull(one, wait.min(BEAT) * 2 + ANSWER).await
    }

    async fn pull(&self, request: Value, silence: Duration) -> Result<Vec<FetchedLetter>, LinkFault> {
        let most = request["batch"].as_u64().unwrap_or(1) as usize;
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(LinkFault::unknown)?;
        let asked = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", streams::MAIL, self.node());
        let body = Bytes::from(request.to_string());
        self.client.publish_with_reply(asked, inbox, body).await.map_err(LinkFault::unknown)?;
        let mut letters = Vec::new();
        while letters.len() < most {
            let message = next(&mut answers, silence).await?;
            match message.status.map(|status| status.as_u16()) {
                None | Some(200) => {
                    let Some(confirm) = message.reply else { continue };
                    let (subject, confirm) = (message.subject.to_string(), confirm.to_string());
                    letters.push(FetchedLetter { subject, body: message.payload, confirm });
                }
                Some(100) => (), // it is still there
                Some(404 | 408) => break,
                Some(503) => return Err(LinkFault::Nobody),
                // What was handed out already is dealt with first.
                Some(_) if !letters.is_empty() => break,
                Some(status) => {
                    let sentence = message.description.unwrap_or_default();
                    return Err(LinkFault::Refused { code: status.into(), sentence });
                }
            }
        }
        Ok(letters)
    }

    /// Confirms letters: the server drops them. Returns when it has answered for all; what it has not heard comes again.
    pub async fn confirm(&self, letters: &[FetchedLetter]) -> Result<(), LinkFault> {
        let confirm = |letter: &FetchedLetter| {
            let subject = letter.confirm.clone();
            async move { self.request(subject, None, Bytes::from_static(b"+ACK"), ANSWER).await.map(drop) }
        };
        futures_util::future::try_join_all(letters.iter().map(confirm)).await.map(drop)
    }
}
