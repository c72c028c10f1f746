//! Who a message is from or for. Pure.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::policy::Principal;
use crate::spec::is_id;
use acheron_base::{Error, Result, quoted};
use acheron_fabric::names::{FarAgent, LOCAL};

/// The name of the operator as a recipient; no agent can have it.
pub const OPERATOR: &str = "operator";

/// A mailbox: of this host, or of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    Operator,
    Agent(String),
    /// `node/agent`.
    Far(String),
}

impl Address {
    /// Parses `agent`, `node/agent` or `operator`. `own` is the name of this host, if it has joined others.
    pub fn parse(text: &str, own: Option<&str>) -> Result<Address> {
        let (node, name) = text.split_once('/').unwrap_or((LOCAL, text));
        if !is_id(node) || !is_id(name) {
            return Err(Error::invalid(format!(
                "{} is not a recipient: it is agent, node/agent or operator",
                quoted(text)
            )));
        }
        match own {
            own if node == LOCAL || own == Some(node) => Ok(Address::stored(name)),
            Some(_) => FarAgent::new(node, name).map(|far| Address::Far(far.to_string())),
            None => Err(Error::not_found(format!("there is no node {}: this host has joined no other", quoted(node)))),
        }
    }

    /// An agent of another host.
    pub fn far(&self) -> Option<FarAgent> {
        match self {
            Address::Far(name) => FarAgent::parse(name).ok(),
            Address::Operator | Address::Agent(_) => None,
        }
    }

    /// The address behind a name in the database.
    pub fn stored(name: &str) -> Address {
        match name {
            OPERATOR => Address::Operator,
            far if far.contains('/') => Address::Far(far.to_owned()),
            agent => Address::Agent(agent.to_owned()),
        }
    }

    /// The address of a caller.
    pub fn of(principal: &Principal) -> Result<Address> {
        match principal {
            Principal::Operator => Ok(Address::Operator),
            Principal::Agent(id) => Ok(Address::Agent(id.clone())),
            Principal::Far(far) => Ok(Address::Far(far.clone())),
            Principal::Nobody => Err(Error::forbidden("the calling process has exited or is unknown")),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Address::Operator => OPERATOR,
            Address::Agent(id) | Address::Far(id) => id,
        }
    }

    /// The directory of its mail.
    pub fn dir(&self) -> String {
        match self {
            Address::Operator => "/mail".to_owned(),
            Address::Agent(id) => format!("/agents/{id}/mail"),
            Address::Far(far) => match far.split_once('/') {
                Some((node, agent)) => format!("/nodes/{node}/mail/{agent}"),
                None => format!("/nodes/{far}/mail"),
            },
        }
    }

    /// The path that a rule names to let an agent send mail there: `invoke` on it.
    pub fn inbox(&self) -> String {
        format!("{}/inbox", self.dir())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipient_is_an_agent_one_of_a_node_or_the_operator() {
        let read = |text: &str| Address::parse(text, None).map_err(|error| error.code.name());
        let agent = |id: &str| Ok(Address::Agent(id.to_owned()));
        assert_eq!(read("operator"), Ok(Address::Operator));
        assert_eq!((read("charon"), read("local/charon")), (agent("charon"), agent("charon")));
        assert_eq!(read("styx/charon"), Err("not_found"));
        for wrong in ["", "/", "a/", "/a", "a/b/c", "Charon", "../x", "a b", "a\n"] {
            assert_eq!(read(wrong), Err("invalid_payload"), "{wrong:?}");
        }
        let joined = |text: &str| Address::parse(text, Some("lethe")).map_err(|error| error.code.name());
        assert_eq!((joined("lethe/charon"), joined("local/charon")), (agent("charon"), agent("charon")));
        let far = joined("styx/charon").unwrap();
        assert_eq!((far.name(), far.inbox().as_str()), ("styx/charon", "/nodes/styx/mail/charon/inbox"));
        assert_eq!((Address::stored(far.name()), far.far().is_some()), (far, true));
    }
}
