//! `/nodes/<node>/` of another host: `README.md`, `CAPS.json`, `STATUS.json` and `services/`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::HostState;
use crate::host::upgrade;
use crate::service::{ServiceInstance, directory};
use crate::services::remote::told::ToldContract;
use crate::services::remote::{FarService, HostLink};
use acheron_base::{Error, Result};
use acheron_fabric::messages::{HostRequest, RequestedThing};
use acheron_fabric::names::{OPERATOR, is_token};
use acheron_fabric::subjects::Verb;
use acheron_fabric::{streams, subjects};
use acheron_nats::{LinkFault, StoredRecord};
use acheron_vfs::{Answer, ComputedFile, Listing, Node, live, pretty, rows, text};

/// How long a host may take to say that it is there.
const HELLO: Duration = Duration::from_secs(2);
/// The most services of one host that are shown.
const MOST: usize = 256;

fn readme(node: &str) -> String {
    format!(
        "# {node}\n\nAnother host. `STATUS.json` tells whether it is up (it is asked), `CAPS.json` what it is. `services/` has what it\n\
         offers: the same files as everywhere. A call there is a job here, with the other host's job in `progress.json`;\n\
         cancelling it here cancels it there. The other host decides who may call what, as `<your host>/<agent>`.\n\
         Mail goes to `{node}/<agent>`.\n"
    )
}

/// Under whose name the services of a host have their instances.
pub fn owner(node: &str) -> String {
    format!("nodes/{node}")
}

/// Puts the directory of a host into the tree; returns its `services/`.
pub fn show(host: &Arc<HostState>, node: &str) -> Arc<Listing> {
    let (weak, name) = (Arc::downgrade(host), node.to_owned());
    let list = live(move |_| Ok(rows(&services(&*upgrade(&weak)?, &name))));
    let listing = Arc::new(Listing::timed(&host.context.clock).file("SERVICES.json", list));
    let (weak, name) = (Arc::downgrade(host), node.to_owned());
    let caps = live(move |_| {
        let seen = upgrade(&weak)?.fabric.seen(&name);
        Ok(pretty(&seen.map(|(about, ..)| about).unwrap_or_default()))
    });
    let dir = Listing::default()
        .file("README.md", text(readme(node)))
        .file("CAPS.json", caps)
        .file("STATUS.json", status(host, node))
        .with("services", Node::Dir(listing.clone()));
    if let Some(nodes) = host.dirs.nodes() {
        nodes.put(node, Node::dir(dir));
    }
    listing
}

fn services(host: &HostState, node: &str) -> Vec<Value> {
    let instances = host.context.instances_of(&owner(node));
    let row = |instance: &Arc<ServiceInstance>| {
        let service = instance.name().split_once('/').map_or(instance.name(), |(_, service)| service);
        json!({ "node_id": node, "service_id": service, "service_path": instance.path(),
            "invoke_path": format!("{}/control/invoke.json", instance.path()), "has_invoke": true, "scope": "node" })
    };
    instances.iter().map(row).collect()
}

/// `STATUS.json`: the host is asked. If nobody is there it is down at once; if it does not answer, its lease counts.
fn status(host: &Arc<HostState>, node: &str) -> ComputedFile {
    let (weak, node) = (Arc::downgrade(host), node.to_owned());
    ComputedFile::fetched(move |_| {
        let (weak, node) = (weak.clone(), node.clone());
        Answer::soon(async move { asked(&weak, &node).await.map(|status| pretty(&status)) })
    })
}

async fn asked(host: &Weak<HostState>, node: &str) -> Result<Value> {
    let (link, runtime) = {
        let host = upgrade(host)?;
        (host.fabric.link(), host.context.runtime.clone())
    };
    let to = node.to_owned();
    // On the runtime: the reader's thread is not in it.
    let asking = runtime.spawn(async move {
        let hello =
            |token| HostRequest { agent: OPERATOR.to_owned(), token, id: String::new(), about: RequestedThing::Hello };
        match link.ask(&to, Verb::Hello, hello, HELLO).await {
            Ok(Ok(_)) => (Some(true), None),
            Ok(Err(LinkFault::Nobody)) => (Some(false), None),
            // It is silent: whether it holds its name tells whether it is there.
            Ok(Err(fault)) => (holds_its_name(&link, &to).await.ok(), Some(fault.to_string())),
            Err(error) => (Some(false), Some(error.message)),
        }
    });
    let (is_up, error) = asking.await.map_err(|err| Error::internal(err.to_string()))?;
    let host = upgrade(host)?;
    if let Some(is_up) = is_up {
        host.fabric.noticed(node, is_up, host.context.clock.now_ms());
    }
    let (about, is_up, seen_at_ms) =
        host.fabric.seen(node).ok_or_else(|| Error::not_found("this host is forgotten"))?;
    Ok(json!({
        "node_id": node,
        "up": is_up,
        "seen_at_ms": seen_at_ms,
        "started_at_ms": about["started_at_ms"],
        "error": error,
    }))
}

/// Whether a host has renewed the lease on its name in time.
async fn holds_its_name(link: &HostLink, node: &str) -> Result<bool> {
    let (link, stream) = (link.current()?.link, streams::bucket_stream(streams::NODES));
    Ok(link.record(&stream, &subjects::presence(node)).await?.is_some_and(|record| !record.body.is_empty()))
}

/// Puts a service of a host into its directory, if it is new or has changed; takes one away that is not offered any more. A host
/// that comes back tells the same again: whoever has the service open, or calls it at that moment, keeps it.
pub fn put_service(host: &Arc<HostState>, node: &str, service: &str, record: &StoredRecord) {
    let told_now: [u8; 32] = Sha256::digest(&record.body).into();
    let listing = {
        let mut known = host.fabric.known.lock();
        let Some(known) = known.get_mut(node) else { return };
        let is_known = known.services.get(service) == Some(&told_now);
        if is_known || !is_token(service) || (known.services.len() >= MOST && !known.services.contains_key(service)) {
            return;
        }
        known.services.insert(service.to_owned(), told_now);
        known.listing.clone()
    };
    let owner = owner(node);
    let told = match record.body.is_empty() {
        true => None,
        false => serde_json::from_slice::<ToldContract>(&record.body).ok(),
    };
    let made = told.map(|told| FarService::new(node, service, &told, host.fabric.link()));
    match made {
        Some(Ok(serve)) => {
            let (path, default) =
                (format!("/nodes/{node}/services/{service}"), host.current.mounted_with.default_agent());
            let instance = ServiceInstance::shared(&host.context, default, path, Arc::new(serve));
            let _placing = host.dirs.placing();
            host.context.register(&owner, &instance);
            listing.put(service, Node::dir(directory(&instance)));
        }
        Some(Err(error)) => tracing::warn!(%error, node, service, "a contract cannot be read"),
        None => {
            host.context.unregister(&owner, &format!("{node}/{service}"));
            listing.take(service);
        }
    }
}
