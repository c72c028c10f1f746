//! Everything that a server offers, as it is shown: compared as a whole, so that a reload happens only if something changed.

use serde_json::Value;

use crate::names::UniqueNames;
use crate::resources::{self, Resource, ResourceTemplate};
use crate::text::one_line;
use crate::tools::{self, Tool};
use crate::{MOST_RESOURCES, MOST_TOOLS};

/// The operation of ours that reads a resource by its URI.
pub const READ_RESOURCE: &str = "read_resource";

/// Who the server says that it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerIdentity {
    pub name: String,
    pub version: String,
    /// What it says about its use, in one line.
    pub instructions: String,
    pub tools: bool,
    pub resources: bool,
}

impl ServerIdentity {
    /// From the result of `initialize`, or of `server/discover`.
    pub fn of(result: &Value) -> ServerIdentity {
        let info = match result.get("serverInfo") {
            Some(info) => info,
            None => &result["_meta"]["io.modelcontextprotocol/serverInfo"],
        };
        let word = |key: &str, most: usize| one_line(info[key].as_str().unwrap_or_default(), most);
        let offers = |key: &str| result["capabilities"][key].is_object();
        ServerIdentity {
            name: word("name", 80),
            version: word("version", 40),
            instructions: one_line(result["instructions"].as_str().unwrap_or_default(), 2000),
            tools: offers("tools"),
            resources: offers("resources"),
        }
    }
}

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    pub identity: ServerIdentity,
    pub tools: Vec<Tool>,
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// The entries of the lists of a server.
#[derive(Clone, Debug, Default)]
pub struct ServerLists {
    pub tools: Vec<Value>,
    pub resources: Vec<Value>,
    pub templates: Vec<Value>,
}

impl Catalogue {
    pub fn of(identity: ServerIdentity, mut lists: ServerLists) -> Catalogue {
        let mut notes = Vec::new();
        let mut bounded = |entries: &mut Vec<Value>, most: usize, what: &str| {
            if entries.len() > most {
                notes.push(format!("The server has more than {most} {what}; the others are not served."));
                entries.truncate(most);
            }
        };
        bounded(&mut lists.tools, MOST_TOOLS, "tools");
        bounded(&mut lists.resources, MOST_RESOURCES, "resources");
        bounded(&mut lists.templates, MOST_RESOURCES, "templates of resources");
        let (tools, refused) = tools::read(&lists.tools, &mut UniqueNames::without(&["invoke", READ_RESOURCE]));
        if refused > 0 {
            notes.push(format!("{refused} entries in the server's list of tools are no tools and are not served."));
        }
        let resources = resources::read(&lists.resources, &mut UniqueNames::without(&["README.md"]));
        Catalogue { identity, tools, resources, templates: resources::templates(&lists.templates), notes }
    }

    /// The tool behind an operation.
    pub fn tool(&self, operation: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.operation == operation)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ten_thousand_tools_are_bounded_and_told() {
        let tools: Vec<Value> = (0..10_000).map(|number| json!({ "name": format!("tool_{number}") })).collect();
        let lists = ServerLists { tools, ..ServerLists::default() };
        let catalogue = Catalogue::of(ServerIdentity::default(), lists.clone());
        assert_eq!(catalogue.tools.len(), MOST_TOOLS);
        assert_eq!(catalogue.notes, ["The server has more than 1000 tools; the others are not served."]);
        assert_eq!(catalogue, Catalogue::of(ServerIdentity::default(), lists));
    }

    #[test]
    fn both_handshakes_tell_who_the_server_is() {
        let old = json!({"serverInfo": {"name": "git\n", "version": "1"}, "capabilities": {"tools": {}}});
        let new = json!({
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "git", "version": "1"}}, "capabilities": {"tools": {}}});
        let identity = ServerIdentity::of(&old);
        assert_eq!((identity.name.as_str(), identity.tools, identity.resources), ("git", true, false));
        assert_eq!(identity, ServerIdentity::of(&new));
        assert_eq!(ServerIdentity::of(&json!([])), ServerIdentity::default());
    }
}
