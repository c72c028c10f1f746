//! The lease of a host on its name: taken, renewed, and lost. The rules are those of `acheron_fabric::lease`.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{Condition, Link, LinkFault};
use acheron_base::{Error, Result, quoted};
use acheron_fabric::lease::{HeldLease, LeaseStep, LeaseTimes, RenewalOutcome};
use acheron_fabric::{streams, subjects};

/// What the record of a lease says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaseHolder {
    /// The state directory of the holder: a host that starts again has its name back at once.
    pub instance: String,
    pub started_at_ms: u64,
    /// The fencing token; 0 in the record by which it was taken, whose own number it is.
    #[serde(default)]
    pub token: u64,
    /// What the holder tells beside.
    #[serde(default)]
    pub about: Value,
}

/// A lease that is renewed as long as this lives.
pub struct NodeLease {
    link: Link,
    times: LeaseTimes,
    origin: Instant,
    held: HeldLease,
    holder: LeaseHolder,
    state: watch::Sender<Option<u64>>,
}

impl NodeLease {
    /// Takes the lease on this host's name, unless another holds it. `state` has the fencing token while it is held.
    pub async fn take(link: &Link, times: LeaseTimes, holder: LeaseHolder) -> Result<NodeLease> {
        let origin = Instant::now();
        let subject = subjects::presence(link.node());
        let stream = streams::bucket_stream(streams::NODES);
        let body = body(&holder)?;
        let ttl = Duration::from_millis(times.ttl_ms);
        let mut sent_ms = 0;
        let taken = match link.store(&subject, body.clone(), &Condition::after(0).for_a_while(ttl)).await {
            Err(fault) if fault.is_conflict() => {
                let Some(found) = link.record(&stream, &subject).await? else {
                    return Err(Error::busy("the name became free just now; try again"));
                };
                let other: Option<LeaseHolder> = serde_json::from_slice(&found.body).ok();
                // An empty record was left by a host that has gone.
                let is_free = found.body.is_empty();
                if !is_free && other.as_ref().is_none_or(|other| other.instance != holder.instance) {
                    return Err(taken_by(link.node(), other));
                }
                sent_ms = origin.elapsed().as_millis() as u64;
                link.store(&subject, body, &Condition::after(found.number).for_a_while(ttl)).await
            }
            taken => taken,
        }?;
        let held = HeldLease::taken(taken.number, sent_ms);
        let holder = LeaseHolder { token: held.token, ..holder };
        let state = watch::Sender::new(Some(held.token));
        Ok(NodeLease { link: link.clone(), times, origin, held, holder, state })
    }

    /// The fencing token while the lease is held; none when it is lost.
    pub fn watch(&self) -> watch::Receiver<Option<u64>> {
        self.state.subscribe()
    }

    /// Renews the lease until it is lost; returns why. `about` is what the record tells beside, as it is then.
    pub async fn keep(mut self, about: impl Fn() -> Value) -> String {
        loop {
            match self.held.step(&self.times, self.now_ms()) {
                LeaseStep::Wait { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
                LeaseStep::Renew => self.renew(about()).await,
                LeaseStep::Stop => {
                    self.state.send_replace(None);
                    return "the lease on the name of this host is lost".to_owned();
                }
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.origin.elapsed().as_millis() as u64
    }

    async fn renew(&mut self, about: Value) {
        let sent_ms = self.now_ms();
        self.holder.about = about;
        let (subject, ttl) = (subjects::presence(self.link.node()), Duration::from_millis(self.times.ttl_ms));
        let condition = Condition::after(self.held.revision).for_a_while(ttl);
        let Ok(body) = body(&self.holder) else { return };
        let left = self.times.stop_ms.saturating_sub(sent_ms.saturating_sub(self.held.confirmed_ms));
        let renewal = self.link.store(&subject, body, &condition);
        let outcome = match tokio::time::timeout(Duration::from_millis(left.min(self.times.renew_ms)), renewal).await {
            Ok(Ok(at)) => RenewalOutcome::Renewed { revision: at.number },
            // It may be its own renewal that was not answered before.
            Ok(Err(fault)) if fault.is_conflict() => self.look().await,
            Ok(Err(_)) | Err(_) => RenewalOutcome::Unknown,
        };
        self.held = self.held.clone().after(outcome, sent_ms);
    }

    /// Whose the record is now.
    async fn look(&self) -> RenewalOutcome {
        let (stream, subject) = (streams::bucket_stream(streams::NODES), subjects::presence(self.link.node()));
        match self.link.record(&stream, &subject).await {
            Ok(Some(found)) => match serde_json::from_slice::<LeaseHolder>(&found.body) {
                Ok(other) if other.token == self.held.token => RenewalOutcome::Renewed { revision: found.number },
                _ => RenewalOutcome::Refused,
            },
            Ok(None) => RenewalOutcome::Refused,
            Err(LinkFault::Refused { .. }) => RenewalOutcome::Refused,
            Err(_) => RenewalOutcome::Unknown,
        }
    }

    /// Gives the lease back: the host goes in good order.
    pub async fn release(link: &Link, token: u64) {
        let (stream, subject) = (streams::bucket_stream(streams::NODES), subjects::presence(link.node()));
        if let Ok(Some(found)) = link.record(&stream, &subject).await
            && (found.number == token
                || serde_json::from_slice::<LeaseHolder>(&found.body).is_ok_and(|own| own.token == token))
        {
            // A record that ends in a second: a host cannot delete.
            let condition = Condition::after(found.number).for_a_while(Duration::from_secs(1));
            _ = link.store(&subject, Bytes::new(), &condition).await;
        }
    }
}

fn body(holder: &LeaseHolder) -> Result<Bytes> {
    serde_json::to_vec(holder).map(Bytes::from).map_err(|err| Error::internal(err.to_string()))
}

fn taken_by(node: &str, other: Option<LeaseHolder>) -> Error {
    let who = other.map_or_else(String::new, |other| format!(" (instance {})", other.instance));
    Error::fenced(format!(
        "another host holds the name {}{who}: give this one another name in `fabric.node`, or stop the other and wait 15 s",
        quoted(node)
    ))
}
