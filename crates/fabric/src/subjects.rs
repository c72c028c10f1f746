//! The subjects. The host that speaks is a token of the subject, and the server lets only that host publish there: this, and
//! nothing in a message, says who spoke.

use crate::names::{check_node, is_token, text_of, token_of};

/// What one host asks another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Whether it is there.
    Hello,
    /// To make a call.
    Call,
    /// To tell when a call has ended.
    Wait,
    /// To cancel a call.
    Cancel,
    /// A part of a long result.
    Piece,
}

impl Verb {
    const ALL: [(Verb, &'static str); 5] = [
        (Verb::Hello, "hello"),
        (Verb::Call, "call"),
        (Verb::Wait, "wait"),
        (Verb::Cancel, "cancel"),
        (Verb::Piece, "piece"),
    ];

    pub fn name(self) -> &'static str {
        Verb::ALL.iter().find(|(verb, _)| *verb == self).map_or("", |(_, name)| name)
    }
}

/// A request of `from` to `to`.
pub fn request(to: &str, from: &str, verb: Verb) -> String {
    format!("ach.v1.to.{to}.{from}.{}", verb.name())
}

/// All requests to a host.
pub fn requests_to(node: &str) -> String {
    format!("ach.v1.to.{node}.>")
}

/// Who asks a host what.
pub fn read_request<'a>(subject: &'a str, node: &str) -> Option<(&'a str, Verb)> {
    let (from, verb) = subject.strip_prefix(&format!("ach.v1.to.{node}."))?.split_once('.')?;
    let verb = Verb::ALL.iter().find(|(_, name)| *name == verb)?.0;
    check_node(from).ok().map(|()| (from, verb))
}

/// Mail of a host for an agent of another.
pub fn mail(to: &str, from: &str, agent: &str) -> String {
    format!("ach.v1.mail.{to}.{from}.{agent}")
}

/// All mail for a host.
pub fn mail_for(node: &str) -> String {
    format!("ach.v1.mail.{node}.>")
}

/// The host that sent a letter, and the agent that it is for.
pub fn read_mail<'a>(subject: &'a str, node: &str) -> Option<(&'a str, &'a str)> {
    let (from, agent) = subject.strip_prefix(&format!("ach.v1.mail.{node}."))?.split_once('.')?;
    (check_node(from).is_ok() && is_token(agent)).then_some((from, agent))
}

/// The record of one item of a queue.
pub fn queue_item(queue: &str, id: &str) -> String {
    format!("ach.v1.queue.{queue}.{}", token_of(id))
}

/// The records of all queues.
pub const QUEUE_ITEMS: &str = "ach.v1.queue.>";

/// The queue and the id of a record.
pub fn read_queue_item(subject: &str) -> Option<(&str, String)> {
    let (queue, token) = subject.strip_prefix("ach.v1.queue.")?.split_once('.')?;
    text_of(token).map(|id| (queue, id)).filter(|_| is_token(queue))
}

/// What a host tells everybody who cares. Only hints: nothing depends on their arrival.
pub fn hints_from(node: &str) -> String {
    format!("ach.v1.from.{node}.hint")
}

/// The hints of all hosts.
pub const HINTS: &str = "ach.v1.from.*.hint";

/// Where answers to a host arrive.
pub fn inbox(node: &str) -> String {
    format!("_INBOX.{node}")
}

/// That a host is there: gone when nobody renews it.
pub fn presence(node: &str) -> String {
    format!("$KV.{}.{node}", crate::streams::NODES)
}

/// What a host is, also when it is not there.
pub fn description(node: &str) -> String {
    format!("$KV.{}.{node}", crate::streams::HOSTS)
}

/// The contract of a service that a host offers.
pub fn offered(node: &str, service: &str) -> String {
    format!("$KV.{}.{node}.{service}", crate::streams::HOSTS)
}

/// The key of a bucket behind a subject.
pub fn key_of<'a>(subject: &'a str, bucket: &str) -> Option<&'a str> {
    subject.strip_prefix("$KV.")?.strip_prefix(bucket)?.strip_prefix('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_says_who_speaks_to_whom_and_nothing_else_is_read() {
        assert_eq!(read_request(&request("styx", "lethe", Verb::Call), "styx"), Some(("lethe", Verb::Call)));
        for wrong in [
            "ach.v1.to.styx.lethe",
            "ach.v1.to.styx.lethe.shout",
            "ach.v1.to.styx.lethe.call.x",
            "ach.v1.to.other.lethe.call",
            "ach.v1.to.styx..call",
            "ach.v1.to.styx.local.call",
            "$JS.ACK.x",
        ] {
            assert_eq!(read_request(wrong, "styx"), None, "{wrong}");
        }
        assert_eq!(read_mail(&mail("styx", "lethe", "charon"), "styx"), Some(("lethe", "charon")));
        assert_eq!(read_mail(&mail("styx", "lethe", "charon"), "lethe"), None);
        assert_eq!(read_mail("ach.v1.mail.styx.lethe.a.b", "styx"), None);
        let item = queue_item("crawl", "page 1.*>");
        assert_eq!(read_queue_item(&item), Some(("crawl", "page 1.*>".to_owned())));
        assert_eq!(item.split('.').count(), 5, "{item}");
        assert_eq!(read_queue_item("ach.v1.queue.crawl.zz"), None);
        assert_eq!(key_of(&offered("styx", "mail"), "ach-hosts"), Some("styx.mail"));
        assert_eq!(key_of(&presence("styx"), "ach-nodes"), Some("styx"));
    }
}
