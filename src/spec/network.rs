//! `sandbox.network`: which agents' programs may use the network, and how much of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use acheron_proxy::{HostRule, HostRules};

/// Whose programs may use the network. An agent that is not named has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum NetworkAccess {
    /// Agents whose programs share the network of this machine, with all that it reaches.
    Machine(Vec<String>),
    /// By agent, the hosts that its programs reach through a proxy of the host: `{"charon": ["api.github.com:443",
    /// "*.example.org:443"]}`. Without a port, 443 is meant; `*` is every name. An address that is not public, such as
    /// `10.0.0.5:5432` or `10.0.0.0/8:443`, is reached only if it is named itself, whatever a name resolves to.
    Hosts(BTreeMap<String, Vec<String>>),
}

impl Default for NetworkAccess {
    fn default() -> Self {
        NetworkAccess::Machine(Vec::new())
    }
}

impl NetworkAccess {
    /// Whether the programs of an agent share the network of the machine.
    pub fn shares_machine(&self, agent: &str) -> bool {
        matches!(self, NetworkAccess::Machine(agents) if agents.iter().any(|name| name == agent))
    }

    /// The hosts that the programs of an agent reach by name. What is no rule was reported when the mountspec was checked.
    pub fn hosts(&self, agent: &str) -> HostRules {
        let named = match self {
            NetworkAccess::Hosts(agents) => agents.get(agent).map_or(&[][..], Vec::as_slice),
            NetworkAccess::Machine(_) => &[],
        };
        named.iter().filter_map(|text| text.parse::<HostRule>().ok()).collect()
    }

    /// What is no rule, with its place and the reason.
    pub(super) fn faults(&self) -> Vec<(String, String)> {
        let NetworkAccess::Hosts(agents) = self else { return Vec::new() };
        let numbered =
            agents.iter().flat_map(|(agent, rules)| rules.iter().enumerate().map(move |(at, rule)| (agent, at, rule)));
        let faulty = numbered.filter_map(|(agent, at, rule)| {
            let error = rule.parse::<HostRule>().err()?;
            Some((format!("sandbox.network.{agent}[{at}]"), error.message))
        });
        faulty.collect()
    }
}
