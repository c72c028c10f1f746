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
mod tests {
    use super::*;

    /// Whether a subject lies under a pattern of the server.
    fn covers(pattern: &str, subject: &str) -> bool {
        let (mut own, mut its) = (pattern.split('.'), subject.split('.'));
        loop {
            match (own.next(), its.next()) {
                (Some(">"), Some(_)) => return true,
                (Some("*"), Some(_)) => (),
                (Some(one), Some(other)) if one == other => (),
                (None, None) => return true,
                _ => return false,
            }
        }
    }

    fn may(rights: &[String], subject: &str) -> bool {
        rights.iter().any(|pattern| covers(pattern, subject))
    }

    #[test]
    fn a_host_speaks_in_its_own_name_only() {
        let styx = of("styx");
        for subject in [
            subjects::request("lethe", "styx", subjects::Verb::Call),
            subjects::mail("lethe", "styx", "charon"),
            subjects::presence("styx"),
            subjects::offered("styx", "dm"),
            subjects::queue_item("crawl", "1"),
            "$JS.ACK.ACH_MAIL.styx.1.2.3".to_owned(),
            "$JS.API.CONSUMER.MSG.NEXT.ACH_MAIL.styx".to_owned(),
        ] {
            assert!(may(&styx.publish, &subject), "{subject}");
        }
        for subject in [
            subjects::request("styx", "lethe", subjects::Verb::Call),
            subjects::mail("styx", "lethe", "charon"),
            subjects::presence("lethe"),
            subjects::offered("lethe", "dm"),
            subjects::hints_from("lethe"),
            "_INBOX.lethe.x".to_owned(),
            "$JS.ACK.ACH_MAIL.lethe.1.2.3".to_owned(),
            "$JS.API.CONSUMER.MSG.NEXT.ACH_MAIL.lethe".to_owned(),
            "$JS.API.CONSUMER.CREATE.KV_ach-nodes".to_owned(),
            "$JS.API.CONSUMER.DURABLE.CREATE.ACH_MAIL.x".to_owned(),
            "$JS.API.STREAM.CREATE.X".to_owned(),
            "$JS.API.STREAM.DELETE.ACH_MAIL".to_owned(),
            "$JS.API.STREAM.PURGE.ACH_QUEUE".to_owned(),
            "$JS.API.STREAM.MSG.GET.ACH_MAIL".to_owned(),
            "$JS.API.DIRECT.GET.ACH_MAIL".to_owned(),
        ] {
            assert!(!may(&styx.publish, &subject), "{subject}");
        }
        for subject in ["ach.v1.to.lethe.styx.call", "_INBOX.lethe.x", "ach.v1.mail.styx.lethe.charon", "x"] {
            assert!(!may(&styx.subscribe, subject), "{subject}");
        }
    }
}
