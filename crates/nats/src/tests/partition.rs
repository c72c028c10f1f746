//! The network between a host and the server breaks without a word: the server is in a network namespace of its own, and the
//! link to it is taken down.

use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::joined;
use crate::test_server::{NatsServer, server};
use crate::{Condition, LeaseHolder, LinkFault, NodeLease};
use acheron_fabric::lease::LeaseTimes;
use acheron_fabric::subjects;

const SHORT: LeaseTimes = LeaseTimes { ttl_ms: 4000, renew_ms: 500, stop_ms: 3000 };

/// A namespace with a link to it, which go with this.
struct Namespace {
    name: String,
    link: String,
    address: String,
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Namespace {
    fn new() -> Namespace {
        let number = std::process::id() % 60_000;
        let (name, link) = (format!("ach{number}"), format!("ach{number}a"));
        let net = format!("10.213.{}", number % 250);
        ip(&format!("netns add {name}"));
        let made = Namespace { name, link, address: format!("{net}.2") };
        let Namespace { name, link, address } = &made;
        ip(&format!("link add {link} type veth peer name {link}b"));
        ip(&format!("link set {link}b netns {name}"));
        ip(&format!("addr add {net}.1/24 dev {link}"));
        ip(&format!("link set {link} up"));
        ip(&format!("-n {name} addr add {address}/24 dev {link}b"));
        ip(&format!("-n {name} link set {link}b up"));
        made
    }

    fn cut(&self) {
        ip(&format!("link set {} down", self.link));
    }

    fn heal(&self) {
        ip(&format!("link set {} up", self.link));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        _ = Command::new("ip").args(["link", "del", &self.link]).output();
        _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_behind_a_broken_network_stops_and_loses_nothing() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("only root can make network namespaces");
        return;
    }
    let network = Namespace::new();
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let server = NatsServer::placed(
        dir,
        &server(),
        &store,
        (&network.address, Some(&network.name)),
        "sync_interval: always",
        "",
    );
    let link = joined(&server, "styx").await;
    let holder = LeaseHolder { instance: "a".to_owned(), started_at_ms: 1, token: 0, about: Value::Null };
    let lease = NodeLease::take(&link, SHORT, holder.clone()).await.unwrap();
    let (state, first) = (lease.watch(), lease.watch().borrow().unwrap());
    let keeping = tokio::spawn(lease.keep(|| Value::Null));
    let subject = subjects::mail("styx", "styx", "charon");
    link.store(&subject, Bytes::from_static(b"1"), &Condition::once("1")).await.unwrap();
    network.cut();
    let outcome = link.store(&subject, Bytes::from_static(b"2"), &Condition::once("2")).await;
    assert!(matches!(outcome, Err(LinkFault::Unknown(_))), "{outcome:?}");
    keeping.await.unwrap();
    assert_eq!(*state.borrow(), None, "it has stopped acting");
    network.heal();
    link.store_surely(&subject, Bytes::from_static(b"2"), &Condition::once("2"), Duration::from_secs(120))
        .await
        .unwrap();
    let begun = tokio::time::Instant::now();
    let again = loop {
        match NodeLease::take(&link, SHORT, holder.clone()).await {
            Ok(lease) => break lease,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(again.watch().borrow().unwrap() > first, "with a new token");
    let letters = link.fetch_mail(Duration::from_secs(10)).await.unwrap();
    assert_eq!(letters.iter().map(|it| &it.body[..]).collect::<Vec<_>>(), [b"1", b"2"], "both, once");
}
