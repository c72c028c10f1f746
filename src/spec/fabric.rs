//! `fabric` of a mountspec: the server that joins this host to others, its name there, and what it offers them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Spec, is_id};
use acheron_base::quoted;
use acheron_fabric::names::{FarPattern, check_node};

/// Joins this host to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Fabric")]
pub struct FabricSpec {
    #[serde(default)]
    pub kind: FabricKind,
    /// The NATS server: `nats://host:4222`, or several with commas between them.
    pub url: String,
    /// The name of this host among the others: up to 32 of a-z, 0-9 and -.
    pub node: String,
    /// The file with this host's key, as `acheron fabric credentials` makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// A file with the certificates of who vouches for the server; the connection is then encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<String>,
    /// The monitoring address of the server (`http://127.0.0.1:8222`), which tells whether it writes to its disk at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<String>,
    /// What this host offers agents of other hosts, by service; nothing by default. `mail` lets them write to agents here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offer: BTreeMap<String, OfferSpec>,
    /// Queues that are shared with all hosts; any other queue is this host's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FabricKind {
    /// NATS with JetStream, 2.12 or newer.
    #[default]
    Nats,
}

/// A service that agents of other hosts may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Offer")]
pub struct OfferSpec {
    /// The agent whose service it is, and whose rights a call has; without it, a service with `"scope": "node"`. For `mail`: the one agent that may be
    /// written to, instead of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The operations; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// Who may call it: `node/agent`, `node/*` or `*`.
    #[schemars(length(min = 1))]
    pub to: Vec<String>,
}

/// The service that is not called but written to.
pub const MAIL: &str = "mail";

impl FabricSpec {
    /// What its offers allow: to whom, the paths that they may invoke, and whose rights such a call has.
    pub fn rules(&self) -> Vec<(FarPattern, String, Option<String>)> {
        let mut rules = Vec::new();
        for (service, offer) in &self.offer {
            let paths = offer.paths(service);
            for to in offer.to.iter().filter_map(|to| FarPattern::parse(to).ok()) {
                let lender = offer.agent.clone().filter(|_| service != MAIL);
                rules.extend(paths.iter().map(|path| (to.clone(), path.clone(), lender.clone())));
            }
        }
        rules
    }

    pub(super) fn faults(&self, spec: &Spec) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        let mut add = |path: String, said: String| faults.push((format!("fabric.{path}"), said));
        if cfg!(not(feature = "fabric")) {
            add("kind".to_owned(), "this program was built without the fabric".to_owned());
        }
        if let Err(error) = check_node(&self.node) {
            add("node".to_owned(), error.message);
        }
        let is_url = |url: &str| ["nats://", "tls://"].iter().any(|start| url.trim().starts_with(start));
        if !self.url.split(',').all(is_url) {
            let said =
                format!("{} is not the URL of a NATS server; it must begin with nats:// or tls://", quoted(&self.url));
            add("url".to_owned(), said);
        }
        if self.monitor.as_deref().is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
            add("monitor".to_owned(), "must begin with http:// or https://".to_owned());
        }
        for (at, queue) in self.queues.iter().enumerate().filter(|(_, queue)| !is_id(queue)) {
            add(format!("queues[{at}]"), format!("{} is not the name of a queue", quoted(queue)));
        }
        for (service, offer) in &self.offer {
            let path = format!("offer.{service}");
            for (at, to) in offer.to.iter().enumerate() {
                if let Err(error) = FarPattern::parse(to) {
                    add(format!("{path}.to[{at}]"), error.message);
                }
            }
            match &offer.agent {
                Some(agent) if !spec.agents.contains_key(agent) => {
                    add(format!("{path}.agent"), format!("there is no agent {}", quoted(agent)));
                }
                None if service != MAIL && !is_shared(spec, service) => {
                    let said = "names no agent, and no service with `\"scope\": \"node\"` is called so: say whose it is with `agent`";
                    add(path, said.to_owned());
                }
                _ => (),
            }
        }
        faults
    }
}

fn is_shared(spec: &Spec, service: &str) -> bool {
    spec.services.get(service).is_some_and(|service| service.scope == super::ServiceScope::Node)
}

impl OfferSpec {
    /// The paths that whoever it is offered to may invoke.
    fn paths(&self, service: &str) -> Vec<String> {
        if service == MAIL {
            return match &self.agent {
                Some(agent) => vec![format!("/agents/{agent}/mail/inbox")],
                None => vec!["/agents/*/mail/inbox".to_owned(), "/mail/inbox".to_owned()],
            };
        }
        let dir = match &self.agent {
            Some(agent) => format!("/agents/{agent}/{service}"),
            None => format!("/nodes/local/services/{service}"),
        };
        match &self.operations {
            Some(operations) => operations.iter().map(|name| format!("{dir}/control/{name}.json")).collect(),
            None => vec![format!("{dir}/control/*")],
        }
    }
}

#[cfg(test)]
mod tests;
