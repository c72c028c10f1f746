//! Several messages that the server keeps together or not at all: with `sync_interval: always` one write to its disk for all.

use bytes::Bytes;

use crate::link::ANSWER;
use crate::stored::stored_at;
use crate::{Condition, Link, LinkFault, StoredAt};

/// A message that is to be kept.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub subject: String,
    pub body: Bytes,
    pub condition: Condition,
}

impl Link {
    /// Has the server keep all of `messages` or none. `id` must be new.
    pub async fn store_together(&self, id: &str, messages: &[Outgoing]) -> Result<StoredAt, LinkFault> {
        let Some((last, before)) = messages.split_last() else {
            return Err(LinkFault::Refused { code: 0, sentence: "a batch without messages".to_owned() });
        };
        if before.is_empty() {
            return self.store(&last.subject, last.body.clone(), &last.condition).await;
        }
        let headers = |message: &Outgoing, number: usize| {
            let mut headers = message.condition.headers();
            headers.insert("Nats-Batch-Id", id);
            headers.insert("Nats-Batch-Sequence", (number + 1).to_string().as_str());
            headers
        };
        for (number, message) in before.iter().enumerate() {
            let (subject, body) = (message.subject.clone(), message.body.clone());
            if number == 0 {
                // The first one is answered at once, with nothing or with a refusal.
                let answer = self.request(subject, Some(headers(message, number)), body, ANSWER).await?;
                if !answer.payload.is_empty() {
                    stored_at(&answer.payload)?;
                    return Err(LinkFault::Refused { code: 0, sentence: "the server knows no batches".to_owned() });
                }
                continue;
            }
            let sent = self.client.publish_with_headers(subject, headers(message, number), body);
            tokio::time::timeout(ANSWER, sent).await.map_err(LinkFault::unknown)?.map_err(LinkFault::unknown)?;
        }
        let mut commit = headers(last, before.len());
        commit.insert("Nats-Batch-Commit", "1");
        let answer = self.request(last.subject.clone(), Some(commit), last.body.clone(), ANSWER).await?;
        stored_at(&answer.payload)
    }
}
