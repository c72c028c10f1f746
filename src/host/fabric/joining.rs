//! Takes the name of this host, tells the others of it, and keeps mail, requests and the roster going while the name is its own.
//! Whatever fails is tried again; meanwhile `meta/health.json` says why.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::{answers, monitor, roster};
use crate::host::{HostState, upgrade, wiring};
use crate::services::mail::carrier::MailCarrier;
use crate::services::remote::JoinedLink;
use crate::services::remote::told::ToldContract;
use crate::spec::{FabricSpec, OFFERED_MAIL};
use acheron_base::{Error, Result};
use acheron_fabric::engine::{self, EngineFacts};
use acheron_fabric::lease::LeaseTimes;
use acheron_fabric::{streams, subjects};
use acheron_nats::{AskedRequests, Condition, LeaseHolder, Link, LinkOptions, NodeLease};

/// The pause between two attempts to join.
const AGAIN: Duration = Duration::from_secs(2);
/// How long the goodbye may take.
const GOODBYE: Duration = Duration::from_secs(3);
/// The longest key, in bytes.
const KEY: u64 = 4096;

/// The work of a host that is joined to others. It ends with this.
pub struct FabricTask {
    task: AbortHandle,
    host: Weak<HostState>,
}

impl FabricTask {
    /// Says goodbye: the others know at once.
    pub async fn leave(&self) {
        self.task.abort();
        let Ok(host) = upgrade(&self.host) else { return };
        let joined = host.fabric.joined.send_replace(None);
        if let Some(JoinedLink { link, token }) = joined {
            let goodbye = async {
                NodeLease::release(&link, token).await;
                link.tell(subjects::hints_from(link.node()), Bytes::from_static(b"bye")).await;
                link.close().await;
            };
            _ = tokio::time::timeout(GOODBYE, goodbye).await;
        }
    }
}

impl Drop for FabricTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Begins to join, if the mountspec says so.
pub fn begin(host: &Arc<HostState>) -> Option<FabricTask> {
    let fabric = host.current.mounted_with.fabric.clone()?;
    *host.fabric.faults.write() = vec!["joining".to_owned()];
    let weak = Arc::downgrade(host);
    let again = weak.clone();
    let task = host.context.runtime.spawn(async move {
        loop {
            let why = match work(&again, &fabric).await {
                Ok(why) => why,
                Err(error) => error.message,
            };
            let Ok(host) = upgrade(&again) else { return };
            host.fabric.joined.send_replace(None);
            wiring::share_queues(&host, None);
            tracing::warn!(why, "this host is not joined to others");
            *host.fabric.faults.write() = vec![why];
            drop(host);
            tokio::time::sleep(AGAIN).await;
        }
    });
    Some(FabricTask { task: task.abort_handle(), host: weak })
}

fn options(host: &HostState, fabric: &FabricSpec) -> Result<LinkOptions> {
    let at = |name: &str| host.paths.here.join(name);
    let seed = match &fabric.credentials {
        Some(file) => {
            let file = at(file);
            let size = std::fs::metadata(&file).map(|meta| meta.len());
            let read = match size {
                Ok(size) if size <= KEY => std::fs::read_to_string(&file).map_err(|err| err.to_string()),
                Ok(_) => Err("it is too large for a key".to_owned()),
                Err(err) => Err(err.to_string()),
            };
            Some(read.map_err(|err| Error::unavailable(format!("the credentials {}: {err}", file.display())))?)
        }
        None => None,
    };
    let roots = fabric.roots.as_ref().map(|file| at(file));
    Ok(LinkOptions { url: fabric.url.clone(), node: fabric.node.clone(), seed, roots })
}

/// What works while this host is joined.
struct Joined {
    link: Link,
    lease: NodeLease,
    requests: AskedRequests,
    carrier: MailCarrier,
    changed: Arc<Notify>,
}

/// Joins and works until the name is lost; returns why. Between requests it does not hold the host.
async fn work(weak: &Weak<HostState>, fabric: &FabricSpec) -> Result<String> {
    let Joined { link, lease, mut requests, carrier, changed } = join(weak, fabric).await?;
    tokio::select! {
        why = lease.keep(|| Value::Null) => Ok(why),
        () = carrier.run() => Ok("mail is not carried any more".to_owned()),
        () = answers::serve(weak, &link, &mut requests) => Ok("the connection has ended".to_owned()),
        () = roster::follow(weak, &changed, &link) => Ok("the connection has ended".to_owned()),
    }
}

async fn join(weak: &Weak<HostState>, fabric: &FabricSpec) -> Result<Joined> {
    let host = &upgrade(weak)?;
    let (own, spec) = (host.clone(), fabric.clone());
    let options = acheron_base::blocking(move || options(&own, &spec)).await?;
    let link = Link::connect(&options).await?;
    let replicas = link.ready().await?;
    let holder = LeaseHolder {
        instance: instance(host)?,
        started_at_ms: host.identity.started_at_ms,
        token: 0,
        about: Value::Null,
    };
    let lease = NodeLease::take(&link, LeaseTimes::NODE, holder).await?;
    let state = lease.watch();
    let token = state.borrow().unwrap_or_default();
    describe(host, &link, fabric, token).await?;
    let requests = link.listen().await?;
    host.fabric.joined.send_replace(Some(JoinedLink { link: link.clone(), token }));
    let version = link.version();
    let facts = EngineFacts { version, jetstream: true, sync_always: syncs(fabric).await, replicas };
    *host.fabric.faults.write() = engine::degraded(&facts).into_iter().collect();
    link.tell(subjects::hints_from(link.node()), Bytes::from_static(b"here")).await;
    wiring::share_queues(host, Some(&link));
    let (carrier, changed) = (wiring::mail_carrier(host, &link), host.fabric.changed.clone());
    Ok(Joined { link, lease, requests, carrier, changed })
}

/// Which state directory this is: a host that starts again has its name back at once.
fn instance(host: &HostState) -> Result<String> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(&host.paths.state)?;
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let machine: String = machine.trim().chars().take(8).collect();
    Ok(format!("{machine}-{:x}-{:x}", meta.dev(), meta.ino()))
}

/// Whether the server writes to its disk at once; unknown without its monitoring address.
async fn syncs(fabric: &FabricSpec) -> Option<bool> {
    let address = fabric.monitor.as_deref()?;
    let told = monitor::writes_at_once(address).await;
    told.inspect_err(|error| tracing::warn!(%error, "the monitoring address of the fabric's server")).ok()
}

/// Tells the others what this host is and offers.
async fn describe(host: &Arc<HostState>, link: &Link, fabric: &FabricSpec, token: u64) -> Result<()> {
    let about = json!({
        "node_id": link.node(),
        "version": env!("CARGO_PKG_VERSION"),
        "layout": crate::spec::LAYOUT,
        "started_at_ms": host.identity.started_at_ms,
        "system": std::env::consts::OS,
        "machine": std::env::consts::ARCH,
        "token": token,
        "mail": fabric.offer.contains_key(OFFERED_MAIL),
    });
    let mut offered = vec![(subjects::description(link.node()), about)];
    for (service, offer) in fabric.offer.iter().filter(|(service, _)| *service != OFFERED_MAIL) {
        let instance = answers::instance(host, service, offer)?;
        let told = ToldContract::of(instance.contract(), offer.operations.as_deref());
        let told = serde_json::to_value(told).map_err(|err| Error::internal(err.to_string()))?;
        offered.push((subjects::offered(link.node(), service), told));
    }
    let own = format!("{}.", subjects::description(link.node()));
    let hosts = streams::bucket_stream(streams::HOSTS);
    for old in link.records(&hosts, &format!("{own}*"), 0).await? {
        if !old.body.is_empty() && !offered.iter().any(|(subject, _)| *subject == old.subject) {
            link.store(&old.subject, Bytes::new(), &Condition::default()).await?;
        }
    }
    for (subject, value) in offered {
        link.store(&subject, Bytes::from(value.to_string()), &Condition::default()).await?;
    }
    Ok(())
}
