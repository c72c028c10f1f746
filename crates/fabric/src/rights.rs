//! What the server lets a host do: its permissions, generated, and the part of the server's configuration that has them.
//!
//! A host publishes in its own name only, reads its own mail and its own answers only, and makes neither streams nor readers: a
//! reader names its subjects in the body of a request, which no permission can narrow.

use serde_json::{Value, json};

use crate::streams::{self, HOSTS, MAIL, NODES, QUEUE};
use crate::subjects;

/// What one host may publish and subscribe to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRights {
    pub publish: Vec<String>,
    pub subscribe: Vec<String>,
}

/// The rights of a host.
pub fn of(node: &str) -> HostRights {
    let (nodes, hosts) = (streams::bucket_stream(NODES), streams::bucket_stream(HOSTS));
    let mut publish = vec![
        format!("ach.v1.to.*.{node}.*"),
        format!("ach.v1.mail.*.{node}.*"),
        "ach.v1.queue.*.*".to_owned(),
        subjects::hints_from(node),
        subjects::presence(node),
        subjects::description(node),
        format!("{}.*", subjects::description(node)),
        format!("$JS.API.CONSUMER.MSG.NEXT.{MAIL}.{node}"),
        format!("$JS.API.CONSUMER.INFO.{MAIL}.{node}"),
        format!("$JS.ACK.{MAIL}.{node}.>"),
        "$JS.API.INFO".to_owned(),
    ];
    for stream in [MAIL, QUEUE, &nodes, &hosts] {
        publish.push(format!("$JS.API.STREAM.INFO.{stream}"));
    }
    for stream in [QUEUE, &nodes, &hosts] {
        publish.push(format!("$JS.API.DIRECT.GET.{stream}"));
        publish.push(format!("$JS.API.DIRECT.GET.{stream}.>"));
    }
    let subscribe =
        vec![subjects::requests_to(node), subjects::HINTS.to_owned(), format!("{}.>", subjects::inbox(node))];
    HostRights { publish, subscribe }
}

/// The longest time that a host may take for an answer, in seconds; the server forgets whom it may answer then.
pub const ANSWER_WITHIN: u64 = 120;

/// A user of the server, as its configuration has it.
fn user(key: &str, rights: Option<&HostRights>) -> Value {
    match rights {
        None => json!({ "nkey": key }),
        Some(rights) => json!({
            "nkey": key,
            "permissions": {
                "publish": { "allow": rights.publish },
                "subscribe": { "allow": rights.subscribe },
                "allow_responses": { "max": 1, "expires": format!("{ANSWER_WITHIN}s") },
            },
        }),
    }
}

/// `authorization` of the server's configuration, for the operator's key and the keys of hosts. JSON is what the server reads.
pub fn authorization(operator: Option<&str>, hosts: &[(String, String)]) -> String {
    let mut users: Vec<Value> = operator.map(|key| user(key, None)).into_iter().collect();
    users.extend(hosts.iter().map(|(node, key)| user(key, Some(&of(node)))));
    let shown = serde_json::to_string_pretty(&json!({ "users": users })).unwrap_or_default();
    format!("authorization: {shown}\n")
}

#[cfg(test)]
mod tests;
