//! The network by name: a proxy of the host for each sandbox whose agent may reach some hosts and no others.
//!
//! [`rules`] is the one function that decides what an agent may reach; every sandbox with a proxy, however it was started, is
//! served by [`serve`]. What is refused is an event of the agent and a line of the audit. The host uses it; the proxy itself
//! is in `crates/http`.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::json;

use super::HostState;
use super::refusal_rate::{Noted, RefusalRate};
use super::runs::messages::RefusedHost;
use crate::policy::Principal;
use crate::state::audit;
use acheron_base::Result;
use acheron_http::proxy::{ProxyPolicy, ServedProxy, SystemResolver, serve_proxy};
use acheron_proxy::{Destination, HostRefusal, HostRule, HostRules};

/// The number of refused hosts of one program that are remembered.
const REMEMBERED: usize = 64;

/// What the proxies of a host share.
#[derive(Default)]
pub struct HostNetwork {
    /// The hosts that a program may reach beyond the mountspec while it runs, by agent.
    for_runs: Mutex<BTreeMap<String, Vec<HostRule>>>,
    served: Mutex<Vec<Weak<ServedProxy>>>,
    rate: RefusalRate,
}

impl HostNetwork {
    /// Lets the programs of an agent reach more hosts, until [`take_back`](HostNetwork::take_back).
    pub fn grant(&self, agent: &str, rules: Vec<HostRule>) {
        self.for_runs.lock().insert(agent.to_owned(), rules);
    }

    pub fn take_back(&self, agent: &str) {
        self.for_runs.lock().remove(agent);
    }

    /// Ends the tunnels that are no longer allowed.
    pub fn rules_changed(&self) {
        let mut all = self.served.lock();
        all.retain(|served| match served.upgrade() {
            Some(served) => {
                served.rules_changed();
                true
            }
            None => false,
        });
    }
}

/// The hosts that the programs of an agent may reach by name, now.
pub fn rules(host: &HostState, agent: &str) -> HostRules {
    let mut rules = host.current.spec().sandbox.network.hosts(agent);
    rules.add(host.network.for_runs.lock().get(agent).cloned().unwrap_or_default());
    rules
}

/// Serves the listener of one sandbox until what is returned is dropped. Must be called within a runtime.
pub fn serve(host: &Arc<HostState>, agent: &str, listener: TcpListener) -> Result<AgentProxy> {
    let policy =
        Arc::new(AgentPolicy { host: Arc::downgrade(host), agent: agent.to_owned(), totals: Mutex::default() });
    let served = Arc::new(serve_proxy(listener, policy.clone(), Arc::new(SystemResolver))?);
    host.network.served.lock().push(Arc::downgrade(&served));
    Ok(AgentProxy { policy, _served: served })
}

/// The proxy of one sandbox. Dropping it closes every tunnel.
pub struct AgentProxy {
    policy: Arc<AgentPolicy>,
    _served: Arc<ServedProxy>,
}

/// What went through a proxy, and what did not.
#[derive(Clone, Default)]
pub struct ProxyTotals {
    pub opened: u64,
    pub refused: Vec<RefusedHost>,
}

impl AgentProxy {
    pub fn totals(&self) -> ProxyTotals {
        self.policy.totals.lock().clone()
    }
}

struct AgentPolicy {
    host: Weak<HostState>,
    agent: String,
    totals: Mutex<ProxyTotals>,
}

impl ProxyPolicy for AgentPolicy {
    fn rules(&self) -> HostRules {
        self.host.upgrade().map(|host| rules(&host, &self.agent)).unwrap_or_default()
    }

    fn opened(&self, _to: &Destination) {
        self.totals.lock().opened += 1;
    }

    fn refused(&self, to: &Destination, refusal: &HostRefusal) {
        let HostRefusal { why, allow } = refusal.clone();
        let refused = RefusedHost { host: to.to_string(), why, allow };
        {
            let known = &mut self.totals.lock().refused;
            if known.len() < REMEMBERED && !known.contains(&refused) {
                known.push(refused.clone());
            }
        }
        if let Some(host) = self.host.upgrade() {
            write_down(&host, &self.agent, refused);
        }
    }
}

/// Tells the agent's log and the audit, unless there were so many that they are only counted.
fn write_down(host: &HostState, agent: &str, refused: RefusedHost) {
    let (principal, at_ms) = (Principal::Agent(agent.to_owned()).to_string(), host.context.clock.now_ms());
    let Noted::Written { omitted } = host.network.rate.note(&principal, at_ms) else { return };
    tracing::warn!(principal, host = refused.host, why = refused.why, omitted, "refused a host");
    if let Ok(log) = host.context.event_logs.of(agent) {
        let path = format!("/agents/{agent}/terminal/sandbox.json");
        log.note(
            "network",
            &path,
            json!({"refused": refused.host, "why": refused.why, "allow": refused.allow, "omitted": omitted}),
        );
    }
    let entry = audit::AuditEntry {
        at_ms,
        principal,
        pid: 0,
        action: "connect".to_owned(),
        path: refused.host,
        allowed: false,
        reason: refused.why,
    };
    drop(host.store.write(move |tx| audit::insert(tx, &entry)));
}
