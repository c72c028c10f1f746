//! The connection to other hosts as it is now: there is none before this host has joined, and none while its name is not its
//! own.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use acheron_base::{Error, Result};
use acheron_fabric::messages::{HostAnswer, HostRequest};
use acheron_fabric::subjects::{self, Verb};
use acheron_nats::{Link, LinkFault};

/// The connection of a host that has joined.
#[derive(Clone)]
pub struct JoinedLink {
    pub link: Link,
    /// The fencing token of its name.
    pub token: u64,
}

/// The connection, if there is one. Handed to everything that asks other hosts.
#[derive(Clone)]
pub struct HostLink(watch::Receiver<Option<JoinedLink>>);

impl HostLink {
    pub fn new(current: watch::Receiver<Option<JoinedLink>>) -> HostLink {
        HostLink(current)
    }

    pub fn current(&self) -> Result<JoinedLink> {
        let current = self.0.borrow().clone();
        current.ok_or_else(|| Error::unavailable("this host is not joined to others now; meta/health.json says why"))
    }

    /// Asks another host. `request` gets the token.
    pub async fn ask(
        &self,
        node: &str,
        verb: Verb,
        request: impl FnOnce(u64) -> HostRequest,
        within: Duration,
    ) -> Result<Result<HostAnswer, LinkFault>> {
        let JoinedLink { link, token } = self.current()?;
        let body = serde_json::to_vec(&request(token)).map_err(|err| Error::internal(err.to_string()))?;
        let answer = link.ask(subjects::request(node, link.node(), verb), Bytes::from(body), within).await;
        Ok(answer.and_then(|body| serde_json::from_slice(&body).map_err(|err| LinkFault::Unknown(err.to_string()))))
    }
}
