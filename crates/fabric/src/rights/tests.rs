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
