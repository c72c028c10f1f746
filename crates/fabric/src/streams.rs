//! What the server keeps: two streams and two buckets, and one reader of mail per host. The descriptions are those of the
//! server's own interface, as JSON; what a server answers is compared with them, because an old one drops what it does not know.

use serde_json::{Value, json};

use crate::subjects;

/// Mail between hosts, until its host has it.
pub const MAIL: &str = "ACH_MAIL";
/// The items of the queues that all hosts share: the last record of each.
pub const QUEUE: &str = "ACH_QUEUE";
/// The buckets of hosts that are there, and of what hosts are.
pub const NODES: &str = "ach-nodes";
pub const HOSTS: &str = "ach-hosts";

/// The stream behind a bucket.
pub fn bucket_stream(bucket: &str) -> String {
    format!("KV_{bucket}")
}

const SECOND: u64 = 1_000_000_000;
/// A message with the same id within this time is the same message.
const DUPLICATES: u64 = 600 * SECOND;
/// Mail that no host has fetched is dropped after this time.
const MAIL_AGE: u64 = 30 * 24 * 3600 * SECOND;
/// Letters that a host has been handed and has not confirmed.
pub const UNCONFIRMED: u64 = 1000;
/// After this time a letter that was not confirmed is handed out again.
const CONFIRM_WITHIN: u64 = 30 * SECOND;

/// The streams of a fabric whose server keeps so many copies.
pub fn all(replicas: u64) -> Vec<Value> {
    let mut all = vec![
        json!({
            "name": MAIL,
            "description": "acheron: mail between hosts",
            "subjects": ["ach.v1.mail.>"],
            "retention": "workqueue",
            "discard": "new",
            "max_age": MAIL_AGE,
            "duplicate_window": DUPLICATES,
            "allow_atomic": true,
            // One reader per host; without this the server stops before 6,000 (measured with 2.15.1).
            "max_consumers": 100_000,
        }),
        json!({
            "name": QUEUE,
            "description": "acheron: queues that hosts share",
            "subjects": [subjects::QUEUE_ITEMS],
            "retention": "limits",
            "discard": "new",
            "max_msgs_per_subject": 1,
            "duplicate_window": DUPLICATES,
            "allow_direct": true,
            "allow_msg_ttl": true,
            "allow_atomic": true,
        }),
    ];
    for (bucket, about) in [(NODES, "acheron: hosts that are there"), (HOSTS, "acheron: what hosts are and offer")] {
        all.push(json!({
            "name": bucket_stream(bucket),
            "description": about,
            "subjects": [format!("$KV.{bucket}.>")],
            "retention": "limits",
            "discard": "new",
            "max_msgs_per_subject": 1,
            "allow_direct": true,
            "allow_msg_ttl": true,
            "allow_rollup_hdrs": true,
        }));
    }
    for stream in &mut all {
        stream["storage"] = json!("file");
        stream["num_replicas"] = json!(replicas);
    }
    all
}

/// The reader of a host's mail.
pub fn mail_reader(node: &str) -> Value {
    json!({
        "durable_name": node,
        "name": node,
        "filter_subject": subjects::mail_for(node),
        "ack_policy": "explicit",
        "deliver_policy": "all",
        "ack_wait": CONFIRM_WITHIN,
        "max_ack_pending": UNCONFIRMED,
        "max_deliver": -1,
    })
}

/// What a server made of a description, compared with it: the keys that it changed or dropped.
pub fn differences(wanted: &Value, made: &Value) -> Vec<String> {
    let Some(wanted) = wanted.as_object() else { return Vec::new() };
    let differs = |(key, value): (&String, &Value)| {
        let made = made.get(key);
        match made == Some(value) {
            true => None,
            false => Some(format!("{key} is {} instead of {value}", made.unwrap_or(&Value::Null))),
        }
    };
    wanted.iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_drops_is_found() {
        let wanted = &all(1)[0];
        let mut made = wanted.clone();
        made["more"] = json!(1);
        assert_eq!(differences(wanted, &made), Vec::<String>::new());
        made.as_object_mut().unwrap().remove("allow_atomic");
        assert_eq!(differences(wanted, &made), ["allow_atomic is null instead of true"]);
    }

    #[test]
    fn no_two_streams_take_the_same_subject() {
        let all = all(3);
        let subjects: Vec<&str> = all.iter().map(|stream| stream["subjects"][0].as_str().unwrap()).collect();
        let distinct: std::collections::BTreeSet<_> = subjects.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert!(all.iter().all(|stream| stream["num_replicas"] == 3 && stream["storage"] == "file"));
    }
}
