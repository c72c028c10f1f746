//! Who a message is from or for. Pure.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::policy::Principal;
use crate::spec::is_id;
use acheron_base::{Error, Result, quoted};

/// The name of the operator as a recipient; no agent can have it.
pub const OPERATOR: &str = "operator";
/// The node that this host is.
const LOCAL: &str = "local";

/// A mailbox of this host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    Operator,
    Agent(String),
}

impl Address {
    /// Parses `agent`, `node/agent` or `operator`.
    pub fn parse(text: &str) -> Result<Address> {
        let (node, name) = text.split_once('/').unwrap_or((LOCAL, text));
        if !is_id(node) || !is_id(name) {
            return Err(Error::invalid(format!(
                "{} is not a recipient: it is agent, node/agent or operator",
                quoted(text)
            )));
        }
        if node != LOCAL {
            return Err(Error::not_found(format!("there is no node {}: this host has joined no other", quoted(node))));
        }
        Ok(Address::stored(name))
    }

    /// The address behind a name in the database.
    pub fn stored(name: &str) -> Address {
        match name {
            OPERATOR => Address::Operator,
            agent => Address::Agent(agent.to_owned()),
        }
    }

    /// The address of a caller.
    pub fn of(principal: &Principal) -> Result<Address> {
        match principal {
            Principal::Operator => Ok(Address::Operator),
            Principal::Agent(id) => Ok(Address::Agent(id.clone())),
            Principal::Nobody => Err(Error::forbidden("the calling process has exited or is unknown")),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Address::Operator => OPERATOR,
            Address::Agent(id) => id,
        }
    }

    /// The directory of its mail.
    pub fn dir(&self) -> String {
        match self {
            Address::Operator => "/mail".to_owned(),
            Address::Agent(id) => format!("/agents/{id}/mail"),
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
        let read = |text: &str| Address::parse(text).map_err(|error| error.code.name());
        let agent = |id: &str| Ok(Address::Agent(id.to_owned()));
        assert_eq!(read("operator"), Ok(Address::Operator));
        assert_eq!((read("charon"), read("local/charon")), (agent("charon"), agent("charon")));
        assert_eq!(read("styx/charon"), Err("not_found"));
        for wrong in ["", "/", "a/", "/a", "a/b/c", "Charon", "../x", "a b", "a\n"] {
            assert_eq!(read(wrong), Err("invalid_payload"), "{wrong:?}");
        }
    }
}
