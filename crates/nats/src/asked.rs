//! Requests of other hosts to this one.

use bytes::Bytes;
use futures_util::StreamExt;

use crate::{Link, LinkFault};
use acheron_fabric::subjects::{self, Verb};

/// A request. Who asks is what its subject says.
pub struct AskedRequest {
    pub from: String,
    pub verb: Verb,
    pub body: Bytes,
    reply: String,
}

/// The requests to this host.
pub struct AskedRequests {
    link: Link,
    requests: async_nats::Subscriber,
}

impl Link {
    /// Takes requests from now on: the server knows of it when this returns.
    pub async fn listen(&self) -> Result<AskedRequests, LinkFault> {
        let requests = self.client.subscribe(subjects::requests_to(self.node())).await.map_err(LinkFault::unknown)?;
        Ok(AskedRequests { link: self.clone(), requests })
    }

    /// The hints of all hosts, among them this one.
    pub async fn hints(&self) -> Result<impl futures_util::Stream<Item = Bytes> + Send + Unpin + use<>, LinkFault> {
        let hints = self.client.subscribe(subjects::HINTS).await.map_err(LinkFault::unknown)?;
        Ok(hints.map(|message| message.payload))
    }

    /// Answers a request. An answer that nobody waits for any more is dropped.
    pub async fn answer(&self, request: &AskedRequest, body: Bytes) {
        self.tell(request.reply.clone(), body).await;
    }
}

impl AskedRequests {
    /// The next request; none when the connection has ended for good.
    pub async fn next(&mut self) -> Option<AskedRequest> {
        loop {
            let message = self.requests.next().await?;
            // The server sends what it is told to: a message of another subject is nobody's request.
            let read = subjects::read_request(&message.subject, self.link.node());
            let (Some((from, verb)), Some(reply)) = (read, &message.reply) else { continue };
            // An answer goes to who asked, not to whom it named.
            if reply.strip_prefix(&subjects::inbox(from)).is_none_or(|rest| !rest.starts_with('.')) {
                continue;
            }
            let (from, reply) = (from.to_owned(), reply.to_string());
            return Some(AskedRequest { from, verb, body: message.payload, reply });
        }
    }
}
