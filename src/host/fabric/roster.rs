//! The other hosts: who is known, and what they offer. What has changed is read from the server at every heartbeat, and at once when a host says
//! that something has changed.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::Notify;

use super::far_node;
use super::{FabricState, HostState};
use crate::host::upgrade;
use acheron_base::Result;
use acheron_fabric::names::check_node;
use acheron_fabric::{streams, subjects};
use acheron_nats::Link;
use acheron_vfs::Listing;

/// How often the roster is read.
const HEARTBEAT: Duration = Duration::from_secs(4);
/// The most hosts that are shown.
const MOST: usize = 10_000;

/// Another host, as it was last seen.
pub struct KnownNode {
    /// Its description.
    pub about: Value,
    pub is_up: bool,
    pub seen_at_ms: u64,
    /// Its services in the tree, with the hashes of what it told of them.
    pub services: HashMap<String, [u8; 32]>,
    /// `services/` of its directory.
    pub listing: Arc<Listing>,
}

/// Reads the roster again and again.
pub async fn follow(host: &Weak<HostState>, changed: &Notify, link: &Link) {
    let listening = async {
        let Ok(mut hints) = link.hints().await else { return };
        while let Some(hint) = hints.next().await {
            match (hint.starts_with(b"queue "), host.upgrade()) {
                (true, Some(host)) => host.shared.queues.far.hinted(),
                (false, Some(_)) => changed.notify_one(),
                (_, None) => return,
            }
        }
    };
    let reading = async {
        let mut next = 0;
        loop {
            match read(host, link, next).await {
                Ok(after) => next = after,
                Err(error) => tracing::warn!(%error, "the roster of hosts cannot be read"),
            }
            _ = tokio::time::timeout(HEARTBEAT, changed.notified()).await;
        }
    };
    tokio::join!(listening, reading);
}

/// Reads what has changed since a record, and returns the one to begin with the next time. Only that: a host that read of all
/// others at every heartbeat would make them many requests, and their number squared for all. Who is up is asked when somebody
/// wants to know.
async fn read(host: &Weak<HostState>, link: &Link, from: u64) -> Result<u64> {
    let filter = format!("$KV.{}.>", streams::HOSTS);
    let described = link.records(&streams::bucket_stream(streams::HOSTS), &filter, from).await?;
    let host = upgrade(host)?;
    let mut next = from;
    for record in &described {
        next = record.number + 1;
        let Some(key) = subjects::key_of(&record.subject, streams::HOSTS) else { continue };
        let (node, service) = key.split_once('.').map_or((key, None), |(node, service)| (node, Some(service)));
        if node == link.node() || check_node(node).is_err() {
            continue;
        }
        match service {
            None => note(&host, node, &record.body),
            Some(service) => far_node::put_service(&host, node, service, record),
        }
    }
    Ok(next)
}

/// Notes a host, and shows it if it is new.
fn note(host: &Arc<HostState>, node: &str, about: &[u8]) {
    let Ok(about) = serde_json::from_slice::<Value>(about) else { return };
    host.fabric.note_token(node, about["token"].as_u64().unwrap_or_default());
    let mut known = host.fabric.known.lock();
    let is_full = known.len() >= MOST;
    match known.get_mut(node) {
        Some(it) => it.about = about,
        None if is_full => (),
        None => {
            let listing = far_node::show(host, node);
            let seen_at_ms = about["started_at_ms"].as_u64().unwrap_or_default();
            let known_node = KnownNode { about, is_up: false, seen_at_ms, services: HashMap::new(), listing };
            known.insert(node.to_owned(), known_node);
        }
    }
}

impl FabricState {
    /// What is known of a host: its description, whether it was up when it was last asked, and when it was last up.
    pub fn seen(&self, node: &str) -> Option<(Value, bool, u64)> {
        self.known.lock().get(node).map(|it| (it.about.clone(), it.is_up, it.seen_at_ms))
    }

    /// A host has answered, or nobody was there.
    pub fn noticed(&self, node: &str, is_up: bool, now_ms: u64) {
        if let Some(it) = self.known.lock().get_mut(node) {
            it.is_up = is_up;
            if is_up {
                it.seen_at_ms = now_ms;
            }
        }
    }
}
